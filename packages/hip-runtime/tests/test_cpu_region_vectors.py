"""Kernels whose threads wait for each other, and run in gangs from one barrier to the next."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import spmd_programs
from llvmlite import ir
from spmd_blocks import kernel, launch
from spmd_programs import WithoutWaves, check_case

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes
from hip_runtime.drivers.cpu.vectorize import gang_function
from hip_runtime.errors import BarrierDivergenceError, KernelFault, UnsupportedError


@pytest.fixture
def lanes() -> Iterator[None]:
    """All regions that can be run so are run eight threads at a time."""
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(8):
        yield


# 4112 has a value that is live out of a loop that lanes leave in different iterations, through a phi with one edge.
@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [*range(100, 106), 4112])
def test_program_with_barriers(device: Device, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(spmd_programs, "Generator", WithoutWaves)
    width = random.Random(seed + 7).choice((2, 4, 8, 16, 32, 64))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        check_case(device, seed)


HISTOGRAM = """
  %s = call ptr @spmd.shared.s.1024.16(ptr %item)
  %wide = zext i32 %t to i64
  %own = getelementptr i32, ptr %s, i64 %wide
  store i32 0, ptr %own
  call void @spmd.barrier(ptr %item)
  br label %head
head:
  %k = phi i64 [ %wide, %entry ], [ %next, %count ]
  %in = icmp slt i64 %k, %n
  br i1 %in, label %count, label %end
count:
  %p = getelementptr i8, ptr %x, i64 %k
  %v = load i8, ptr %p
  %bin = zext i8 %v to i64
  %q = getelementptr i32, ptr %s, i64 %bin
  %old = atomicrmw add ptr %q, i32 1 monotonic
  %next = add i64 %k, 256
  br label %head
end:
  call void @spmd.barrier(ptr %item)
  %total = load i32, ptr %own
  %r = getelementptr i32, ptr %out, i64 %wide
  store i32 %total, ptr %r
  ret void
"""


@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
def test_threads_of_a_loop_between_barriers_run_side_by_side(device: Device, form: str) -> None:
    values = np.random.default_rng(1).integers(0, 256, 5000, np.uint8)
    x, out = to_device(values), to_device(np.zeros(256, np.int32))
    made = kernel(
        HISTOGRAM, [("out", "ptr"), ("x", "ptr"), ("n", "i64")], "declare ptr @spmd.shared.s.1024.16(ptr)\n",
        shared_bytes=1024,
    )  # fmt: skip
    with config.cpu_form.scope(form):
        function = launch(device, made, 1, 256, out.address, x.address, values.size)
    np.testing.assert_array_equal(out.copy_to_host(), np.bincount(values, minlength=256))
    assert (f"regions run {2 * default_lanes()} threads at a time" in function.form) == (form == "auto")
    assert (f"3 of 3 regions run {default_lanes()} or " in function.form) == (form == "vectors")


def test_nothing_stays_of_gangs_that_cannot_be_written(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    modules: list[ir.Module] = []

    def fail(code: gang_function.GangFunction, *_: Any) -> None:
        ir.Function(code.item.module, ir.FunctionType(ir.VoidType(), []), f"{code._options.name}.half")
        modules.append(code.item.module)
        raise UnsupportedError("there are no lanes today")

    monkeypatch.setattr(gang_function.GangFunction, "_write_not_full", fail)
    values = np.arange(5000).astype(np.uint8)
    x, out = to_device(values), to_device(np.zeros(256, np.int32))
    made = kernel(
        HISTOGRAM, [("out", "ptr"), ("x", "ptr"), ("n", "i64")], "declare ptr @spmd.shared.s.1024.16(ptr)\n",
        shared_bytes=1024,
    )  # fmt: skip
    with config.cpu_form.scope("vectors"):
        function = launch(device, made, 1, 256, out.address, x.address, values.size)
    np.testing.assert_array_equal(out.copy_to_host(), np.bincount(values, minlength=256))
    assert "there are no lanes today" in function.form
    assert len(modules) == 3
    assert not [name for module in modules for name in module.globals if name.startswith("spmd.gang")]


HALO = """
  %tile = call ptr @spmd.shared.tile.288.16(ptr %item)
  %before = mul i32 %b, 16
  %column = add i32 %before, %tx
  %width = add i32 %n, 2
  %begin = mul i32 %ty, %width
  %left.at = add i32 %begin, %column
  %at = add i32 %left.at, 1
  %own = getelementptr i32, ptr %x, i32 %at
  %v = load i32, ptr %own
  %slots = mul i32 %ty, 18
  %left.slot = add i32 %slots, %tx
  %slot = add i32 %left.slot, 1
  %right.slot = add i32 %left.slot, 2
  %place = getelementptr i32, ptr %tile, i32 %slot
  store i32 %v, ptr %place
  %is.first = icmp eq i32 %tx, 0
  br i1 %is.first, label %first.one, label %more
