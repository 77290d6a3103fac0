"""Coherent branches: versions without a mask of code that all lanes of a gang run, beside the masked ones."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import spmd_programs
from spmd_kernels import GLOBAL_X, code, pack
from spmd_programs import check_case
from test_cpu_region_vectors import WithoutWaves
from test_cpu_vectors import WithoutWaiting

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses import double_width
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes
from hip_runtime.drivers.cpu.vectorize import gang_function

WIDTH, BLOCK = 8, 32


@pytest.mark.sample(3)
@pytest.mark.parametrize("generator", [WithoutWaiting, WithoutWaves, spmd_programs.Generator])
@pytest.mark.parametrize("seed", range(4))
def test_program(device: Device, monkeypatch: pytest.MonkeyPatch, generator: Any, seed: int) -> None:
    monkeypatch.setattr(spmd_programs, "Generator", generator)
    width = random.Random(seed + 7).choice((2, 4, 8, 16, 32, 64))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        check_case(device, seed, bounds=True)


@pytest.fixture
def separated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of versioned paths, for each kernel."""
    counts: list[int] = []

    class Spy(gang_function.CoherentBranches):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            counts.append(0)

        def version_next(self, *arguments: Any) -> bool:
            found = super().version_next(*arguments)
            counts[-1] += found
            return found

    monkeypatch.setattr(gang_function, "CoherentBranches", Spy)
    return counts


def run(device: Device, body: str, parameters: list[tuple[str, str]], blocks: int, *launches: tuple[Any, ...]) -> None:
    """Launch the kernel *body* with each set of values in *launches*, in gangs of eight."""
    signature = ", ".join(["ptr noalias %item", *(f"{kind} %{name}" for name, kind in parameters)])
    text = f"define void @k({signature}) {{\nentry:\n{GLOBAL_X}{body}}}\n"
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(text, "k", parameters)).function("k")
        for values in launches:
            function.launch(blocks, BLOCK, pack(function.kernel, *values))


WALK = """
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %go, label %end
go:
  br label %loop
loop:
  %k = phi i64 [ %i, %go ], [ %next, %loop ]
  %sum = phi i64 [ 0, %go ], [ %more, %loop ]
  %p = getelementptr i64, ptr %x, i64 %k
  %v = load i64, ptr %p
  %more = add i64 %sum, %v
  store i64 %more, ptr %p
  %next = add nsw i64 %k, %step
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %more, ptr %q
  %r = getelementptr i64, ptr %last, i64 %i
  store i64 %k, ptr %r
  br label %end
end:
  ret void
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("n", [0, 1, 5, 8, 63, 64, 65, 128, 129, 191, 200])
def test_lanes_go_round_together_until_the_first_leaves(device: Device, separated: list[int], n: int) -> None:
    """What lanes computed until then is kept in the loop that continues under a mask, and after it."""
    threads = 2 * BLOCK
    values = np.random.default_rng(n).integers(0, 1000, 256)
    x, out, last = to_device(values), to_device(np.full(threads, -1)), to_device(np.full(threads, -1))
    parameters = [("out", "ptr"), ("last", "ptr"), ("x", "ptr"), ("n", "i64"), ("step", "i64")]
    run(device, WALK, parameters, 2, (out.address, last.address, x.address, n, threads))
    after, sums, places = values.copy(), np.full(threads, -1), np.full(threads, -1)
    for thread in range(min(threads, n)):
        after[thread:n:threads] = np.cumsum(values[thread:n:threads])
        places[thread] = range(thread, n, threads)[-1]
        sums[thread] = after[places[thread]]
    np.testing.assert_array_equal(x.copy_to_host(), after)
    np.testing.assert_array_equal(out.copy_to_host(), sums)
    np.testing.assert_array_equal(last.copy_to_host(), places)
    assert separated == [1]


IN_A_ROW = """
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %loop, label %end
loop:
  %k = phi i64 [ %i, %entry ], [ %next, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %more, %loop ]
  %p = getelementptr i64, ptr %x, i64 %k
  %v = load i64, ptr %p
  %more = add i64 %sum, %v
  %next = add nsw i64 %k, %step
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %second
second:
  %k2 = phi i64 [ %i, %loop ], [ %next2, %second ]
  %sum2 = phi i64 [ 0, %loop ], [ %more2, %second ]
  %p2 = getelementptr i64, ptr %last, i64 %k2
  %v2 = load i64, ptr %p2
  %more2 = add i64 %sum2, %v2
  %next2 = add nsw i64 %k2, %step
  %again2 = icmp slt i64 %next2, %n
  br i1 %again2, label %second, label %done
