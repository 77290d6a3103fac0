"""Loads and stores of lanes that are a distance apart which is known at run time only, as of rows: forwards, backwards,
all at one place, and not where a distance is that of some lanes alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import apart_accesses

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "float": np.float32, "double": np.float64}
PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("flags", "ptr"), ("out_step", "i64"), ("step", "i64"), ("column", "i64")]
THREADS, BLOCK = 128, 64
FAR = 11
"""The most elements that lanes are apart."""

Array = np.ndarray[Any, Any]


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The opcodes of accesses whose addresses grow by the same number from lane to lane."""
    told: list[str] = []
    for name in ("load_linear", "store_linear"):
        original = getattr(apart_accesses, name)

        def spy(code: Any, access: Any, original: Any = original) -> Any:
            told.append(access.opcode)
            return original(code, access)

        monkeypatch.setattr(apart_accesses, name, spy)
    return told


SIMPLE = """
  %from = mul i64 %i, %step
  %to = mul i64 %i, %out_step"""
"""Where a thread loads and stores, without its column."""


def kernel(kind: str, places: str = SIMPLE, masked: bool = False) -> str:
    """``out[to + column] = x[from + column]`` where the flag is set, or everywhere."""
    return f"""
define void @k(
  ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr noalias %flags, i64 %out_step, i64 %step, i64 %column
) {{
entry:
{GLOBAL_X}
  %pf = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %pf
  %on = icmp ne i8 %flag, 0
  {"br i1 %on, label %do, label %end" if masked else "br label %do"}
do:{places}
  %row = getelementptr {kind}, ptr %x, i64 %from
  %p = getelementptr {kind}, ptr %row, i64 %column
  %v = load {kind}, ptr %p
  %index = add i64 %to, %column
  %q = getelementptr {kind}, ptr %out, i64 %index
  store {kind} %v, ptr %q
  br label %end
end:
  ret void
}}
"""


