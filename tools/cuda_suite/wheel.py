"""The tests in the wheel of numba-cuda, which is fetched but never installed.

If it were installed, its redirector would take over the name `numba.cuda` whenever Python starts.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from hip_devicelib.cache import user_directory

VERSION = "0.30.4"
SOURCE = "numba_cuda/numba/cuda/tests/"
"""The parts of the wheel that are extracted: its tests, and nothing that they test."""


NOT_FETCHED = 75
"""The exit status if the wheel is not available: nothing was tested, and nothing failed."""


class FetchError(RuntimeError):
    """The wheel could not be downloaded, or contains no tests."""


def default_cache() -> Path:
    """The folder for what is downloaded."""
    return user_directory("numba-hip", "XDG_CACHE_HOME") / "cuda-suite"


def fetch_tests(cache: Path) -> Path:
    """The folder ``.../numba/cuda/tests`` with numba-cuda's tests, downloaded into *cache* if necessary."""
    unpacked = cache / f"numba-cuda-{VERSION}"
    tests = unpacked / "numba" / "cuda" / "tests"
    if not (unpacked / "complete").exists():
        _unpack(download(cache, "numba-cuda", VERSION), unpacked)
        if not (tests / "__init__.py").exists():
            raise FetchError(f"the wheel of numba-cuda {VERSION} holds no {SOURCE}")
        (unpacked / "complete").touch()
    return tests


def download(cache: Path, project: str, version: str) -> Path:
    """The wheel of that release, in the folder *cache*."""
    pattern = f"{project.replace('-', '_')}-{version}-*.whl"
    if not list(cache.glob(pattern)):
        cache.mkdir(parents=True, exist_ok=True)
        options = ["--no-deps", "--only-binary=:all:", "--quiet", "--dest", str(cache)]
        pip = [sys.executable, "-m", "pip", "download", *options, f"{project}=={version}"]
        result = subprocess.run(pip, capture_output=True, text=True)
        if result.returncode:
            raise FetchError(f"pip could not download {project} {version}:\n{result.stderr.strip()}")
    (wheel,) = cache.glob(pattern)
    return wheel


def _unpack(wheel: Path, folder: Path) -> None:
    """The tests of *wheel* as ``folder/numba/cuda/tests``."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(SOURCE) and not name.endswith("/"):
                file = folder / name.removeprefix("numba_cuda/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(name))