first.one:
  %left = getelementptr i32, ptr %x, i32 %left.at
  %v.left = load i32, ptr %left
  %place.left = getelementptr i32, ptr %tile, i32 %left.slot
  store i32 %v.left, ptr %place.left
  br label %more
more:
  %is.last = icmp eq i32 %tx, 15
  br i1 %is.last, label %last.one, label %all
last.one:
  %right.at = add i32 %at, 1
  %right = getelementptr i32, ptr %x, i32 %right.at
  %v.right = load i32, ptr %right
  %place.right = getelementptr i32, ptr %tile, i32 %right.slot
  store i32 %v.right, ptr %place.right
  br label %all
all:
  call void @spmd.barrier(ptr %item)
  %p.left = getelementptr i32, ptr %tile, i32 %left.slot
  %p.right = getelementptr i32, ptr %tile, i32 %right.slot
  %from.left = load i32, ptr %p.left
  %from.right = load i32, ptr %p.right
  %tripled = mul i32 %from.right, 3
  %sum = add i32 %from.left, %tripled
  %out.begin = mul i32 %ty, %n
  %out.at = add i32 %out.begin, %column
  %result = getelementptr i32, ptr %out, i32 %out.at
  store i32 %sum, ptr %result
  ret void
"""


@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
def test_threads_at_the_edges_load_the_halo_of_a_tile(device: Device, form: str) -> None:
    """Each takes one lane of a row that runs as a gang; what follows the barrier is left to LLVM."""
    values = np.random.default_rng(3).integers(0, 1 << 20, (4, 16 * 5 + 2), np.int32)
    x, out = to_device(values), to_device(np.zeros((4, 80), np.int32))
    made = kernel(
        HALO, [("out", "ptr"), ("x", "ptr"), ("n", "i32")], "declare ptr @spmd.shared.tile.288.16(ptr)\n",
        shared_bytes=288,
    )  # fmt: skip
    with config.cpu_form.scope(form), config.cpu_width.scope(16):
        function = launch(device, made, 5, (16, 4), out.address, x.address, 80)
    np.testing.assert_array_equal(out.copy_to_host(), values[:, :-2] + 3 * values[:, 2:])
    ran = {"auto": "1 of 2 regions run 16 threads", "vectors": "2 of 2 regions run 16 threads"}
    assert ran.get(form, "regions") in function.form, function.form
    assert ("regions run" in function.form) == (form != "regions")


SOMETIMES = """
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %latch ]
  %odd = and i32 %k, 1
  %wait = icmp eq i32 %odd, 1
  %ka = add i32 %k, %a
  %seen = mul i32 %ka, %ka
  br i1 %wait, label %sync, label %latch
sync:
  %slot = getelementptr i32, ptr %s, i32 %t
  store i32 %k, ptr %slot
  call void @spmd.barrier(ptr %item)
  br label %latch
