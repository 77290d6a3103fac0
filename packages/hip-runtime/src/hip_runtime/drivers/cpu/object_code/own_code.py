"""Machine code of our own functions, cached on disk: it is the same in every process.

Building the driver's as LLVM IR and emitting it takes about 60 ms of a process's first launch, loading it 5. As with
Python's own bytecode, nobody has to ask for it, and where Python is told to write none (``PYTHONDONTWRITEBYTECODE``),
nothing is written here, either. A cache that cannot be used is no error: the code is made anew.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

import hip_devicelib
from hip_devicelib.cache import Cache, make_key
from hip_devicelib.errors import CacheError
from hip_runtime.drivers.cpu.object_code import host_machine, jit
from hip_runtime.drivers.cpu.object_code.program import Program

_DRIVER = Path(__file__).resolve().parent.parent
_DEVICELIB = Path(hip_devicelib.__file__).resolve().parent
_SOURCES = (
    *(_DRIVER / name for name in ("abi", "execution", "object_code", "llvm_context.py", "llvmir.py")),
    *(_DEVICELIB / name for name in ("elf.py", "isolated_codegen.py")),
)
"""What the code is made by: modules, and folders of modules."""


def load_or_compile(build: Callable[[], Any], entries: Sequence[str]) -> Program:
    """What `jit.compile_quickly` makes of the llvmlite module that *build* returns, from the cache if it is there.

    The module has to depend on nothing but this driver's sources, the interpreter and the processor.
    """
    return load_or_make(lambda: jit.compile_quickly(build(), *entries), entries)


def load_or_make(
    make: Callable[[], Program], entries: Sequence[str], sources: Sequence[Path] = (), versions: Sequence[str] = ()
) -> Program:
    """The program with the functions *entries* that *make* returns, from the cache if it is there.

    It has to depend on nothing but this driver's sources and *sources*, which are modules and folders of them, the
    interpreter, the processor, and packages whose *versions* are given. Raises `SymbolError` if it refers to symbols
    that are not in the process.
    """
    key = make_key(*_parts(entries, sources, versions))
    cache: Cache | None = None
    with suppress(CacheError):
        cache = Cache()
        image = cache.get(key)
        if image is not None:
            return jit.load_image(image, entries)
    program = make()
    if cache is not None and not sys.dont_write_bytecode:
        with suppress(CacheError):
            cache.put(key, program.image)
    return program


def _parts(entries: Sequence[str], sources: Sequence[Path], versions: Sequence[str]) -> tuple[str, ...]:
    """All that the code is made of, and for."""
    machine = host_machine.target_machine()
    library = getattr(sys.implementation, "_multiarch", "")  # the target triple also names the C library
    return (
        "the CPU device's own code", _source_digest((*_SOURCES, *sources)), hip_devicelib.__version__,
        llvmlite.__version__, repr(llvm.llvm_version_info), machine.triple, llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(), sys.version, sys.platform, library, *entries, *versions,
    )  # fmt: skip


def _source_digest(sources: Sequence[Path]) -> str:
    """SHA-256 of the modules *sources*, and of those in the folders among them."""
    digest = hashlib.sha256()
    for source in sources:
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            digest.update(make_key(path.name, path.read_bytes()).encode())
    return digest.hexdigest()
