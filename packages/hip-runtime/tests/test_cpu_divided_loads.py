"""Loads of elements that neighbouring lanes share, at quotients of numbers that grow alike, and these quotients."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from other_processors import as_processor, needs_x86
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.object_code.permutations import find_permutation

TYPES = {"i8": np.int8, "i16": np.int16, "float": np.float32, "double": np.float64}
THREADS, BLOCKS = 96, 7
COUNT = THREADS * BLOCKS

DIVIDENDS: dict[str, tuple[str, str, Callable[[np.ndarray], np.ndarray]]] = {
    "the index": ("i64", "%n = add nsw i64 %i, 0", lambda i: i),
    "further": ("i64", "%n = add nsw i64 %i, 5", lambda i: i + 5),
    "twice": ("i64", "%twice = shl nuw nsw i64 %i, 1\n  %n = add nuw nsw i64 %twice, 1", lambda i: 2 * i + 1),
    "of 32 bits": ("i32", "%s = trunc i64 %i to i32\n  %n = add nuw nsw i32 %s, 3", lambda i: i + 3),
    "below zero": ("i64", "%n = add nsw i64 %i, -100", lambda i: i - 100),
}  # fmt: skip
"""The type of what is divided, the instructions that compute it, and the same for NumPy."""

DIVISIONS = {
    "udiv": lambda n, by: n.view(np.uint64) // np.uint64(by),
    "lshr": lambda n, by: n.view(np.uint64) >> np.uint64(by),
    "ashr": lambda n, by: n >> by,
}
FLAGS = np.random.default_rng(4).random(COUNT) < 0.3
FLAGS[150:400] = False


@pytest.fixture(params=["native", pytest.param("haswell", marks=needs_x86)])
def processor(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "native":
        yield request.param
        return
    with as_processor(request.param) as name:
        yield name


def divide(kind: str, dividend: str, opcode: str, by: int) -> CodeObject:
    """Each thread stores a quotient, and those with a flag the element with that number."""
    integer, instructions, _ = DIVIDENDS[dividend]
    extend = "" if integer == "i64" else f"%q = {'sext' if opcode == 'ashr' else 'zext'} {integer} %short to i64"
    text = f"""
    define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %numbers, ptr noalias %flags, ptr noalias %data) {{
    entry:
    {GLOBAL_X.replace("%start = mul i64", "%start = mul nsw nuw i64").replace("%i = add i64", "%i = add nsw nuw i64")}
      {instructions}
      {"%short" if extend else "%q"} = {opcode} {integer} %n, {by}
      {extend}
      %place = getelementptr i64, ptr %numbers, i64 %i
      store i64 %q, ptr %place
      %pf = getelementptr i8, ptr %flags, i64 %i
      %f = load i8, ptr %pf
      %on = icmp ne i8 %f, 0
      br i1 %on, label %do, label %end
    do:
      %from = getelementptr {kind}, ptr %data, i64 %q
      %e = load {kind}, ptr %from
      %to = getelementptr {kind}, ptr %out, i64 %i
      store {kind} %e, ptr %to
      br label %end
    end:
      ret void
    }}"""
    return code(text, "k", [(name, "ptr") for name in ("out", "numbers", "flags", "data")])


def check(device: Device, kind: str, dividend: str, opcode: str, by: int, width: int, flags: np.ndarray) -> None:
    """The memory is of those elements alone that some thread needs, and of what is between them."""
    dtype = np.dtype(TYPES[kind])
    dividends = DIVIDENDS[dividend][2](np.arange(COUNT))
    numbers = DIVISIONS[opcode](dividends, by).astype(np.int64)
    active = flags & ((dividends >= 0) | (opcode == "ashr"))
    first, last = numbers[active].min(), numbers[active].max()
    data = np.random.default_rng(by).integers(1, 100, last - first + 1).astype(dtype)
    expected = np.zeros(COUNT, dtype)
    expected[active] = data[numbers[active] - first]
    on, made = to_device(active), divide(kind, dividend, opcode, by)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(made).function("k")
        for guarded in (before_a_guard, behind_a_guard):
            out, found = to_device(np.zeros(COUNT, dtype)), to_device(np.zeros(COUNT, np.int64))
            with guarded(data.nbytes) as place:
                ctypes.memmove(place, data.ctypes.data, data.nbytes)
                start = place - int(first) * dtype.itemsize
                function.launch(BLOCKS, THREADS, pack(function.kernel, out.address, found.address, on.address, start))
            np.testing.assert_array_equal(out.copy_to_host(), expected)
            np.testing.assert_array_equal(found.copy_to_host(), numbers)


@pytest.mark.parametrize("width", [4, 16, 64])
@pytest.mark.parametrize(("opcode", "by"), [
    ("lshr", 1), ("lshr", 5), ("ashr", 1), ("ashr", 3), ("udiv", 3), ("udiv", 7), ("udiv", 40),
])  # fmt: skip
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(8)
def test_elements_by_quotients(
    device: Device, processor: str, kind: str, opcode: str, by: int, width: int
) -> None:  # fmt: skip
    for dividend in DIVIDENDS:
        for flags in (np.ones(COUNT, bool), FLAGS):
            check(device, kind, dividend, opcode, by, width, flags)


@pytest.mark.usefixtures("kept_programs")
@pytest.mark.parametrize(("dividend", "opcode", "by", "shared"), [
    ("the index", "lshr", 1, True),
    ("further", "lshr", 1, True),
    ("the index", "udiv", 3, True),
    ("twice", "udiv", 3, True),
    ("below zero", "ashr", 2, True),
    ("below zero", "lshr", 2, False),
    ("twice", "udiv", 1000, False),
])  # fmt: skip
def test_which_are_loaded_so(dividend: str, opcode: str, by: int, shared: bool) -> None:
    """A page is asked for only where neighbours share elements."""
    if by != 1 and find_permutation(4) is None:
        pytest.skip("this processor has no permutation of registers")
    made = divide("float", dividend, opcode, by)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        text = list_kernel(made, made.kernels[0], (96, 1, 1))[0]
    assert ("4095" in text) == shared
