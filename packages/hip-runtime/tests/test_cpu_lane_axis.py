"""Lanes along other axes of a block than x."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from spmd_kernels import code, pack

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.errors import KernelFault, MemoryFaultError, SettingError

AXES = "xyz"


def global_index(axis: str) -> str:
    """IR that leaves the global index along *axis* in ``%g<axis>``, and that in the block in ``%l<axis>``."""
    return f"""
  %t{axis} = call i32 @spmd.thread_idx.{axis}(ptr %item)
  %b{axis} = call i32 @spmd.block_idx.{axis}(ptr %item)
  %d{axis} = call i32 @spmd.block_dim.{axis}(ptr %item)
  %l{axis} = zext i32 %t{axis} to i64
  %c{axis} = zext i32 %b{axis} to i64
  %e{axis} = zext i32 %d{axis} to i64
  %s{axis} = mul nuw nsw i64 %c{axis}, %e{axis}
  %g{axis} = add nuw nsw i64 %s{axis}, %l{axis}
"""


def element(order: str) -> str:
    """IR that leaves the place of ``[i, j, k]`` in ``%place`` if there is one, where *order* names the axes of the grid
    that are i, j, and k: the last one's neighbours are neighbours in memory."""
    i, j, k = order
    return f"""
{"".join(map(global_index, AXES))}
  %in.i = icmp slt i64 %g{i}, %ni
  %in.j = icmp slt i64 %g{j}, %nj
  %in.k = icmp slt i64 %g{k}, %nk
  %in.ij = select i1 %in.i, i1 %in.j, i1 false
  %in = select i1 %in.ij, i1 %in.k, i1 false
  br i1 %in, label %do, label %out
do:
  %planes = mul nsw i64 %g{i}, %nj
  %row = add nsw i64 %planes, %g{j}
  %rows = mul nsw i64 %row, %nk
  %place = add nsw i64 %rows, %g{k}
"""


PARAMETERS = [("y", "ptr"), ("x", "ptr"), ("ni", "i64"), ("nj", "i64"), ("nk", "i64")]
HEAD = "define void @k(ptr noalias %item, ptr %y, ptr %x, i64 %ni, i64 %nj, i64 %nk) {"


def elementwise(order: str) -> CodeObject:
    """y[i, j, k] = 2 * x[i, j, k] + x and y and z of the thread in its block, each with a factor of its own."""
    text = f"""
{HEAD}
{element(order)}
  %px = getelementptr float, ptr %x, i64 %place
  %py = getelementptr float, ptr %y, i64 %place
  %v = load float, ptr %px
  %twice = fmul float %v, 2.0
  %from.y = mul i64 %ly, 100
  %from.z = mul i64 %lz, 10000
  %from.xy = add i64 %lx, %from.y
  %from = add i64 %from.xy, %from.z
  %number = sitofp i64 %from to float
  %sum = fadd float %twice, %number
  store float %sum, ptr %py
  br label %out
out:
  ret void
}}
"""
    return code(text, "k", PARAMETERS)


def plain(order: str, narrow: str = "") -> CodeObject:
    """y[i, j, k] = 2 * x[i, j, k] + j, of the global index alone; along *narrow* that is computed in 32 bits."""
    j = order[1]
    index = element(order)
    if narrow:
        first = index.index(f"  %l{narrow} = zext")
        last = index.index(f"  %g{narrow} = ")
        after = index.index("\n", last)
        index = f"""{index[:first]}
  %first.{narrow} = mul i32 %b{narrow}, %d{narrow}
  %sum.{narrow} = add nuw i32 %first.{narrow}, %t{narrow}
  %g{narrow} = zext i32 %sum.{narrow} to i64
{index[after:]}"""
    text = f"""
{HEAD}
{index}
  %px = getelementptr float, ptr %x, i64 %place
  %py = getelementptr float, ptr %y, i64 %place
  %v = load float, ptr %px
  %twice = fmul float %v, 2.0
  %number = sitofp i64 %g{j} to float
  %sum = fadd float %twice, %number
  store float %sum, ptr %py
  br label %out
out:
  ret void
}}
"""
    return code(text, "k", PARAMETERS)


