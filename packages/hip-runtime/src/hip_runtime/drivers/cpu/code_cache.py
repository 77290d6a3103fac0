"""Machine code of the CPU device, cached on disk.

An entry is found by everything that it was made from: the bitcode and the kernel's launch metadata, the block shape,
the requested form and lanes, the processor with its features, LLVM, and the modules of this driver. It has a JSON
header and the object file; `hip_devicelib.cache` is responsible for checksums, atomic writes, limits and the
permissions of the directory.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

import hip_devicelib
from hip_devicelib.cache import Cache, make_key
from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.errors import CacheError
from hip_runtime import config
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.isolation import finalise_isolated
from hip_runtime.drivers.cpu.object_code import host_machine
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.drivers.cpu.object_code.program_image import read_program, write_program


class CodeCache:
    """Machine code that is cached in *directory*; *variable* is the setting that error messages mention.

    Raises `hip_devicelib.errors.CacheError` if the directory cannot be used, or others can write to it.
    """

    def __init__(self, directory: Path, variable: str) -> None:
        self._cache = Cache(directory, variable=variable)

    def finalise(self, code: CodeObject, kernel: Kernel, block: Dim3) -> Program:
        """The program of `finalise_kernel`, read from the cache, or made and stored there."""
        if config.dump():  # to be seen, it has to be made
            return finalise_isolated(code, kernel, block)
        key = make_key(*_parts(code, kernel, block))
        try:
            data = self._cache.get(key)
        except CacheError as error:
            _warn(f"machine code of kernel {kernel.name!r} is not looked up, nor kept: {error}")
            return finalise_isolated(code, kernel, block)
        if data is not None:
            return read_program(data)
        with self._cache.making(key) as waited:
            with suppress(CacheError):
                data = self._cache.get(key) if waited else None
            if data is not None:
                return read_program(data)
            program = finalise_isolated(code, kernel, block)
            try:
                self._cache.put(key, write_program(program))
            except CacheError as error:
                _warn(f"machine code of kernel {kernel.name!r} is not kept: {error}")
        return program


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def _parts(code: CodeObject, kernel: Kernel, block: Dim3) -> tuple[str, ...]:
    machine = host_machine.target_machine()
    features = llvm.get_host_cpu_features().flatten()
    asked = repr((kernel, block, config.cpu_form(), config.cpu_width(), config.cpu_lanes(), config.cpu_lockstep()))
    return (
        "program of the CPU device", _source_digest(), llvmlite.__version__,
        repr(llvm.llvm_version_info), machine.triple, llvm.get_host_cpu_name(), features, code.digest, asked,
    )  # fmt: skip


@cache
def _source_digest() -> str:
    """SHA-256 of the modules that generate machine code: two states of a source tree may have the same version."""
    digest = hashlib.sha256()
    for directory in (Path(__file__).parent, Path(hip_devicelib.__file__).parent):
        for path in sorted(directory.rglob("*.py")):
            digest.update(make_key(str(path.relative_to(directory)), path.read_bytes()).encode())
    return digest.hexdigest()
