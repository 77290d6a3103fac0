"""Test suites that are in no wheel: repositories on GitHub, of which nothing is installed."""

from __future__ import annotations

import http.client
import io
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tools.cuda_suite.wheel import FetchError

SECONDS = 120


@dataclass(frozen=True)
class Repository:
    """A repository: its owner, the release or commit, and the folders to extract."""

    owner: str
    name: str
    reference: str
    tests: str
    """The folder of the tests."""
    besides: tuple[str, ...] = ()
    """Folders that the tests also need, without the code that they test."""

    @property
    def archive(self) -> str:
        """The address of the archive."""
        return f"https://github.com/{self.owner}/{self.name}/archive/{self.reference}.tar.gz"

    @property
    def taken(self) -> tuple[str, ...]:
        """The folders to extract."""
        return (self.tests, *self.besides)


NUMBA_CUDA_MLIR = Repository(
    "NVIDIA", "numba-cuda-mlir", "refs/tags/v0.5.0", "tests", ("src/numba_cuda_mlir/numba_cuda/tests",)
)
NUMBA_HIP = Repository("ROCm", "numba-hip", "3e25e074c1a08166522bb76575f324ee494156f0", "numba/hip/tests")
"""The last commit that has tests. It is older than the release 0.2.1, whose wheel has none."""
CUDA_CCCL = Repository(
    "NVIDIA", "cccl", "571f2fc3bc53cd710e306ad43d58995c1fe4219f", "python/cuda_cccl/tests/compute",
    ("python/cuda_cccl/tests/_utils",),
)  # fmt: skip


def fetch_repository(cache: Path, repository: Repository, source: Path | None = None) -> Path:
    """The folder with the tests: in *source*, a copy of the *repository*, or downloaded into *cache*.

    Raises `FetchError` if it cannot be downloaded, or contains no tests.
    """
    folder = cache / f"{repository.name}-{repository.reference.rpartition('/')[2]}" if source is None else source
    if source is None and not (folder / "complete").exists():
        _unpack(_download(repository), repository, folder)
    if not all((folder / taken).is_dir() for taken in repository.taken):
        names = " and ".join(repository.taken)
        raise FetchError(f"{folder} has no {names}: is it a copy of {repository.name}'s repository?")
    if source is None:
        (folder / "complete").touch()
    return folder.resolve() / repository.tests


def _download(repository: Repository) -> bytes:
    try:
        with urllib.request.urlopen(repository.archive, timeout=SECONDS) as answer:
            return bytes(answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(
            f"{repository.archive} could not be downloaded ({error}); give a copy of the repository with --source"
        ) from None


def _unpack(archive: bytes, repository: Repository, folder: Path) -> None:
    """The part of the *archive* that is taken, as *folder*."""
    taken = tuple(f"{name}/" for name in repository.taken)
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
            for member in opened.getmembers():
                _, _, inside = member.name.partition("/")
                content = opened.extractfile(member) if member.isfile() and inside.startswith(taken) else None
                if content is not None and ".." not in inside.split("/"):
                    file = folder / inside
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content.read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FetchError(
            f"what {repository.archive} gives cannot be unpacked into {folder} ({error}); give a copy with --source"
        ) from None