latch:
  %p = getelementptr i32, ptr %out, i32 %t
  %v = load i32, ptr %p
  %twice = mul i32 %v, 3
  %sum = add i32 %twice, %seen
  store i32 %sum, ptr %p
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, %n
  br i1 %more, label %head, label %end
end:
  ret void
"""


@pytest.mark.usefixtures("lanes")
def test_a_value_is_that_of_its_round_whether_there_was_a_barrier_or_not(device: Device) -> None:
    """The latch is reached with the counter of this iteration, or after a barrier with a saved one."""
    out = to_device(np.zeros(20, np.int32))
    body = "  %s = call ptr @spmd.shared.s.4096.16(ptr %item)\n  %a = load i32, ptr %start\n" + SOMETIMES
    parameters = [("out", "ptr"), ("start", "ptr"), ("n", "i32")]
    made = kernel(body, parameters, "declare ptr @spmd.shared.s.4096.16(ptr)\n", shared_bytes=4096)
    function = launch(device, made, 1, 20, out.address, to_device(np.full(1, 5, np.int32)).address, 7)
    expected = 0
    for k in range(7):
        expected = expected * 3 + (k + 5) ** 2
    np.testing.assert_array_equal(out.copy_to_host(), np.full(20, expected))
    assert "2 of 2 regions run 8 threads at a time" in function.form


RETURNING = """
  %p = getelementptr i32, ptr %out, i32 %t
  %low = and i32 %t, 3
  %leaves = icmp eq i32 %low, %n
  br i1 %leaves, label %gone, label %stays
gone:
  store i32 -7, ptr %p
  ret void
stays:
  %c = call i32 @spmd.barrier_count(ptr %item, i1 true)
  %sum = add i32 %c, %t
  call void @spmd.barrier(ptr %item)
  store i32 %sum, ptr %p
  ret void
"""


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("n", [1, 9])
def test_lanes_that_returned_stay_away(device: Device, n: int) -> None:
    out = to_device(np.zeros(37, np.int32))
    launch(device, kernel(RETURNING, [("out", "ptr"), ("n", "i32")]), 1, 37, out.address, n)
    threads = np.arange(37)
    leaves = threads % 4 == n
    np.testing.assert_array_equal(out.copy_to_host(), np.where(leaves, -7, threads + (~leaves).sum()))


PRIVATE = """
  %a = alloca [4 x i32]
  %once = alloca [4 x i32]
  br label %fill
fill:
  %k = phi i32 [ 0, %entry ], [ %k1, %fill ]
  %v = mul i32 %k, %t
  %pa = getelementptr i32, ptr %a, i32 %k
  store i32 %v, ptr %pa
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, 4
  br i1 %more, label %fill, label %wait
wait:
  call void @spmd.barrier(ptr %item)
  %low = and i32 %t, 3
  %pr = getelementptr i32, ptr %a, i32 %low
  %po = getelementptr i32, ptr %once, i32 %low
  %r = load i32, ptr %pr
  %r1 = add i32 %r, 1
  store volatile i32 %r1, ptr %po
  %r2 = load volatile i32, ptr %po
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %r2, ptr %p
  ret void
"""


@pytest.mark.usefixtures("lanes")
def test_private_arrays_of_one_region_and_of_several(device: Device) -> None:
    out = to_device(np.zeros(60, np.int32))
    function = launch(device, kernel(PRIVATE, [("out", "ptr")]), 1, (20, 3), out.address)
    threads = np.arange(60)
    np.testing.assert_array_equal(out.copy_to_host(), (threads & 3) * threads + 1)
    assert "2 of 2 regions" in function.form


WIDE = """
  %p = getelementptr i64, ptr %out, i32 %t
  %v = load i64, ptr %p
  %once = mul i64 %v, 3
  store i64 %once, ptr %p
  call void @spmd.barrier(ptr %item)
  %w = sext i64 %once to i128
  %w1 = mul i128 %w, %w
  %w2 = lshr i128 %w1, 64
  %r = trunc i128 %w2 to i64
  store i64 %r, ptr %p
  ret void
