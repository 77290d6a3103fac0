"""Versions of code behind divisions for gangs whose lanes all have the same quotient, against Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_grid_barrier import GRID
from test_cpu_regions import kernel, launch

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import coherent_values

WIDTH, BLOCK, BLOCKS = 8, 24, 5
COUNT = BLOCK * BLOCKS
PARAMETERS = [("out", "ptr"), ("first", "i64"), ("divisor", "i64")]


def divide(kind: str, sign: str) -> str:
    """A kernel that divides ``first + i``, cut to *kind*, and also rounds down, as LLVM writes what Numba does, unless
    ``first`` is odd."""
    cut = "" if kind == "i64" else f"  %x = trunc i64 %sum to {kind}\n  %n = trunc i64 %divisor to {kind}\n"
    x, n = ("%sum", "%divisor") if kind == "i64" else ("%x", "%n")
    stored = "".join(
        f"""
  %row.{number} = add i64 %i, {number * COUNT}
  %p.{number} = getelementptr {kind}, ptr %out, i64 %row.{number}
  store {kind} {value}, ptr %p.{number}
"""
        for number, value in enumerate(("%q", "%r", "%down", "%modulo", "%far"))
    )
    return f"""
define void @k(ptr noalias %item, ptr %out, i64 %first, i64 %divisor) {{
entry:
{GLOBAL_X}
  %sum = add i64 %first, %i
{cut}
  %n.1 = add {kind} {n}, 1
  %traps = icmp ult {kind} %n.1, 2
  %by = select i1 %traps, {kind} 1, {kind} {n}
  %q = {sign}div {kind} {x}, %by
  %r = {sign}rem {kind} {x}, %by
  %negative = icmp slt {kind} {n}, 0
  %some = icmp ne {kind} %r, 0
  %differ = xor {kind} %r, {n}
  %apart = icmp slt {kind} %differ, 0
  %corrected = and i1 %some, %apart
  %less = sext i1 %corrected to {kind}
  %rounded = add {kind} %q, %less
  %turned = sub {kind} 0, {x}
  %kept = and {kind} {n}, %turned
  %odd = trunc i64 %first to i1
  %other = or i1 %traps, %odd
  %down = select i1 %other, {kind} %kept, {kind} %rounded
  %by.or.none = select i1 %corrected, {kind} {n}, {kind} 0
  %modulo = add {kind} %r, %by.or.none
  %below = icmp slt {kind} %modulo, -2
  %far.1 = add {kind} %modulo, 2
  %far = select i1 %below, {kind} %down, {kind} %far.1
{stored}
  ret void
}}
"""


def expect(kind: str, sign: str, first: int, divisor: int) -> np.ndarray[Any, Any]:
    """What `divide` stores, computed with Python's integers."""
    bits = int(kind[1:])

    def wrap(number: int, signed: bool = True) -> int:
        number %= 1 << bits
        return number - (1 << bits) if signed and number >> (bits - 1) else number

    n = wrap(divisor)
    rows = []
    for i in range(COUNT):
        x = wrap(first + i)
        by = 1 if wrap(n + 1, False) < 2 else n
        one, other = (x, by) if sign == "s" else (wrap(x, False), wrap(by, False))
        size = abs(one) // abs(other)
        q = wrap(size if (one < 0) == (other < 0) else -size)
        r = wrap(x - q * by)
        corrected = r != 0 and wrap(r ^ n) < 0
        down = wrap(n & -x) if wrap(n + 1, False) < 2 or first % 2 else wrap(q - corrected)
        modulo = wrap(r + (n if corrected else 0))
        rows.append((q, r, down, modulo, down if modulo < -2 else wrap(modulo + 2)))
    return np.array(rows, dtype=f"int{bits}").T


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.sample(2)
def test_quotients_and_remainders(device: Device, coherent_versions: list[int], kind: str, sign: str) -> None:
    bits = int(kind[1:])
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(divide(kind, sign), "k", PARAMETERS)).function("k")
        ends = [(1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1, 1 << bits - 2]
        for divisor in (-(1 << bits - 1), -100, -7, -1, 0, 1, 2, 7, 8, 9, 31, 100, (1 << bits - 2) + 1, ends[0]):
            multiples = [divisor * 5, divisor * 1001] if abs(divisor) < 1 << 20 else [divisor]
            for first in (0, 3, -50, *(end - rest for end in ends for rest in (60, 7)), *multiples):
                out = to_device(np.zeros((5, COUNT), f"int{bits}"))
                wrapped = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in (first, divisor)]
                function.launch(BLOCKS, BLOCK, pack(function.kernel, out.address, *wrapped))
                expected = expect(kind, sign, *wrapped)
                np.testing.assert_array_equal(out.copy_to_host(), expected, f"{first} by {divisor}")
    assert set(coherent_versions) == {1}


