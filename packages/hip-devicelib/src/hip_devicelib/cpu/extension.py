"""Device functions of a user, written in HIP C++, for the processor of this machine.

There is no HIP header for processors. The source can use HIP's scalar functions that the CPU device has
(`hip_devicelib.cpu.functions`): each is declared for libclang, and for the compiler defined as a call of its symbol.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite

from hip_devicelib import __version__
from hip_devicelib.cache import Cache, make_key
from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.cpu import functions
from hip_devicelib.declarations import Declarations, FunctionDeclaration
from hip_devicelib.errors import CompileError, HeaderError, NotFoundError
from hip_devicelib.extension import Extension, declare_extension
from hip_devicelib.hip_header import Header
from hip_devicelib.isolated_codegen import child_environment
from hip_devicelib.library import Library
from hip_devicelib.manifest import load_reference
from hip_devicelib.wrappers import write_wrappers

SCALARS = frozenset({"bool", "float", "integer"})

BASICS = """
typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t; typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t; typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t; typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t; typedef __UINT64_TYPE__ uint64_t;
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
"""
"""Definitions of HIP's header other than functions."""

FLAGS = (
    "-nostdinc", "-fno-builtin", "-fno-exceptions", "-fno-rtti", "-fno-math-errno",
    "-ffp-contract=off", "-ferror-limit=0", "-w", "-O2", "-emit-llvm",
)  # fmt: skip

LANGUAGES = {".c": ("-x", "c", "-std=c17")}
CPP = ("-x", "c++", "-std=c++17")
"""The options for the language of a source, by the end of its name; all else is C++."""

SECONDS = 120


@cache
def host_header() -> Header:
    """Declarations of HIP's scalar functions, for libclang."""
    lines = [f"__attribute__((device)) {_declare(function, function.name)};" for function in _scalar_functions()]
    return Header("\n".join([BASICS, *lines, ""]), None)


def _scalar_functions() -> list[FunctionDeclaration]:
    """HIP's functions that have an implementation here, and only scalar parameters and results."""
    return [
        function
        for function in load_reference().functions
        if function.symbol in functions.FUNCTIONS
        and not (function.namespace or function.template_arguments)
        and function.result.kind in SCALARS
        and all(parameter.type.kind in SCALARS for parameter in function.parameters)
    ]


def _declare(function: FunctionDeclaration, name: str) -> str:
    listed = ", ".join(f"{parameter.type.spelling} a{number}" for number, parameter in enumerate(function.parameters))
    return f"{function.result.spelling} {name}({listed})"


@cache
def _definitions() -> str:
    """The same functions for the compiler, each as a call of its symbol."""
    lines = []
    for function in _scalar_functions():
        passed = ", ".join(f"a{number}" for number in range(len(function.parameters)))
        lines += [
            f'extern "C" {_declare(function, function.symbol)};',
            f"static inline {_declare(function, function.name)} {{ return {function.symbol}({passed}); }}",
        ]
    return "\n".join([BASICS, *lines, ""])


def supply_cpu_extension(extension: Extension, *, cache: Cache | None = None) -> Library:
    """The library of the functions of *extension* for the CPU device, from the cache, or built and cached.

    Raises `NotFoundError` without the wheel ``ziglang``, whose clang compiles it, `CompileError` with the compiler's
    message and the user's line, and `HeaderError` for source without a device function.
    """
    command = find_cpu_compiler()
    declarations, included = declare_for_cpu(extension)
    store = cache if cache is not None else Cache()
    source = f"{_definitions()}{extension.text}{write_wrappers(declarations.functions)}"
    key = make_key(
        "cpu extension",
        __version__,
        llvmlite.__version__,
        cpu_compiler_identity(command),
        source,
        repr(extension.flags),
        *(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in included),
    )
    bitcode = store.get(key)
    if bitcode is None:
        bitcode = _compile(command, source, extension)
        store.put(key, bitcode)
    return Library(CPU_TARGET, bitcode, declarations.functions, declarations.omissions, cpu_compiler_identity(command))


def declare_for_cpu(extension: Extension) -> tuple[Declarations, tuple[Path, ...]]:
    """The declarations of *extension*, parsed with the CPU device's part of HIP's header, and the files that it
    includes.

    Raises `CompileError` with the user's lines, and `HeaderError` if there is no compiler that could report them.
    """
    try:
        return declare_extension(extension, host_header())
    except HeaderError:
        if find_spec("ziglang") is not None:
            _compile(find_cpu_compiler(), f"{_definitions()}{extension.text}", extension)
        raise


def find_cpu_compiler() -> tuple[str, ...]:
    """The command of the clang in the wheel ``ziglang``; `NotFoundError` without it."""
    if find_spec("ziglang") is None:
        raise NotFoundError("no compiler of HIP C++ for the CPU device: pip install ziglang")
    return sys.executable, "-m", "ziglang", "clang"


@cache
def cpu_compiler_identity(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False, env=child_environment())
    if done.returncode:
        raise CompileError(f"{' '.join(command)} does not run: {done.stderr.strip()[-500:]}")
    return done.stdout.splitlines()[0]


def compile_for_cpu(extension: Extension) -> bytes:
    """Bitcode of all functions of *extension*; raises as `supply_cpu_extension`."""
    definitions = "" if Path(extension.name).suffix in LANGUAGES else _definitions()
    return _compile(find_cpu_compiler(), f"{definitions}{extension.text}", extension)


def _compile(command: tuple[str, ...], source: str, extension: Extension) -> bytes:
    """Bitcode of *source*, which is *extension* with the definitions that it needs."""
    language = LANGUAGES.get(Path(extension.name).suffix, CPP)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.cpp").write_text(source)
        done = subprocess.run(
            [*command, *language, *FLAGS, *extension.flags, "-c", "program.cpp", "-o", "program.bc"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS, env=child_environment(),
        )  # fmt: skip
        output = Path(folder, "program.bc")
        if done.returncode == 0 and output.exists():
            return output.read_bytes()
    raise CompileError(f"clang does not compile {extension.name} for the CPU device:\n{done.stderr[:4000]}")
