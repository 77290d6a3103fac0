"""How many threads with private arrays run at a time, where they wait for their own results."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, to_device
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes, vector_registers
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes

PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("n", "i64")]
STEPS = 40

FITTING = vector_registers() * vector_bytes() // default_lanes() // 4
"""Elements of a table of which registers hold half for twice as many lanes."""


def kernel(count: int, more: str) -> str:
    """Multiplies by one element of a table of *count* after another. The table is filled in part by a number of
    elements that only the kernel knows, and copied from memory in part; *more* is what else is done with it."""
    return f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
  %own = alloca [{count} x i32], align 16
{GLOBAL_X}
  %px = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %px
  call void @llvm.memset.p0.i64(ptr %own, i8 1, i64 {4 * count}, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr align 4 %px, i64 20, i1 false)
  %v64 = zext i32 %v to i64
  %few = and i64 %v64, 3
  %bytes = shl i64 %few, 2
  call void @llvm.memset.p0.i64(ptr %own, i8 3, i64 %bytes, i1 false)
  {more}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ %v, %entry ], [ %added, %loop ]
  %place = and i64 %k, 7
  %at = getelementptr i32, ptr %own, i64 %place
  %factor = load i32, ptr %at
  %product = mul i32 %sum, %factor
  %added = add i32 %product, %v
  %next = add nuw nsw i64 %k, 1
  %again = icmp ult i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %added, ptr %q
  ret void
}}
"""


ESCAPE = "%held = alloca ptr\n  store volatile ptr %own, ptr %held"


@pytest.mark.parametrize(("count", "more", "times"), [
    (8, "", 2), (FITTING, "", 2), (FITTING + 1, "", 1), (200, "", 1), (8, ESCAPE, 1),
])  # fmt: skip
def test_threads_that_wait_for_results(device: Device, count: int, more: str, times: int) -> None:
    """Twice as many as otherwise, if their arrays may be registers."""
    values = np.random.default_rng(2).integers(0, 1 << 30, 2 * 256 + 8).astype(np.int32)
    x, out = to_device(values), to_device(np.zeros(512, np.int32))
    function = device.load(code(kernel(count, more), "k", PARAMETERS)).function("k")
    function.launch(2, 256, pack(function.kernel, out.address, x.address, STEPS))
    table = np.full((512, 8), 0x01010101, np.uint32)
    for place in range(5):
        table[:, place] = values[place : 512 + place].view(np.uint32)
    table[np.arange(8) < (values[:512, None] & 3)] = 0x03030303
    own = values[:512].view(np.uint32)
    sums = own.copy()
    for step in range(STEPS):
        sums = sums * table[:, step & 7] + own
    np.testing.assert_array_equal(out.copy_to_host(), sums.view(np.int32))
    lanes = min(times * default_lanes(), 64)
    assert f"{lanes} threads at a time" in function.form
