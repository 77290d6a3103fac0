"""Products with their rounding errors, with and without a fused multiply-add, against exact fractions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from fractions import Fraction

import llvmlite.binding as llvm
import numpy as np
import pytest
from cpu_math_loops import FORMATS, Array, host
from llvmlite import ir

from hip_devicelib.cpu import pairs
from hip_devicelib.cpu.expressions import FORMATS as FORMULA_FORMATS
from hip_devicelib.cpu.expressions import Code, Real

CONSTANT = {32: float(np.float32(0.7)), 64: 0.7}


def evaluated(formula: Callable[..., Real], bits: int, fused: bool, *arguments: Array) -> Array:
    """*formula* of each element."""
    form = FORMULA_FORMATS[bits]
    module = ir.Module(context=ir.Context())
    function = ir.Function(module, ir.FunctionType(form.real, [form.real] * len(arguments)), "f")
    code = Code(ir.IRBuilder(function.append_basic_block()), form, fused)
    code.builder.ret(formula(*(Real(code, argument) for argument in function.args)).value)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), host())
    engine.finalize_object()
    kind = {32: ctypes.c_float, 64: ctypes.c_double}[bits]
    call = ctypes.CFUNCTYPE(kind, *[kind] * len(arguments))(engine.get_function_address("f"))
    return np.array([call(*map(float, row)) for row in zip(*arguments, strict=True)], FORMATS[bits])


def numbers(bits: int, seed: int, count: int = 2000) -> Array:
    """Of many sizes, some with all or few bits set."""
    random = np.random.default_rng(seed)
    digits = {32: 24, 64: 53}[bits]
    significands = random.integers(1 << (digits - 1), 1 << digits, count)
    significands[::5] |= (1 << random.integers(1, digits, significands[::5].size)) - 1
    significands[1::5] = (1 << digits) - 1 - random.integers(0, 4, significands[1::5].size)
    signs = random.choice([-1, 1], count)
    return np.ldexp(significands * signs, random.integers(-20, 20, count) - digits).astype(FORMATS[bits])


def lost(product: Array, x: Array, y: Array) -> list[Fraction]:
    """x * y less *product*."""
    rows = zip(product.tolist(), x.tolist(), y.tolist(), strict=True)
    return [Fraction(a) * Fraction(b) - Fraction(p) for p, a, b in rows]


def fractions(found: Array) -> list[Fraction]:
    return [Fraction(value) for value in found.tolist()]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("bits", [32, 64])
def test_errors_of_products_are_exact(bits: int, fused: bool) -> None:
    x, y = numbers(bits, 1), numbers(bits, 2)
    constant = np.full(x.size, CONSTANT[bits], x.dtype)
    assert fractions(evaluated(lambda a, b: pairs.multiply(a, b).low, bits, fused, x, y)) == lost(x * y, x, y)
    assert fractions(evaluated(lambda a: pairs.square(a).low, bits, fused, x)) == lost(x * x, x, x)
    found = evaluated(lambda a: pairs.multiply(a, CONSTANT[bits]).low, bits, fused, x)
    assert fractions(found) == lost(x * constant, x, constant)


@pytest.mark.parametrize("fused", [True, False])
def test_errors_of_short_products_are_exact(fused: bool) -> None:
    x, y = numbers(64, 3), numbers(32, 4).astype(np.float64)
    found = evaluated(lambda a, b: pairs.error_of_short_product(a, b, a * b), 64, fused, x, y)
    assert fractions(found) == lost(x * y, x, y)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("bits", [32, 64])
def test_remainders_are_exact(bits: int, fused: bool) -> None:
    x, y = numbers(bits, 5), numbers(bits, 6)
    quotient = x / y
    found = evaluated(pairs.remainder_of, bits, fused, x, quotient, y)
    assert fractions(-found) == lost(x, quotient, y)


@pytest.mark.parametrize("bits", [32, 64])
def test_the_largest_first_factor_does_not_overflow(bits: int) -> None:
    largest = np.finfo(FORMATS[bits]).max
    x, y = np.array([largest, -largest]), np.array([0.3, 0.7], FORMATS[bits])
    found = evaluated(lambda a, b: pairs.multiply(a, b).low, bits, False, x, y)
    assert fractions(found) == lost(x * y, x, y)


@pytest.mark.parametrize("fused", [True, False])
def test_sums_of_squares_lose_little(fused: bool) -> None:
    x, y = (abs(numbers(64, seed)) for seed in (7, 8))
    large, small = np.maximum(x, y), np.minimum(x, y)
    found = evaluated(pairs.sum_of_squares, 64, fused, large, small)
    unit = Fraction(1, 2**53)
    for total, a, b in zip(fractions(found), fractions(large), fractions(small), strict=True):
        exact = a * a + b * b
        assert abs(total - exact) <= exact * unit * Fraction("1.01") + b * b * unit