"""


@pytest.mark.usefixtures("lanes")
def test_a_region_that_vectors_cannot_run_is_a_loop(device: Device) -> None:
    values = np.random.default_rng(2).integers(-(2**61), 2**61, 50)
    out = to_device(values)
    function = launch(device, kernel(WIDE, [("out", "ptr")]), 1, 50, out.address)
    expected = [(3 * int(value)) ** 2 >> 64 for value in values]
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert (
        "1 of 2 regions run 8 threads at a time; one cannot: vectors cannot hold values of type i128" in function.form
    )


APART = """
  %low = and i32 %t, 1
  %odd = icmp eq i32 %low, 1
  br i1 %odd, label %one, label %other
one:
  store i32 1, ptr %out
  call void @spmd.barrier(ptr %item)
  br label %end
other:
  store i32 2, ptr %out
  %c = call i32 @spmd.barrier_count(ptr %item, i1 true)
  br label %end
end:
  ret void
"""


@pytest.mark.usefixtures("lanes")
def test_lanes_that_wait_at_different_barriers_are_reported(device: Device) -> None:
    out = to_device(np.zeros(1, np.int32))
    with pytest.raises(BarrierDivergenceError) as caught:
        launch(device, kernel(APART, [("out", "ptr")]), 1, 64, out.address)
    assert (caught.value.kernel, caught.value.block) == ("k", (0, 0, 0))


ROWS = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %wide = zext i32 %t to i64
  %rows = mul i64 %wide, %n
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %head ]
  %sum = phi i32 [ 0, %entry ], [ %sum1, %head ]
  %place = add i64 %rows, %k
  %p = getelementptr i32, ptr %x, i64 %place
  %v = load i32, ptr %p
  %sum1 = add i32 %sum, %v
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %head, label %end
end:
  {wave}
  %slot = getelementptr i32, ptr %s, i64 %wide
  store i32 %total, ptr %slot
  call void @spmd.barrier(ptr %item)
  %mirror = xor i64 %wide, 1
  %other = getelementptr i32, ptr %s, i64 %mirror
  %found = load i32, ptr %other
  %q = getelementptr i32, ptr %out, i64 %wide
  store i32 %found, ptr %q
  ret void
"""


@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.parametrize("waves", [False, True])
@pytest.mark.sample(1)
def test_threads_that_go_along_rows_of_their_own_run_alone(device: Device, form: str, waves: bool) -> None:
    """LLVM makes vectors of the loop of one thread, where lanes would have to gather."""
    wave = "%from = xor i32 %t, 2\n  %total = call i32 @spmd.shuffle.i32(ptr %item, i32 %sum1, i32 %from)"
    body = ROWS.replace("{wave}", wave if waves else "%total = add i32 %sum1, 0")
    values = np.random.default_rng(4).integers(0, 99, (64, 33), np.int32)
    x, out = to_device(values), to_device(np.zeros(64, np.int32))
    declared = "declare ptr @spmd.shared.s.4096.16(ptr)\n"
    made = kernel(body, [("out", "ptr"), ("x", "ptr"), ("n", "i64")], declared, shared_bytes=4096)
    with config.cpu_form.scope(form):
        function = launch(device, made, 1, 64, out.address, x.address, 33)
    source = np.arange(64) ^ (3 if waves else 1)
    np.testing.assert_array_equal(out.copy_to_host(), values.sum(1)[source])
    assert ("are too far apart" in function.form) == (form == "auto")


CLAIMING = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %own = getelementptr i32, ptr %s, i32 %t
  store i32 -1, ptr %own
  call void @spmd.barrier(ptr %item)
  %six = mul i32 %t, 6
  br label %ask
ask:
  %k = phi i32 [ %six, %entry ], [ %k1, %ask ]
  %place = urem i32 %k, %threads
  %slot = getelementptr i32, ptr %s, i32 %place
  %pair = cmpxchg ptr %slot, i32 -1, i32 %t monotonic monotonic
  %has = extractvalue {i32, i1} %pair, 1
  %k1 = add i32 %k, 1
  br i1 %has, label %done, label %ask
