"""Grids with few threads along the axis of the lanes run code with lanes along another axis, or in narrower gangs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import code, pack

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.abi.narrow_grids import Gangs, NarrowGrids
from hip_runtime.drivers.cpu.object_code.program_image import read_program, write_program

PARAMETERS = [("out", "ptr"), ("a", "ptr"), ("b", "ptr"), ("rows", "i64"), ("columns", "i64"), ("inner", "i64")]
HEAD = "define void @k(ptr noalias %item, ptr %out, ptr %a, ptr %b, i64 %rows, i64 %columns, i64 %inner) {\nentry:"


def _index(name: str, axis: str) -> str:
    return f"""
  %t.{name} = call i32 @spmd.thread_idx.{axis}(ptr %item)
  %b.{name} = call i32 @spmd.block_idx.{axis}(ptr %item)
  %d.{name} = call i32 @spmd.block_dim.{axis}(ptr %item)
  %tw.{name} = zext i32 %t.{name} to i64
  %bw.{name} = zext i32 %b.{name} to i64
  %dw.{name} = zext i32 %d.{name} to i64
  %s.{name} = mul nuw nsw i64 %bw.{name}, %dw.{name}
  %{name} = add nuw nsw i64 %s.{name}, %tw.{name}"""


def product(row: str = "x", column: str = "y", *, is_bounded: bool = True) -> CodeObject:
    """``out[i, j] = sum of a[i, k] * b[k, j]``, i along the axis *row* and j along *column*."""
    test = "%in = and i1 %in.row, %in.column" if is_bounded else "%in = and i1 %in.row, true"
    text = f"""{HEAD}{_index("i", row)}{_index("j", column)}
  %in.row = icmp slt i64 %i, %rows
  %in.column = icmp sgt i64 %columns, %j
  {test}
  br i1 %in, label %begin, label %end
begin:
  %first = mul nsw i64 %i, %inner
  br label %loop
loop:
  %k = phi i64 [ 0, %begin ], [ %next, %loop ]
  %sum = phi double [ 0.0, %begin ], [ %more, %loop ]
  %place.a = add nsw i64 %first, %k
  %pa = getelementptr double, ptr %a, i64 %place.a
  %va = load double, ptr %pa
  %row.b = mul nsw i64 %k, %columns
  %place.b = add nsw i64 %row.b, %j
  %pb = getelementptr double, ptr %b, i64 %place.b
  %vb = load double, ptr %pb
  %term = fmul double %va, %vb
  %more = fadd double %sum, %term
  %next = add nuw nsw i64 %k, 1
  %goes = icmp slt i64 %next, %inner
  br i1 %goes, label %loop, label %store
store:
  %row.out = mul nsw i64 %i, %columns
  %place = add nsw i64 %row.out, %j
  %po = getelementptr double, ptr %out, i64 %place
  store double %more, ptr %po
  br label %end
end:
  ret void
}}
"""
    return code(text, "k", PARAMETERS)


def _run(function: Any, rows: int, columns: int, block: tuple[int, int], row: str = "x") -> None:
    """Launch *function* for matrices, and check what it leaves."""
    generator = np.random.default_rng(rows + columns)
    a, b = generator.integers(-9, 9, (rows, 7)).astype(float), generator.integers(-9, 9, (7, columns)).astype(float)
    out, da, db = to_device(np.zeros((rows, columns))), to_device(a), to_device(b)
    extents = (rows, columns) if row == "x" else (columns, rows)
    grid = tuple(-(-extent // threads) for extent, threads in zip(extents, block, strict=True))
    function.launch(grid, block, pack(function.kernel, out.address, da.address, db.address, rows, columns, 7))
    np.testing.assert_array_equal(out.copy_to_host(), a @ b)


@pytest.mark.parametrize("block", [(16, 16), (256, 1), (32, 2)])
@pytest.mark.parametrize(("row", "column"), ["xy", "yx"])
@pytest.mark.parametrize("columns", [1, 3, 16, 70, 200])
def test_products_of_all_widths(device: Device, row: str, column: str, columns: int, block: tuple[int, int]) -> None:
    function = device.load(product(row, column)).function("k")
    for rows in (1, 3, 300):
        _run(function, rows, columns, block if row == "x" else block[::-1], row)


def _forms(function: Any) -> list[str]:
    """The reasons of the code that *function* has, that for narrow grids last."""
    handle = function.handle
    return [program.reason for one in (handle, *handle._by_gangs.values()) for program in one.workers.values()]


def test_each_code_is_made_when_it_is_first_needed(device: Device) -> None:
    function = device.load(product()).function("k")
    _run(function, 300, 200, (16, 16))
    assert ["neighbours along y" in reason for reason in _forms(function)] == [True]
    _run(function, 300, 2, (16, 16))
    _run(function, 400, 1, (16, 16))
    assert ["neighbours along y" in reason for reason in _forms(function)] == [True, False]
    _run(function, 300, 200, (16, 16))
    assert len(_forms(function)) == 2


def test_grids_that_are_small_along_all_axes_keep_their_code(device: Device) -> None:
    function = device.load(product()).function("k")
    _run(function, 3, 3, (16, 16))
    assert len(_forms(function)) == 1


def test_without_a_bound_the_grid_decides(device: Device) -> None:
    function = device.load(product(is_bounded=False)).function("k")
    _run(function, 256, 3, (256, 1))
    (program,) = function.handle.workers.values()
    assert program.narrow is not None
    assert program.narrow.size == 0
    assert len(_forms(function)) == 2


@pytest.mark.parametrize("setting", ["cpu_lanes", "cpu_width"])
def test_what_was_asked_for_stays(device: Device, setting: str) -> None:
    with getattr(config, setting).scope("y" if setting == "cpu_lanes" else 32):
        function = device.load(product()).function("k")
        _run(function, 300, 2, (16, 16))
    assert len(_forms(function)) == 1


def doubled() -> CodeObject:
    """``out[i, j] = 2 * a[i, j]``, i along x and j along y."""
    text = f"""{HEAD}{_index("i", "x")}{_index("j", "y")}
  %in.row = icmp slt i64 %i, %rows
  %in.column = icmp slt i64 %j, %columns
  %in = and i1 %in.row, %in.column
  br i1 %in, label %do, label %end
