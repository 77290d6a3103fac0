"""Gangs that take turns in a grid-stride loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, Function, config, to_device
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.vectorize import gang_function, widen
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.errors import KernelFault

PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("sums", "ptr"), ("begin", "ptr"), ("n", "i64"), ("bad", "i64")]

WALK = f"""
define void @walk(ptr noalias %item, ptr %out, ptr %x, ptr %sums, ptr %begin, i64 %n, i64 %bad) {{
entry:
{GLOBAL_X}
  %g32 = call i32 @spmd.grid_dim.x(ptr %item)
  %g = zext i32 %g32 to i64
  %step = mul nuw nsw i64 %g, %d
  %ps = getelementptr double, ptr %begin, i64 %i
  %first = load double, ptr %ps
  %scale = load double, ptr %begin
  %in = icmp slt i64 %i, %n
  br i1 %in, label %loop, label %done
loop:
  %k = phi i64 [ %i, %entry ], [ %next, %latch ]
  %sum = phi double [ %first, %entry ], [ %more, %latch ]
  %last = phi double [ 0.0, %entry ], [ %value, %latch ]
  %rounds = phi i32 [ 0, %entry ], [ %round, %latch ]
  %px = getelementptr double, ptr %x, i64 %k
  %value = load double, ptr %px
  %large = fcmp ogt double %value, 4.0
  br i1 %large, label %store, label %latch
store:
  %product = fmul double %value, %scale
  %po = getelementptr double, ptr %out, i64 %k
  store double %product, ptr %po
  br label %latch
latch:
  %old = fmul double %sum, 0.5
  %next = add nuw nsw i64 %k, %step
  %added = fadd double %old, %value
  %more = fadd double %added, %last
  %round = add i32 %rounds, 1
  %stays = icmp slt i64 %next, %n
  br i1 %stays, label %loop, label %done
done:
  %total = phi double [ %first, %entry ], [ %more, %latch ]
  %count = phi i32 [ 0, %entry ], [ %round, %latch ]
  %counted = sitofp i32 %count to double
  %both = fadd double %total, %counted
  %all = fadd double %both, %first
  %pt = getelementptr double, ptr %sums, i64 %i
  store double %all, ptr %pt
  %is_bad = icmp eq i64 %i, %bad
  br i1 %is_bad, label %fault, label %end
fault:
  call void @spmd.fault(ptr %item, i32 7)
  br label %end
end:
  ret void
}}
"""
"""Multiplies what is above 4 by ``begin[0]``; a sum of each thread whose order matters, from ``begin[i]`` on."""

SHARED = "declare ptr @spmd.shared.s.8192.16(ptr)\ndeclare void @spmd.barrier(ptr)\n"

MIRROR = """
  %s = call ptr @spmd.shared.s.8192.16(ptr %item)
  %mine = getelementptr double, ptr %s, i64 %t
  store double %all, ptr %mine
  call void @spmd.barrier(ptr %item)
  %d1 = sub i64 %d, 1
  %m = sub i64 %d1, %t
  %other = getelementptr double, ptr %s, i64 %m
  %mirrored = load double, ptr %other
  %pt = getelementptr double, ptr %sums, i64 %i
  store double %mirrored, ptr %pt
"""

WALK_AND_MIRROR = SHARED + WALK.replace(
    """
  %pt = getelementptr double, ptr %sums, i64 %i
  store double %all, ptr %pt
""",
    MIRROR,
)
"""The same, but each thread writes the sum of another one of its block, which it reads behind a barrier."""

REFUSED = {
    "shared memory in the loop": (
        "loop:\n",
        "loop:\n",
        "  %old = fmul double %sum, 0.5\n",
        "  %at = call ptr @spmd.shared.s.8192.16(ptr %item)\n  %pl = getelementptr double, ptr %at, i64 %t\n"
        "  store double %value, ptr %pl\n  %again = load double, ptr %pl\n  %old = fmul double %sum, 0.5\n",
    ),
    "a store before the loop": (
        "  %in = icmp",
        "  %pw = getelementptr double, ptr %sums, i64 %i\n  store double %first, ptr %pw\n  %in = icmp",
        "",
        "",
    ),
}
"""What keeps gangs from going on with the loops of other blocks: two replacements of text in the kernel."""


@pytest.fixture
def suspensions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The iterations that gangs make in their turns, for each gang function that might have some; 0 without turns."""
    found: list[int] = []
    find = gang_function.find_suspension

    def spy(*arguments: Any) -> Any:
        made = find(*arguments)
        found.append(made.iterations if made is not None else 0)
        return made

    monkeypatch.setattr(gang_function, "find_suspension", spy)
    return found


