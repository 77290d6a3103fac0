"""A block for each column of a matrix, with the rows as its threads: lanes are threads of neighbouring blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import code, pack

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, DeviceArray, config, to_device
from hip_runtime.errors import KernelFault

PARAMETERS = [("out", "ptr"), ("a", "ptr"), ("rows", "i64"), ("columns", "i64"), ("bad", "i64")]
TURNED = "neighbours are threads of up to"


def by_blocks(across: str = "columns", before: str = "", number: str = "%thread") -> CodeObject:
    """``out[i, j] = 2 * a[i, j] + thread + 1000 * block + 1``, by the block of each column; with *across* ``rows`` by
    that of each row. It stops at the element with the number ``bad``. *before* is done first, and *number* added as
    that of the thread."""
    block, thread = ("%col", "%row") if across == "columns" else ("%row", "%col")
    end, last = ("%rows", "%columns") if across == "columns" else ("%columns", "%rows")
    text = f"""
declare void @spmd.barrier(ptr) convergent
declare i32 @spmd.lane(ptr)
define void @k(ptr noalias %item, ptr %out, ptr %a, i64 %rows, i64 %columns, i64 %bad) {{
entry:
  {before}
  %thread = call i32 @spmd.thread_idx.x(ptr %item)
  %other = call i32 @spmd.thread_idx.y(ptr %item)
  %block = call i32 @spmd.block_idx.x(ptr %item)
  %length = call i32 @spmd.block_dim.x(ptr %item)
  %height = call i32 @spmd.block_dim.y(ptr %item)
  %wide = zext i32 %thread to i64
  %step = zext i32 %length to i64
  {block} = zext i32 %block to i64
  %number = zext i32 {number} to i64
  %shift = mul i64 {block}, 1000
  %flat = mul i32 %other, 7
  %more = add i32 %flat, %height
  %rest = zext i32 %more to i64
  %shifted = add i64 %shift, %number
  %added = add i64 %shifted, %rest
  %is.more = icmp slt i64 {block}, {last}
  %any = icmp slt i64 %wide, {end}
  %begins = and i1 %is.more, %any
  br i1 %begins, label %loop, label %out.of.rows
loop:
  {thread} = phi i64 [ %wide, %entry ], [ %next, %store ]
  %first = mul nsw i64 %row, %columns
  %place = add nsw i64 %first, %col
  %is.bad = icmp eq i64 %place, %bad
  br i1 %is.bad, label %stop, label %store
stop:
  call void @spmd.fault(ptr %item, i32 7)
  ret void
store:
  %pa = getelementptr i64, ptr %a, i64 %place
  %va = load i64, ptr %pa
  %twice = shl i64 %va, 1
  %sum = add i64 %twice, %added
  %po = getelementptr i64, ptr %out, i64 %place
  store i64 %sum, ptr %po
  %next = add nuw nsw i64 {thread}, %step
  %goes = icmp slt i64 %next, {end}
  br i1 %goes, label %loop, label %out.of.rows
out.of.rows:
  ret void
}}
"""
    return code(text, "k", PARAMETERS)


def launch(function: Any, out: DeviceArray, given: DeviceArray, blocks: int, threads: int, bad: int = -1) -> None:
    """Launch *function*, over some more *blocks*, for a matrix."""
    arguments = pack(function.kernel, out.address, given.address, *given.shape, bad)
    function.launch((blocks + 3, 1, 1), (threads, 1, 1), arguments)


def run(function: Any, rows: int, columns: int, threads: int, across: str = "columns") -> None:
    """Launch *function* for a matrix, and check what it leaves."""
    a = np.random.default_rng(rows * columns).integers(-99, 99, (rows, columns))
    i, j = np.indices(a.shape)
    block, thread = (j, i) if across == "columns" else (i, j)
    out = to_device(np.full_like(a, -7))
    launch(function, out, to_device(a), columns if across == "columns" else rows, threads)
    np.testing.assert_array_equal(out.copy_to_host(), 2 * a + 1000 * block + thread % threads + 1)


@pytest.mark.sample(6)
@pytest.mark.parametrize("threads", [1, 4, 48, 128])
@pytest.mark.parametrize("columns", [1, 15, 16, 63, 65, 300])
def test_columns_of_all_numbers(device: Device, columns: int, threads: int) -> None:
    function = device.load(by_blocks()).function("k")
    for rows in (1, 5, 128, 131):
        run(function, rows, columns, threads)


def test_lanes_are_threads_of_neighbouring_blocks(device: Device) -> None:
    function = device.load(by_blocks()).function("k")
    run(function, 131, 300, 48)
    assert TURNED in str(function.form)


def test_a_block_for_each_row_has_its_lanes_along_x(device: Device) -> None:
    function = device.load(by_blocks("rows")).function("k")
    run(function, 31, 300, 64, across="rows")
    assert TURNED not in str(function.form)


def test_an_axis_that_is_asked_for_stays(device: Device) -> None:
    with config.cpu_lanes.scope("x"):
        function = device.load(by_blocks()).function("k")
        run(function, 131, 300, 48)
    assert TURNED not in str(function.form)


@pytest.mark.parametrize("form", ["loop", "regions", "vectors"])
def test_in_any_form(device: Device, form: str) -> None:
    with config.cpu_form.scope(form):
        function = device.load(by_blocks()).function("k")
        run(function, 131, 300, 48)
    assert (TURNED in str(function.form)) == (form == "vectors")


@pytest.mark.parametrize(
    ("before", "number"),
    [("call void @spmd.barrier(ptr %item)", "%thread"), ("%lane = call i32 @spmd.lane(ptr %item)", "%lane")],
)
def test_who_waits_for_its_block_or_knows_its_wave_stays_along_x(device: Device, before: str, number: str) -> None:
    function = device.load(by_blocks(before=before, number=number)).function("k")
    run(function, 131, 300, 32)
    assert TURNED not in str(function.form)


@pytest.mark.parametrize("bad", [0, 300 * 77 + 123, 300 * 130 + 299])
def test_faults_name_the_block_and_the_thread(device: Device, bad: int) -> None:
    function = device.load(by_blocks()).function("k")
    out = to_device(np.zeros((131, 300), np.int64))
    for threads in (48, 128):
        with pytest.raises(KernelFault) as caught:
            launch(function, out, out, 300, threads, bad)
        assert TURNED in str(function.form)
        row, column = divmod(bad, 300)
        assert (caught.value.block, caught.value.thread) == ((column, 0, 0), (row % threads, 0, 0))


def test_few_columns_have_lanes_along_x(device: Device) -> None:
    function = device.load(by_blocks()).function("k")
    run(function, 500, 3, 128)
    forms = [program.reason for one in (function.handle, *function.handle._by_gangs.values())
             for program in one.workers.values()]  # fmt: skip
    assert [TURNED in form for form in forms] == [True, False]
