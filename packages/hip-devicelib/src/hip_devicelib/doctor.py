"""The report of ``hip-devicelib doctor``: which parts of ROCm this machine has, and whether they fit together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

from hip_devicelib.errors import NotFoundError
from hip_devicelib.header_parser import EXTRA
from hip_devicelib.rocm import CATALOG, Rocm, find_rocm

Verdict = Literal["ok", "missing", "problem"]

_LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
_PYTHON_PARTS = {
    "llvmlite": "makes code for AMD GPUs",
    "libclang": "reads HIP C++: headers of other releases of ROCm, device functions of a program's own",
    "msgpack": "reads the metadata of code objects",
    "ziglang": "compiles HIP C++ and links code objects where there is no ROCm",
}
_OPTIONAL = {"libclang": EXTRA, "ziglang": "ziglang"}
"""Parts that only some users need, and what to install for them."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One line of the report. ``detail`` says what was found and where, or what to do."""

    name: str
    verdict: Verdict
    detail: str


def examine(root: str | None = None) -> tuple[Diagnosis, ...]:
    """Check everything that this package uses. *root* is as for `find_rocm`. Nothing is loaded into this process."""
    return (*_examine_python(), *_examine_rocm(root))


def _examine_python() -> Iterator[Diagnosis]:
    for name, purpose in _PYTHON_PARTS.items():
        try:
            yield Diagnosis(name, "ok", f"{metadata.version(name)} ({purpose})")
        except metadata.PackageNotFoundError:
            verdict: Verdict = "missing" if name in _OPTIONAL else "problem"
            yield Diagnosis(name, verdict, f"not installed ({purpose}): pip install '{_OPTIONAL.get(name, name)}'")


def _examine_rocm(root: str | None) -> Iterator[Diagnosis]:
    try:
        rocm = find_rocm(root)
    except NotFoundError as error:
        yield Diagnosis("ROCm", "missing" if root is None else "problem", str(error))
        return
    yield Diagnosis("ROCm", "ok", f"{rocm.root} (found by {rocm.found_by})")
    for name, wanted in CATALOG.items():
        path = rocm.files.get(name)
        if path is None:
            yield Diagnosis(name, "missing", f"not in this ROCm ({wanted.purpose})")
            continue
        trouble = _try_to_load(str(path)) if ".so" in path.name else None
        version = rocm.version(name)
        detail = f"{path}, version {version}" if version else str(path)
        yield Diagnosis(name, "problem", f"{detail}: {trouble}") if trouble else Diagnosis(name, "ok", detail)
    yield from _examine_fit(rocm)


def _try_to_load(path: str) -> str | None:
    """Why the library at *path* does not load. It is tried in another process, which it may crash."""
    done = subprocess.run([sys.executable, "-c", _LOAD, path], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    words = done.stderr.strip().splitlines()
    return f"does not load: {words[-1]}" if words else f"ends the process that loads it (status {done.returncode})"


def _examine_fit(rocm: Rocm) -> Iterator[Diagnosis]:
    versions = {name: rocm.version(name) for name in ("hiprtc", "hiprtc-builtins", "hip")}
    known = {name: version for name, version in versions.items() if version}
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in known.items())
        yield Diagnosis("fit", "problem", f"these libraries are of different releases: {listed}; install one ROCm")
    elif known:
        yield Diagnosis("fit", "ok", f"{', '.join(known)}: all of version {next(iter(known.values()))}")
    compilers = [name for name in ("hiprtc", "clang") if name in rocm.files]
    linkers = [name for name in ("comgr", "ld.lld") if name in rocm.files]
    for what, names in (("compiler", compilers), ("linker", linkers)):
        if names:
            yield Diagnosis(what, "ok", ", ".join(names))
        else:
            yield Diagnosis(what, "missing", f"this ROCm has no {what}: install ziglang, or the rest of ROCm")