done:
  call void @spmd.barrier(ptr %item)
  %v = load i32, ptr %own
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %v, ptr %p
  ret void
"""


def test_threads_that_look_elsewhere_run_side_by_side(device: Device) -> None:
    """Each claims the first free place from six times its number on, as in a hash table."""
    out = to_device(np.zeros(40, np.int32))
    declared = "declare ptr @spmd.shared.s.4096.16(ptr)\n"
    function = launch(device, kernel(CLAIMING, [("out", "ptr")], declared, shared_bytes=4096), 1, 40, out.address)
    np.testing.assert_array_equal(np.sort(out.copy_to_host()), np.arange(40))
    assert f"1 of 3 regions run {min(default_lanes(), 32)} threads at a time" in function.form
    assert "one cannot" not in function.form


def grid_of(device: Device, text: str, *values: Any) -> Any:
    made = kernel(text, [("out", "ptr"), ("n", "i32")], "declare void @spmd.grid_barrier(ptr) convergent\n")
    return launch(device, made, 4, 64, *values, cooperative=True)


@pytest.mark.usefixtures("lanes")
def test_kernel_that_waits_for_the_grid(device: Device) -> None:
    body = """
  %p = getelementptr i32, ptr %out, i32 %i
  %mine = mul i32 %i, %n
  store i32 %mine, ptr %p
  call void @spmd.grid_barrier(ptr %item)
  %mirror = sub i32 255, %i
  %q = getelementptr i32, ptr %out, i32 %mirror
  %v = load i32, ptr %q
  call void @spmd.grid_barrier(ptr %item)
  %r = add i32 %v, %mine
  store i32 %r, ptr %p
  ret void
"""
    out = to_device(np.zeros(256, np.int32))
    function = grid_of(device, body, out.address, 3)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(256, 255 * 3))
    assert "3 of 3 regions" in function.form


HALVING = """
  %p = getelementptr i32, ptr %out, i32 %t
  %slot = getelementptr i32, ptr %s, i32 %t
  %own = load i32, ptr %p
  store i32 %own, ptr %slot
  call void @spmd.barrier(ptr %item)
  br label %head
head:
  %h = phi i32 [ %start, %entry ], [ %h1, %latch ]
  %in = icmp ult i32 %t, %h
  br i1 %in, label %add, label %latch
add:
  %far = add i32 %t, %h
  %other = getelementptr i32, ptr %s, i32 %far
  %a = load i32, ptr %slot
  %more.of = load i32, ptr %other
  %c = add i32 %a, %more.of
  store i32 %c, ptr %slot
  br label %latch
latch:
  call void @spmd.barrier(ptr %item)
  %h1 = lshr i32 %h, 1
  %more = icmp ne i32 %h1, 0
  br i1 %more, label %head, label %end
end:
  %sum = load i32, ptr %s
  store i32 %sum, ptr %p
  ret void
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
@pytest.mark.parametrize("known", [True, False])
def test_loop_of_barriers_is_written_out_where_its_rounds_are_known(device: Device, form: str, known: bool) -> None:
    """Half the threads of a block, which is known when it is launched, or a number that is read."""
    start = "%half = lshr i32 %dx, 1\n  %start = add i32 %half, 0" if known else "%start = load i32, ptr %from"
    body = f"  %s = call ptr @spmd.shared.s.4096.16(ptr %item)\n  {start}\n{HALVING}"
    values = np.random.default_rng(3).integers(-(2**20), 2**20, 128, np.int32)
    out = to_device(values)
    declared = "declare ptr @spmd.shared.s.4096.16(ptr)\n"
    made = kernel(body, [("out", "ptr"), ("from", "ptr")], declared, shared_bytes=4096)
    with config.cpu_form.scope(form):
        function = launch(device, made, 1, 128, out.address, to_device(np.full(1, 64, np.int32)).address)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(128, values.sum()))
    if form == "vectors":  # the first region, one for each of 7 rounds or two for all of them, and the last
        assert f"{9 if known else 3} of {9 if known else 3} regions" in function.form