done:
  %three = mul i64 %more2, 3
  %both = add i64 %more, %three
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %both, ptr %q
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("n", [0, 5, 64, 129, 200])
def test_a_walk_that_begins_where_another_ends(device: Device, separated: list[int], n: int) -> None:
    """What the first one computed is used behind the second, which leaves it as it is."""
    threads = 2 * BLOCK
    values, others = np.random.default_rng(n).integers(0, 1000, (2, 256))
    x, last, out = to_device(values), to_device(others), to_device(np.full(threads, -1))
    parameters = [("out", "ptr"), ("last", "ptr"), ("x", "ptr"), ("n", "i64"), ("step", "i64")]
    with config.verify_passes.scope(True):
        run(device, IN_A_ROW, parameters, 2, (out.address, last.address, x.address, n, threads))
    sums = [values[thread:n:threads].sum() + 3 * others[thread:n:threads].sum() for thread in range(min(threads, n))]
    np.testing.assert_array_equal(out.copy_to_host(), [*sums, *[-1] * (threads - len(sums))])
    assert separated == [1]


def test_a_step_that_overflows_ends_the_walk_of_all(device: Device) -> None:
    """The first and the last lane do not decide for those between them if the index wraps around."""
    n, step = (1 << 63) - 20, (1 << 63) - 40
    body = """
  br label %loop
loop:
  %k = phi i64 [ %i, %entry ], [ %next, %loop ]
  %rounds = phi i64 [ 0, %entry ], [ %more, %loop ]
  %more = add i64 %rounds, 1
  %next = add i64 %k, %step
  %small = icmp slt i64 %next, %n
  %few = icmp ult i64 %more, 4
  %again = and i1 %small, %few
  br i1 %again, label %loop, label %done
done:
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %more, ptr %q
  ret void
"""
    out = to_device(np.zeros(2 * BLOCK, np.int64))
    run(device, body, [("out", "ptr"), ("n", "i64"), ("step", "i64")], 2, (out.address, n, step))
    expected = []
    for thread in range(2 * BLOCK):
        k, rounds = thread, 0
        while True:
            rounds += 1
            k = (k + step + (1 << 63)) % (1 << 64) - (1 << 63)
            if not (k < n and rounds < 4):
                break
        expected.append(rounds)
    np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize(("block", "step"), [(256, "%step"), (256, "4"), (32, "%step")])
def test_groups_that_walk_in_long_steps_have_twice_as_many_lanes(
    device: Device, monkeypatch: pytest.MonkeyPatch, block: int, step: str
) -> None:
    monkeypatch.setattr(double_width, "has_registers_left", lambda *_: False)
    threads = 2 * block
    parameters = [("out", "ptr"), ("last", "ptr"), ("x", "ptr"), ("n", "i64"), ("step", "i64")]
    signature = ", ".join(["ptr noalias %item", *(f"{kind} %{name}" for name, kind in parameters)])
    body = WALK.replace("%k, %step", f"%k, {step}").replace("store i64 %more, ptr %p", "")
    text = f"define void @k({signature}) {{\nentry:\n{GLOBAL_X}{body}}}\n"
    values = np.random.default_rng(1).integers(0, 1000, 3000)
    x, out, last = to_device(values), to_device(np.full(threads, -1)), to_device(np.full(threads, -1))
    function = device.load(code(text, "k", parameters)).function("k")
    function.launch(2, block, pack(function.kernel, out.address, last.address, x.address, 2999, threads))
    far = threads if step == "%step" else 4
    np.testing.assert_array_equal(out.copy_to_host(), [values[thread:2999:far].sum() for thread in range(threads)])
    lanes = default_lanes() * (2 if step == "%step" else 1)
    assert f"{min(lanes, 64, block)} threads at a time" in function.form


