"""Loads from tables that are small enough to be in registers, at indices that are known to be small."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from other_processors import as_processor, needs_x86
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.small_numbers import find_most
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.object_code.permutations import find_permutation

TYPES = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "half": np.float16, "float": np.float32,
    "double": np.float64,
}  # fmt: skip
THREADS, BLOCKS = 100, 6
COUNT = THREADS * BLOCKS


def bits_of(count: int) -> int:
    """How many bits an index of a table of *count* elements has."""
    return (count - 1).bit_length()


INDICES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "low bits": ("%n = and i64 %v, {last}", lambda v, count: v & (count - 1)),
    "remainder": ("%n = urem i64 %v, {count}", lambda v, count: v.astype(np.uint64) % np.uint64(count)),
    "byte": (
        "%byte = trunc i64 %v to i8\n  %wide = zext i8 %byte to i64\n  %n = lshr i64 %wide, {shift}",
        lambda v, count: (v & 255) >> (8 - bits_of(count)),
    ),
    "high bits": (
        "%hash = mul i64 %v, -7046029254386353131\n  %n = lshr i64 %hash, {high}",
        lambda v, count: (v * np.int64(-7046029254386353131)).view(np.uint64) >> np.uint64(64 - bits_of(count)),
    ),
    "two": (
        "%one = and i64 %v, {half}\n  %further = lshr i64 %v, 9\n  %other = and i64 %further, {half}\n"
        "  %n = add i64 %one, %other",
        lambda v, count: (v & count // 2 - 1) + (v >> 9 & count // 2 - 1),
    ),
    "chosen": (
        "%small = and i64 %v, {half}\n  %odd = icmp slt i64 %v, 0\n  %n = select i1 %odd, i64 %small, i64 {last}",
        lambda v, count: np.where(v < 0, v & count // 2 - 1, count - 1),
    ),
}  # fmt: skip
"""Instructions that compute an index of a table of *count* elements, a power of two, and the same for NumPy."""


@pytest.fixture(params=["native", pytest.param("haswell", marks=needs_x86)])
def processor(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "native":
        yield request.param
        return
    with as_processor(request.param) as name:
        yield name


def look_up(kind: str, index: str, count: int, *, marked: bool = False) -> CodeObject:
    """Each thread, or each with a flag, copies an element of the table behind *first* of them."""
    names = {"count": count, "last": count - 1, "half": count // 2 - 1}
    names |= {"shift": 8 - bits_of(count), "high": 64 - bits_of(count)}
    text = f"""
    define void @k(ptr noalias %item, ptr %out, ptr %x, ptr %flags, ptr %table, i64 %first) {{
    entry:
    {GLOBAL_X}
      %px = getelementptr i64, ptr %x, i64 %i
      %v = load i64, ptr %px
      %pf = getelementptr i8, ptr %flags, i64 %i
      %f = load i8, ptr %pf
      %on = icmp ne i8 %f, {0 if marked else 77}
      br i1 %on, label %do, label %end
    do:
      {INDICES[index][0].format(**names)}
      %at = add i64 %n, %first
      %from = getelementptr {kind}, ptr %table, i64 %at
      %e = load {kind}, ptr %from
      %to = getelementptr {kind}, ptr %out, i64 %i
      store {kind} %e, ptr %to
      br label %end
    end:
      ret void
    }}"""
    return code(text, "k", [("out", "ptr"), ("x", "ptr"), ("flags", "ptr"), ("table", "ptr"), ("first", "i64")])


def check(
    device: Device, made: CodeObject, kind: str, index: str, count: int, width: int,
    guarded: Callable[[int], AbstractContextManager[int]], *, flags: np.ndarray,
) -> None:  # fmt: skip
    dtype = np.dtype(TYPES[kind])
    random = np.random.default_rng(count + width)
    values = random.integers(-(1 << 62), 1 << 62, COUNT)
    numbers = INDICES[index][1](values, count).astype(np.int64)
    for first in (0, 5):
        most = numbers[flags != 0].max(initial=0) + 1  # there are no more elements
        table = random.integers(1, 100, most).astype(dtype)
        out, x, on = to_device(np.zeros(COUNT, dtype)), to_device(values), to_device(flags)
        with guarded(table.nbytes) as place:
            ctypes.memmove(place, table.ctypes.data, table.nbytes)
            with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
                function = device.load(made).function("k")
                start = place - first * dtype.itemsize
                function.launch(
                    BLOCKS, THREADS, pack(function.kernel, out.address, x.address, on.address, start, first)
                )
        expected = np.zeros(COUNT, dtype)
        expected[flags != 0] = table[numbers[flags != 0]]
        np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("width", [4, 8, 16, 64])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("count", [2, 8, 16, 32, 64, 128, 256])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(16)
def test_elements_by_small_indices(
    device: Device, processor: str, kind: str, count: int, index: str, width: int,
    guarded: Callable[[int], AbstractContextManager[int]],
) -> None:  # fmt: skip
    """The table ends where the memory does, with the largest index of all."""
    made = look_up(kind, index, count)
    check(device, made, kind, index, count, width, guarded, flags=np.ones(COUNT, np.uint8))


@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("width", [8, 16, 64])
@pytest.mark.parametrize("count", [16, 64, 256])
@pytest.mark.parametrize("kind", ["i8", "i16", "float", "double"])
@pytest.mark.sample(8)
def test_lanes_that_look_up_nothing(
    device: Device, processor: str, kind: str, count: int, width: int,
    guarded: Callable[[int], AbstractContextManager[int]],
) -> None:  # fmt: skip
    """Others than those with flags have indices behind the table, where there may be no memory."""
    flags = (np.random.default_rng(width).random(COUNT) < 0.2).astype(np.uint8)
    flags[100:400] = 0
    made = look_up(kind, "low bits", count, marked=True)
    check(device, made, kind, "low bits", count, width, guarded, flags=flags)


@pytest.mark.parametrize("count", [100, 257, 300, 500, 512, 700, 1000, 1024])
def test_tables_of_more_elements_than_a_byte_tells(device: Device, count: int) -> None:
    made = look_up("i8", "remainder", count)
    check(device, made, "i8", "remainder", count, 64, before_a_guard, flags=np.ones(COUNT, np.uint8))


def list_code(kind: str, index: str, count: int) -> str:
    """The optimised code of a kernel that looks up as many elements."""
    made = look_up(kind, index, count)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        return list_kernel(made, made.kernels[0], (128, 1, 1))[0]


@pytest.mark.usefixtures("kept_programs")
@pytest.mark.parametrize("kind", TYPES)
def test_only_small_tables_are_looked_up(processor: str, kind: str) -> None:
    permutation = find_permutation(np.dtype(TYPES[kind]).itemsize)
    if permutation is None:
        assert "llvm.x86.avx" not in list_code(kind, "low bits", 2)
        return
    within = {permutation.of_one.rpartition(".")[0], permutation.of_two.rpartition(".")[0]} - {""}
    assert any(name in list_code(kind, "low bits", permutation.most) for name in within)
    assert not any(name in list_code(kind, "low bits", 2 * permutation.most) for name in within)


@pytest.mark.parametrize(("body", "most"), [
    ("%r = and i64 %x, 15", 15),
    ("%r = and i64 %x, -16", None),
    ("%r = urem i64 %x, 10", 9),
    ("%r = urem i64 %x, -10", None),  # without a sign, a large number
    ("%r = srem i64 %x, 10", None),
    ("%n = and i64 %x, 255\n %r = srem i64 %n, 10", 9),
    ("%r = lshr i64 %x, 60", 15),
    ("%r = ashr i64 %x, 60", None),
    ("%b = trunc i64 %x to i8\n %r = zext i8 %b to i64", 255),
    ("%b = trunc i64 %x to i8\n %r = sext i8 %b to i64", None),
    ("%n = and i64 %x, 7\n %r = shl i64 %n, 3", 56),
    ("%n = and i64 %x, 63\n %s = shl i64 1, %n\n %t = trunc i64 %s to i32\n %r = sext i32 %t to i64", None),
    ("%n = and i64 %x, 300\n %b = trunc i64 %n to i8\n %r = sext i8 %b to i64", None),  # 300 is 44 there, 255 is -1
    ("%n = and i64 %x, 7\n %m = and i64 %x, 12\n %s = sub i64 %n, %m\n %r = and i64 %s, 31", 31),
    ("%n = and i64 %x, 7\n %m = and i64 %x, 12\n %r = sub i64 %n, %m", None),
    ("%n = and i64 %x, 7\n %c = icmp eq i64 %n, 3\n %r = select i1 %c, i64 20, i64 %n", 20),
])  # fmt: skip
def test_numbers_that_are_known_to_be_small(body: str, most: int | None) -> None:
    text = f"define i64 @k(i64 %x) {{\nentry:\n{body}\n ret i64 %r\n}}"
    module = PrintedModule(llvm.parse_assembly(text, llvm.create_context()))
    *_, last, _ = read_function(module, "k", ir.Context()).instructions()
    assert find_most(last) == most
