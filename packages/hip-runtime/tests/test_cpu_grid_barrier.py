"""Cooperative launches: all threads of the grid wait for each other."""

from __future__ import annotations

import numpy as np
import pytest
from test_cpu_regions import SHARED, kernel, launch

from hip_runtime import Device, LaunchError, Stream, to_device
from hip_runtime.errors import BarrierDivergenceError, KernelFault

GRID = "declare void @spmd.grid_barrier(ptr) convergent\n"

ROTATE = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %own = getelementptr i32, ptr %s, i32 %t
  store i32 %i, ptr %own
  %g = call i32 @spmd.grid_dim.x(ptr %item)
  %all = mul i32 %g, %threads
  %p = getelementptr i32, ptr %out, i32 %i
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %head ]
  %next = add i32 %i, 1
  %from = urem i32 %next, %all
  %q = getelementptr i32, ptr %out, i32 %from
  %v = load i32, ptr %q
  call void @spmd.grid_barrier(ptr %item)
  store i32 %v, ptr %p
  call void @spmd.grid_barrier(ptr %item)
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, %turns
  br i1 %more, label %head, label %end
end:
  %kept = load i32, ptr %own
  %wrong = icmp ne i32 %kept, %i
  br i1 %wrong, label %fail, label %done
fail:
  call void @spmd.fault(ptr %item, i32 5)
  ret void
done:
  ret void
"""
"""Every thread takes the value of the next thread of the grid, *turns* times; shared memory stays what it was."""

PARAMETERS = [("out", "ptr"), ("turns", "i32")]


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 64), (7, 33), (40, 256)])
@pytest.mark.sample(2)
@pytest.mark.usefixtures("kept_programs")
def test_rotation_of_the_grid(device: Device, grid: int, block: int) -> None:
    values = np.arange(grid * block, dtype=np.int32)
    out = to_device(values)
    code_object = kernel(ROTATE, PARAMETERS, GRID + SHARED, shared_bytes=4096)
    for stream in (None, Stream(device)):
        launch(device, code_object, grid, block, out.address, 5, cooperative=True, stream=stream)
        values = np.roll(values, -5)
    device.synchronize()
    np.testing.assert_array_equal(out.copy_to_host(), values)


def test_blocks_of_a_grid_of_three_dimensions(device: Device) -> None:
    body = """
  %by = call i32 @spmd.block_idx.y(ptr %item)
  %bz = call i32 @spmd.block_idx.z(ptr %item)
  %gx = call i32 @spmd.grid_dim.x(ptr %item)
  %gy = call i32 @spmd.grid_dim.y(ptr %item)
  %plane = mul i32 %bz, %gy
  %line = add i32 %plane, %by
  %rest = mul i32 %line, %gx
  %number = add i32 %rest, %b
  %d = call ptr @spmd.dynamic_shared(ptr %item)
  store i32 %number, ptr %d
  call void @spmd.grid_barrier(ptr %item)
  %v = load i32, ptr %d
  %p = getelementptr i32, ptr %out, i32 %number
  store i32 %v, ptr %p
  ret void
"""
    out = to_device(np.zeros(24, np.int32))
    launch(device, kernel(body, [("out", "ptr")], GRID), (2, 3, 4), 2, out.address, cooperative=True, dynamic_shared=4)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(24))


def test_single_values_of_blocks_share_cache_lines(device: Device) -> None:
    body = """
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %head ]
  %sum = phi double [ 0.5, %entry ], [ %more, %head ]
  %byte = phi i8 [ %step, %entry ], [ %byte1, %head ]
  %byte0 = mul i8 %byte, 3
  %byte1 = add i8 %byte0, %step
  call void @spmd.grid_barrier(ptr %item)
  %k1 = add i32 %k, 1
  %half = fmul double %sum, 0.5
  %wide = uitofp i8 %byte1 to double
  %more = fadd double %half, %wide
  %goes = icmp ult i32 %k1, 7
  br i1 %goes, label %head, label %end
end:
  %p = getelementptr double, ptr %out, i32 %i
  %b1 = uitofp i32 %b to double
  %found = fadd double %more, %b1
  store double %found, ptr %p
  ret void
"""
    wanted, byte = 0.5, 7
    for _ in range(7):
        byte = (byte * 3 + 7) % 256
        wanted = wanted * 0.5 + byte
    out = to_device(np.zeros(100 * 33))
    code_object = kernel(body, [("out", "ptr"), ("step", "i8")], GRID)
    function = launch(device, code_object, 100, 33, out.address, 7, cooperative=True)
    np.testing.assert_array_equal(out.copy_to_host(), wanted + np.repeat(np.arange(100.0), 33))
    assert function.handle.workers[33, 1, 1].context_bytes < 64


def test_threads_and_blocks_that_returned_are_not_waited_for(device: Device) -> None:
    body = """
  %gone = icmp ult i32 %i, 40
  br i1 %gone, label %leave, label %stay
leave:
  ret void
stay:
  call void @spmd.grid_barrier(ptr %item)
  %count = call i32 @spmd.barrier_count(ptr %item, i1 true)
  %p = getelementptr i32, ptr %out, i32 %i
  store i32 %count, ptr %p
  ret void