def walk(x: np.ndarray, start: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel computes."""
    out = np.where(x > 4, x * start[0], 0.0)
    sums = start[:threads].copy()
    last, rounds = np.zeros(threads), np.zeros(threads)
    for begin in range(0, x.size, threads):
        part = x[begin : begin + threads]
        now = slice(0, part.size)
        sums[now] = sums[now] * 0.5 + part + last[now]
        last[now] = part
        rounds[now] += 1
    return out, sums + rounds + start[:threads]


def load(device: Device, text: str = WALK) -> Function:
    nbytes = 8192 if "@spmd.shared" in text else 0
    return device.load(code(text, "walk", PARAMETERS, shared_bytes=nbytes)).function("walk")


def run(function: Function, n: int, grid: int, block: int, bad: int = -1, mirrors: bool = False) -> None:
    """Run the kernel, and compare what it computes."""
    rng = np.random.default_rng(n + grid)
    x, start = rng.integers(0, 9, n).astype(float), rng.integers(1, 9, grid * block).astype(float)
    out, sums = (to_device(np.zeros(size)) for size in (n, grid * block))
    held = [to_device(x), to_device(start)]
    arguments = pack(function.kernel, out.address, held[0].address, sums.address, held[1].address, n, bad)
    function.launch(grid, block, arguments)
    wanted = walk(x, start, grid * block)
    np.testing.assert_array_equal(out.copy_to_host(), wanted[0])
    np.testing.assert_array_equal(sums.copy_to_host(), mirror(wanted[1], block) if mirrors else wanted[1])


def mirror(sums: np.ndarray, block: int) -> np.ndarray:
    """The sums of each block in the opposite order."""
    return sums.reshape(-1, block)[:, ::-1].reshape(-1)


GRIDS = [(1, 64), (3, 100), (40, 256), (700, 64), (5, 1024), (9, 33)]


def in_pairs(grids: list[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    """Lengths, each with every second of *grids*: these have two or three of them."""
    lengths = (64, 1000, 64 * 40, 64 * 41 + 1, 200_003)
    return [(n, grid) for number, n in enumerate(lengths) for grid in grids[number % 2 :: 2]]


@pytest.mark.parametrize("form", ["vectors", "loop"])
@pytest.mark.sample(1)
def test_sums_and_elements_are_those_of_each_thread(device: Device, suspensions: list[int], form: str) -> None:
    function = load(device)
    with config.cpu_form.scope(form):
        for n, (grid, block) in in_pairs([*GRIDS, (1, 8)]):
            run(function, n, grid, block)
    assert any(suspensions) == (form == "vectors")


@pytest.mark.parametrize(("block", "turns"), [(256, False), (512, True), (1024, True)])
def test_steps_within_a_page_take_no_turns(device: Device, suspensions: list[int], block: int, turns: bool) -> None:
    """As of a block that walks through a row: each of its gangs reads the same pages."""
    function = load(device, WALK_AND_MIRROR.replace("mul nuw nsw i64 %g, %d", f"add i64 0, {block}"))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        run(function, 20_003, 1, block, mirrors=True)
    assert any(suspensions) == turns


TABLE = f"""
define void @table(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr noalias %columns, ptr noalias %rows, i64 %n,
                   i64 %width) {{
entry:
{GLOBAL_X}
  %g32 = call i32 @spmd.grid_dim.x(ptr %item)
  %g = zext i32 %g32 to i64
  %step = mul nuw nsw i64 %g, %d
  %in = icmp slt i64 %i, %n
  br i1 %in, label %loop, label %done
loop:
  %k = phi i64 [ %i, %entry ], [ %next, %loop ]
  %next = add nuw nsw i64 %k, %step
  %stays = icmp slt i64 %next, %n
  %row = udiv i64 %k, %width
  %column = urem i64 %k, %width
  %px = getelementptr float, ptr %x, i64 %k
  %value = load float, ptr %px
  %pc = getelementptr float, ptr %columns, i64 %column
  %of_column = load float, ptr %pc
  %pr = getelementptr float, ptr %rows, i64 %row
  %of_row = load float, ptr %pr
  %product = fmul float %value, %of_column
  %sum = fadd float %product, %of_row
  %po = getelementptr float, ptr %out, i64 %k
  store float %sum, ptr %po
  br i1 %stays, label %loop, label %done
done:
  ret void
}}
"""
"""A table times a row, plus a column. What says whether a thread stays comes before what is versioned."""


@pytest.mark.parametrize("block", [256, 100])
def test_fewer_iterations_of_more_arrays(
    device: Device, suspensions: list[int], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Three arrays, which two iterations of a gang leave in the cache; whether all lanes stay is told by the ends."""
    compared: list[bool] = []
    ask = widen.write_uniform_condition

    def spy(values: GangValues, condition: Instruction, expected: bool) -> Any:
        compared.append(values.shapes.homes[condition] is values.block)
        return ask(values, condition, expected)

    monkeypatch.setattr(widen, "write_uniform_condition", spy)
    names = [("out", "ptr"), ("x", "ptr"), ("columns", "ptr"), ("rows", "ptr"), ("n", "i64"), ("width", "i64")]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(TABLE, "table", names)).function("table")
        for height, width in [(70, 500), (3, 7000), (900, 17), (1, 1), (5, 64)]:
            table = np.random.default_rng(width).integers(0, 99, (height, width)).astype(np.float32)
            columns, rows = table[0] * 3, table[:, 0] - 1
            out = to_device(np.zeros_like(table))
            held = [to_device(one) for one in (table, columns, rows)]
            addresses = [one.address for one in held]
            function.launch(9, block, pack(function.kernel, out.address, *addresses, table.size, width))
            np.testing.assert_array_equal(out.copy_to_host(), table * columns + rows[:, None], str(width))
    assert set(suspensions) == {2}
    assert all(compared)
    assert compared