do:
  %first = mul nsw i64 %i, %columns
  %place = add nsw i64 %first, %j
  %pa = getelementptr double, ptr %a, i64 %place
  %va = load double, ptr %pa
  %twice = fadd double %va, %va
  %po = getelementptr double, ptr %out, i64 %place
  store double %twice, ptr %po
  br label %end
end:
  ret void
}}
"""
    return code(text, "k", PARAMETERS)


@pytest.mark.parametrize("block", [(16, 16), (256, 1)])
def test_without_a_loop_gangs_become_narrower(device: Device, block: tuple[int, int]) -> None:
    function = device.load(doubled()).function("k")
    for columns, made in ((200, 1), (17, 2), (5, 2), (8, 2), (3, 3), (1, 3)):
        values = np.random.default_rng(columns).random((5000, columns))
        a, out = to_device(values), to_device(np.zeros_like(values))
        grid = -(-5000 // block[0]), -(-columns // block[1])
        function.launch(grid, block, pack(function.kernel, out.address, a.address, a.address, 5000, columns, 0))
        np.testing.assert_array_equal(out.copy_to_host(), 2 * values)
        assert len(_forms(function)) == made
    assert "8 threads at a time" in _forms(function)[1]
    assert "neighbours along y" not in _forms(function)[2]


def test_which_grids_are_narrow() -> None:
    narrow = NarrowGrids(axis=1, other=0, width=64, least=33, rows=256, offset=8, size=8)

    def choose(columns: int, *grid: int) -> Gangs | None:
        arguments = bytes(8) + columns.to_bytes(8, "little", signed=True) + bytes(8)
        return narrow.for_blocks((16, 16, 1))((*grid, 1), arguments)

    assert choose(3, 100, 1) == Gangs(0)
    assert choose(32, 100, 2) == Gangs(0)
    assert choose(33, 100, 3) is None
    assert choose(3, 100, 4) is None  # the rows fill gangs, as far as the grid tells
    assert choose(3, 15, 1) is None
    assert choose(-5, 100, 1) == Gangs(0)
    unknown = narrow._replace(size=0).for_blocks((16, 16, 1))
    assert unknown((100, 2, 1), b"") == Gangs(0)
    assert unknown((100, 3, 1), b"") is None
    narrow = narrow._replace(least=5, lanes=8)
    assert choose(4, 100, 1) == Gangs(0)
    assert choose(5, 100, 1) == Gangs(1, 8)
    assert choose(60, 100, 3) == Gangs(1, 8)
    assert choose(60, 100, 4) is None


def test_programs_keep_their_narrow_grids(device: Device) -> None:
    function = device.load(product()).function("k")
    _run(function, 300, 200, (16, 16))
    (program,) = function.handle.workers.values()
    assert program.narrow is not None
    assert read_program(write_program(program)).narrow == program.narrow


def test_a_block_that_is_as_wide_as_a_gang_may_be_mostly_idle() -> None:
    narrow = NarrowGrids(axis=1, other=0, width=16, least=9, rows=256, offset=0, size=8)

    def choose(columns: int, blocks: int) -> Gangs | None:
        return narrow.for_blocks((16, 16, 1))((100, blocks, 1), columns.to_bytes(8, "little", signed=True))

    assert choose(3, 1) == Gangs(0)
    assert choose(9, 1) is None
    assert choose(20, 1) is None
    assert choose(3, 2) is None
    assert narrow._replace(size=0).for_blocks((16, 16, 1))((100, 1, 1), b"") is None