def check(
    device: Device, text: str, kind: str, out_steps: Array, steps: Array, arguments: tuple[int, int],
    flags: Array | None = None, width: int = 32,
) -> None:  # fmt: skip
    """Compare *text* with NumPy, for threads that store *out_steps* and load *steps* elements from the middle on."""
    middle, column = BLOCK * BLOCK, 3
    size = 2 * middle + 8
    x = np.random.default_rng(1).integers(-99, 99, size).astype(TYPES[kind])
    marks = np.ones(THREADS, np.int8) if flags is None else flags
    expected = np.zeros_like(x)
    for thread in np.flatnonzero(marks):  # in order, as for lanes that store to one place
        expected[middle + out_steps[thread] + column] = x[middle + steps[thread] + column]
    out, table, on = to_device(np.zeros_like(x)), to_device(x), to_device(marks)
    function = device.load(code(text, "k", PARAMETERS)).function("k")
    begin = middle * x.itemsize
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        packed = pack(function.kernel, out.address + begin, table.address + begin, on.address, *arguments, column)
        function.launch(THREADS // BLOCK, BLOCK, packed)
    np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize("width", [2, 8, 64])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(4)
def test_elements_of_all_sizes(device: Device, linear: list[str], kind: str, width: int) -> None:
    thread = np.arange(THREADS)
    check(device, kernel(kind), kind, 7 * thread, FAR * thread, (7, FAR), width=width)
    assert {"load", "store"} <= set(linear)


@pytest.mark.parametrize("step", [1, -1, -FAR, 2])
@pytest.mark.parametrize("out_step", [1, -7, 3])
@pytest.mark.sample(4)
def test_distances(device: Device, linear: list[str], out_step: int, step: int) -> None:
    thread = np.arange(THREADS)
    check(device, kernel("i32"), "i32", out_step * thread, step * thread, (out_step, step))
    assert linear


def test_one_place(device: Device, linear: list[str]) -> None:
    """All of which load one element."""
    thread = np.arange(THREADS)
    check(device, kernel("float"), "float", 5 * thread, 0 * thread, (5, 0))
    assert linear


@pytest.mark.parametrize("width", [8, 64])
def test_under_a_mask(device: Device, linear: list[str], width: int) -> None:
    thread = np.arange(THREADS)
    flags = np.random.default_rng(2).integers(0, 2, THREADS).astype(np.int8)
    check(device, kernel("i32", masked=True), "i32", 7 * thread, 5 * thread, (7, 5), flags, width)
    assert not linear


PLACES = {
    "squares": "mul i64 %t, %t", "powers": "shl i64 %step, %least", "wrapped": "zext i32 %product to i64",
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_grows_unevenly(device: Device, linear: list[str], place: str) -> None:
    """Of which only the store's is linear."""
    places = f"""
  %least = and i64 %i, 3
  %short = trunc i64 %i to i32
  %large = shl i64 %step, 30
  %factor = trunc i64 %large to i32
  %product.far = mul i32 %short, %factor
  %product = lshr i32 %product.far, 28
  %from = {PLACES[place]}
  %to = mul i64 %i, %out_step"""
    thread, step = np.arange(THREADS), 3
    expected = {
        "squares": (thread % BLOCK) ** 2, "powers": step << (thread & 3),
        "wrapped": (thread * (step << 30)) % 2**32 >> 28,
    }[place]  # fmt: skip
    check(device, kernel("i32", places), "i32", 5 * thread, expected, (5, step), width=64)
    assert "store" in linear
    assert "load" not in linear


class Place:
    """A random number that grows by the same from thread to thread, by little in the end; sums on the way wrap."""

    def __init__(self, seed: int, step: int) -> None:
        self._choose = random.Random(seed)
        self._lines: list[str] = []
        self._step = step
        self.name, self.factor, self.offset = self._write(3)
        if not abs(self.factor) <= FAR:
            self._lines += [f"  %times = mul i64 %i, {self.factor % (2 * FAR) - FAR}",
                            f"  %extra = mul i64 %i, {self.factor}", f"  %low = sub i64 {self.name}, %extra",
                            "  %total = add i64 %times, %low"]  # fmt: skip
            self.name, self.factor = "%total", self.factor % (2 * FAR) - FAR
        self._lines += [f"  %from = sub i64 {self.name}, {self.offset}"]

    @property
    def text(self) -> str:
        """The instructions that compute ``%from``."""
        return "\n".join(["", *self._lines])

    def _write(self, depth: int) -> tuple[str, int, int]:
        """A value, by how much it grows, and what it is in the first thread."""
        choose = self._choose
        if depth == 0:
            return choose.choice((("%i", 1, 0), ("%step", 0, self._step), (str(1 << 62), 0, 1 << 62)))
        left, factor, offset = self._write(depth - 1)
        kind = choose.choice(("add", "sub", "mul", "shl"))
        name = f"%n{len(self._lines)}"
        if kind in ("mul", "shl"):
            by, number = choose.choice((("%step", self._step), ("5", 5)))
            self._lines.append(f"  {name} = {kind} i64 {left}, {by}")
            number = number if kind == "mul" else 1 << number
            return name, factor * number, offset * number
        right, other, further = self._write(depth - 1)
        name = f"%n{len(self._lines)}"
        self._lines.append(f"  {name} = {kind} i64 {left}, {right}")
        sign = 1 if kind == "add" else -1
        return name, factor + sign * other, offset + sign * further


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sample(10)
def test_sums_and_products(device: Device, linear: list[str], seed: int, before: bool) -> None:
    """Computed in the block of the access, or before a branch."""
    place = Place(seed, 3)
    thread = np.arange(THREADS)
    places = f"{place.text}\n  %to = mul i64 %i, %out_step"
    text = kernel("i32", places)
    if before:
        text = kernel("i32", "").replace("  %pf =", f"{places}\n  %pf =")
        text = text.replace("br label %do", "br i1 %go, label %do, label %end").replace(
            "%flag = load", "%go = icmp ne i64 %out_step, 0\n  %flag = load"
        )
    check(device, text, "i32", 5 * thread, place.factor * thread, (5, 3))
    assert "store" in linear