ROWS = f"""
define void @k(ptr noalias %item, ptr %out, i64 %height, i64 %width) {{
entry:
{GLOBAL_X}
  %y = udiv i64 %i, %width
  %x = urem i64 %i, %width
  %inside = icmp slt i64 %y, %height
  br i1 %inside, label %go, label %end
go:
  %right = add i64 %x, 2
  %across = urem i64 %right, %width
  %line = mul i64 %y, %width
  %at = add i64 %line, %across
  %p = getelementptr i64, ptr %out, i64 %at
  %odd = trunc i64 %y to i1
  br i1 %odd, label %turn, label %keep
turn:
  %minus = sub i64 0, %i
  store i64 %minus, ptr %p
  br label %end
keep:
  store i64 %i, ptr %p
  br label %end
end:
  ret void
}}
"""
"""Stores the number of each element of a matrix, or minus that in odd rows, two places to the right."""


@pytest.mark.parametrize("width", [4, 8, 32])
def test_rows_of_a_matrix(device: Device, coherent_versions: list[int], width: int) -> None:
    parameters = [("out", "ptr"), ("height", "i64"), ("width", "i64")]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(ROWS, "k", parameters)).function("k")
        for shape in ((1, 1), (3, 5), (7, 33), (5, 64), (2, 501)):
            numbers = np.arange(shape[0] * shape[1]).reshape(shape)
            numbers[1::2] *= -1
            out = to_device(np.zeros_like(numbers))
            blocks = numbers.size // 96 + 2
            function.launch(blocks, 96, pack(function.kernel, out.address, *shape))
            np.testing.assert_array_equal(out.copy_to_host(), np.roll(numbers, 2, axis=1), str(shape))
    assert set(coherent_versions) == {2}


AROUND = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %width, i64 %reach) {{
entry:
{GLOBAL_X}
  %inside = icmp slt i64 %i, %width
  br i1 %inside, label %head, label %end
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %total = phi i64 [ 0, %entry ], [ %sum, %next ]
  %far = add i64 %i, %k
  %at = urem i64 %far, %width
  %round = udiv i64 %far, %width
  %p = getelementptr i64, ptr %x, i64 %at
  %v = load i64, ptr %p
  %weighted = mul i64 %v, %k
  %odd = trunc i64 %k to i1
  br i1 %odd, label %next, label %more
more:
  br label %next
next:
  %add = phi i64 [ %weighted, %head ], [ %round, %more ]
  %twice = add i64 %add, %at
  %sum = add i64 %total, %twice
  %k1 = add i64 %k, 1
  %again = icmp ult i64 %k1, %reach
  br i1 %again, label %head, label %done
done:
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %sum, ptr %q
  br label %end
end:
  ret void
}}
"""
"""Sums over the elements behind each of a circle. What is computed by division is used in other blocks, too."""


@pytest.mark.parametrize("width", [4, 16])
def test_divisions_in_a_loop(device: Device, coherent_versions: list[int], width: int) -> None:
    parameters = [("out", "ptr"), ("x", "ptr"), ("width", "i64"), ("reach", "i64")]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(AROUND, "k", parameters)).function("k")
        for size in (1, 3, 50, 200):
            numbers = np.random.default_rng(size).integers(0, 1000, size)
            out, x = to_device(np.zeros_like(numbers)), to_device(numbers)
            function.launch(5, 48, pack(function.kernel, out.address, x.address, size, 7))
            steps = np.arange(size)[:, None] + np.arange(7)
            added = np.where(np.arange(7) % 2, numbers[steps % size] * np.arange(7), steps // size)
            np.testing.assert_array_equal(out.copy_to_host(), (added + steps % size).sum(axis=1), str(size))
    assert set(coherent_versions) == {1}


NEIGHBOURS = """
  %b64 = zext i32 %b to i64
  %t64 = zext i32 %tx to i64
  %before = mul i64 %b64, 64
  %wide = add i64 %before, %t64
  %y = sdiv i64 %wide, %width
  %x = srem i64 %wide, %width
  %line = mul i64 %y, %width
  %at = add i64 %line, %x
  %p = getelementptr i64, ptr %out, i64 %at
  %right = add i64 %x, 1
  %wraps = icmp eq i64 %right, %width
  %column = select i1 %wraps, i64 0, i64 %right
  %beside = add i64 %line, %column
  %q = getelementptr i64, ptr %out, i64 %beside
  %inside = icmp slt i64 %y, %height
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %stored ]
  br i1 %inside, label %read, label %wait
read:
  %found = load i64, ptr %q
  br label %wait
wait:
  %v = phi i64 [ 0, %head ], [ %found, %read ]
  call void @spmd.grid_barrier(ptr %item)
  br i1 %inside, label %write, label %stored
write:
  store i64 %v, ptr %p
  br label %stored
stored:
  call void @spmd.grid_barrier(ptr %item)
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %turns
  br i1 %more, label %head, label %end
end:
  ret void
