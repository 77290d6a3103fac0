"""Finds ROCm on this machine: a catalog of its files, and an ordered tuple of steps that find its root.

The first step that gives a directory with any file of the catalog decides, so that files of two ROCms are never mixed.
A place that the user names (in an argument or an environment variable) is binding: if ROCm is not there, that is an
error, and no other place is tried. Libraries are looked for by their versioned names, since the unversioned ones exist
only if development packages are installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from hip_devicelib.errors import NotFoundError

ROOT_VARIABLES = ("ROCM_PATH", "ROCM_HOME", "HIP_PATH")
"""Environment variables for the root of ROCm, in order of precedence."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of ROCm: ``patterns`` are tried in turn in each of ``folders``, relative to a root."""

    name: str
    purpose: str
    folders: tuple[str, ...]
    patterns: tuple[str, ...]


_LIBRARY_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "")
_PROGRAM_FOLDERS = ("llvm/bin", "lib/llvm/bin", "bin")
_BITCODE_FOLDERS = (
    "amdgcn/bitcode",
    "lib/llvm/amdgcn/bitcode",
    "lib/amdgcn/bitcode",
    "lib/llvm/lib/clang/*/amdgcn/bitcode",
    "lib/llvm-*/lib/clang/*/amdgcn/bitcode",
)


def _library(name: str, stem: str, purpose: str) -> Wanted:
    return Wanted(name, purpose, _LIBRARY_FOLDERS, (f"{stem}.so.[0-9]", f"{stem}.so.[0-9]*", f"{stem}.so"))


CATALOG: Mapping[str, Wanted] = MappingProxyType(
    {
        wanted.name: wanted
        for wanted in (
            _library("hiprtc", "libhiprtc", "compiles HIP C++ to bitcode"),
            _library("hiprtc-builtins", "libhiprtc-builtins", "holds the text of the HIP header"),
            _library("comgr", "libamd_comgr", "links code objects"),
            _library("hip", "libamdhip64", "the HIP runtime"),
            _library("rccl", "librccl", "sums and broadcasts among GPUs"),
            Wanted("clang", "compiles HIP C++ to bitcode", _PROGRAM_FOLDERS, ("clang++", "amdclang++")),
            Wanted("ld.lld", "links code objects", _PROGRAM_FOLDERS, ("ld.lld",)),
            Wanted("hip-header", "declares HIP's functions to clang", ("include/hip",), ("hip_runtime.h",)),
            Wanted("device-libraries", "math and other functions as bitcode", _BITCODE_FOLDERS, ("ocml.bc",)),
        )
    }
)
"""Every file that this package can use, by name."""


@dataclass(frozen=True)
class Rocm:
    """A ROCm: its root, the step that found it, and the files of the catalog that it has."""

    root: Path
    found_by: str
    files: Mapping[str, Path]

    def require(self, name: str) -> Path:
        """The file called *name* in the catalog. `NotFoundError` says what was looked for and where."""
        if name in self.files:
            return self.files[name]
        wanted = CATALOG[name]
        raise NotFoundError(
            f"this ROCm, {self.root} (found by {self.found_by}), has no {name} ({wanted.purpose}); looked for "
            f"{' or '.join(wanted.patterns)} in {', '.join(str(self.root / folder) for folder in wanted.folders)}. "
            f"Install that part of ROCm, or set {ROOT_VARIABLES[0]} to a whole one"
        )

    def version(self, name: str) -> str | None:
        """The version of the library called *name* (``6.4.43484``), if its file name has one."""
        path = self.files.get(name)
        found = re.search(r"\.so\.([0-9.]+)$", path.resolve().name) if path else None
        return found.group(1) if found else None


@dataclass(frozen=True, slots=True)
class Step:
    """A way to find ROCm: ``roots`` yields directories. If it is ``binding``, one of them must contain ROCm."""

    name: str
    binding: bool
    roots: Callable[[], Iterator[tuple[str, Path]]]


def _roots_of_variables() -> Iterator[tuple[str, Path]]:
    for variable in ROOT_VARIABLES:
        if value := os.environ.get(variable):
            yield variable, Path(value)


def _roots_of_wheels() -> Iterator[tuple[str, Path]]:
    for package in ("_rocm_sdk_devel", "_rocm_sdk_core"):
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations if spec else None) or ():
            yield f"the Python package {package}", Path(location)


def _roots_of_system() -> Iterator[tuple[str, Path]]:
    yield "/opt/rocm", Path("/opt/rocm")
    newest_first = sorted(Path("/opt").glob("rocm-*"), key=_version_key, reverse=True)
    yield from ((str(path), path) for path in newest_first)


def _version_key(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path.name))


def _roots_of_loader() -> Iterator[tuple[str, Path]]:
    """The dynamic loader's directories: those of the environment, then those in its cache."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if folder:
            yield "LD_LIBRARY_PATH", Path(folder)
    program = shutil.which("ldconfig", path=os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"]))
    if program:
        listed = subprocess.run([program, "-p"], capture_output=True, text=True, check=False).stdout
        paths = (
            Path(line.rpartition(" => ")[2]) for line in listed.splitlines() if "libhiprtc" in line or "libamd" in line
        )
        yield from dict.fromkeys(("the cache of the dynamic loader", path.parent) for path in paths)


FIND_STEPS: tuple[Step, ...] = (
    Step("environment", True, _roots_of_variables),
    Step("wheels", False, _roots_of_wheels),
    Step("system", False, _roots_of_system),
    Step("loader", False, _roots_of_loader),
)
"""The steps after an explicit argument, in order. New steps are added here."""


def find_rocm(root: str | os.PathLike[str] | None = None, *, steps: Sequence[Step] = FIND_STEPS) -> Rocm:
    """The ROCm at *root*, or the one that the first of *steps* finds.

    Raises `NotFoundError`, which says what was looked for and where, if there is none, or if *root* or an environment
    variable names a place without one.
    """
    if root is not None:
        return _open_binding("the argument root", Path(root))
    looked: list[str] = []
    for step in steps:
        for origin, path in step.roots():
            if step.binding:
                return _open_binding(origin, path)
            files = look_up(path)
            if files:
                return Rocm(path, origin, files)
            looked.append(f"{path} ({origin})" if str(path) != origin else origin)
    raise NotFoundError(
        f"no ROCm on this machine: looked at {', '.join(ROOT_VARIABLES)} (not set), {', '.join(dict.fromkeys(looked))}"
        f". Install ROCm, or set {ROOT_VARIABLES[0]} to its root"
    )


def _open_binding(origin: str, path: Path) -> Rocm:
    if not path.is_dir():
        raise NotFoundError(f"{origin} says that ROCm is at {str(path)!r}, which is not a directory")
    files = look_up(path)
    if not files:
        names = ", ".join(wanted.patterns[-1] for wanted in CATALOG.values())
        raise NotFoundError(f"{origin} says that ROCm is at {str(path)!r}, but none of these is there: {names}")
    return Rocm(path, origin, files)


def look_up(root: Path) -> Mapping[str, Path]:
    """The files of the catalog that are under *root*, by their names in the catalog."""
    return MappingProxyType({name: path for name, wanted in CATALOG.items() if (path := _look_up(root, wanted))})


def _look_up(root: Path, wanted: Wanted) -> Path | None:
    for pattern in wanted.patterns:
        for folder in wanted.folders:
            places = sorted(root.glob(folder)) if "*" in folder else [root / folder]
            for place in places:
                for path in sorted(place.glob(pattern), key=_version_key, reverse=True):
                    if path.is_file():
                        return path
    return None