"""
    out = to_device(np.zeros(96, np.int32))
    launch(device, kernel(body, [("out", "ptr")], GRID), 3, 32, out.address, cooperative=True)
    np.testing.assert_array_equal(out.copy_to_host(), [0] * 40 + [24] * 24 + [32] * 32)


def test_waves_that_wait_for_the_grid(device: Device) -> None:
    body = """
  %lane = call i32 @spmd.lane(ptr %item)
  %low = and i32 %t, 1
  %odd = icmp eq i32 %low, 1
  br i1 %odd, label %one, label %after
one:
  %bits = call i64 @spmd.active_lanes(ptr %item)
  %half = trunc i64 %bits to i32
  br label %after
after:
  %x = phi i32 [ 1, %entry ], [ %half, %one ]
  call void @spmd.grid_barrier(ptr %item)
  %other = xor i32 %lane, 1
  %y = call i32 @spmd.shuffle.i32(ptr %item, i32 %x, i32 %other)
  %p = getelementptr i32, ptr %out, i32 %i
  store i32 %y, ptr %p
  ret void
"""
    out = to_device(np.zeros(128, np.uint32))
    launch(device, kernel(body, [("out", "ptr")], GRID, wave_size=32), 2, 64, out.address, cooperative=True)
    np.testing.assert_array_equal(out.copy_to_host(), np.tile(np.array([0xAAAAAAAA, 1], np.uint32), 64))


def test_other_launches_are_refused(device: Device) -> None:
    out = to_device(np.zeros(1, np.int32))
    code_object = kernel(ROTATE, PARAMETERS, GRID + SHARED, shared_bytes=4096)
    with pytest.raises(LaunchError, match="'k' waits for the whole grid; launch it as cooperative"):
        launch(device, code_object, 1, 1, out.address, 1)


def test_blocks_at_different_barriers(device: Device) -> None:
    body = """
  %late = icmp ugt i32 %b, 1
  br i1 %late, label %one, label %other
one:
  store i32 1, ptr %out
  call void @spmd.grid_barrier(ptr %item)
  ret void
other:
  %c = call i32 @spmd.barrier_count(ptr %item, i1 true)
  store i32 %c, ptr %out
  call void @spmd.grid_barrier(ptr %item)
  store i32 2, ptr %out
  ret void
"""
    out = to_device(np.zeros(1, np.int32))
    with pytest.raises(BarrierDivergenceError) as caught:
        launch(device, kernel(body, [("out", "ptr")], GRID), 4, 8, out.address, cooperative=True)
    assert caught.value.block in ((0, 0, 0), (2, 0, 0))


ONE_APART = """
  %is.other = icmp eq i32 %b, %other
  br i1 %is.other, label %apart, label %together
apart:
  br i1 %returns, label %leave, label %late
leave:
  ret void
late:
  call void @spmd.grid_barrier(ptr %item)
  store i32 9, ptr %out
  ret void
together:
  call void @spmd.grid_barrier(ptr %item)
  call void @spmd.grid_barrier(ptr %item)
  %p = getelementptr i32, ptr %out, i32 %b
  store i32 1, ptr %p
  ret void
"""
"""One block waits at another barrier than the others, or returns before they wait."""


@pytest.mark.parametrize(("blocks", "other"), [
    (2, 0), (2, 1), (15, 14), (16, 0), (16, 15), (17, 16), (17, 15), (31, 30), (32, 20), (33, 32), (100, 64),
    (1000, 999),
])  # fmt: skip
@pytest.mark.parametrize("returns", [False, True])
@pytest.mark.sample(10)
def test_one_block_apart_from_the_others(device: Device, blocks: int, other: int, returns: bool) -> None:
    out = to_device(np.zeros(blocks, np.int32))
    code_object = kernel(ONE_APART, [("out", "ptr"), ("other", "i32"), ("returns", "i1")], GRID)
    if returns:
        launch(device, code_object, blocks, 2, out.address, other, 1, cooperative=True)
        np.testing.assert_array_equal(out.copy_to_host(), np.arange(blocks) != other)
        return
    with pytest.raises(BarrierDivergenceError) as caught:
        launch(device, code_object, blocks, 2, out.address, other, 0, cooperative=True)
    assert caught.value.block in ((0, 0, 0), (1, 0, 0), (other, 0, 0))
    assert not out.copy_to_host().any()


@pytest.mark.parametrize("blocks", [1, 16, 50])
def test_all_blocks_return_before_the_barrier(device: Device, blocks: int) -> None:
    body = ONE_APART.replace("icmp eq i32 %b, %other", "icmp ne i32 %other, -1")
    out = to_device(np.zeros(blocks, np.int32))
    code_object = kernel(body, [("out", "ptr"), ("other", "i32"), ("returns", "i1")], GRID)
    launch(device, code_object, blocks, 2, out.address, 0, 1, cooperative=True)
    assert not out.copy_to_host().any()


def test_fault_before_the_barrier_ends_the_launch(device: Device) -> None:
    body = """
  %hit = icmp eq i32 %i, 9
  br i1 %hit, label %stop, label %go
stop:
  call void @spmd.fault(ptr %item, i32 3)
  ret void
go:
  call void @spmd.grid_barrier(ptr %item)
  store i32 1, ptr %out
  ret void
"""
    out = to_device(np.zeros(1, np.int32))
    with pytest.raises(KernelFault, match=r"error code 3 in block \(1, 0, 0\), thread \(1, 0, 0\)"):
        launch(device, kernel(body, [("out", "ptr")], GRID), 4, 8, out.address, cooperative=True)
    assert out.copy_to_host()[0] == 0
