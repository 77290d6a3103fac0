"""Where the tests of numba-cuda-mlir come from: its repository, as its wheel holds none. Nothing of it is installed."""

from __future__ import annotations

import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from tools.cuda_suite.wheel import FetchError

VERSION = "0.5.0"
ARCHIVE = f"https://github.com/NVIDIA/numba-cuda-mlir/archive/refs/tags/v{VERSION}.tar.gz"
SECONDS = 120
TAKEN = ("tests/", "src/numba_cuda_mlir/numba_cuda/tests/")
"""What is taken out of it: tests and what they are derived from, and nothing that they test."""


def fetch_repository(cache: Path, source: Path | None) -> Path:
    """The folder with the tests: in *source*, a copy of the repository, or downloaded into *cache*.

    Raises `FetchError` where it cannot be downloaded, or holds no tests.
    """
    if source is None:
        source = cache / f"numba-cuda-mlir-{VERSION}"
        if not (source / "complete").exists():
            _download(cache, source)
            (source / "complete").touch()
    if not all((source / folder).is_dir() for folder in TAKEN):
        raise FetchError(f"{source} has no {' and '.join(TAKEN)}: is it a copy of numba-cuda-mlir's repository?")
    return source.resolve() / "tests"


def _download(cache: Path, folder: Path) -> None:
    """The part of the archive that is taken, as *folder*."""
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / f"numba-cuda-mlir-{VERSION}.tar.gz"
    try:
        with urllib.request.urlopen(ARCHIVE, timeout=SECONDS) as answer:
            archive.write_bytes(answer.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise FetchError(
            f"{ARCHIVE} could not be downloaded ({error}); give a copy of the repository with --source"
        ) from None
    with tarfile.open(archive) as opened:
        for member in opened.getmembers():
            _, _, inside = member.name.partition("/")
            if member.isfile() and inside.startswith(TAKEN) and ".." not in inside.split("/"):
                content = opened.extractfile(member)
                if content is not None:
                    file = folder / inside
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content.read())