def test_more_blocks_than_there_are_records_for(device: Device, suspensions: list[int]) -> None:
    function = load(device)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(4), config.cpu_threads.scope(1):
        run(function, 300_001, 60, 1000)
        run(function, 300_001, 2, 1000)
    assert all(suspensions)
    assert suspensions


def test_a_fault_of_a_gang_that_was_suspended_names_its_thread(device: Device, suspensions: list[int]) -> None:
    with config.cpu_form.scope("vectors"), pytest.raises(KernelFault) as caught:
        run(load(device), 50_000, 10, 256, bad=1_300)
    assert suspensions == [4]
    assert (caught.value.block, caught.value.thread) == ((5, 0, 0), (20, 0, 0))


@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
@pytest.mark.sample(1)
def test_gangs_pause_behind_the_loop_before_a_barrier(device: Device, suspensions: list[int], form: str) -> None:
    function = load(device, WALK_AND_MIRROR)
    with config.cpu_form.scope(form):
        for n, (grid, block) in in_pairs(GRIDS):
            run(function, n, grid, block, mirrors=True)
    assert any(suspensions) == (form != "regions")
    assert ("gangs take turns in a loop before the first barrier" in function.form) == (form != "regions")


def test_more_paused_blocks_than_there_are_records_for(device: Device, suspensions: list[int]) -> None:
    function = load(device, WALK_AND_MIRROR)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(4), config.cpu_threads.scope(1):
        run(function, 300_001, 60, 1000, mirrors=True)
        run(function, 300_001, 2, 1000, mirrors=True)
        run(function, 300_001, 300, 64, mirrors=True)
    assert all(suspensions)
    assert suspensions


def test_a_fault_of_a_gang_that_paused_names_its_thread(device: Device, suspensions: list[int]) -> None:
    with config.cpu_form.scope("vectors"), pytest.raises(KernelFault) as caught:
        run(load(device, WALK_AND_MIRROR), 50_000, 10, 256, bad=1_300)
    assert suspensions == [4]
    assert (caught.value.block, caught.value.thread) == ((5, 0, 0), (20, 0, 0))


@pytest.mark.parametrize("reason", REFUSED)
@pytest.mark.sample(1)
def test_gangs_do_not_pause_where_a_block_would_notice(device: Device, suspensions: list[int], reason: str) -> None:
    before, after, other, instead = REFUSED[reason]
    assert before in WALK_AND_MIRROR
    text = WALK_AND_MIRROR.replace(before, after)
    function = load(device, text.replace(other, instead) if other else text)
    with config.cpu_form.scope("vectors"):
        for grid, block in ((3, 100), (40, 256)):
            run(function, 20_003, grid, block, mirrors=True)
    assert suspensions
    assert not any(suspensions)
