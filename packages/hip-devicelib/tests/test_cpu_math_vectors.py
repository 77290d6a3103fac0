"""Loops around the CPU device's math become vector code, and fast-math flags around it do not reach into it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from cpu_math_loops import FORMATS, Loop, loop, loop_around, optimised, points, x86
from llvmlite import ir

from hip_devicelib.cpu import FUNCTIONS, MathFunction

NAMES = {32: "float", 64: "double"}


def vector_widths(function: Any, scalar: str) -> set[int]:
    """Lanes of all vectors of *scalar* that instructions of the function result in."""
    widths = set()
    for block in function.blocks:
        for instruction in block.instructions:
            match = re.fullmatch(rf"<(\d+) x {scalar}>", str(instruction.type))
            if match:
                widths.add(int(match[1]))
    return widths


@pytest.mark.parametrize(
    ("cpu", "register", "fused"), [("x86-64-v2", 128, False), ("x86-64-v3", 256, True), ("znver4", 512, True)]
)
@pytest.mark.parametrize("symbol", FUNCTIONS)
@pytest.mark.sample(36)
def test_loops_become_vector_code(symbol: str, cpu: str, register: int, fused: bool) -> None:
    entry = FUNCTIONS[symbol]
    module = optimised(loop_around(entry), [symbol], x86(cpu), fused)
    function = module.get_function("loop")
    called = {
        list(instruction.operands)[-1].name
        for block in function.blocks
        for instruction in block.instructions
        if instruction.opcode == "call"
    }
    assert all(name.startswith("llvm.") for name in called)
    assert max(vector_widths(function, NAMES[entry.bits])) * entry.bits >= register / 2
    assembly = x86(cpu).emit_assembly(module)
    assert not re.search(r"^\s+call", assembly, re.MULTILINE)


def doubled_fast(builder: ir.IRBuilder, value: Any) -> Any:
    """2 * value by instructions that carry all fast-math flags."""
    half = builder.fmul(value, ir.Constant(value.type, 4.0), flags=("fast",))
    return builder.fmul(half, ir.Constant(value.type, 0.5), flags=("fast",))


def unary(bits: int) -> list[MathFunction]:
    return [e for e in FUNCTIONS.values() if e.bits == bits and len(e.parameters) == 1]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.sample(1)
def test_fast_flags_of_a_kernel_leave_the_functions_alone(bits: int) -> None:
    arguments = points(bits, 4_000, seed=5)
    for entry in unary(bits):
        (plain,) = loop(entry.symbol)(arguments)
        (fast,) = Loop(entry, loop_around(entry, doubled_fast))(arguments)
        # what the flags promise: finite numbers; denormal results lose nothing by doubling
        kept = np.isfinite(plain) & (np.abs(plain) < np.finfo(FORMATS[bits]).max / 4)
        np.testing.assert_array_equal(fast[kept], 2 * plain[kept], err_msg=entry.symbol)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.sample(1)
def test_fast_attributes_of_a_kernel_leave_the_functions_alone(bits: int) -> None:
    arguments = points(bits, 4_000, seed=6)
    for entry in unary(bits):
        module = loop_around(entry)
        attributes = module.get_global("loop").attributes
        for name in ("unsafe-fp-math", "no-nans-fp-math", "no-infs-fp-math", "no-signed-zeros-fp-math"):
            set.add(attributes, f'"{name}"="true"')
        (plain,), (fast,) = loop(entry.symbol)(arguments), Loop(entry, module)(arguments)
        np.testing.assert_array_equal(fast, plain, err_msg=entry.symbol)
        np.testing.assert_array_equal(np.signbit(fast), np.signbit(plain), err_msg=entry.symbol)