def run(device: Device, made: CodeObject, x: Any, order: str, block: tuple[int, int, int]) -> tuple[Any, str]:
    """What the kernel leaves in an array like *x*, and the form that it took. Its grid covers *x*."""
    function = device.load(made).function("k")
    extents = dict(zip(order, x.shape, strict=True))
    grid = tuple(-(-extents[axis] // threads) for axis, threads in zip(AXES, block, strict=True))
    given, out = to_device(x, device=device), to_device(x, device=device)
    for _ in range(2):  # the blocks of a first launch are taken one by one
        out.copy_to_device(np.full(x.shape, -1, x.dtype))
        function.launch(grid, block, pack(function.kernel, out.address, given.address, *x.shape))
    assert function.form is not None
    return out.copy_to_host(), function.form


def expect_elementwise(x: Any, order: str, block: tuple[int, int, int]) -> Any:
    indices = np.indices(x.shape)
    along = {axis: indices[order.index(axis)] % block[AXES.index(axis)] for axis in AXES}
    return 2 * x + (along["x"] + 100 * along["y"] + 10000 * along["z"]).astype(np.float32)


CASES = [
    ("zxy", (16, 16, 1), "y"), ("zxy", (32, 8, 1), "y"), ("zxy", (8, 32, 1), "y"), ("zxy", (1, 256, 1), "y"),
    ("zxy", (5, 7, 1), "y"), ("zyx", (16, 16, 1), "x"), ("zxy", (256, 1, 1), "x"), ("zxy", (16, 3, 1), "x"),
    ("xyz", (4, 4, 16), "z"), ("xyz", (4, 4, 5), "z"), ("xzy", (4, 16, 2), "y"),
]  # fmt: skip
"""The order of the axes in memory, a shape of blocks, and the axis along which lanes should be."""


@pytest.mark.parametrize(("order", "block", "along"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
@pytest.mark.sample(4)
def test_lanes_are_along_the_axis_of_neighbours_in_memory(
    device: Device, order: str, block: tuple[int, int, int], along: str
) -> None:
    x = np.random.default_rng(1).random((3, 37, 75) if order[0] == "z" else (9, 11, 37), np.float32)
    found, form = run(device, elementwise(order), x, order, block)
    np.testing.assert_array_equal(found, expect_elementwise(x, order, block))
    assert (f"neighbours along {along}" in form) == (along != "x"), form


LOOKUPS = f"""
{HEAD}
{element("zyx")}
  %three = mul i64 %gx, 3
  %five = mul i64 %gx, 5
  %a = lshr i64 %three, 2
  %b = lshr i64 %five, 2
  %a.low = and i64 %a, 15
  %b.low = and i64 %b, 15
  %pa = getelementptr float, ptr %x, i64 %a.low
  %pb = getelementptr float, ptr %x, i64 %b.low
  %va = load float, ptr %pa
  %vb = load float, ptr %pb
  %sum = fadd float %va, %vb
  %py = getelementptr float, ptr %y, i64 %place
  store float %sum, ptr %py
  br label %out
out:
  ret void
}}
"""
"""y[i, j, k] = x[3 * k // 4 % 16] + x[5 * k // 4 % 16], in the first row of x: both are uniform along y."""

STEPS = f"""
{HEAD}
{element("zyx")}
  br label %loop
loop:
  %step = phi i64 [ 0, %do ], [ %next, %loop ]
  %value = phi i64 [ %gx, %do ], [ %mixed, %loop ]
  %scaled = mul i64 %value, 3
  %halved = lshr i64 %scaled, 1
  %low.bits = and i64 %halved, 1023
  %square = mul i64 %low.bits, %low.bits
  %middle = lshr i64 %square, 3
  %mixed = xor i64 %middle, %gx
  %next = add i64 %step, 1
  %more = icmp slt i64 %next, %nk
  br i1 %more, label %loop, label %done
done:
  %low = and i64 %mixed, 1023
  %number = uitofp i64 %low to float
  %far.x = mul i64 %gx, %nj
  %far = add i64 %far.x, %gy
  %there = mul i64 %far, %ni
  %py = getelementptr float, ptr %y, i64 %there
  store float %number, ptr %py
  br label %out
out:
  ret void
}}
"""
"""The flat y[ni * (k * nj + j)] = a number that depends on k alone; lanes scatter along either axis."""


def test_a_row_for_each_lane_costs_more_than_lookups(device: Device) -> None:
    x = np.random.default_rng(5).random((1, 40, 70), np.float32)
    found, form = run(device, code(LOOKUPS, "k", PARAMETERS), x, "zyx", (16, 16, 1))
    k = np.arange(70)
    expected = x[0, 0, 3 * k // 4 % 16] + x[0, 0, 5 * k // 4 % 16]
    np.testing.assert_array_equal(found, np.broadcast_to(expected, x.shape))
    assert "neighbours along y" not in form, form


def test_without_contiguous_accesses_lanes_are_along_x(device: Device) -> None:
    x = np.zeros((1, 40, 70), np.float32)
    found, form = run(device, code(STEPS, "k", PARAMETERS), x, "zyx", (16, 16, 1))
    k = value = np.arange(70)
    for _ in range(70):
        value = (3 * value // 2 % 1024) ** 2 // 8 ^ k
    expected = np.repeat(value % 1024, 40).astype(np.float32)
    np.testing.assert_array_equal(found.ravel(), expected)
    assert "neighbours along" not in form or "neighbours along x" in form, form


@pytest.mark.sample(4)
@pytest.mark.parametrize("along", AXES)
@pytest.mark.parametrize(("form", "width"), [("loop", None), ("regions", None), ("vectors", 4), ("vectors", None)])
def test_any_axis_in_any_form(device: Device, form: str, width: int | None, along: str) -> None:
    x = np.random.default_rng(2).random((5, 13, 21), np.float32)
    block = (6, 5, 4)
    with config.cpu_form.scope(form), config.cpu_width.scope(width), config.cpu_lanes.scope(along):
        found, told = run(device, elementwise("zxy"), x, "zxy", block)
    np.testing.assert_array_equal(found, expect_elementwise(x, "zxy", block))
    assert form in told


JOINED = [
    ("zxy", (256, 1, 1), "y", ""), ("zxy", (64, 4, 1), "y", ""), ("zxy", (16, 7, 1), "y", ""),
    ("zyx", (8, 32, 1), "x", ""), ("xyz", (8, 8, 1), "z", ""), ("xyz", (8, 8, 3), "z", "z"),
    ("zxy", (128, 1, 1), "y", "y"), ("zyx", (4, 64, 1), "x", "x"), ("zyx", (16, 16, 1), "x", ""),
    ("zxy", (16, 16, 1), "y", ""), ("zyx", (27, 9, 1), "x", ""), ("zyx", (16, 4, 4), "x", "z"),
]  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize(("order", "block", "along", "narrow"), JOINED)
def test_blocks_with_few_threads_along_an_axis_are_joined(
    device: Device, order: str, block: tuple[int, int, int], along: str, narrow: str
) -> None:
    x = np.random.default_rng(4).random((3, 70, 151) if order[0] == "z" else (19, 17, 301), np.float32)
    found, form = run(device, plain(order, narrow), x, order, block)
    np.testing.assert_array_equal(found, 2 * x + np.arange(x.shape[1], dtype=np.float32)[:, None])
    assert re.search(f"neighbours along {along} in up to [0-9]+ blocks", form), form


def test_blocks_of_one_row_are_not_joined(device: Device) -> None:
    x = np.random.default_rng(4).random((3, 70, 151), np.float32)
    found, form = run(device, plain("zyx", ""), x, "zyx", (64, 1, 1))
    np.testing.assert_array_equal(found, 2 * x + np.arange(x.shape[1], dtype=np.float32)[:, None])
    assert "blocks" not in form, form


@pytest.mark.parametrize("width", [4, 8])
def test_joined_blocks_in_narrow_gangs(device: Device, width: int) -> None:
    x = np.random.default_rng(4).random((2, 40, 33), np.float32)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        found, form = run(device, plain("zxy"), x, "zxy", (32, 1, 1))
    np.testing.assert_array_equal(found, 2 * x + np.arange(40, dtype=np.float32)[:, None])
    assert f"{width} threads at a time; neighbours along y in up to {2048 * width} blocks" in form


TILE = f"""
declare void @spmd.barrier(ptr) convergent
declare ptr @spmd.shared.tile.2048.4(ptr)
{HEAD}
{element("zxy").replace("label %out", "label %there")}
  %px = getelementptr float, ptr %x, i64 %place
  %v = load float, ptr %px
  br label %there
there:
  %w = phi float [ 0.0, %0 ], [ %v, %do ]
  %base = call ptr @spmd.shared.tile.2048.4(ptr %item)
  %own.plane = mul i64 %lz, %ex
  %own.first = add i64 %own.plane, %lx
  %own.row = mul i64 %own.first, %ey
  %own = add i64 %own.row, %ly
  %p.own = getelementptr float, ptr %base, i64 %own
  store float %w, ptr %p.own
  call void @spmd.barrier(ptr %item)
  br label %loop
loop:
  %n = phi i64 [ 0, %there ], [ %more, %loop ]
  %sum = phi float [ 0.0, %there ], [ %next, %loop ]
  %other.first = add i64 %own.plane, %n
  %other.row = mul i64 %other.first, %ey
  %other = add i64 %other.row, %ly
  %p.other = getelementptr float, ptr %base, i64 %other
  %u = load float, ptr %p.other
  %next = fadd float %sum, %u
  %more = add nuw nsw i64 %n, 1
  %again = icmp slt i64 %n, %lx
  br i1 %again, label %loop, label %done
done:
  %twice = fmul float %w, 2.0
  call void @spmd.barrier(ptr %item)
  store float %next, ptr %p.own
  call void @spmd.barrier(ptr %item)
  br i1 %in, label %write, label %out
write:
  %total = load float, ptr %p.own
  %result = fadd float %total, %twice
  %where.i = mul nsw i64 %gz, %nj
  %where.ij = add nsw i64 %where.i, %gx
  %where.r = mul nsw i64 %where.ij, %nk
  %where = add nsw i64 %where.r, %gy
  %py = getelementptr float, ptr %y, i64 %where
  store float %result, ptr %py
  br label %out
out:
  ret void
}}
"""
"""y[z, x, y] is twice x[z, x, y] plus the sum of the elements from the start of its block along x; values live across
barriers are in context arrays."""


@pytest.mark.parametrize(("form", "along"), [("auto", "auto"), ("vectors", "x"), ("vectors", "z"), ("regions", "y")])
@pytest.mark.sample(2)
def test_barriers_with_lanes_along_any_axis(device: Device, form: str, along: str) -> None:
    x = np.random.default_rng(3).integers(0, 9, (2, 19, 41)).astype(np.float32)
    block = (8, 32, 1) if along == "auto" else (4, 6, 2)
    made = code(TILE, "k", PARAMETERS, shared_bytes=2048)
    with config.cpu_form.scope(form), config.cpu_lanes.scope(along):
        found, told = run(device, made, x, "zxy", block)
    expected = 2 * x
    for first in range(0, x.shape[1], block[0]):
        part = x[:, first : first + block[0]]
        expected[:, first : first + block[0]] += np.cumsum(part, axis=1)
    np.testing.assert_array_equal(found, expected)
    assert "regions" in told
    axis = "y" if along == "auto" else along
    assert (f"neighbours along {axis}" in told) == (axis != "x"), told


FAULT = f"""
{HEAD}
{element("zxy")}
  %bad = icmp eq i64 %place, 1234
  br i1 %bad, label %stop, label %far
stop:
  call void @spmd.fault(ptr %item, i32 7)
  ret void
far:
  %wild = icmp eq i64 %place, %ni
  %at = select i1 %wild, i64 -68719476736, i64 %place
  %py = getelementptr i64, ptr %y, i64 %at
  store i64 %place, ptr %py
  br label %out
out:
  ret void
}}
"""
"""Thread 1234 stops with an error, in C order along y, and thread ``ni`` writes where nothing is."""


@pytest.mark.parametrize("block", [(8, 16, 1), (32, 2, 1), (64, 1, 1)])
@pytest.mark.sample(2)
def test_faults_name_the_block_and_the_thread(device: Device, block: tuple[int, int, int]) -> None:
    grid = 64 // block[0], 64 // block[1], 1
    function = device.load(code(FAULT, "k", PARAMETERS)).function("k")
    out = to_device(np.zeros(64 * 64, np.int64), device=device)
    arguments = pack(function.kernel, out.address, out.address, 1 << 40, 64, 64)
    with config.cpu_lanes.scope("y"), pytest.raises(KernelFault) as caught:
        function.launch(grid, block, arguments)
    assert "neighbours along y in up to" in str(function.form)
    x, y = divmod(1234, 64)
    assert (caught.value.block, caught.value.thread) == (
        (x // block[0], y // block[1], 0),
        (x % block[0], y % block[1], 0),
    )
    x, y = 21, 50
    function = device.load(code(FAULT.replace("%place, 1234", "%place, -1"), "k", PARAMETERS)).function("k")
    with config.cpu_lanes.scope("y"), config.cpu_width.scope(16), pytest.raises(MemoryFaultError) as far:
        function.launch(grid, block, pack(function.kernel, out.address, out.address, 64 * x + y, 64, 64))
    # the chunks of a first launch have as many blocks as a gang reaches over, of which the first is named
    assert far.value.block == (x // block[0], y // 16 * 16 // block[1], 0)


LONG = FAULT.replace(element("zxy"), element("zyx")).replace("%place, 1234", "%place, -1")
LONG = LONG.replace(
    "far:",
    """far:
  br label %loop
loop:
  %count = phi i64 [ 0, %far ], [ %count.more, %loop ]
  %mixed = phi i64 [ %place, %far ], [ %mixed.more, %loop ]
  %scaled = mul i64 %mixed, 6364136223846793005
  %mixed.more = add i64 %scaled, %count
  %count.more = add nuw nsw i64 %count, 1
  %again = icmp slt i64 %count.more, 5000
  br i1 %again, label %loop, label %last
last:""",
)
LONG = LONG.replace("store i64 %place, ptr %py", "store i64 %mixed.more, ptr %py")
"""Thread ``ni``, in C order along x, writes where nothing is, after a while."""


@pytest.mark.parametrize(
    ("grid", "block", "found"),
    [((2, 2, 1), (16, 16, 1), (0, 0, 0)), ((4, 1, 1), (16, 16, 1), (0, 0, 0)), ((1, 4, 1), (16, 16, 1), (0, 1, 0)),
     ((4, 1, 1), (32, 4, 1), (1, 0, 0)), ((3, 3, 1), (16, 16, 1), (0, 0, 0))],
)  # fmt: skip
def test_few_blocks_fill_gangs(
    device: Device, grid: tuple[int, int, int], block: tuple[int, int, int], found: tuple[int, int, int]
) -> None:
    """A chunk has as many blocks as a gang reaches over, but no more than there are: the fault is where it begins."""
    columns, rows = grid[0] * block[0], grid[1] * block[1]
    with config.cpu_lanes.scope("x"), config.cpu_width.scope(32):
        function = device.load(code(LONG, "k", PARAMETERS)).function("k")
        out = to_device(np.zeros(rows * columns, np.int64), device=device)
        for _ in range(3):  # the time that launches took decides how many blocks are a chunk
            function.launch(grid, block, pack(function.kernel, out.address, out.address, 1 << 40, rows, columns))
        place = block[0] + 1 if grid[0] > 1 else (block[1] + 1) * columns  # in the second block
        with pytest.raises(MemoryFaultError) as far:
            function.launch(grid, block, pack(function.kernel, out.address, out.address, place, rows, columns))
    assert far.value.block == found


def test_kernels_that_know_their_lane_stay_along_x(device: Device) -> None:
    known = "%lane = call i32 @spmd.lane(ptr %item)\n  %bad = icmp eq i32 %lane, 99"
    text = FAULT.replace("%bad = icmp eq i64 %place, 1234", known)
    function = device.load(code(f"declare i32 @spmd.lane(ptr)\n{text}", "k", PARAMETERS)).function("k")
    out = to_device(np.zeros(64 * 64, np.int64), device=device)
    function.launch((4, 4, 1), (16, 16, 1), pack(function.kernel, out.address, out.address, 1 << 40, 64, 64))
    assert "neighbours along" not in str(function.form)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(64 * 64))


def test_setting_that_names_no_axis() -> None:
    with pytest.raises(SettingError, match="NUMBA_HIP_CPU_LANES='w'"), config.cpu_lanes.scope("w"):
        pass