CHOICE = """
  %from = sub nsw i64 %i, %shift
  %inside = icmp CONDITION
  br i1 %inside, label %read, label %join
read:
  %p = getelementptr i64, ptr %x, i64 %from
  %v = load i64, ptr %p
  store i64 0, ptr %p
  br label %join
join:
  %found = phi i64 [ %v, %read ], [ -7, %entry ]
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %found, ptr %q
  ret void
"""


@pytest.mark.parametrize("condition", ["slt i64 %from, %n", "sge i64 %from, %n", "ult i64 %from, %n"])
@pytest.mark.sample(2)
@pytest.mark.usefixtures("kept_programs")
def test_a_way_that_some_groups_take_as_a_whole(device: Device, separated: list[int], condition: str) -> None:
    threads = 4 * BLOCK
    parameters = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("shift", "i64")]
    for n, shift in [(threads, 0), (0, 0), (50, 0), (13, 1), (100, -20), (60, 20), (threads, 9)]:
        values = np.random.default_rng(n).integers(0, 1000, threads + 40)
        x, out = to_device(values), to_device(np.zeros(threads, np.int64))
        places = np.arange(threads) - shift
        inside = {
            "slt": places < n, "sge": places >= n, "ult": (places < n) & (places >= 0)
        }[condition[:3]]  # fmt: skip
        address = x.address + 8 * 20
        run(device, CHOICE.replace("CONDITION", condition), parameters, 4, (out.address, address, n, shift))
        np.testing.assert_array_equal(out.copy_to_host(), np.where(inside, values[places + 20], -7))
        expected = values.copy()
        expected[places[inside] + 20] = 0
        np.testing.assert_array_equal(x.copy_to_host(), expected)
    assert set(separated) == {1}


@pytest.mark.parametrize(
    ("condition", "is_moved"),
    [("slt i64 %from, %n", True), ("slt i64 %from, %n\n  %y = zext i1 %inside to i64", False)],
)
def test_masks_are_computed_where_lanes_part(
    device: Device, monkeypatch: pytest.MonkeyPatch, condition: str, is_moved: bool
) -> None:
    functions = []

    class Spy(gang_function.CoherentBranches):
        def __init__(self, function: Any, *rest: Any) -> None:
            super().__init__(function, *rest)
            functions.append(function)

    monkeypatch.setattr(gang_function, "CoherentBranches", Spy)
    body = CHOICE.replace("CONDITION", "slt i64 %from, %n")
    if not is_moved:
        body = body.replace("  br i1 %inside", "  %one = zext i1 %inside to i64\n  br i1 %inside")
        body = body.replace("store i64 %found", "%sum = add i64 %found, %one\n  store i64 %sum")
    values, out = to_device(np.arange(9, 137)), to_device(np.zeros(128, np.int64))
    parameters = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("shift", "i64")]
    run(device, body, parameters, 4, (out.address, values.address, 77, 0))
    i = np.arange(128)
    np.testing.assert_array_equal(out.copy_to_host(), np.where(i < 77, i + 9 + (not is_moved), -7))
    divergences = [block for one in functions for block in one.blocks if block.name.endswith(".divergence")]
    assert {block.terminator.operands[0] in block.instructions for block in divergences} == {is_moved}


