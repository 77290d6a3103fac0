"""Intrinsics with one type of result for several types of operands, as functions of our own.

LLVM's VectorCombine pass puts calls of one intrinsic side by side into one, where their results have one type. It does
not look at the types of what they are given, and ends the process where a half and a double are converted to integers
(LLVM 20 to 22; mended for LLVM 23 by LLVM's pull request 201241). None of these intrinsics is left when it runs; what
is made of them are vectors of simpler operations, which LLVM's backend for x86-64 likes better than the intrinsics.
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
"""Bits of the widest integers that functions are made for."""

_PREFIX = "overload."


class _Overload(NamedTuple):
    """An intrinsic: its family, the types of a lane of its result and of the operand that its name ends with, and how
    many lanes there are, 0 where these are no vectors."""

    family: str
    result: str
    operand: str
    lanes: int


def define_overloads(module: Any, read: Callable[[str], Any]) -> None:
    """Define what *module* calls of these intrinsics; *read* makes a module of a text.

    Raises `ModuleLoadError` for two of them that LLVM would take for one and that no function can be made for.
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
    """A function that does what the intrinsic does, lane by lane."""
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
    """A number without its fraction, or rounded."""
    if overload.family in ("lrint", "llrint"):
        rint = builder.module.declare_intrinsic("llvm.rint", [value.type])
        value = builder.call(rint, [value])
    return saturate(builder, value, result, signed=overload.family != "fptoui.sat")


def _scale(builder: ir.IRBuilder, overload: _Overload, result: ir.Type, value: Any, exponent: Any) -> Any:
    """*value* times a power of 2, whose exponent is brought into 32 bits."""
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
