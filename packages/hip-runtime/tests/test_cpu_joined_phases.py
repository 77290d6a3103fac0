"""Grid barriers in kernels whose gangs reach over several blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import code, pack
from test_cpu_lane_axis import global_index

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.errors import BarrierDivergenceError, KernelFault

PARAMETERS = [("a", "ptr"), ("b", "ptr"), ("rows", "i64"), ("columns", "i64"), ("steps", "i32")]
HEAD = "define void @k(ptr noalias %item, ptr %a, ptr %b, i64 %rows, i64 %columns, i32 %steps) {"
BARRIER = "declare void @spmd.grid_barrier(ptr) convergent\n"
BLOCKS = [(16, 16, 1), (8, 4, 1), (6, 5, 2), (48, 2, 1), (4, 64, 1)]


def make(text: str) -> CodeObject:
    return code(text + BARRIER, "k", PARAMETERS)


def indices(lanes: str, others: str) -> str:
    """IR that leaves the row and the column of a thread in ``%i`` and ``%j``, of which columns are along *lanes*, and
    whether that is an inner element in ``%inner``."""
    return f"""{"".join(map(global_index, (lanes, others)))}
  %i = add i64 %g{others}, 0
  %j = add i64 %g{lanes}, 0
  %last.i = sub i64 %rows, 1
  %last.j = sub i64 %columns, 1
  %low.i = icmp sgt i64 %i, 0
  %low.j = icmp sgt i64 %j, 0
  %high.i = icmp slt i64 %i, %last.i
  %high.j = icmp slt i64 %j, %last.j
  %low = select i1 %low.i, i1 %low.j, i1 false
  %high = select i1 %high.i, i1 %high.j, i1 false
  %inner = select i1 %low, i1 %high, i1 false
"""


def step(source: str, target: str, number: int) -> str:
    """IR for one step of an inner element: of its neighbours, and of what its block counts."""
    places = {"up": "-1, 0", "down": "1, 0", "left": "0, -1", "right": "0, 1", "own": "0, 0"}
    loads = []
    for name, offsets in places.items():
        i, j = offsets.split(", ")
        loads.append(f"""
  %i.{name}.{number} = add i64 %i, {i}
  %j.{name}.{number} = add i64 %j, {j}
  %row.{name}.{number} = mul i64 %i.{name}.{number}, %columns
  %at.{name}.{number} = add i64 %row.{name}.{number}, %j.{name}.{number}
  %p.{name}.{number} = getelementptr i64, ptr %{target if name == "own" else source}, i64 %at.{name}.{number}
  {"" if name == "own" else f"%{name}.{number} = load i64, ptr %p.{name}.{number}"}""")
    return f"""
  br i1 %inner, label %do.{number}, label %wait.{number}
do.{number}:{"".join(loads)}
  %three.{number} = mul i64 %left.{number}, 3
  %one.{number} = add i64 %up.{number}, %three.{number}
  %five.{number} = mul i64 %right.{number}, 5
  %two.{number} = sub i64 %five.{number}, %down.{number}
  %both.{number} = add i64 %one.{number}, %two.{number}
  %new.{number} = add i64 %both.{number}, %count
  store i64 %new.{number}, ptr %p.own.{number}
  br label %wait.{number}
wait.{number}:
  call void @spmd.grid_barrier(ptr %item)"""


def steps(lanes: str, others: str) -> CodeObject:
    """Steps between two arrays. Each block counts in its own way, by where it is along *others*."""
    return make(f"""
{HEAD}
entry:
{indices(lanes, others)}
  %start = add i64 %c{others}, 7
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %next, %wait.1 ]
  %count = phi i64 [ %start, %entry ], [ %counted, %wait.1 ]
{step("a", "b", 0)}
{step("b", "a", 1)}
  %often = mul i64 %count, 3
  %counted = add i64 %often, %c{others}
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, %steps
  br i1 %more, label %head, label %end
