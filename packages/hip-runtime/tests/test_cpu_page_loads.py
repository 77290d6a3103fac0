"""Loads of neighbours under masks of data: no page is touched in which there is no element of an active lane."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "float": np.float32, "double": np.float64}
COUNT = 600


def marked(kind: str) -> CodeObject:
    """Copies the elements of x whose flag is set."""
    text = f"""
    define void @k(ptr noalias %item, ptr %out, ptr %flags, ptr %x) {{
    entry:
    {GLOBAL_X}
      %pf = getelementptr i8, ptr %flags, i64 %i
      %f = load i8, ptr %pf
      %on = icmp ne i8 %f, 0
      br i1 %on, label %do, label %end
    do:
      %from = getelementptr {kind}, ptr %x, i64 %i
      %v = load {kind}, ptr %from
      %to = getelementptr {kind}, ptr %out, i64 %i
      store {kind} %v, ptr %to
      br label %end
    end:
      ret void
    }}"""
    return code(text, "k", [("out", "ptr"), ("flags", "ptr"), ("x", "ptr")])


def bounded(kind: str) -> CodeObject:
    """Copies the elements of x from the first index to before the last."""
    text = f"""
    define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %first, i64 %last) {{
    entry:
    {GLOBAL_X}
      %from.first = icmp sge i64 %i, %first
      %before.last = icmp slt i64 %i, %last
      %on = select i1 %from.first, i1 %before.last, i1 false
      br i1 %on, label %do, label %end
    do:
      %from = getelementptr {kind}, ptr %x, i64 %i
      %v = load {kind}, ptr %from
      %to = getelementptr {kind}, ptr %out, i64 %i
      store {kind} %v, ptr %to
      br label %end
    end:
      ret void
    }}"""
    return code(text, "k", [("out", "ptr"), ("x", "ptr"), ("first", "i64"), ("last", "i64")])


def search() -> CodeObject:
    """For each column of bytes, the first of *rows* rows where one is not zero, or *rows*; threads leave as they find
    it, so that each load's mask is that of what was loaded before it."""
    text = f"""
    define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %rows, i64 %width) {{
    entry:
    {GLOBAL_X}
      %to = getelementptr i64, ptr %out, i64 %i
      %in = icmp ult i64 %i, %width
      br i1 %in, label %row, label %end
    row:
      %r = phi i64 [ 0, %entry ], [ %next, %more ]
      %start.r = mul i64 %r, %width
      %at = add i64 %start.r, %i
      %from = getelementptr i8, ptr %x, i64 %at
      %v = load i8, ptr %from
      %found = icmp ne i8 %v, 0
      br i1 %found, label %out.r, label %more
    more:
      %next = add i64 %r, 1
      %again = icmp ult i64 %next, %rows
      br i1 %again, label %row, label %out.r
    out.r:
      %result = phi i64 [ %r, %row ], [ %rows, %more ]
      store i64 %result, ptr %to
      br label %end
    end:
      ret void
    }}"""
    return code(text, "k", [("out", "ptr"), ("x", "ptr"), ("rows", "i64"), ("width", "i64")])


@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("width", [4, 16, 64])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(3)
def test_elements_of_other_lanes_need_no_memory(
    device: Device, kind: str, width: int, guarded: Callable[[int], AbstractContextManager[int]]
) -> None:
    """There are only the elements from the first active lane's to the last's, up to a page that may not be accessed,
    or from its end on."""
    dtype = np.dtype(TYPES[kind])
    made, random = marked(kind), np.random.default_rng(len(kind) + width)
    for first, last in ((0, 1), (70, 71), (63, 65), (3, 590), (130, 507), (64, 128)):
        flags = np.zeros(COUNT, np.uint8)
        flags[first:last] = random.integers(0, 2, last - first)
        flags[[first, last - 1]] = 1
        values = random.integers(1, 100, last - first).astype(dtype)
        out, on = to_device(np.zeros(COUNT, dtype)), to_device(flags)
        with guarded(values.nbytes) as place, config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
            ctypes.memmove(place, values.ctypes.data, values.nbytes)
            function = device.load(made).function("k")
            address = place - first * dtype.itemsize
            function.launch(COUNT // 100, 100, pack(function.kernel, out.address, on.address, address))
        expected = np.zeros(COUNT, dtype)
        expected[first:last] = values * flags[first:last]
        np.testing.assert_array_equal(out.copy_to_host(), expected)


def check_bounds(device: Device, kind: str, width: int, guarded: Callable[[int], AbstractContextManager[int]]) -> None:
    """Of neighbours within bounds there are only those elements, up to a page that may not be accessed."""
    dtype = np.dtype(TYPES[kind])
    made, random = bounded(kind), np.random.default_rng(len(kind) + width)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(made).function("k")
        for first, last in ((0, 1), (70, 71), (63, 65), (3, 590), (130, 507), (64, 128), (599, 600)):
            values = random.integers(1, 100, last - first).astype(dtype)
            out = to_device(np.zeros(COUNT, dtype))
            with guarded(values.nbytes) as place:
                ctypes.memmove(place, values.ctypes.data, values.nbytes)
                arguments = pack(function.kernel, out.address, place - first * dtype.itemsize, first, last)
                function.launch(COUNT // 100, 100, arguments)
            expected = np.zeros(COUNT, dtype)
            expected[first:last] = values
            np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("width", [4, 16, 64])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(3)
def test_elements_out_of_bounds_need_no_memory(
    device: Device, kind: str, width: int, guarded: Callable[[int], AbstractContextManager[int]]
) -> None:
    check_bounds(device, kind, width, guarded)


@pytest.mark.parametrize("width", [13, 64, 4096, 5000])
def test_searches_end_at_the_end_of_memory(device: Device, width: int) -> None:
    """All pages but one of the last row's can be accessed as long as only some lanes get there."""
    rows, random = 5, np.random.default_rng(width)
    values = random.integers(0, 5, (rows, width)) == 0
    expected = np.where(values.any(axis=0), values.argmax(axis=0), rows)
    behind = width - random.integers(1, min(width, mmap.PAGESIZE))
    values[rows - 2, behind:] = True  # so that nothing of the last row is read from here on
    expected[behind:] = np.minimum(expected[behind:], rows - 2)
    there = values.astype(np.uint8).reshape(-1)[: (rows - 1) * width + behind]
    out = to_device(np.full(width, -1))
    with before_a_guard(there.nbytes) as place, config.cpu_form.scope("vectors"):
        ctypes.memmove(place, there.ctypes.data, there.nbytes)
        function = device.load(search()).function("k")
        function.launch(-(-width // 128), 128, pack(function.kernel, out.address, place, rows, width))
    np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.usefixtures("kept_programs")
def test_loads_do_not_wait_for_masks() -> None:
    """The vector of flags and that of elements are loaded without a mask, where one page holds them."""
    made = marked("float")
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        optimised, _ = list_kernel(made, made.kernels[0], (128, 1, 1))
    assert "= load <16 x i8>" in optimised
    assert "= load <16 x float>" in optimised