"""
"""Rolls the rows of a matrix to the left, *turns* times."""


@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
@pytest.mark.sample(2)
@pytest.mark.usefixtures("kept_programs")
def test_regions_divide_again(device: Device, coherent_versions: list[int], form: str) -> None:
    parameters = [("out", "ptr"), ("height", "i64"), ("width", "i64"), ("turns", "i64")]
    with config.cpu_form.scope(form), config.cpu_width.scope(8):
        code_object = kernel(NEIGHBOURS, parameters, GRID)
        for shape in ((3, 5), (7, 133)):
            numbers = np.arange(shape[0] * shape[1]).reshape(shape)
            out = to_device(numbers)
            launch(device, code_object, numbers.size // 64 + 2, 64, out.address, *shape, 5, cooperative=True)
            device.synchronize()
            np.testing.assert_array_equal(out.copy_to_host(), np.roll(numbers, -5, axis=1), str(shape))
    assert any(coherent_versions) == (form != "regions")


WINDOWS = """
define void @k(ptr noalias %item, ptr %out, ptr %in, i64 %n, i64 %width) {{
entry:
{index}
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %body, label %end
body:
  %row = udiv i64 %i, %width
  %column = urem i64 %i, %width
  %pitch = add i64 %width, 2
  %base = mul i64 {row}, %pitch
  %place = add i64 %base, %column
{copies}
  br label %end
end:
  ret void
}}
"""


@pytest.mark.parametrize(("row", "form"), [("%row", ": vectors"), ("%column", ": loop")])
def test_the_form_is_chosen_for_gangs_in_one_row(device: Device, row: str, form: str) -> None:
    """Where the row is uniform, accesses that vary from row to row are contiguous; where the column is their row, they
    stay apart."""
    copies = "".join(
        f"""
  %from.{k} = add i64 %place, {k}
  %p.{k} = getelementptr float, ptr %in, i64 %from.{k}
  %v.{k} = load float, ptr %p.{k}
  %times.{k} = mul i64 %place, 3
  %to.{k} = add i64 {"%from." + str(k) if row == "%row" else "%times." + str(k)}, {k * 4000}
  %q.{k} = getelementptr float, ptr %out, i64 %to.{k}
  store float %v.{k}, ptr %q.{k}
"""
        for k in range(3)
    )
    width, rows = 60, 16
    parameters = [("out", "ptr"), ("in", "ptr"), ("n", "i64"), ("width", "i64")]
    made = code(WINDOWS.format(index=GLOBAL_X, row=row, copies=copies), "k", parameters)
    values = np.random.default_rng(1).random(4000).astype(np.float32)
    source, out = to_device(values), to_device(np.zeros(24_000, np.float32))
    function = device.load(made).function("k")
    function.launch(-(-rows * width // 64), 64, pack(function.kernel, out.address, source.address, rows * width, width))
    assert form in function.form
    thread = np.arange(rows * width)
    place = (thread // width if row == "%row" else thread % width) * (width + 2) + thread % width
    expected = np.zeros(24_000, np.float32)
    for k in range(3):
        expected[(place + k if row == "%row" else 3 * place) + 4000 * k] = values[place + k]
    np.testing.assert_array_equal(out.copy_to_host(), expected)


CHAIN = f"""
define void @k(ptr noalias %item, ptr noalias %out, i64 %wide, i64 %narrow) {{
entry:
{GLOBAL_X}
  %c = urem i64 %i, %wide
  %next = add i64 %narrow, 1
  %traps = icmp ult i64 %next, 2
  %by = select i1 %traps, i64 1, i64 %narrow
  %q = sdiv i64 %c, %by
  %r = srem i64 %c, %by
  %apart = icmp slt i64 %r, 0
  %less = sext i1 %apart to i64
  %rounded = add i64 %q, %less
  %turned = sub i64 0, %c
  %kept = and i64 %narrow, %turned
  %y = select i1 %traps, i64 %kept, i64 %rounded
  %line = mul i64 %y, 1000
  %v = add i64 %line, %r
  %p = getelementptr i64, ptr %out, i64 %i
  store i64 %v, ptr %p
  ret void
}}
"""
"""Divides what a division left, as Numba writes it: a divisor of 0 or -1 is treated otherwise."""


def test_divisors_of_later_divisions_may_be_any(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first division is coherent whatever the second one divides by."""
    expected: list[dict[str, bool]] = []
    find = coherent_values.expected_conditions

    def spy(*arguments: Any) -> Any:
        found = find(*arguments)
        expected.append({value.name: holds for value, holds in found.items()})
        return found

    monkeypatch.setattr(coherent_values, "expected_conditions", spy)
    parameters = [("out", "ptr"), ("wide", "i64"), ("narrow", "i64")]
    index = np.arange(COUNT)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(CHAIN, "k", parameters)).function("k")
        for wide, narrow in ((100, 33), (150, 150), (7, 2), (1000, 1), (1000, 0), (50, -1)):
            out = to_device(np.zeros(COUNT, np.int64))
            function.launch(BLOCKS, BLOCK, pack(function.kernel, out.address, wide, narrow))
            column = index % wide
            rows, rest = (column // narrow, column % narrow) if narrow > 0 else (-column & narrow, 0)
            result = rows * 1000 + rest
            np.testing.assert_array_equal(out.copy_to_host(), result)
    assert not any("traps" in name and holds for found in expected for name, holds in found.items())