TWICE = """
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %outer, label %join
outer:
  %row = phi i64 [ 0, %entry ], [ %row1, %latch ]
  %total = phi i64 [ 0, %entry ], [ %sum, %latch ]
  br label %inner
inner:
  %k = phi i64 [ %i, %outer ], [ %next, %inner ]
  %sum = phi i64 [ %total, %outer ], [ %more, %inner ]
  %p = getelementptr i64, ptr %x, i64 %k
  %v = load i64, ptr %p
  %old = atomicrmw add ptr %count, i64 %v monotonic
  %scaled = mul i64 %v, %row
  %more = add i64 %sum, %scaled
  %next = add nsw i64 %k, %step
  %again = icmp slt i64 %next, %m
  br i1 %again, label %inner, label %latch
latch:
  %row1 = add nsw i64 %row, 1
  %rows = icmp slt i64 %row1, 3
  br i1 %rows, label %outer, label %join
join:
  %found = phi i64 [ -1, %entry ], [ %sum, %latch ]
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %found, ptr %q
  ret void
"""


@pytest.mark.usefixtures("kept_programs")
def test_a_walk_inside_of_a_loop_inside_of_a_choice(device: Device, separated: list[int]) -> None:
    """A copy of a copy: atomic operations stay what they are, and values reach the reconvergence point."""
    threads = 2 * BLOCK
    parameters = [("out", "ptr"), ("count", "ptr"), ("x", "ptr"), ("n", "i64"), ("m", "i64"), ("step", "i64")]
    values = np.random.default_rng(5).integers(0, 1000, 300)
    for n, m in [(threads, 256), (threads, 200), (40, 250), (35, 31), (0, 256), (3, 300)]:
        x, out, count = to_device(values), to_device(np.zeros(threads, np.int64)), to_device(np.zeros(1, np.int64))
        run(device, TWICE, parameters, 2, (out.address, count.address, x.address, n, m, threads))
        expected, total = np.full(threads, -1), 0
        for thread in range(min(n, threads)):
            walked = values[thread : max(m, thread + 1) : threads].sum()
            last = values[thread : max(m, thread + 1) : threads][-1]
            expected[thread] = 3 * (walked - last)  # what is joined is the sum in front of the last round of each row
            total += 3 * walked
        np.testing.assert_array_equal(out.copy_to_host(), expected, f"n = {n}, m = {m}")
        assert count.copy_to_host()[0] == total
    assert min(separated) >= 2


FRAME = """
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %go, label %end
go:
  %p = getelementptr i64, ptr %out, i64 %i
  %shifted = add i64 %i, %by
  %is.first = icmp eq i64 %shifted, %bound
  %last = add i64 %n, -1
  %is.last = icmp eq i64 %i, %last
  %at.edge = or i1 %is.first, %is.last
  br i1 %at.edge, label %edge, label %inner
edge:
  store i64 -7, ptr %p
  br label %end
inner:
  %q = getelementptr i64, ptr %x, i64 %i
  %left = getelementptr i64, ptr %q, i64 -1
  %right = getelementptr i64, ptr %q, i64 1
  %before = load i64, ptr %left
  %behind = load i64, ptr %right
  %sum = add i64 %before, %behind
  store i64 %sum, ptr %p
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize(
    ("by", "bound"),
    [(0, 0), (-1, 0), (-13, 0), (5, 0), (-(1 << 63), 0), (-70, 0), ((1 << 63) - 30, (1 << 63) - 2), (0, -3), (7, 20)],
)
@pytest.mark.sample(2)
@pytest.mark.usefixtures("kept_programs")
def test_edges_that_equality_tells(device: Device, separated: list[int], by: int, bound: int) -> None:
    """The first and the last lane decide for all, unless the number wraps between them."""
    threads = 4 * BLOCK
    values = np.random.default_rng(3).integers(0, 1000, threads + 2)
    x = to_device(values)
    for n in (1, 2, 9, 16, 63, 64, 100, threads):
        out = to_device(np.zeros(threads, np.int64))
        parameters = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("by", "i64"), ("bound", "i64")]
        run(device, FRAME, parameters, 4, (out.address, x.address + 8, n, by, bound))
        expected = values[:n] + values[2 : n + 2]
        expected[[i for i in range(n) if (i + by - bound) % (1 << 64) == 0 or i == n - 1]] = -7
        np.testing.assert_array_equal(out.copy_to_host(), np.append(expected, np.zeros(threads - n, np.int64)))
    assert min(separated) == 1


UNTIL = """
  br label %loop
