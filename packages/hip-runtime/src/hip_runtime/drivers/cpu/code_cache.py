"""Machine code of the CPU device, cached on disk.

An entry is found by everything that it was made from: the bitcode and the kernel's launch metadata, the block shape, or
the lengths of blocks for which one program serves (`abi.block_lengths`), the requested form and lanes, the processor
with its features, LLVM, and the modules of this driver. It has a JSON header and the object file; `hip_devicelib.cache`
is responsible for checksums, atomic writes, limits and the permissions of the directory.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
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
from hip_runtime.drivers.cpu.abi.block_lengths import is_row, lengths_like
from hip_runtime.drivers.cpu.isolation import finalise_isolated
from hip_runtime.drivers.cpu.object_code import host_machine
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.drivers.cpu.object_code.program_image import read_program, write_program
from hip_runtime.drivers.cpu.strategies.form_choice import MIN_LANES


class CodeCache:
    """Machine code that is cached in *directory*; *variable* is the setting that error messages mention.

    Raises `hip_devicelib.errors.CacheError` if the directory cannot be used, or others can write to it.
    """

    def __init__(self, directory: Path, variable: str) -> None:
        self._cache = Cache(directory, variable=variable)

    def finalise(self, code: CodeObject, kernel: Kernel, block: Dim3) -> Program:
        """The program of `finalise_kernel`, read from the cache, or made and stored there."""
        if config.dump():  # dumps and remarks need it compiled
            return finalise_isolated(code, kernel, block)
        keys = [make_key(*_parts(code, kernel, blocks)) for blocks in names_of_blocks(block)]
        try:
            found = self._find(keys, block)
        except CacheError as error:
            _warn(f"machine code of kernel {kernel.name!r} is not looked up, nor kept: {error}")
            return finalise_isolated(code, kernel, block)
        if found is not None:
            return found
        with self._cache.making(keys[:2][-1]) as waited:
            with suppress(CacheError):
                found = self._find(keys, block) if waited else None
            if found is not None:
                return found
            program = finalise_isolated(code, kernel, block)
            try:
                self._cache.put(keys[0 if program.lengths is None else 1], write_program(program))
            except CacheError as error:
                _warn(f"machine code of kernel {kernel.name!r} is not kept: {error}")
        return program

    def _find(self, keys: Sequence[str], block: Dim3) -> Program | None:
        """The first program under one of *keys* that can run blocks of the shape *block*."""
        for key in keys:
            data = self._cache.get(key)
            program = None if data is None else read_program(data)
            if program is not None and (program.lengths is None or program.lengths.fit(block)):
                return program
        return None


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def settings_of_code() -> tuple[object, ...]:
    """The settings that machine code depends on."""
    return config.cpu_form(), config.cpu_width(), config.cpu_lanes(), config.cpu_lockstep()


def names_of_blocks(block: Dim3) -> list[tuple[object, ...]]:
    """What machine code for *block* may be kept for: the block, or blocks of several lengths. The first of these is for
    what is made for *block*; what was made for lengths that are even may fit one that is not."""
    if not is_row(block):
        return [block]
    least, most = lengths_like(block[0], MIN_LANES)
    kinds = ("even",) if block[0] % least == 0 else ("uneven", "even")
    return [block, *((least, most, kind) for kind in kinds)]


def _parts(code: CodeObject, kernel: Kernel, blocks: tuple[object, ...]) -> tuple[str, ...]:
    machine = host_machine.target_machine()
    features = llvm.get_host_cpu_features().flatten()
    asked = repr((kernel, blocks, *settings_of_code()))
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
