"""Loads at indices that lanes load, as ``x[index[i]]``: of all sizes, from the end where these are negative, and not at
what is written there in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import apart_accesses

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "half": np.float16, "double": np.float64}
PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("places", "ptr"), ("flags", "ptr"), ("count", "i64"), ("shift", "i64")]
THREADS, BLOCK, COUNT, SHIFT = 128, 64, 100, 5
Array = np.ndarray[Any, Any]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each load whose lanes are apart is made at indices that lanes load."""
    answers: list[bool] = []
    original = apart_accesses.find_indirect_address

    def spy(*arguments: Any) -> Any:
        address = original(*arguments)
        answers.append(address is not None)
        return address

    monkeypatch.setattr(apart_accesses, "find_indirect_address", spy)
    return answers


def kernel(
    kind: str, index: str = "i32", *, step: int = 1, signed: bool = True, change: str = "", between: str = "",
    masked: bool = False, wrapped: bool = True,
) -> str:  # fmt: skip
    """``out[i] = x[places[step * i]]``, whose index is changed by the instruction *change* to ``%place``; *between* is
    what happens before that is loaded. A negative one counts from the end if *wrapped*."""
    wide = "%number" if index != "i64" else "%small"
    extend = "" if index == "i64" else f"%number = {'sext' if signed else 'zext'} {index} %small to i64"
    select = f"""
  %negative = icmp slt {index} %small, 0
  %extent = select i1 %negative, i64 %count, i64 0
  %begin = getelementptr {kind}, ptr %x, i64 %extent"""
    base = "%begin" if wrapped else "%x"
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr %places, ptr %flags, i64 %count, i64 %shift) {{
entry:
{GLOBAL_X}
  %pf = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %pf
  %on = icmp ne i8 %flag, 0
  {"br i1 %on, label %do, label %end" if masked else "br label %do"}
do:
  %at = mul i64 %i, {step}
  %pi = getelementptr {index}, ptr %places, i64 %at
  %small = load {index}, ptr %pi
  {extend}
  {change or f"%place = add i64 {wide}, 0"}
  {select if wrapped else ""}
  {between}
  %p = getelementptr {kind}, ptr {base}, i64 %place
  %v = load {kind}, ptr %p, align 1
  %q = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %v, ptr %q, align 1
  br label %end
end:
  ret void
}}
"""


def run(device: Device, text: str, x: Array, places: Array, flags: Array | None = None, width: int = 32) -> Array:
    """What *text* leaves in ``out`` for *x*."""
    out, table, numbers = to_device(np.zeros(THREADS, x.dtype)), to_device(x), to_device(places)
    marks = numbers if flags is None else to_device(flags)
    function = device.load(code(text, "k", PARAMETERS)).function("k")
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function.launch(
            THREADS // BLOCK, BLOCK,
            pack(function.kernel, out.address, table.address, numbers.address, marks.address, COUNT, SHIFT),
        )  # fmt: skip
    return out.copy_to_host()


def table(kind: str) -> Array:
    return np.random.default_rng(1).integers(-100, 100, COUNT).astype(TYPES[kind])


def draw(least: int, index: str = "i32", count: int = THREADS) -> Array:
    return np.random.default_rng(2).integers(least, COUNT, count).astype(TYPES[index])


@pytest.mark.parametrize("width", [2, 8, 64])
@pytest.mark.parametrize("index", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(4)
def test_elements_and_indices_of_all_sizes(
    device: Device, found: list[bool], kind: str, index: str, width: int
) -> None:  # fmt: skip
    x, places = table(kind), draw(0, index)
    np.testing.assert_array_equal(run(device, kernel(kind, index), x, places, width=width), x[places])
    assert any(found)


@pytest.mark.parametrize("negative", [[0], [77], [31, 32], range(THREADS)])
def test_negative_indices(device: Device, found: list[bool], negative: list[int]) -> None:
    x, places = table("i32"), draw(0)
    places[negative] -= COUNT
    np.testing.assert_array_equal(run(device, kernel("i32"), x, places), x[places])
    assert any(found)


def test_an_index_without_a_sign(device: Device, found: list[bool]) -> None:
    x, places = table("i16"), draw(0, "i16")
    text = kernel("i16", "i16", signed=False, wrapped=False)
    np.testing.assert_array_equal(run(device, text, x, places), x[places])
    assert any(found)


CHANGES = {"add": "add i64 %number, %shift", "sub": "sub i64 %number, %shift", "shl": "shl i64 %number, 1"}


@pytest.mark.parametrize("change", CHANGES)
def test_an_index_that_is_changed(device: Device, found: list[bool], change: str) -> None:
    x, places = table("i32"), draw(SHIFT)[:THREADS] % 45 + SHIFT
    expected = {"add": places + SHIFT, "sub": places - SHIFT, "shl": places << 1}[change]
    text = kernel("i32", change=f"%place = {CHANGES[change]}", wrapped=False)
    np.testing.assert_array_equal(run(device, text, x, places.astype(np.int32)), x[expected])
    assert any(found)


def test_a_multiplied_index(device: Device, found: list[bool]) -> None:
    """Vectors multiply several at once."""
    x, places = table("i32"), draw(0) % 20
    text = kernel("i32", change="%place = mul i64 %number, %shift", wrapped=False)
    np.testing.assert_array_equal(run(device, text, x, places.astype(np.int32)), x[places * SHIFT])
    assert found
    assert not any(found)


@pytest.mark.parametrize("least", [0, -COUNT])
def test_every_second_index(device: Device, found: list[bool], least: int) -> None:
    x, places = table("i32"), draw(least, count=2 * THREADS)
    np.testing.assert_array_equal(run(device, kernel("i32", step=2), x, places), x[places[::2]])
    assert any(found)


@pytest.mark.parametrize("kind", ["i8", "double"])
def test_under_a_mask(device: Device, found: list[bool], kind: str) -> None:
    """Threads that are not active have indices far outside."""
    x, places = table(kind), draw(-COUNT, "i64")
    flags = np.random.default_rng(3).integers(0, 2, THREADS).astype(np.int8)
    flags[:32] = 1
    expected = np.where(flags, x[places], 0)
    places[flags == 0] = 2**50
    np.testing.assert_array_equal(run(device, kernel(kind, "i64", masked=True), x, places, flags), expected)
    assert not any(found)


def test_indices_that_are_overwritten(device: Device, found: list[bool]) -> None:
    """What was loaded before a store counts, not what is there when it is used: ``flags`` are the indices."""
    x, places = table("i32"), draw(0)
    between = """%pw = getelementptr i32, ptr %flags, i64 %i
  store i32 2147483647, ptr %pw"""
    np.testing.assert_array_equal(run(device, kernel("i32", between=between), x, places), x[places])
    assert found
    assert not any(found)


def test_a_volatile_load(device: Device, found: list[bool]) -> None:
    """It is made once."""
    x, places = table("i32"), draw(0)
    text = kernel("i32").replace("%small = load", "%small = load volatile")
    np.testing.assert_array_equal(run(device, text, x, places), x[places])
    assert not any(found)
