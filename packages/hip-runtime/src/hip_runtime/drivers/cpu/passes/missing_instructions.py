"""Defines intrinsics that the processor has no instructions for, of which LLVM makes calls for one lane after another.

These are the roundings to integers before SSE4.1, and the fused multiply-add of float32 before FMA. That of float64,
which would take a branch for numbers that are large or small, stays a call of the C library's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from hip_devicelib.cpu import missing_instructions
from hip_devicelib.cpu.expressions import FLOAT32, FLOAT64, Code, Format, Real
from hip_devicelib.cpu.processor import has_fma, has_rounding

_PREFIX = "missing."
_FORMATS = {"f32": FLOAT32, "f64": FLOAT64}


def define_missing(module: Any, read: Callable[[str], Any]) -> None:
    """Define those that *module* calls for single numbers; *read* parses a module."""
    definitions = ir.Module("missing", context=ir.Context())
    for function in list(module.functions):
        missing = _find(function.name)
        if missing is not None:
            name = function.name = _PREFIX + function.name
            _define(definitions, name, missing)
    if definitions.functions:
        parsed = read(str(definitions))
        parsed.triple, parsed.data_layout = module.triple, module.data_layout
        module.link_in(parsed)


class _Missing(NamedTuple):
    """How an intrinsic is computed: of how many numbers, of which format."""

    formula: Callable[..., Real]
    arguments: int
    form: Format


def _find(name: str) -> _Missing | None:
    """What stands for the intrinsic *name*, if it is missing."""
    family, _, kind = name.removeprefix("llvm.").partition(".")
    if not name.startswith("llvm.") or kind not in _FORMATS:
        return None
    if family == "fma" and kind == "f32" and not has_fma():
        return _Missing(missing_instructions.fma, 3, FLOAT32)
    if family in missing_instructions.ROUNDINGS and not has_rounding():
        return _Missing(missing_instructions.ROUNDINGS[family], 1, _FORMATS[kind])
    return None


def _define(module: ir.Module, name: str, missing: _Missing) -> None:
    kind = missing.form.real
    function = ir.Function(module, ir.FunctionType(kind, [kind] * missing.arguments), name)
    function.attributes.add("alwaysinline")
    code = Code(ir.IRBuilder(function.append_basic_block()), missing.form, has_fma())
    code.builder.ret(missing.formula(code, *(Real(code, argument) for argument in function.args)).value)
