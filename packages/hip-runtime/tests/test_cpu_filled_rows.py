"""Stores in steps that together fill rows of memory: whole vectors without masks, and the same elements as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import memory_accesses

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "float": np.float32, "double": np.float64}
PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("base", "i64"), ("n", "i64")]
COUNT = 90


def row_kernel(kind: str, step: int, order: tuple[int, ...], between: str = "", checks: bool = False) -> str:
    """Stores x + 1, x + 2 and so on to *step* neighbours, in *order*, with instructions *between* the stores."""
    negative = """
  %wrapped = add i64 %times, %n
  %below = icmp slt i64 %times, 0
  %at = select i1 %below, i64 %wrapped, i64 %times""" if checks else "\n  %at = add i64 %times, 0"  # fmt: skip
    add, one = ("fadd", "1.0") if kind in ("float", "double") else ("add", "1")
    sums = [f"%v{number} = {add} {kind} %{f'v{number - 1}' if number else 'v'}, {one}" for number in range(step)]
    stores = [
        f"""
  %p{turn} = getelementptr {kind}, ptr %first, i64 {number}
  store {kind} %v{number}, ptr %p{turn}, align 1"""
        for turn, number in enumerate(order)
    ]
    return f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %base, i64 %n) {{
entry:
{GLOBAL_X}
  %q = getelementptr {kind}, ptr %x, i64 %i
  %v = load {kind}, ptr %q, align 1
  {
        '''
  '''.join(sums)
    }
  %moved = add i64 %i, %base
  %times = mul nsw i64 %moved, {step}{negative}
  %first = getelementptr {kind}, ptr %out, i64 %at
  {between.join(stores)}
  ret void
}}
"""


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the rows that are stored, in the order in which code is written."""
    found: list[int] = []
    store = memory_accesses.store_row

    def spy(accesses: Any, row: Any) -> None:
        found.append(len(row.members))
        store(accesses, row)

    monkeypatch.setattr(memory_accesses, "store_row", spy)
    return found


def run(device: Device, text: str, width: int, values: Any, out: int, base: int = 0, n: int = 0) -> None:
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        function.launch(3, COUNT // 3, pack(function.kernel, out, to_device(values).address, base, n))


def expect(values: Any, step: int) -> Any:
    return (values[:, None] + np.arange(1, step + 1).astype(values.dtype)).astype(values.dtype).reshape(-1)


ORDERS = [(0, 1), (1, 0), (0, 1, 2), (2, 0, 1), (3, 2, 1, 0), (0, 2, 1, 3)]


@pytest.mark.sample(12)
@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("width", [2, 8, 16, 64])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", TYPES)
def test_all_elements_of_rows(
    device: Device, rows: list[int], kind: str, order: tuple[int, ...], width: int, guarded: Any
) -> None:  # fmt: skip
    values, step = np.random.default_rng(len(order)).integers(0, 50, COUNT).astype(TYPES[kind]), len(order)
    expected = expect(values, step)
    with guarded(expected.nbytes) as place:
        run(device, row_kernel(kind, step, order), width, values, place)
        view = (np.ctypeslib.ctypes.c_char * expected.nbytes).from_address(place)
        np.testing.assert_array_equal(np.frombuffer(view, TYPES[kind]), expected)
        del view
    assert set(rows) == {step}


@pytest.mark.parametrize("base", [-COUNT, -40, 0, 5])
@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.sample(4)
def test_rows_behind_the_end_are_counted_from_it(device: Device, rows: list[int], step: int, base: int) -> None:
    """Where an index may be negative lanes are in steps unless one is."""
    values = np.random.default_rng(7).integers(0, 50, COUNT).astype(np.float32)
    length = step * (COUNT + 5)
    out = to_device(np.zeros(length, np.float32))
    run(device, row_kernel("float", step, tuple(range(step)), checks=True), 8, values, out.address, base, length)
    expected = np.zeros(length, np.float32)
    expected[(step * base + np.arange(step * COUNT)) % length] = expect(values, step)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert set(rows) == {step}


OTHERS = {
    "a load": ((0, 1), "\n  %seen = load volatile i32, ptr %out"),
    "another store": ((0, 1), "\n  store i32 %v0, ptr %q"),
    "an element that is left out": ((0, 2), ""),
}


@pytest.mark.parametrize("case", OTHERS)
def test_stores_that_are_not_joined(device: Device, rows: list[int], case: str) -> None:
    order, between = OTHERS[case]
    step = 3 if case == "an element that is left out" else 2
    values = np.arange(COUNT).astype(np.int32)
    out = to_device(np.full(step * COUNT, -7, np.int32))
    run(device, row_kernel("i32", step, order, between), 8, values, out.address)
    expected = expect(values, step)
    if case == "an element that is left out":
        expected[1::3] = -7
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert rows == []
