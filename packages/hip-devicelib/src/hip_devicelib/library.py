"""HIP's device functions as one bitcode library for one target, built from the wrappers of their declarations.

A function that the compiler rejects, or that the device libraries do not implement, is left out with the reason, and
the rest is built. The type of each function in the bitcode is checked against its declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import llvmlite.binding as llvm

from hip_devicelib.amdgpu import make_library, undefined_symbols
from hip_devicelib.compilers import Compiler
from hip_devicelib.declarations import Declarations, FunctionDeclaration, Omission
from hip_devicelib.device_libraries import read_device_libraries
from hip_devicelib.errors import CompileError, InvalidIRError
from hip_devicelib.llvm_context import make_context
from hip_devicelib.target import Target, parse_target
from hip_devicelib.wrappers import FILE_NAME, write_wrappers

_ROUNDS = 8
_MOST_REASONS = 3
_MESSAGE = re.compile(rf"{re.escape(FILE_NAME)}:(\d+):\d+: (fatal error|error|note: in instantiation)(.*)")


@dataclass(frozen=True)
class Library:
    """Bitcode of device functions for one target.

    ``functions`` are those in the library, each under its ``symbol`` and with its ``llvm_type``; ``dropped`` are those
    left out. Linking takes only what a kernel needs: pass ``bitcode`` to `optimise` among its libraries.
    """

    target: str
    bitcode: bytes = field(repr=False)
    functions: tuple[FunctionDeclaration, ...] = field(repr=False)
    dropped: tuple[Omission, ...]
    compiler: str


def build_library(
    declarations: Declarations,
    compiler: Compiler,
    target: str | Target,
    *,
    source: str = "",
    options: Sequence[str] = (),
) -> Library:
    """The library of *declarations* for *target*.

    *source* is HIP C++ that they need in addition to the HIP header; *options* are clang's. Raises `CompileError` if
    *compiler* fails for a reason that is not in one of the functions, and `InvalidIRError` if this LLVM cannot read its
    output.
    """
    resolved = target if isinstance(target, Target) else parse_target(target)
    dropped: dict[str, str] = {}
    raw = _compile(declarations.functions, compiler, resolved, dropped, source, options)
    kept = [function for function in declarations.functions if function.symbol not in dropped]
    dropped.update(_check_types(raw, kept))
    modules = [raw, *needed_device_libraries(raw, compiler, resolved)]
    bitcode = _finish(modules, declarations.functions, resolved, dropped)
    return Library(
        resolved.id,
        bitcode,
        tuple(function for function in declarations.functions if function.symbol not in dropped),
        tuple(
            Omission(function.qualified, str(function), dropped[function.symbol])
            for function in declarations.functions
            if function.symbol in dropped
        ),
        compiler.identity,
    )


def _compile(
    functions: Sequence[FunctionDeclaration],
    compiler: Compiler,
    target: Target,
    dropped: dict[str, str],
    source: str,
    options: Sequence[str],
) -> bytes:
    """Compile the wrappers of *functions*, without those that the compiler rejects, which are added to *dropped*."""
    for _ in range(_ROUNDS):
        chosen = [function for function in functions if function.symbol not in dropped]
        try:
            return compiler.compile(source + write_wrappers(chosen), target, options)
        except CompileError as error:
            rejected = _read_rejections(error.log)
            if not rejected:
                raise
            dropped.update(
                {chosen[line - 1].symbol: reason for line, reason in rejected.items() if line <= len(chosen)}
            )
    raise CompileError(f"{compiler.identity} rejects more functions each time; {len(dropped)} were left out")


def _read_rejections(log: str) -> dict[int, str]:
    """The lines of the wrappers that have compiler errors, and the first message for each."""
    rejected: dict[int, str] = {}
    for found in _MESSAGE.finditer(log):
        rejected.setdefault(int(found.group(1)), f"the compiler rejects it{found.group(3)}")
    return rejected


def _check_types(bitcode: bytes, functions: Iterable[FunctionDeclaration]) -> dict[str, str]:
    """Functions that *bitcode* lacks, or defines with a type that differs from the declaration, with the reason to drop
    them."""
    module = _parse(bitcode)
    found = {value.name: str(value.global_value_type) for value in module.functions if not value.is_declaration}
    reasons = {}
    for function in functions:
        if function.symbol not in found:
            reasons[function.symbol] = "the compiler made no definition of it"
        elif found[function.symbol] != function.llvm_type:
            reasons[function.symbol] = (
                f"it is declared as {function.llvm_type} and was compiled as {found[function.symbol]}"
            )
    return reasons


def needed_device_libraries(raw: bytes, compiler: Compiler, target: Target) -> tuple[bytes, ...]:
    """The device libraries, if *raw* needs any of them: the compiler may have linked them already, or not been able
    to."""
    lacking = any(name.startswith(("__ocml_", "__ockl_")) for name in undefined_symbols(raw))
    if not lacking or compiler.device_libraries is None:
        return ()
    return read_device_libraries(compiler.device_libraries, target)


def defined_symbols(bitcode: bytes) -> list[str]:
    """The functions and variables in *bitcode* that other modules can use, but for the compiler's own."""
    module = _parse(bitcode)
    values = [one for one in (*module.functions, *module.global_variables) if not one.is_declaration]
    return [one.name for one in values if one.linkage.name == "external" and not one.name.startswith("__hip_cuid")]


