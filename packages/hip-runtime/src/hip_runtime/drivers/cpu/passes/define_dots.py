"""Defines the products of the SPMD contract that add up neighbours, by the processor's instructions where it has them.

That is AVX512-BF16 for pairs of bfloat16, and AVX512-VNNI for four bytes. Other processors shift the parts of each
element to where the whole has to be, and multiply them one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.llvmir import I32

_LANES = 16
_WORDS = ir.VectorType(I32, _LANES)
_FLOATS = ir.VectorType(ir.FloatType(), _LANES)

_PREFIX = "dots."


class _Bfloats(ir.Type):
    """LLVM's ``<32 x bfloat>``, for whose elements llvmlite has no type."""

    def _to_string(self) -> str:
        return "<32 x bfloat>"


class _Dot(NamedTuple):
    """A product: the processor's feature, LLVM's intrinsic, and what the intrinsic takes."""

    feature: str
    intrinsic: str
    sums: ir.Type
    factors: ir.Type
    plain: Callable[[ir.IRBuilder, Sequence[Any]], Any]

    @property
    def signature(self) -> ir.FunctionType:
        """That of the contract."""
        return ir.FunctionType(self.sums, [self.sums, _WORDS, _WORDS])


def define_dots(module: Any, read: Callable[[str], Any]) -> None:
    """Define those that *module* calls; *read* parses a module."""
    definitions = ir.Module("dots", context=ir.Context())
    for function in list(module.functions):
        dot = _DOTS.get(function.name)
        if dot is not None and function.is_declaration and str(function.global_value_type) == str(dot.signature):
            name = function.name = _PREFIX + function.name
            _define(definitions, name, dot)
    if definitions.functions:
        parsed = read(str(definitions))
        parsed.triple, parsed.data_layout = module.triple, module.data_layout
        module.link_in(parsed)


def _define(module: ir.Module, name: str, dot: _Dot) -> None:
    function = ir.Function(module, dot.signature, name)
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    if not llvm.get_host_cpu_features().get(dot.feature):
        builder.ret(dot.plain(builder, function.args))
        return
    kind = ir.FunctionType(dot.sums, [dot.sums, dot.factors, dot.factors])
    intrinsic = ir.Function(module, kind, dot.intrinsic)
    total, *factors = function.args
    if dot.factors is not _WORDS:
        factors = [builder.bitcast(factor, dot.factors) for factor in factors]
    builder.ret(builder.call(intrinsic, [total, *factors]))


def _add_halves(builder: ir.IRBuilder, values: Sequence[Any]) -> Any:
    """Pairs of bfloat16, which are the upper halves of numbers of float32."""
    total, *factors = values
    places: list[Callable[[Any], Any]] = [
        lambda word: builder.shl(word, _splat(16)), lambda word: builder.and_(word, _splat(0xFFFF0000))
    ]  # fmt: skip
    for part in places:
        left, right = (builder.bitcast(part(word), _FLOATS) for word in factors)
        total = builder.fadd(total, builder.fmul(left, right, flags=("contract",)), flags=("contract",))
    return total


def _add_bytes(builder: ir.IRBuilder, values: Sequence[Any]) -> Any:
    """Four unsigned bytes and four signed ones."""
    total, one, other = values
    for first in range(0, 32, 8):
        left = builder.and_(builder.lshr(one, _splat(first)), _splat(255))
        right = builder.ashr(builder.shl(other, _splat(24 - first)), _splat(24))
        total = builder.add(total, builder.mul(left, right))
    return total


def _splat(value: int) -> ir.Constant:
    return ir.Constant(_WORDS, [I32(value)] * _LANES)


_DOTS = {
    spmd.DOT_BF16: _Dot("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.512", _FLOATS, _Bfloats(), _add_halves),
    spmd.DOT_U8_I8: _Dot("avx512vnni", "llvm.x86.avx512.vpdpbusd.512", _WORDS, _WORDS, _add_bytes),
}