# waves


def run_wave(device: Device, body: str, threads: Any, wave_size: int = 32, functions: str = "") -> tuple[Any, str]:
    """What *body* leaves in ``%r`` for each thread of a block, and the form of the code."""
    text = (
        "  %lane = call i32 @spmd.lane(ptr %item)\n"
        + body
        + "  %p = getelementptr i64, ptr %out, i32 %t\n  store i64 %r, ptr %p\n  ret void\n"
    )
    out = to_device(np.full(int(np.prod(threads)), -1, np.int64))
    function = launch(device, kernel(text, [("out", "ptr")], functions, wave_size=wave_size), 1, threads, out.address)
    return out.copy_to_host(), function.form


SHUFFLE = """
  %w = call i32 @spmd.wave_size(ptr %item)
  {source}
  %ten = mul i32 %t, 10
  %v = zext i32 %ten to i64
  %r = call i64 @spmd.shuffle.i64(ptr %item, i64 %v, i32 %from)
"""


@pytest.mark.sample(5)
@pytest.mark.parametrize(("wave_size", "shape"), [(32, (50, 1, 1)), (64, (128, 1, 1)), (64, (9, 5, 3))])
@pytest.mark.parametrize(
    ("source", "model"),
    [
        ("%from = xor i32 %lane, 5", lambda lane: lane ^ 5),
        ("%from = sub i32 %lane, 3", lambda lane: lane - 3),
        ("%j = and i32 %lane, 56\n %o = add i32 %lane, 3\n %c = icmp ult i32 %o, 40\n"
         "%from = select i1 %c, i32 %o, i32 %j", lambda lane: np.where(lane + 3 < 40, lane + 3, lane & 56)),
        ("%from = add i32 0, 7", lambda lane: 7 + 0 * lane),
        ("%from = add i32 0, 99", lambda lane: 99 + 0 * lane),
        ("%o = call i32 @spmd.block_idx.x(ptr %item)\n %from = add i32 %o, 4", lambda lane: 4 + 0 * lane),
        ("%e = mul i32 %t, %t\n %from = and i32 %e, 127", lambda lane: lane * lane & 127),
    ],
    ids=["exchange", "up", "chosen", "broadcast", "nowhere", "one", "anywhere"],
)  # fmt: skip
def test_shuffle_in_a_register(
    device: Device, wave_size: int, shape: tuple[int, int, int], source: str, model: Any
) -> None:
    found, form = run_wave(device, SHUFFLE.format(source=source), shape, wave_size)
    threads = int(np.prod(shape))
    t = np.arange(threads)
    lane, first = t % wave_size, t - t % wave_size
    source_lane = model(lane) if "%t" not in source else t * t & 127
    exists = (source_lane >= 0) & (source_lane < wave_size) & (first + source_lane < threads)
    np.testing.assert_array_equal(found, 10 * np.where(exists, first + source_lane, t))
    assert f"1 of 1 regions run {wave_size} threads at a time" in form


PARTED = """
  %low = and i32 %t, 3
  %mine = icmp eq i32 %low, 1
  br i1 %mine, label %some, label %others
some:
  %active = call i64 @spmd.active_lanes(ptr %item)
  %next = add i32 %lane, {step}
  %half = lshr i32 %lane, 2
  %even = trunc i32 %half to i1
  %votes = call i64 @spmd.ballot(ptr %item, i1 %even)
  %x = xor i64 %active, %votes
  %v = zext i32 %t to i64
  %moved = call i64 @spmd.shuffle.i64(ptr %item, i64 %v, i32 %next)
  %y = mul i64 %moved, 4294967296
  %z = add i64 %x, %y
  br label %end
others:
  br label %end
end:
  %s = phi i64 [ %z, %some ], [ 0, %others ]
  %all = call i64 @spmd.active_lanes(ptr %item)
  %r = add i64 %s, %all
"""


