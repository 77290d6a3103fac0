"""Functions in C, C++ or HIP C++ as bitcode for one target, to be linked into kernels that declare them.

Nothing is read from the source but what it includes: who calls a function has to know its parameters. For functions
that are to be found by their declarations see `hip_devicelib.extension`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache as once
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from hip_devicelib import __version__
from hip_devicelib.amdgpu import make_library
from hip_devicelib.cache import Cache, make_key
from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.compilers import Clang, Compiler, find_compilers
from hip_devicelib.cpu.extension import BASICS, compile_for_cpu, cpu_compiler_identity, find_cpu_compiler
from hip_devicelib.errors import CompileError, NotFoundError
from hip_devicelib.extension import Extension
from hip_devicelib.hip_header import Header
from hip_devicelib.library import defined_symbols, needed_device_libraries
from hip_devicelib.llvm_context import make_context
from hip_devicelib.rocm import find_rocm
from hip_devicelib.target import Target, parse_target

_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]""", re.MULTILINE)
_HIP_HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<hip/hip_runtime\.h>", re.MULTILINE)
_PLAIN = Header(f"{BASICS}#define __device__ __attribute__((device))\n", None)
"""What stands before a source where there is no ROCm."""

_NO_ROCM = "\nThere is no ROCm, whose header declares HIP's functions: install its HIPRTC to call them"


def included_files(source: Extension) -> Iterator[Path]:
    """The files that *source* may include, directly and indirectly, as far as they are in its include paths."""
    waiting, found = [source.source], set[Path]()
    while waiting:
        for name in _INCLUDE.findall(waiting.pop()):
            path = next((folder / name for folder in source.include_paths if (folder / name).is_file()), None)
            if path is not None and path not in found:
                found.add(path)
                waiting.append(path.read_text(errors="replace"))
                yield path


def digest_of(source: Extension) -> str:
    """SHA-256 of *source*, of its options and of all that it may include, in hexadecimal."""
    parts = [source.name, source.source, repr(source.flags)]
    parts += [f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in included_files(source)]
    return hashlib.sha256(make_key(*parts).encode()).hexdigest()


def supply_functions(source: Extension, target: str, *, cache: Cache | None = None) -> bytes:
    """Bitcode of the functions of *source* for *target*, from the cache, or compiled and cached.

    For the CPU device the clang of the wheel ``ziglang`` compiles it. Of HIP, its functions of numbers can be called
    there. For AMD GPUs it is what `hip_devicelib.compilers.find_compilers` finds, with all of HIP; without ROCm it is
    the clang of ``ziglang`` again, without HIP's functions. A name that ends in ``.c`` is C for the CPU device.

    Raises `NotFoundError` without a compiler, and `CompileError` with its message and the user's line.
    """
    if not source.source.strip():
        return _nothing()
    plain = Extension(_HIP_HEADER.sub("", source.source), source.include_paths, source.options, {}, source.name)
    compiler = None if target == CPU_TARGET else _compiler()
    identity = compiler.identity if compiler else cpu_compiler_identity(find_cpu_compiler())
    store = cache if cache is not None else Cache()
    key = make_key("functions", __version__, llvmlite.__version__, identity, target, digest_of(source))
    bitcode = store.get(key)
    if bitcode is None:
        bitcode = compile_for_cpu(plain) if compiler is None else _compile(plain, compiler, parse_target(target))
        store.put(key, bitcode)
    return bitcode


def _compile(source: Extension, compiler: Compiler, target: Target) -> bytes:
    try:
        raw = compiler.compile(source.text, target, source.flags)
    except CompileError as error:
        advice = _NO_ROCM if isinstance(compiler, Clang) and compiler.header is _PLAIN else ""
        raise CompileError(f"{error}{advice}", log=error.log) from None
    symbols = defined_symbols(raw)
    if not symbols:
        return _nothing()
    return make_library([raw, *needed_device_libraries(raw, compiler, target)], target, keep=symbols)


def _nothing() -> bytes:
    """Bitcode without anything, for any target."""
    return bytes(llvm.parse_assembly("", make_context()).as_bitcode())


@once
def _compiler() -> Compiler:
    """The compiler for AMD GPUs."""
    try:
        found = next(find_compilers(find_rocm()), None)
    except NotFoundError:
        found = None
    if found is not None:
        return found
    if find_spec("ziglang") is None:
        raise NotFoundError("no compiler of HIP C++: install ROCm's HIPRTC, or pip install ziglang")
    return Clang(find_cpu_compiler(), _PLAIN)
