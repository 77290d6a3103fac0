"""Integer divisions of threads that run as lanes, against Python's integers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device

PARAMETERS = [("quotients", "ptr"), ("remainders", "ptr"), ("dividends", "ptr"), ("divisors", "ptr"), ("n", "i64")]


def kernel(kind: str, sign: str, divisor: int | None = None) -> str:
    """A kernel that divides ``a`` by ``b``, or by *divisor*, where ``b`` is not 0; with remainders."""
    by = "%y" if divisor is None else divisor
    return f"""
define void @k(ptr noalias %item, ptr %quotients, ptr %remainders, ptr %dividends, ptr %divisors, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %pa = getelementptr {kind}, ptr %dividends, i64 %i
  %pb = getelementptr {kind}, ptr %divisors, i64 %i
  %x = load {kind}, ptr %pa
  %y = load {kind}, ptr %pb
  %some = icmp ne {kind} %y, 0
  br i1 %some, label %divides, label %end
divides:
  %q = {sign}div {kind} %x, {by}
  %r = {sign}rem {kind} %x, {by}
  %pq = getelementptr {kind}, ptr %quotients, i64 %i
  %pr = getelementptr {kind}, ptr %remainders, i64 %i
  store {kind} %q, ptr %pq
  store {kind} %r, ptr %pr
  br label %end
end:
  ret void
}}
"""


def operands(kind: str, sign: str, largest: int) -> tuple[Any, Any]:
    """Pairs of dividends and divisors up to *largest*: ends of ranges, multiples, and the numbers below these."""
    draw = random.Random(3).randrange
    dtype = np.dtype(f"{'u' if sign == 'u' else ''}int{kind[1:]}")
    limits = np.iinfo(dtype)
    low, high = max(int(limits.min), -largest), min(int(limits.max), largest)
    ends = [low, low + 1, -1, 0, 1, 2, 3, 7, 1000, (1 << 26) + 1, high // 3, high - 1, high]
    ends = [end for end in ends if low <= end <= high]
    pairs = [(one, other) for one in ends for other in ends]
    for _ in range(600):
        divisor = draw(1, high) >> draw(high.bit_length())
        times = draw(high // max(divisor, 1)) + 1 if divisor else 1
        pairs += [(divisor * times - 1, divisor), (divisor * times, max(divisor, 1))]
        if low < 0:
            pairs += [(-divisor * times, divisor), (1 - divisor * times, -divisor)]
    pairs += [(high - draw(1 << 10), divisor) for divisor in (3, 5, 7, 11, 1001) for _ in range(20)]
    kept = [(one, other) for one, other in pairs if low <= one <= high and (one, other) != (int(limits.min), -1)]
    kept.sort(key=lambda pair: max(map(abs, pair)))  # so that the lanes of a gang have operands of like size
    return np.array([one for one, _ in kept], dtype), np.array([other for _, other in kept], dtype)


def divide(device: Device, kind: str, sign: str, width: int, a: Any, b: Any, divisor: int | None = None) -> None:
    quotients, remainders = (to_device(np.full(len(a), 99, a.dtype)) for _ in range(2))
    da, db = to_device(a), to_device(b)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(kernel(kind, sign, divisor), "k", PARAMETERS)).function("k")
        addresses = [array.address for array in (quotients, remainders, da, db)]
        function.launch(-(-len(a) // 70), 70, pack(function.kernel, *addresses, len(a)))
    expected = []
    for one, other in zip(a.tolist(), b.tolist(), strict=True):
        by = other if divisor is None else divisor
        size = abs(one) // abs(by) if other else 0
        quotient = size if (one < 0) == (by < 0) else -size
        expected.append((quotient, one - quotient * by) if other else (99, 99))
    np.testing.assert_array_equal(quotients.copy_to_host(), np.array([pair[0] for pair in expected], a.dtype))
    np.testing.assert_array_equal(remainders.copy_to_host(), np.array([pair[1] for pair in expected], a.dtype))


@pytest.mark.parametrize("width", [2, 16])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize(("kind", "bits"), [("i16", 16), ("i32", 32), ("i64", 51), ("i64", 54), ("i64", 64)])
@pytest.mark.sample(6)
def test_quotients_and_remainders(device: Device, kind: str, bits: int, sign: str, width: int) -> None:
    a, b = operands(kind, sign, 1 << bits)
    divide(device, kind, sign, width, a, b)


@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize("divisor", [3, 1000, (1 << 40) + 7, 1 << 20])
@pytest.mark.sample(3)
@pytest.mark.usefixtures("kept_programs")
def test_constant_divisors(device: Device, sign: str, divisor: int) -> None:
    for bits in (51, 64):
        a, b = operands("i64", sign, 1 << bits)
        divide(device, "i64", sign, 8, a, b, divisor)


def test_negative_constants_divide(device: Device) -> None:
    a, b = operands("i64", "s", 1 << 51)
    divide(device, "i64", "s", 8, a, b, -1000)