end:
  ret void
}}
""")


def expect(given: np.ndarray, often: int, block_rows: int) -> np.ndarray:
    a, b = given.copy(), given.copy()
    where = (np.arange(given.shape[0], dtype=np.int64) // block_rows)[1:-1, None]
    count = where + 7
    for _ in range(often):
        for old, new in ((a, b), (b, a)):
            new[1:-1, 1:-1] = old[:-2, 1:-1] + 3 * old[1:-1, :-2] + 5 * old[1:-1, 2:] - old[2:, 1:-1] + count
        count = count * 3 + where
    return a


def run(
    device: Device, made: CodeObject, given: np.ndarray, lanes: str, block: tuple[int, int, int], often: int
) -> tuple[np.ndarray, str]:  # fmt: skip
    """What the kernel leaves in its first array, and the form that it took."""
    function = device.load(made).function("k")
    extents = (given.shape[1], given.shape[0], 1) if lanes == "x" else (given.shape[0], given.shape[1], 1)
    grid = tuple(-(-extent // threads) for extent, threads in zip(extents, block, strict=True))
    for _ in range(3):  # the blocks of a first launch are taken one by one
        a, b = to_device(given, device=device), to_device(given, device=device)
        packed = pack(function.kernel, a.address, b.address, *given.shape, often)
        function.launch(grid, block, packed, cooperative=True)
    return a.copy_to_host(), str(function.form)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("lanes", "others"), [("x", "y"), ("y", "x")])
@pytest.mark.sample(1)
def test_steps_with_barriers_of_the_grid(device: Device, lanes: str, others: str, block: tuple[int, int, int]) -> None:
    given = np.random.default_rng(3).integers(-9, 9, (67, 301))
    found, form = run(device, steps(lanes, others), given, lanes, block, 6)
    wanted: Any = expect(given, 6, block["xyz".index(others)])
    np.testing.assert_array_equal(found, wanted)
    assert f"neighbours along {lanes} in up to" in form, form
    with config.cpu_form.scope("regions"):
        one_by_one, form = run(device, steps(lanes, others), given, lanes, block, 6)
    np.testing.assert_array_equal(one_by_one, found)
    assert "in up to" not in form


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(100))
def test_random_shapes(device: Device, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(3, 200, 2)
    lanes, others = ("x", "y") if rng.random() < 0.5 else ("y", "x")
    along, across = int(rng.integers(1, 65)), int(rng.integers(1, 9))
    block = (along, across, 1) if lanes == "x" else (across, along, 1)
    given, often = rng.integers(-9, 9, shape), int(rng.integers(1, 5))
    with config.cpu_width.scope(int(rng.choice([4, 8, 16, 32, 64]))):
        found, _ = run(device, steps(lanes, others), given, lanes, block, often)
    np.testing.assert_array_equal(found, expect(given, often, across))


def test_a_value_that_each_thread_keeps(device: Device) -> None:
    """Gangs that reach over several blocks have no place for it, so these do not."""
    made = make(f"""
{HEAD}
entry:
{indices("x", "y")}
  %row = mul i64 %i, %columns
  %at = add i64 %row, %j
  %in = icmp slt i64 %j, %columns
  br i1 %in, label %do, label %wait
do:
  %p = getelementptr i64, ptr %a, i64 %at
  %v = load i64, ptr %p
  br label %wait
wait:
  %kept = phi i64 [ %v, %do ], [ 0, %entry ]
  call void @spmd.grid_barrier(ptr %item)
  br i1 %in, label %put, label %end
put:
  %back = sub i64 %last.j, %j
  %to = add i64 %row, %back
  %q = getelementptr i64, ptr %a, i64 %to
  store i64 %kept, ptr %q
  br label %end
end:
  ret void
}}
""")
    given = np.arange(16 * 100).reshape(16, 100)
    found, form = run(device, made, given, "x", (16, 16, 1), 1)
    np.testing.assert_array_equal(found, given[:, ::-1])
    assert "in up to" not in form


def test_rows_of_blocks_at_different_barriers(device: Device) -> None:
    made = make(f"""
{HEAD}
{indices("x", "y")}
  %late = icmp ugt i32 %by, 2
  br i1 %late, label %one, label %other
one:
  call void @spmd.grid_barrier(ptr %item)
  store i64 %i, ptr %b
  ret void
other:
  call void @spmd.grid_barrier(ptr %item)
  store i64 %j, ptr %a
  ret void
}}
""")
    with pytest.raises(BarrierDivergenceError) as caught:
        run(device, made, np.zeros((64, 100), np.int64), "x", (16, 16, 1), 1)
    assert caught.value.block in ((0, 0, 0), (0, 3, 0))


def test_a_fault_behind_a_barrier_names_block_and_thread(device: Device) -> None:
    made = make(f"""
{HEAD}
{indices("x", "y")}
  call void @spmd.grid_barrier(ptr %item)
  %there = icmp eq i64 %i, 35
  %here = icmp eq i64 %j, 74
  %hit = select i1 %there, i1 %here, i1 false
  br i1 %hit, label %stop, label %go
stop:
  call void @spmd.fault(ptr %item, i32 3)
  ret void
go:
  ret void
}}
""")
    with pytest.raises(KernelFault, match=r"error code 3 in block \(4, 2, 0\), thread \(10, 3, 0\)"):
        run(device, made, np.zeros((64, 100), np.int64), "x", (16, 16, 1), 1)
