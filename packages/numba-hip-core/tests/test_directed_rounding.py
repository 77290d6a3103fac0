"""Arithmetic that rounds in a direction, by libdevice's names, against exact fractions."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from numba_hip import libdevice

DIRECTIONS = ("rd", "ru", "rz")
TYPES = {"d": np.float64, "f": np.float32}
LARGEST = {np.float64: Fraction(sys.float_info.max), np.float32: Fraction(float(np.finfo(np.float32).max))}


def values_of(dtype, count):
    """Numbers of all sizes, some near each other, at the ends of the range, and special ones."""
    rng = np.random.default_rng(12)
    low, high = (-1074, 1023) if dtype is np.float64 else (-149, 127)
    sizes = np.ldexp(rng.uniform(1, 2, count), rng.integers(low, high + 1, count))
    near = np.ldexp(rng.integers(1, 64, count).astype(float), rng.integers(-4, 5, count))
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        np.nan,
        float(np.finfo(dtype).max),
        float(np.finfo(dtype).smallest_subnormal),
    ]
    with np.errstate(all="ignore"):
        found = np.concatenate([sizes, near, edges, np.negative(edges)]).astype(dtype)
    return rng.permutation(np.concatenate([found, -found, found]))


def rounded(exact, direction, dtype):
    """A `Fraction` rounded to *dtype*: by its mantissa, an integer of as many bits as there is room for."""
    sign, size = (-1 if exact < 0 else 1), abs(exact)
    away = direction == ("ru" if exact > 0 else "rd")
    if size > LARGEST[dtype]:
        return sign * (math.inf if away else float(LARGEST[dtype]))
    if size == 0:
        return 0.0
    bits, lowest = (53, -1074) if dtype is np.float64 else (24, -149)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - bits + 1, lowest)
    whole = size // unit
    whole += bool(away and whole * unit != size)
    return sign * float(whole * unit) if whole * unit <= LARGEST[dtype] else sign * math.inf


EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a, "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


def run(stem, columns, dtype):
    """The results in each of `DIRECTIONS` of libdevice's functions whose names begin with *stem*."""
    down, up, to_zero = (getattr(libdevice, f"{stem}_{direction}") for direction in DIRECTIONS)

    @hip.jit
    def unary(x, out):
        i = hip.grid(1)
        if i < x.size:
            out[0, i], out[1, i], out[2, i] = down(x[i]), up(x[i]), to_zero(x[i])

    @hip.jit
    def binary(x, y, out):
        i = hip.grid(1)
        if i < x.size:
            out[0, i], out[1, i], out[2, i] = down(x[i], y[i]), up(x[i], y[i]), to_zero(x[i], y[i])

    @hip.jit
    def ternary(x, y, z, out):
        i = hip.grid(1)
        if i < x.size:
            out[0, i], out[1, i] = down(x[i], y[i], z[i]), up(x[i], y[i], z[i])
            out[2, i] = to_zero(x[i], y[i], z[i])

    out = np.zeros((3, columns[0].size), dtype)
    (unary, binary, ternary)[len(columns) - 1].forall(columns[0].size)(*columns, out)
    return out


