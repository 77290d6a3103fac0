"""Lowers intrinsics that are overloaded on their operands as well as their result to functions of our own.

LLVM's VectorCombine pass merges calls of one intrinsic whose results have the same type without checking the types of
their operands, and crashes if a half and a double are converted to the same integer type (LLVM 20 to 22; fixed for LLVM
23 by LLVM's pull request 201241). None of these intrinsics is left when it runs. The simpler operations that replace
them vectorise, for which LLVM's x86-64 backend generates better code than for the intrinsics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from hip_devicelib.cpu.saturation import saturate
from hip_runtime.drivers.cpu.llvmir import I32
from hip_runtime.errors import ModuleLoadError

_FAMILIES = ("fptosi.sat", "fptoui.sat", "lrint", "llrint", "ldexp")
_REALS: dict[str, ir.Type] = {"f16": ir.HalfType(), "f32": ir.FloatType(), "f64": ir.DoubleType()}
_WIDEST = 64
"""Bits of the widest integers that are supported."""

_PREFIX = "overload."


class _Overload(NamedTuple):
    """An intrinsic: its family, the element types of its result and of the operand that its name ends with, and the
    number of lanes, 0 for scalars."""

    family: str
    result: str
    operand: str
    lanes: int


def define_overloads(module: Any, read: Callable[[str], Any]) -> None:
    """Define replacements of the intrinsics that *module* calls; *read* parses a module.

    Raises `ModuleLoadError` for two unsupported intrinsics that LLVM would confuse.
    """
    left: dict[tuple[str, str, int], str] = {}
    definitions = ir.Module("overloads", context=ir.Context())
    for function in list(module.functions):
        overload = _parse(function.name)
        if overload is None or (overload.family == "ldexp" and overload.operand == "i32"):
            continue
        if _can_define(overload):
            name = _PREFIX + function.name
            function.name = name
            _define(definitions, name, overload)
            continue
        other = left.setdefault((overload.family, overload.result, overload.lanes), function.name)
        if other != function.name:
            raise ModuleLoadError(
                f"the bitcode calls {other!r} and {function.name!r}, which LLVM cannot tell apart on the CPU device; "
                "convert to a type of at most 64 bits from half, float or double"
            )
    if definitions.functions:
        parsed = read(str(definitions))
        parsed.triple, parsed.data_layout = module.triple, module.data_layout
        module.link_in(parsed)


def _parse(name: str) -> _Overload | None:
    for family in _FAMILIES:
        if name.startswith(f"llvm.{family}."):
            result, _, operand = name.removeprefix(f"llvm.{family}.").partition(".")
            count = 0
            if result.startswith("v"):
                digits = result[1:].partition("i" if "i" in result else "f")[0]
                if not digits.isdigit():
                    return None
                count = int(digits)
                result, operand = (text.removeprefix(f"v{count}") for text in (result, operand))
            return _Overload(family, result, operand, lanes=count)
    return None


def _can_define(overload: _Overload) -> bool:
    integer, real = overload.result, overload.operand
    if overload.family == "ldexp":
        integer, real = real, integer
    return real in _REALS and integer[1:].isdigit() and int(integer[1:]) <= _WIDEST


def _define(module: ir.Module, name: str, overload: _Overload) -> None:
    """A function that does what the intrinsic does, for each lane."""
    scale = overload.family == "ldexp"
    result, operand = (_REALS.get(text) or ir.IntType(int(text[1:])) for text in (overload.result, overload.operand))
    kinds = [result, operand] if scale else [operand]
    count = overload.lanes
    taken = [ir.VectorType(kind, count) if count else kind for kind in kinds]
    given = ir.VectorType(result, count) if count else result
    function = ir.Function(module, ir.FunctionType(given, taken), name)
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    make = _scale if scale else _convert
    if not count:
        builder.ret(make(builder, overload, result, *function.args))
        return
    whole = ir.Constant(given, ir.Undefined)
    for lane in range(count):
        parts = [builder.extract_element(argument, I32(lane)) for argument in function.args]
        whole = builder.insert_element(whole, make(builder, overload, result, *parts), I32(lane))
    builder.ret(whole)


def _convert(builder: ir.IRBuilder, overload: _Overload, result: ir.IntType, value: Any) -> Any:
    """A float truncated, or rounded to the nearest integer."""
    if overload.family in ("lrint", "llrint"):
        rint = builder.module.declare_intrinsic("llvm.rint", [value.type])
        value = builder.call(rint, [value])
    return saturate(builder, value, result, signed=overload.family != "fptoui.sat")


def _scale(builder: ir.IRBuilder, overload: _Overload, result: ir.Type, value: Any, exponent: Any) -> Any:
    """*value* times a power of 2, with the exponent clamped to 32 bits."""
    kind = exponent.type
    if kind.width < I32.width:
        exponent = builder.sext(exponent, I32)
    else:
        low, high = kind(-(1 << 31)), kind((1 << 31) - 1)
        exponent = builder.select(builder.icmp_signed("<", exponent, low), low, exponent)
        exponent = builder.select(builder.icmp_signed(">", exponent, high), high, exponent)
        exponent = builder.trunc(exponent, I32)
    ldexp = builder.module.declare_intrinsic("llvm.ldexp", [result, I32], ir.FunctionType(result, [result, I32]))
    return builder.call(ldexp, [value, exponent])