@pytest.mark.parametrize("step", [4, 1, "%low"])
def test_lanes_of_another_way_are_not_active(device: Device, step: int | str) -> None:
    found, form = run_wave(device, PARTED.format(step=step), 45)
    expected = []
    for t in range(45):
        first, lane = t & ~31, t & 31
        lanes = range(min(32, 45 - first))
        active = sum(1 << n for n in lanes if n & 3 == 1)
        votes = sum(1 << n for n in lanes if n & 3 == 1 and n >> 2 & 1)
        source = lane + (1 if step == "%low" else int(step))
        moved = first + source if active >> source & 1 and source < 32 else t
        own = (active ^ votes) + (moved << 32) if t & 3 == 1 else 0
        expected.append(own + sum(1 << n for n in lanes))
    np.testing.assert_array_equal(found, expected)
    assert "1 of 1 regions run 32 threads at a time" in form


SEVERAL_ROWS = """
  %c = call i32 @spmd.barrier_count(ptr %item, i1 true)
  %odd = and i32 %ty, 1
  %in = icmp eq i32 %odd, 1
  br i1 %in, label %some, label %end
some:
  %from = xor i32 %lane, 1
  %neighbour = call i32 @spmd.shuffle.i32(ptr %item, i32 %tx, i32 %from)
  %bad = icmp eq i32 %t, %n
  br i1 %bad, label %fault, label %end
fault:
  call void @spmd.fault(ptr %item, i32 7)
  ret void
end:
  %x = phi i32 [ %tx, %entry ], [ %neighbour, %some ]
  %hundred = mul i32 %x, 100
  %ten = mul i32 %ty, 10
  %xy = add i32 %hundred, %ten
  %xyz = add i32 %xy, %tz
  %thousands = mul i32 %c, 10000
  %sum = add i32 %thousands, %xyz
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %sum, ptr %p
  ret void
"""


@pytest.mark.parametrize("form", ["auto", "vectors"])
def test_waves_of_several_rows(device: Device, form: str) -> None:
    """Lanes are formed by the linear index of threads; each has its own indices, also when it faults."""
    made = kernel("  %lane = call i32 @spmd.lane(ptr %item)\n" + SEVERAL_ROWS, [("out", "ptr"), ("n", "i32")])
    out = to_device(np.zeros((2, 3, 6), np.int32))
    with config.cpu_form.scope(form):
        function = launch(device, made, 1, (6, 3, 2), out.address, -1)
        z, y, x = np.indices((2, 3, 6))
        source = np.where(y == 1, x ^ 1, x)
        np.testing.assert_array_equal(out.copy_to_host(), 360000 + 100 * source + 10 * y + z)
        assert f"{1 if form == 'auto' else 2} of 2 regions run 64 threads at a time" in function.form
        with pytest.raises(KernelFault) as caught:
            launch(device, made, 1, (6, 3, 2), out.address, 18 + 6 + 4)
        assert (caught.value.code, caught.value.thread) == (7, (4, 1, 1))


WIDE_SHUFFLE = """
  %from = xor i32 %lane, 1
  %ten = mul i32 %t, 1000000000
  %v = zext i32 %ten to i64
  %moved = call i64 @spmd.shuffle.i64(ptr %item, i64 %v, i32 %from)
  %w1 = mul i64 %moved, 1000000
  %w2 = sext i64 %w1 to i128
  %w3 = mul i128 %w2, %w2
  %w4 = lshr i128 %w3, 64
  %r = trunc i128 %w4 to i64
"""


def test_waves_that_vectors_cannot_run_are_threads(device: Device) -> None:
    found, form = run_wave(device, WIDE_SHUFFLE, 4)
    np.testing.assert_array_equal(found, [((t ^ 1) * 10**15) ** 2 >> 64 for t in range(4)])
    assert "waves are not gangs: vectors cannot hold values of type i128" in form