def _finish(
    modules: Sequence[bytes], functions: Sequence[FunctionDeclaration], target: Target, dropped: dict[str, str]
) -> bytes:
    """The library of *modules* without *dropped*. Functions that need something undefined are added to *dropped*."""
    for attempt in range(3):
        kept = [function for function in functions if function.symbol not in dropped]
        if not kept:
            reasons = _name_reasons(functions, dropped)
            raise CompileError(f"no function of the library compiles for {target.id}{reasons}")
        bitcode = make_library(modules, target, keep=[function.symbol for function in kept])
        missing = frozenset(undefined_symbols(bitcode))
        if not missing:
            return bitcode
        # What is missing mostly has a wrapper of its own. Looking at every call takes long, so it comes second.
        direct = {function.symbol: function.name for function in kept if function.name in missing}
        needing = direct if direct and attempt == 0 else _find_needing(bitcode, missing)
        dropped.update({symbol: f"the device libraries lack {name}" for symbol, name in needing.items()})
    raise InvalidIRError(f"the library for {target.id} still needs {', '.join(sorted(missing))}")


def _name_reasons(functions: Sequence[FunctionDeclaration], dropped: Mapping[str, str]) -> str:
    """Why each of the first few *functions* was *dropped*, as the end of a message."""
    reasons = "; ".join(f"{function}: {dropped[function.symbol]}" for function in functions[:_MOST_REASONS])
    more = len(functions) - _MOST_REASONS
    return f": {reasons}{f'; and {more} more' if more > 0 else ''}" if reasons else ""


def _find_needing(bitcode: bytes, missing: frozenset[str]) -> Mapping[str, str]:
    """The functions that use one of *missing*, themselves or through others, each with the name of one."""
    users: dict[str, set[str]] = {}
    for function in _parse(bitcode).functions:
        for block in function.blocks:
            for instruction in block.instructions:
                for operand in instruction.operands:
                    if operand.name:
                        users.setdefault(operand.name, set()).add(function.name)
    needing: dict[str, str] = {}
    for name in sorted(missing):
        waiting = [name]
        while waiting:
            for user in sorted(users.get(waiting.pop(), ())):
                if user not in needing:
                    needing[user] = name
                    waiting.append(user)
    return needing


def _parse(bitcode: bytes) -> llvm.ModuleRef:
    try:
        return llvm.parse_bitcode(bitcode, make_context())
    except RuntimeError as error:
        major = llvm.llvm_version_info[0]
        raise InvalidIRError(f"LLVM {major} of llvmlite cannot read what the compiler made: {error}") from None
