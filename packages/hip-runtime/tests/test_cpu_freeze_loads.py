"""Loaded values survive a later write to memory: LLVM 22 would load them again after a masked store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_runtime import Device, config, to_device

SWAPS = {
    "a number": ("i64", "%v = load i64, ptr %p\n store i64 0, ptr %p\n %w = or i64 %v, 0"),
    "a narrow number": ("i16", "%v = load i16, ptr %p\n store i16 0, ptr %p\n %w = zext i16 %v to i64"),
    "a divisor": ("i64", "%v = load i64, ptr %p\n store i64 0, ptr %p\n %w = udiv i64 1000000, %v"),
    "a number of another block": (
        "i64",
        "%v = load i64, ptr %p\n %large = icmp ugt i64 %v, 500\n br i1 %large, label %more, label %less\nmore:\n"
        " store i64 0, ptr %p\n br label %after\nless:\n store i64 1, ptr %p\n br label %after\nafter:\n"
        " %w = or i64 %v, 0",
    ),
}
PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("n", "i64")]
BARRIERS = ("regions of a kernel with a barrier", "groups of a kernel with a barrier")


@pytest.mark.sample(6)
@pytest.mark.parametrize("form", ["auto", "vectors", "loop", "regions", *BARRIERS])
@pytest.mark.parametrize("swapped", SWAPS)
def test_what_is_overwritten_was_read_before(device: Device, form: str, swapped: str) -> None:
    kind, swap = SWAPS[swapped]
    last = "after" if "after:" in swap else "swap"
    wait = "  call void @spmd.barrier(ptr %item)\n" if form in BARRIERS else ""
    body = f"""{wait}
  %k = zext i32 %i to i64
  %inside = icmp sge i64 %k, %n
  br i1 %inside, label %swap, label %join
swap:
  %p = getelementptr {kind}, ptr %x, i64 %k
  {swap}
  br label %join
join:
  %found = phi i64 [ %w, %{last} ], [ -7, %entry ]
  %q = getelementptr i64, ptr %out, i64 %k
  store i64 %found, ptr %q
  ret void
"""
    used = {BARRIERS[0]: "regions", BARRIERS[1]: "vectors"}.get(form, form)
    values = np.random.default_rng(8).integers(1, 1000, 128).astype({"i64": np.int64, "i16": np.int16}[kind])
    x, out = to_device(values), to_device(np.zeros(128, np.int64))
    with config.cpu_form.scope(used):
        function = device.load(kernel(body, PARAMETERS)).function("k")
        function.launch(2, 64, pack(function.kernel, out.address, x.address, 50))
    threads = np.arange(128)
    read = 1000000 // values if swapped == "a divisor" else values
    np.testing.assert_array_equal(out.copy_to_host(), np.where(threads >= 50, read, -7))
    left = np.where(values > 500, 0, 1) if "another" in swapped else 0
    np.testing.assert_array_equal(x.copy_to_host(), np.where(threads >= 50, left, values))


@pytest.mark.parametrize("form", ["auto", "vectors", "loop", "regions"])
@pytest.mark.sample(2)
def test_in_a_loop_of_each_thread(device: Device, form: str) -> None:
    body = """
  %k = zext i32 %i to i64
  %line = mul nsw i64 %k, %n
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %next, %join ]
  %place = add nsw i64 %line, %j
  %p = getelementptr i64, ptr %x, i64 %place
  %c = getelementptr i64, ptr %out, i64 %place
  %wanted = load i64, ptr %c
  %is = icmp ne i64 %wanted, 0
  br i1 %is, label %swap, label %join
swap:
  %v = load i64, ptr %p
  store i64 0, ptr %p
  br label %join
join:
  %found = phi i64 [ %v, %swap ], [ -7, %head ]
  store i64 %found, ptr %c
  %next = add nsw i64 %j, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %head, label %end
end:
  ret void
