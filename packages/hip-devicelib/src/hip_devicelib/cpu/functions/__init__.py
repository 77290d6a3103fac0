"""HIP's device functions on the CPU device: the shipped declarations that have an implementation, as LLVM bitcode.

They have the same names and types as in the libraries for AMD GPUs (`FunctionDeclaration.symbol`), so that the same
LLVM IR can be linked with either. `FUNCTIONS` has the implemented ones; `ABSENT` says for each of the others why it
is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType

import llvmlite.binding as llvm
from llvmlite import ir

from hip_devicelib.cpu import catalog
from hip_devicelib.cpu.functions.function_builder import Operation, define_body
from hip_devicelib.cpu.functions.implementations import explain_absence, find_operation
from hip_devicelib.cpu.library import keep_calls
from hip_devicelib.declarations import FunctionDeclaration
from hip_devicelib.errors import NotFoundError, UnsupportedError
from hip_devicelib.forking import compiling
from hip_devicelib.llvm_context import make_context
from hip_devicelib.manifest import load_reference

__all__ = ["ABSENT", "FUNCTIONS", "bitcode_of", "math_calls"]


def _sort() -> tuple[dict[str, tuple[FunctionDeclaration, Operation]], dict[str, str]]:
    present, absent = {}, {}
    for declaration in load_reference().functions:
        operation = find_operation(declaration)
        if operation is None:
            absent[declaration.symbol] = explain_absence(declaration)
        else:
            present[declaration.symbol] = (declaration, operation)
    return present, absent


_bodies, _absent = _sort()

FUNCTIONS: Mapping[str, FunctionDeclaration] = MappingProxyType({symbol: entry[0] for symbol, entry in _bodies.items()})
"""The declarations that have an implementation, by the name of their wrapper (``hipdl_sinf__f32``)."""

ABSENT: Mapping[str, str] = MappingProxyType(_absent)
"""Why each of the other declarations has no implementation, by the name of its wrapper."""


def math_calls(symbol: str) -> Counter[str]:
    """The number of calls of each of the CPU device's math functions in the wrapper *symbol*.

    Raises as `bitcode_of` does.
    """
    _check(symbol)
    with compiling:
        return Counter(_math_calls(symbol))


def bitcode_of(symbols: Iterable[str], called: Iterable[str] = (), *, fused: bool = True) -> bytes:
    """Bitcode of a module that defines the wrappers *symbols*, and the CPU device's math functions that they call.

    All are ``linkonce_odr`` and ``alwaysinline``, except the math functions in *called*, which are ``noinline``.
    Functions of the C library stay undefined (``fmod``, ``ldexp``, ``tgamma``, ...). *fused* is as for
    `hip_devicelib.cpu.bitcode_of`; HIP's own ``fma`` is one in either case. Raises `UnsupportedError` with the reason
    for a function without an implementation, and `NotFoundError` if a name is not a wrapper of the shipped
    declarations.
    """
    wanted = sorted(set(symbols))
    for symbol in wanted:
        _check(symbol)
    with compiling:
        return _bitcode(tuple(wanted), frozenset(called), fused)


def _check(symbol: str) -> None:
    if symbol in ABSENT:
        function = load_reference().by_symbol[symbol]
        raise UnsupportedError(f"the CPU device does not have {function}: {ABSENT[symbol]}")
    if symbol not in FUNCTIONS:
        raise NotFoundError(
            f"HIP's device functions have no wrapper {symbol!r}; 'hip-devicelib show NAME' prints those of a name"
        )


def _module(symbols: Iterable[str], fused: bool = True) -> ir.Module:
    module = ir.Module(name="hip_cpu_functions", context=ir.Context())
    for symbol in symbols:
        define_body(module, *_bodies[symbol], fused)
    return module


@cache
def _math_calls(symbol: str) -> Counter[str]:
    wrapper = _module([symbol]).get_global(symbol)
    instructions = (instruction for block in wrapper.blocks for instruction in block.instructions)
    callees = (instruction.callee.name for instruction in instructions if isinstance(instruction, ir.CallInstr))
    return Counter(name for name in callees if name in catalog.FUNCTIONS)


@cache
def _bitcode(symbols: tuple[str, ...], called: frozenset[str], fused: bool) -> bytes:
    module = _module(symbols, fused)
    keep_calls(module, called)
    return bytes(llvm.parse_assembly(str(module), make_context()).as_bitcode())