@pytest.mark.sample(1)
@pytest.mark.parametrize("operation", EXACT)
@pytest.mark.parametrize("letter", TYPES)
def test_against_fractions(letter, operation):
    dtype, exact = TYPES[letter], EXACT[operation]
    columns = [np.roll(values_of(dtype, 120), 37 * n) for n in range(exact.__code__.co_argcount)]
    stem = f"{letter}{operation}"
    if operation == "fma":
        stem = {"d": "fma", "f": "fmaf"}[letter]
        with np.errstate(all="ignore"):
            columns[2][::3] = -(columns[0][::3] * columns[1][::3])  # so that much cancels
    for direction, found in zip(DIRECTIONS, run(stem, columns, dtype), strict=True):
        for *arguments, result in zip(*columns, found, strict=True):
            numbers = [float(value) for value in arguments]
            if not all(map(math.isfinite, numbers)):
                continue
            try:
                wanted = rounded(exact(*map(Fraction, numbers)), direction, dtype)
            except ZeroDivisionError:
                assert not math.isfinite(result)
                continue
            shown = f"{stem}_{direction}({', '.join(map(float.hex, numbers))}) is {float(result).hex()}"
            assert float(result) == wanted, f"{shown}, not {wanted.hex()}"


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.sample(1)
def test_square_roots(letter):
    dtype = TYPES[letter]
    x = np.abs(values_of(dtype, 120))
    down, up, to_zero = run(f"{letter}sqrt", [x], dtype)
    np.testing.assert_array_equal(down, to_zero)
    for value, low, high in zip(x, down, up, strict=True):
        if not np.isfinite(value):
            np.testing.assert_array_equal([low, high], value)
            continue
        squares = Fraction(float(low)) ** 2, Fraction(float(high)) ** 2
        assert squares[0] <= Fraction(float(value)) <= squares[1]
        assert high == (low if squares[0] == squares[1] else np.nextafter(low, dtype(np.inf)))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(f"{letter}sqrt", [np.array([-1.0, -0.0], dtype)], dtype)[:, 0], np.nan)


def test_zeros_and_infinities():
    one, inf, nan = 1.0, math.inf, math.nan
    x = np.array([one, -0.0, 0.0, inf, inf, nan, -inf])
    y = np.array([-one, 0.0, 0.0, -inf, one, one, -inf])
    down, up, to_zero = run("dadd", [x, y], np.float64)
    np.testing.assert_array_equal(down, [0, 0, 0, nan, inf, nan, -inf])
    np.testing.assert_array_equal(up, down)
    np.testing.assert_array_equal(to_zero, down)
    assert np.signbit(down[:3]).tolist() == [True, True, False]
    assert not np.signbit([up[:3], to_zero[:3]]).any()
    products = run("dmul", [np.array([1e-200, -1e-200, 1e-200]), np.array([1e-200, 1e-200, 0.0])], np.float64)
    np.testing.assert_array_equal(products, [[0, -5e-324, 0], [5e-324, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_for_amd_gpus(target):
    def kernel(x, out):
        out[0] = libdevice.fma_rd(x[0], x[1], x[2]) + libdevice.ddiv_ru(x[0], x[1])
        out[1] = libdevice.fsqrt_rz(x[0]) + libdevice.frcp_rd(x[1]) + libdevice.fadd_ru(x[0], x[1])

    assert hip.compile(kernel, "(float64[::1], float64[::1])", target=target, output="object")[0][:4] == b"\x7fELF"


def test_named_for_the_first_time_by_a_later_kernel(monkeypatch):
    """A function is made when it is named, by which time there are kernels that were compiled."""
    hip.jit(lambda out: None)[1, 1](np.zeros(1))
    for name in ("dsub_rd", "dsub_ru"):
        monkeypatch.delitem(vars(libdevice), name, raising=False)

    @hip.jit
    def kernel(x, out):
        out[0] = libdevice.dsub_rd(x[0], x[1])
        out[1] = libdevice.dsub_ru(x[0], x[1])

    x, out = np.array([1.0, 1e-30]), np.zeros(2)
    kernel[1, 1](x, out)
    assert out.tolist() == [np.nextafter(1.0, 0.0), 1.0]


def test_what_there_is_not():
    for name in ("dadd_rx", "iadd_rd", "dfma_rd", "dlog_rd"):
        with pytest.raises(AttributeError, match=f"HIP has no counterpart of libdevice.{name}"):
            getattr(libdevice, name)
    with pytest.raises(TypingError, match=r"libdevice.dadd_rd takes numbers, not a complex128"):
        hip.compile(lambda out: libdevice.dadd_rd(out[0], 1), "(complex128[::1],)", target="cpu", output="llvm")
