"""Functions of CUDA's libdevice that HIP has otherwise or not at all, as NVIDIA's documentation describes them.

https://docs.nvidia.com/cuda/libdevice-users-guide/function-desc.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types

from numba_hip.language.stub import Stub, numeric_function

HALF, FLOAT, I16 = ir.HalfType(), ir.FloatType(), ir.IntType(16)


def _choice(predicate: str, signed: bool) -> Callable[..., ir.Value]:
    def choose(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        return builder.select(compare(predicate, x, y), x, y)

    return choose


def _saturate(context: Any, builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    zero, one = FLOAT(0.0), FLOAT(1.0)
    below_one = builder.select(builder.fcmp_ordered("<", x, one), x, one)
    return builder.select(builder.fcmp_ordered(">", x, zero), below_one, zero)


def _to_half(context: Any, builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.bitcast(builder.fptrunc(x, HALF), I16)


def _of_half(context: Any, builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    return builder.fpext(builder.bitcast(bits, HALF), FLOAT)


_Row = tuple[str, str, types.Type, types.Type, Callable[..., ir.Value]]

FUNCTIONS: dict[str, _Row] = {
    **{
        f"{prefix}{name}": ("xy", f"the {word} of two {kind}.", kind, kind, _choice(predicate, signed))
        for prefix, kind, signed in (
            ("ll", types.int64, True),
            ("ull", types.uint64, False),
            ("u", types.uint32, False),
        )
        for name, word, predicate in (("max", "larger", ">"), ("min", "smaller", "<"))
    },
    "saturatef": (
        "x",
        "the nearest float32 from 0 to 1; of NaN 0.",
        types.float32,
        types.float32,
        _saturate,
    ),
    "float2half_rn": ("f", "the bits of the nearest float16, an int16.", types.float32, types.int16, _to_half),
    "half2float": ("h", "the float32 of the bits of a float16.", types.int16, types.float32, _of_half),
}
"""Parameters, meaning, the type of the arguments, that of the result, and the operation."""


def find(name: str) -> Stub | None:
    """The function with libdevice's name *name*, if it is one of these."""
    if name not in FUNCTIONS:
        return None
    parameters, meaning, operand, result, operation = FUNCTIONS[name]
    of_bits = name == "half2float"
    return numeric_function(
        f"libdevice.{name}", parameters, meaning, operation, operand=operand, result=result,
        accepted=(types.Integer,) if of_bits else (types.Integer, types.Boolean, types.Float),
        refusal=f"takes {'the bits of a float16, an int16' if of_bits else 'numbers'}",
        module="numba_hip.libdevice",
    )  # fmt: skip