loop:
  %k = phi i64 [ %i, %entry ], [ %next, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %more, %loop ]
  %p = getelementptr i64, ptr %x, i64 %k
  %v = load i64, ptr %p
  %more = add i64 %sum, %v
  %next = add nuw nsw i64 %k, 1
  %ends = icmp eq i64 %next, %n
  br i1 %ends, label %done, label %loop
done:
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %more, ptr %q
  ret void
"""


@pytest.mark.usefixtures("kept_programs")
def test_lanes_that_end_at_one_number_go_together_until_the_first_is_there(
    device: Device, separated: list[int]
) -> None:
    threads = 2 * BLOCK
    for n in (threads, threads + 1, threads + 40):
        values = np.random.default_rng(n).integers(0, 1000, n)
        x, out = to_device(values), to_device(np.zeros(threads, np.int64))
        run(device, UNTIL, [("out", "ptr"), ("x", "ptr"), ("n", "i64")], 2, (out.address, x.address, n))
        np.testing.assert_array_equal(out.copy_to_host(), values.sum() - np.append(0, np.cumsum(values))[:threads])
    assert min(separated) == 1


ROWS = """
  {condition}
  br label %rows
rows:
  %y = phi i64 [ 0, %entry ], [ %below, %next.row ]
  %first = mul i64 %y, %pitch
  %row = getelementptr i64, ptr %x, i64 %first
  %below = add nuw nsw i64 %y, 1
  br i1 %inside, label %loop, label %next.row
loop:
  %k = phi i64 [ %i, %rows ], [ %next, %loop ]
  %p = getelementptr i64, ptr %row, i64 %k
  %v = load i64, ptr %p
  %more = add i64 %v, 1000
  store i64 %more, ptr %p
  %next = add nsw i64 %k, %step
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %next.row
next.row:
  %rest = icmp slt i64 %below, %height
  br i1 %rest, label %rows, label %end
end:
  ret void
"""
CONDITIONS = {
    "bound": "%inside = icmp slt i64 %i, %n",
    "both": "%left = icmp sge i64 %i, 3\n%right = icmp slt i64 %i, %n\n%inside = select i1 %left, i1 %right, i1 false",
    "data": "%at = getelementptr i64, ptr %x, i64 %i\n%seen = load i64, ptr %at\n%inside = icmp slt i64 %seen, 0",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("n", [0, 2, 8, 13, 63, 64, 65, 200])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_that_was_moved_out_of_a_loop(
    device: Device, separated: list[int], condition: str, n: int
) -> None:  # fmt: skip
    """Where it compares indices it is asked in the loop, and lanes walk along each row together."""
    threads, height, pitch = 2 * BLOCK, 3, 210
    values = np.random.default_rng(n).integers(-500, 500, (height, pitch))
    x = to_device(values)
    parameters = [("x", "ptr"), ("n", "i64"), ("step", "i64"), ("height", "i64"), ("pitch", "i64")]
    body = ROWS.replace("{condition}", CONDITIONS[condition])
    run(device, body, parameters, 2, (x.address, n, threads, height, pitch))
    index = np.arange(threads)
    inside = {"bound": index < n, "both": (index >= 3) & (index < n), "data": values[0, :threads] < 0}[condition]
    after = values.copy()
    for thread in index[inside]:
        walked = slice(thread, max(n, thread + 1), threads)
        after[:, walked] += 1000
    np.testing.assert_array_equal(x.copy_to_host(), after)
    assert separated == [0 if condition == "data" else 2]