"""
    generator = np.random.default_rng(8)
    values, wanted = generator.integers(1, 1000, 8 * 100), generator.integers(0, 2, 8 * 100)
    x, out = to_device(values), to_device(wanted)
    with config.cpu_form.scope(form):
        function = device.load(kernel(body, PARAMETERS)).function("k")
        function.launch(1, 8, pack(function.kernel, out.address, x.address, 100))
    np.testing.assert_array_equal(out.copy_to_host(), np.where(wanted != 0, values, -7))
    np.testing.assert_array_equal(x.copy_to_host(), np.where(wanted != 0, 0, values))


@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["auto", "vectors", "loop", "regions"])
def test_in_a_function_that_is_too_long_to_be_inlined(device: Device, form: str) -> None:
    steps = "\n".join(f"  %s{k + 1} = fmul double %s{k}, {1 + k / 1024}" for k in range(600))
    function = f"""
define internal double @swap(ptr %x, ptr %c, i64 %n, double %s0) {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %next, %join ]
  %p = getelementptr i64, ptr %x, i64 %j
  %q = getelementptr i64, ptr %c, i64 %j
  %wanted = load i64, ptr %q
  %is = icmp ne i64 %wanted, 0
  br i1 %is, label %swap, label %join
swap:
  %v = load i64, ptr %p
  store i64 0, ptr %p
  br label %join
join:
  %found = phi i64 [ %v, %swap ], [ -7, %head ]
  store i64 %found, ptr %q
  %next = add nsw i64 %j, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %head, label %end
end:
{steps}
  ret double %s600
}}
"""
    body = """
  %k = zext i32 %i to i64
  %line = mul nsw i64 %k, %n
  %own = getelementptr i64, ptr %x, i64 %line
  %given = getelementptr i64, ptr %out, i64 %line
  %start = sitofp i64 %n to double
  %one = call double @swap(ptr %own, ptr %given, i64 %n, double %start)
  %half = sdiv i64 %n, 2
  %two = call double @swap(ptr %own, ptr %given, i64 %half, double %one)
  %place = getelementptr double, ptr %sums, i64 %k
  store double %two, ptr %place
  ret void
"""
    generator = np.random.default_rng(8)
    values, wanted = generator.integers(1, 1000, (8, 100)), generator.integers(0, 2, (8, 100))
    x, out, sums = to_device(values), to_device(wanted), to_device(np.zeros(8))
    with config.cpu_form.scope(form):
        made = device.load(kernel(body, [*PARAMETERS, ("sums", "ptr")], function)).function("k")
        made.launch(1, 8, pack(made.kernel, out.address, x.address, 100, sums.address))
    expected = np.where(wanted != 0, values, -7)
    expected[:, :50] = np.where(wanted != 0, 0, values)[:, :50]  # done twice
    np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_private_memory_of_unknown_size_runs_as_it_is(device: Device) -> None:
    """What the graph of a kernel cannot say is left to LLVM, where no form but ``loop`` can run it."""
    body = """
  %k = zext i32 %i to i64
  %room = alloca i64, i64 %n
  store volatile i64 %k, ptr %room
  %p = getelementptr i64, ptr %x, i64 %k
  %is = icmp sgt i64 %k, 3
  br i1 %is, label %swap, label %join
swap:
  %v = load i64, ptr %p
  store i64 0, ptr %p
  br label %join
join:
  %found = phi i64 [ %v, %swap ], [ -7, %entry ]
  %own = load volatile i64, ptr %room
  %sum = add i64 %own, %found
  %q = getelementptr i64, ptr %out, i64 %k
  store i64 %sum, ptr %q
  ret void
"""
    x, out = to_device(np.arange(100, 108)), to_device(np.zeros(8, np.int64))
    function: Any = device.load(kernel(body, PARAMETERS)).function("k")
    function.launch(1, 8, pack(function.kernel, out.address, x.address, 5))
    np.testing.assert_array_equal(out.copy_to_host()[:4], np.arange(4) - 7)
    assert function.form.startswith("(8, 1, 1): loop")
