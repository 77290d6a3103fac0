"""Code for other processors than the one that the tests run on: with fewer, and with shorter registers."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from other_processors import as_processor, needs_x86
from spmd_blocks import kernel, launch
from spmd_kernels import GLOBAL_X, code, pack
from spmd_programs import check_case
from test_cpu_appended_stores import append
from test_cpu_coarsening import PLAIN, multiply
from test_cpu_integer_division import divide, operands
from test_cpu_linear_masks import ENDS, PREDICATES
from test_cpu_linear_masks import check as check_linear_masks
from test_cpu_long_conversions import FLOATS, check_consecutive, check_floats, check_integers
from test_cpu_neighbours import check as check_neighbours
from test_cpu_neighbours import check_clamped, swapped
from test_cpu_page_loads import behind_a_guard, bounded, check_bounds, marked, search
from test_cpu_register_pressure import lanes_of
from test_cpu_row_crossing import PARAMETERS as CROSSING_PARAMETERS
from test_cpu_row_crossing import write_kernel as write_crossing_kernel
from test_cpu_row_loops import COUNTS, TYPES, count_rows
from test_cpu_strided import before_a_guard

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.abi.worker import run_threads
from hip_runtime.drivers.cpu.analyses import instruction_costs
from hip_runtime.drivers.cpu.finalise import finalise_kernel, list_kernel
from hip_runtime.drivers.cpu.strategies import vector
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes
from hip_runtime.drivers.cpu.vectorize import memory_accesses, table_growth

pytestmark = needs_x86


@pytest.fixture(params=["x86-64", "haswell"], autouse=True)
def processor(request: pytest.FixtureRequest) -> Iterator[str]:
    with as_processor(request.param) as name:
        yield name


def test_lanes_fit_registers(processor: str) -> None:
    assert default_lanes() == {"x86-64": 8, "haswell": 16}[processor]


def test_regions_in_which_some_threads_work_run_in_gangs(device: Device) -> None:
    """LLVM vectorises a loop over threads with a branch for processors with masks only."""
    body = """
  %wide = zext i32 %t to i64
  %own = getelementptr float, ptr %x, i64 %wide
  %seen = load volatile float, ptr %own
  call void @spmd.barrier(ptr %item)
  %few = icmp ult i32 %t, 20
  br i1 %few, label %do, label %out
do:
  %v = load float, ptr %own
  %twice = fmul float %v, 2.0
  store float %twice, ptr %own
  br label %out
out:
  ret void
"""
    values = np.arange(64, dtype=np.float32)
    x = to_device(values, device=device)
    function = device.load(kernel(body, [("x", "ptr")])).function("k")
    function.launch(1, 64, pack(function.kernel, x.address))
    np.testing.assert_array_equal(x.copy_to_host(), np.where(values < 20, 2 * values, values))
    assert "2 of 2 regions run" in str(function.form), function.form


def test_rows_that_run_at_once_fit_registers(device: Device) -> None:
    """Four rows of twice the default number of lanes would fill sixteen registers with sums."""
    found, a, b, form = multiply(device, PLAIN.replace("BREAK", "false"), (64, 8), None)
    np.testing.assert_array_equal(found, a @ b)
    assert lanes_of(form) == 4 * default_lanes()


def test_rows_and_columns_in_steps_of_the_grid_are_found_once_for_a_gang(device: Device) -> None:
    """Some lanes leave the loop before the others, and then each divides: that happens once, at its end."""
    text = f"""
    define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr noalias %of_row, i64 %columns, i64 %size) {{
    entry:
    {GLOBAL_X}
      %blocks32 = call i32 @spmd.grid_dim.x(ptr %item)
      %blocks = zext i32 %blocks32 to i64
      %threads = mul nuw nsw i64 %blocks, %d
      %in = icmp slt i64 %i, %size
      br i1 %in, label %loop, label %end
    loop:
      %at = phi i64 [ %i, %entry ], [ %next, %loop ]
      %row = udiv i64 %at, %columns
      %column = urem i64 %at, %columns
      %pr = getelementptr float, ptr %of_row, i64 %row
      %by = load float, ptr %pr
      %px = getelementptr float, ptr %x, i64 %column
      %v = load float, ptr %px
      %sum = fadd float %v, %by
      %po = getelementptr float, ptr %out, i64 %at
      store float %sum, ptr %po
      %next = add nuw nsw i64 %at, %threads
      %again = icmp slt i64 %next, %size
      br i1 %again, label %loop, label %end
    end:
      ret void
    }}"""
    parameters = [("out", "ptr"), ("x", "ptr"), ("of_row", "ptr"), ("columns", "i64"), ("size", "i64")]
    rows, columns = 43, 101
    values, by_row = np.arange(columns, dtype=np.float32), 1000 * np.arange(rows, dtype=np.float32)
    x, of_row, out = to_device(values), to_device(by_row), to_device(np.zeros((rows, columns), np.float32))
    function = device.load(code(text, "k", parameters)).function("k")
    passed = pack(function.kernel, out.address, x.address, of_row.address, columns, rows * columns)
    function.launch(3, 128, passed)
    np.testing.assert_array_equal(out.copy_to_host(), values + by_row[:, None])
    assert "threads at a time" in str(function.form), function.form


def test_a_branch_on_what_a_loop_does_not_change_is_taken_out_of_it(device: Device) -> None:
    """Then LLVM makes vectors of a row, and the threads of rows need not be lanes, for which these are apart."""
    steps = "\n".join(f"%v{step + 1} = fmul float %v{step}, %v0" for step in range(30))
    text = f"""
    define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %rows, i64 %columns) {{
    entry:
    {GLOBAL_X}
      %in = icmp slt i64 %i, %rows
      %first = mul nsw i64 %i, %columns
      br label %loop
    loop:
      %j = phi i64 [ 0, %entry ], [ %next, %joined ]
      br i1 %in, label %do, label %joined
    do:
      %at = add nsw i64 %first, %j
      %px = getelementptr float, ptr %x, i64 %at
      %v0 = load float, ptr %px
      {steps}
      %po = getelementptr float, ptr %out, i64 %at
      store float %v30, ptr %po
      br label %joined
    joined:
      %next = add nuw nsw i64 %j, 1
      %again = icmp slt i64 %next, %columns
      br i1 %again, label %loop, label %end
    end:
      ret void
    }}"""
    values = np.random.default_rng(4).choice([-1, 0, 1], (70, 130)).astype(np.float32)
    x, out = to_device(values), to_device(np.full_like(values, 9))
    made = code(text, "k", [("out", "ptr"), ("x", "ptr"), ("rows", "i64"), ("columns", "i64")])
    function = device.load(made).function("k")
    function.launch(2, 64, pack(function.kernel, out.address, x.address, *values.shape))
    np.testing.assert_array_equal(out.copy_to_host(), values)
    assert "loop" in str(function.form), function.form


@pytest.mark.usefixtures("kept_programs")
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_masks_of_more_than_a_register_stay_in_memory(device: Device, processor: str, width: int) -> None:
    """In each iteration lanes find what they look for, and leave."""
    rows, columns = 23, 640
    values = (np.random.default_rng(width).random((rows, columns)) < 0.1).astype(np.uint8)
    out, x = to_device(np.full(columns, -1)), to_device(values)
    made = search()
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(made).function("k")
        function.launch(5, 128, pack(function.kernel, out.address, x.address, rows, columns))
        optimised, _ = list_kernel(made, made.kernels[0], (128, 1, 1))
    np.testing.assert_array_equal(out.copy_to_host(), np.where(values.any(axis=0), values.argmax(axis=0), rows))
    most = {"x86-64": 16, "haswell": 32}[processor]
    assert (f"load volatile <{width} x i8>" in optimised) == (width > most)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_program(device: Device, seed: int) -> None:
    with config.cpu_form.scope("vectors"):
        check_case(device, seed, bounds=True)


@pytest.mark.parametrize("threads", [7, 13, 30])
@pytest.mark.sample(2)
def test_addresses_that_are_kept_under_a_mask(device: Device, threads: int) -> None:
    """LLVM takes them to be better aligned than they are, where the processor has no masks."""
    body = """
  %wide = zext i32 %t to i64
  %p = getelementptr i64, ptr %places, i64 %wide
  %number = load i64, ptr %p
  %place = getelementptr i64, ptr %out, i64 %number
  %own = getelementptr i64, ptr %x, i64 %wide
  %v = load i64, ptr %own
  %before = load i64, ptr %place
  call void @spmd.barrier(ptr %item)
  %sum = add i64 %v, %before
  store i64 %sum, ptr %place
  ret void
"""
    order = np.random.default_rng(threads).permutation(threads)
    x, out = to_device(np.arange(threads)), to_device(np.full(threads, 100))
    places = to_device(order)
    with config.cpu_form.scope("vectors"):
        function = device.load(kernel(body, [("out", "ptr"), ("places", "ptr"), ("x", "ptr")])).function("k")
        function.launch(1, threads, pack(function.kernel, out.address, places.address, x.address))
    expected = np.zeros(threads, np.int64)
    expected[order] = np.arange(threads) + 100
    np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, np.int64])
def test_sum_of_neighbours(device: Device, kind: Any) -> None:
    """A whole vector of each kind, the last ones under a mask."""
    name = {np.float32: "float", np.float64: "double", np.int8: "i8", np.int64: "i64"}[kind]
    add = "fadd" if "f" in np.dtype(kind).kind else "add"
    text = f"""
    define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
    entry:
    {GLOBAL_X}
      %in = icmp slt i64 %i, %n
      br i1 %in, label %do, label %end
    do:
      %p = getelementptr {name}, ptr %x, i64 %i
      %a = load {name}, ptr %p
      %r = getelementptr {name}, ptr %p, i64 1
      %c = load {name}, ptr %r
      %sum = {add} {name} %a, %c
      %q = getelementptr {name}, ptr %out, i64 %i
      store {name} %sum, ptr %q
      br label %end
    end:
      ret void
    }}"""
    values = np.arange(102).astype(kind)
    x, out = to_device(values), to_device(np.full(128, 7, kind))
    function = device.load(code(text, "k", [("out", "ptr"), ("x", "ptr"), ("n", "i64")])).function("k")
    function.launch(2, 64, pack(function.kernel, out.address, x.address, 101))
    found = out.copy_to_host()
    np.testing.assert_array_equal(found[:101], values[:-1] + values[1:])
    assert (found[101:] == 7).all()


@pytest.mark.parametrize(("kind", "operation"), [
    ("i8", "add"), ("i16", "umin"), ("i32", "max"), ("i64", "min"), ("float", "fadd"), ("double", "fmax"),
])  # fmt: skip
@pytest.mark.sample(2)
def test_atomic_operations_in_tables(
    device: Device, monkeypatch: pytest.MonkeyPatch, kind: str, operation: str
) -> None:  # fmt: skip
    monkeypatch.setattr(table_growth, "_ELEMENTS_PER_MISS", 1 << 20)
    names = {"i8": np.int8, "i16": np.uint16, "i32": np.int32, "i64": np.int64, "float": np.float32}
    dtype, update = names.get(kind, np.float64), {"add": np.add, "fadd": np.add, "umin": np.minimum, "min": np.minimum}
    body = f"""
      %pb = getelementptr i32, ptr %bins, i32 %i
      %bin = load i32, ptr %pb
      %pv = getelementptr {kind}, ptr %values, i32 %i
      %v = load {kind}, ptr %pv
      %place = getelementptr {kind}, ptr %found, i32 %bin
      atomicrmw {operation} ptr %place, {kind} %v monotonic
      %odd = trunc i32 %bin to i1
      br i1 %odd, label %again, label %end
    again:
      atomicrmw {operation} ptr %place, {kind} %v monotonic
      br label %end
    end:
      ret void
    """
    random = np.random.default_rng(7)
    bins = random.integers(0, 50, 2000).astype(np.int32)
    values, before = random.integers(0, 60, 2000).astype(dtype), random.integers(0, 60, 50).astype(dtype)
    there = [to_device(array) for array in (before, bins, values)]
    with config.cpu_form.scope("vectors"):
        made = kernel(body, [("found", "ptr"), ("bins", "ptr"), ("values", "ptr")])
        launch(device, made, 20, 100, *(array.address for array in there))
    for chosen in (bins >= 0, bins % 2 == 1):
        update.get(operation, np.maximum).at(before, bins[chosen], values[chosen])
    np.testing.assert_array_equal(there[0].copy_to_host(), before)


def test_compare_and_swap_of_some_lanes(device: Device) -> None:
    body = """
      %pb = getelementptr i32, ptr %bins, i32 %i
      %bin = load i32, ptr %pb
      %taken = icmp sge i32 %bin, 0
      br i1 %taken, label %in, label %end
    in:
      %place = getelementptr i32, ptr %found, i32 %bin
      %pair = cmpxchg ptr %place, i32 -1, i32 %i monotonic monotonic
      %won = extractvalue { i32, i1 } %pair, 1
      %one = zext i1 %won to i32
      store i32 %one, ptr %pb
      br label %end
    end:
      ret void
    """
    bins = np.random.default_rng(8).integers(-9, 50, 2000).astype(np.int32)
    found, won = to_device(np.full(50, -1, np.int32)), to_device(bins)
    with config.cpu_form.scope("vectors"):
        launch(device, kernel(body, [("found", "ptr"), ("bins", "ptr")]), 20, 100, found.address, won.address)
    winners = found.copy_to_host()
    np.testing.assert_array_equal(bins[winners], np.arange(50))
    expected = np.where(bins < 0, bins, np.isin(np.arange(2000), winners))
    np.testing.assert_array_equal(won.copy_to_host(), expected)


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.sample(3)
def test_lanes_beyond_a_bound(device: Device, predicate: str, kind: str) -> None:
    """Masks of consecutive numbers, where masks have no registers of their own."""
    check_linear_masks(device, predicate, kind, (8, 16, 32))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.sample(2)
def test_conversions_of_64_bits(device: Device, kind: str, masked: bool) -> None:
    with config.cpu_form.scope("vectors"):
        for conversion in ("sitofp", "uitofp"):
            check_integers(device, conversion, kind, masked)
            check_consecutive(device, conversion, kind)
        for conversion in ("fptosi", "saturating"):
            check_floats(device, conversion, kind, masked)


@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize("bits", [51, 54, 64])
@pytest.mark.sample(3)
def test_quotients_of_64_bits(device: Device, bits: int, sign: str) -> None:
    a, b = operands("i64", sign, 1 << bits)
    divide(device, "i64", sign, 8, a, b)


@pytest.mark.parametrize("kind", ["i8", "i32", "float", "double", "i64"])
@pytest.mark.parametrize("width", [4, 8, 32])
@pytest.mark.sample(4)
def test_chosen_numbers(
    device: Device, processor: str, monkeypatch: pytest.MonkeyPatch, kind: str, width: int
) -> None:  # fmt: skip
    """AVX2 puts the words of a register in any order: those that are stored first."""
    packed: list[bool] = []
    write = memory_accesses.write_appended
    monkeypatch.setattr(memory_accesses, "write_appended", lambda *all: packed.append(True) or write(*all))
    for limit in (0, 1, 37, 500, 900, 1000):
        append(device, kind, "i32", width, 5, limit)
    append(device, kind, "i64", width, -30, 500)
    nbytes = {"i8": 1, "i32": 4, "float": 4}.get(kind, 8)
    assert bool(packed) == (processor == "haswell" and nbytes >= 4 and nbytes * width >= 32)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(2)
def test_rows_of_lanes(device: Device, kind: str) -> None:
    assert count_rows(device, kind, COUNTS["up"]) == 1


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(1)
def test_neighbours_apart(device: Device, kind: str, masked: bool) -> None:
    for count in (2, 3, 4):
        check_neighbours(device, kind, swapped(count), masked)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.sample(2)
def test_neighbours_within_limits(device: Device, kind: str, masked: bool) -> None:
    for taps in (2, 4):
        check_clamped(device, kind, taps, masked)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.usefixtures("kept_programs")
@pytest.mark.sample(6)
def test_lanes_apart_under_a_mask(device: Device, kind: str) -> None:
    """Those that are not active access nothing: their places are no addresses."""
    body = f"""
      %pp = getelementptr i64, ptr %places, i32 %i
      %place = load i64, ptr %pp
      %active = icmp ne i64 %place, -1
      br i1 %active, label %do, label %end
    do:
      %from = getelementptr {kind}, ptr %x, i64 %place
      %v = load {kind}, ptr %from
      %odd = and i64 %place, 1
      %some = icmp eq i64 %odd, 0
      br i1 %some, label %even, label %end
    even:
      %to = getelementptr {kind}, ptr %out, i64 %place
      store {kind} %v, ptr %to
      br label %end
    end:
      ret void
    """
    made = kernel(body, [("out", "ptr"), ("places", "ptr"), ("x", "ptr")])
    random = np.random.default_rng(11)
    for share in (1.0, 0.5, 0.02):
        places = np.where(random.random(200) < share, random.permutation(200), -1)
        values = random.integers(1, 100, 200).astype(TYPES[kind])
        x, out = to_device(values), to_device(np.zeros(200, TYPES[kind]))
        there = to_device(places)
        with config.cpu_form.scope("vectors"):
            launch(device, made, 2, 100, out.address, there.address, x.address)
        expected = np.zeros(200, TYPES[kind])
        moved = places[(places >= 0) & (places % 2 == 0)]
        expected[moved] = values[moved]
        np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_gathers_under_a_mask_have_no_branches(processor: str) -> None:
    """LLVM would make one of each lane, as the processor has no masks."""
    body = """
      %wide = zext i32 %i to i64
      %pb = getelementptr i8, ptr %wanted, i64 %wide
      %w = load i8, ptr %pb
      %pp = getelementptr i64, ptr %places, i64 %wide
      %place = load i64, ptr %pp
      %active = icmp ne i8 %w, 0
      br i1 %active, label %do, label %end
    do:
      %from = getelementptr float, ptr %x, i64 %place
      %v = load float, ptr %from
      %to = getelementptr float, ptr %out, i64 %place
      store float %v, ptr %to
      br label %end
    end:
      ret void
    """
    made = kernel(body, [("out", "ptr"), ("wanted", "ptr"), ("places", "ptr"), ("x", "ptr")])
    with config.cpu_form.scope("vectors"):
        text, _ = list_kernel(made, made.kernels[0], (128, 1, 1))
    assert "masked.gather" not in text
    assert "masked.scatter" not in text
    assert text.count("store float") > default_lanes()


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "double"])
@pytest.mark.usefixtures("kept_programs")
@pytest.mark.sample(4)
def test_neighbours_under_a_mask_of_data(device: Device, processor: str, kind: str) -> None:
    """What the processor cannot access under a mask is accessed apart, without branches; nothing of other lanes is."""
    made = marked(kind)
    dtype = TYPES[kind]
    for share in (1.0, 0.5, 0.02):
        flags = np.random.default_rng(12).random(200) < share
        flags[190:] = False
        values = np.arange(200).astype(dtype)
        out, there = to_device(np.full(200, 9, dtype)), to_device(flags.astype(np.uint8))
        with config.cpu_form.scope("vectors"), before_a_guard(190 * values.itemsize) as place:
            ctypes.memmove(place, values.ctypes.data, 190 * values.itemsize)
            launch(device, made, 2, 100, out.address, there.address, place)
        np.testing.assert_array_equal(out.copy_to_host(), np.where(flags, values, 9))
    with config.cpu_form.scope("vectors"):
        optimised, _ = list_kernel(made, made.kernels[0], (128, 1, 1))
    assert ("llvm.masked" in optimised) == (processor == "haswell" and kind in ("i32", "double"))


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.sample(2)
def test_lengths_of_blocks_share_code_unless_steps_are_in_registers(device: Device, shift: int) -> None:
    """All regions run in gangs, as LLVM makes no vectors of their branches. Where lanes read elements of other lanes,
    these can stay in registers if the number of threads is known."""
    body = f"""
      %wide = zext nneg i32 %tx to i64
      %wide.b = zext nneg i32 %b to i64
      %wide.d = zext nneg i32 %dx to i64
      %first.b = mul i64 %wide.b, %wide.d
      %wide.i = add i64 %first.b, %wide
      %s = call ptr @spmd.shared.s.256.16(ptr %item)
      %u = call ptr @spmd.shared.u.256.16(ptr %item)
      %own = getelementptr float, ptr %s, i64 %wide
      %other = getelementptr float, ptr %u, i64 %wide
      %first.in = icmp ult i32 %tx, 61
      br i1 %first.in, label %fill, label %wait
    fill:
      %px = getelementptr float, ptr %x, i64 %wide.i
      %v = load float, ptr %px
      store float %v, ptr %own
      br label %wait
    wait:
      call void @spmd.barrier(ptr %item)
      %in = icmp ult i32 %tx, 60
      br i1 %in, label %step, label %wait.again
    step:
      %next = getelementptr float, ptr %own, i32 {shift}
      %one = load float, ptr %own
      %two = load float, ptr %next
      %sum = fadd float %one, %two
      store float %sum, ptr %other
      br label %wait.again
    wait.again:
      call void @spmd.barrier(ptr %item)
      br i1 %in, label %end, label %out
    end:
      %w = load float, ptr %other
      %po = getelementptr float, ptr %found, i64 %wide.i
      store float %w, ptr %po
      br label %out
    out:
      ret void
    """
    shared = "declare ptr @spmd.shared.s.256.16(ptr)\ndeclare ptr @spmd.shared.u.256.16(ptr)\n"
    made = kernel(body, [("found", "ptr"), ("x", "ptr")], functions=shared, shared_bytes=512)
    x, found = to_device(np.arange(128, dtype=np.float32)), to_device(np.zeros(128, np.float32))
    launch(device, made, 2, 64, found.address, x.address)
    expected = np.zeros((2, 64), np.float32)
    rows = np.arange(128, dtype=np.float32).reshape(2, 64)
    expected[:, :60] = rows[:, :60] + rows[:, shift : 60 + shift]
    np.testing.assert_array_equal(found.copy_to_host(), expected.ravel())
    lengths = finalise_kernel(made, made.kernels[0], (64, 1, 1)).lengths
    assert (lengths is None) == bool(shift)


MERGE = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, ptr %starts) {{
entry:
{GLOBAL_X}
  %p = getelementptr i64, ptr %starts, i64 %i
  %first = load i64, ptr %p
  %p1 = getelementptr i64, ptr %p, i64 1
  %middle = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %p, i64 2
  %last = load i64, ptr %p2
  br label %loop
loop:
  %j = phi i64 [ %first, %entry ], [ %j.next, %step ]
  %k = phi i64 [ %middle, %entry ], [ %k.next, %step ]
  %count = phi i64 [ 0, %entry ], [ %more, %step ]
  %j.in = icmp slt i64 %j, %middle
  %k.in = icmp slt i64 %k, %last
  %both = and i1 %j.in, %k.in
  br i1 %both, label %step, label %done
step:
  %pj = getelementptr i32, ptr %x, i64 %j
  %left = load i32, ptr %pj
  %pk = getelementptr i32, ptr %x, i64 %k
  %right = load i32, ptr %pk
  %same = icmp eq i32 %left, %right
  %one = zext i1 %same to i64
  %more = add i64 %count, %one
  %left.goes = icmp sle i32 %left, %right
  %left.by = zext i1 %left.goes to i64
  %j.next = add i64 %j, %left.by
  %right.goes = icmp sge i32 %left, %right
  %right.by = zext i1 %right.goes to i64
  %k.next = add i64 %k, %right.by
  br label %loop
done:
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %count, ptr %q
  ret void
}}
"""
"""Counts the numbers that two neighbouring rows have in common, both in order."""


@pytest.mark.parametrize("has_masks", [False, True])
def test_lanes_that_gather_under_masks_are_slower(
    device: Device, monkeypatch: pytest.MonkeyPatch, has_masks: bool
) -> None:  # fmt: skip
    """Unless there are registers for masks, loops whose lanes gather until the last one ends run thread by thread."""
    if has_masks:
        monkeypatch.setattr(instruction_costs, "has_mask_registers", lambda: True)
    random = np.random.default_rng(21)
    rows = [np.sort(random.choice(40, random.integers(0, 20), replace=False)) for _ in range(129)]
    starts = np.cumsum([0, *map(len, rows)])
    x, there = to_device(np.concatenate(rows).astype(np.int32)), to_device(starts)
    out = to_device(np.zeros(128, np.int64))
    function = device.load(code(MERGE, "k", [("out", "ptr"), ("x", "ptr"), ("starts", "ptr")])).function("k")
    function.launch(2, 64, pack(function.kernel, out.address, x.address, there.address))
    expected = [np.intersect1d(one, other).size for one, other in itertools.pairwise(rows)]
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert (": vectors" in str(function.form)) == has_masks


APART = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %n, i64 %width, i64 %distance) {{
entry:
{GLOBAL_X}
  %g32 = call i32 @spmd.grid_dim.x(ptr %item)
  %g = zext i32 %g32 to i64
  %step = mul nuw nsw i64 %g, %d
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %k = phi i64 [ %i, %entry ], [ %next, %do ]
  %row = udiv i64 %k, %width
  %column = urem i64 %k, %width
  %begin = mul i64 %row, %distance
  %line = getelementptr i8, ptr %x, i64 %begin
  %from = getelementptr float, ptr %line, i64 %column
  %v = load float, ptr %from
  %twice = fadd float %v, %v
  %other = getelementptr i8, ptr %out, i64 %begin
  %to = getelementptr float, ptr %other, i64 %column
  store float %twice, ptr %to
  %next = add nuw nsw i64 %k, %step
  %stays = icmp slt i64 %next, %n
  br i1 %stays, label %do, label %end
end:
  ret void
}}
"""
"""Twice the elements of a table whose rows are a *distance* apart, in steps of the grid."""


def test_rows_that_are_apart_are_for_gangs_as_well(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most gangs are in one row: not one thread after another, as if lanes were far apart."""
    made = []

    def spy(*arguments: Any, **rest: Any) -> Any:
        made.append(arguments)
        return run_threads(*arguments, **rest)

    monkeypatch.setattr(vector, "run_threads", spy)
    names = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("width", "i64"), ("distance", "i64")]
    function = device.load(code(APART, "k", names)).function("k")
    for height, width, distance in [(9, 200, 200), (9, 200, 231), (30, 7, 9), (2, 1, 5)]:
        table = np.random.default_rng(width).integers(0, 99, (height, distance)).astype(np.float32)
        out, x = to_device(np.zeros_like(table)), to_device(table)
        arguments = pack(function.kernel, out.address, x.address, height * width, width, 4 * distance)
        function.launch(3, 128, arguments)
        expected = np.zeros_like(table)
        expected[:, :width] = 2 * table[:, :width]
        np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert "with a version for the distances" in str(function.form)
    assert not made


PROBE = f"""
define void @k(ptr noalias %item, ptr %out, ptr %table, ptr %keys) {{
entry:
{GLOBAL_X}
  %pk = getelementptr i32, ptr %keys, i64 %i
  %key = load i32, ptr %pk
  %hashed = mul i32 %key, -1640531527
  %from = START
  %wide = zext i32 %from to i64
  br label %probe
probe:
  %slot = phi i64 [ %wide, %entry ], [ %next, %miss ]
  %ps = getelementptr i32, ptr %table, i64 %slot
  %held = load i32, ptr %ps
  %hit = icmp eq i32 %held, %key
  br i1 %hit, label %end, label %miss
miss:
  %following = add nsw i64 %slot, 1
  %next = FOLLOWING
  %empty = icmp eq i32 %held, -1
  br i1 %empty, label %end, label %probe
end:
  %found = phi i64 [ %slot, %probe ], [ -1, %miss ]
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %found, ptr %q
  ret void
}}
"""
"""Looks keys up in a table, from a slot on that the key says, or each in a row of its own."""


@pytest.mark.parametrize("anywhere", [True, False])
def test_what_is_loaded_from_anywhere_decides_late(device: Device, anywhere: bool) -> None:
    """A thread that runs alone begins when the last one has found its slot, which no other thread waits for as a lane;
    in a row, the processor knows what is loaded next."""
    start, following = ("lshr i32 %hashed, 24", "and i64 %following, 255") if anywhere else (
        "shl i32 %t32, 4", "add nsw i64 %following, 0"
    )  # fmt: skip
    keys = np.random.default_rng(4).choice(10_000, 64, replace=False).astype(np.int32)
    table = np.full(1024, -1, np.int32)
    expected = np.full(64, -1)
    for i, key in enumerate(keys):
        if i % 3:
            slot = int(np.uint32(int(key) * 2654435769 % 2**32) >> 24) if anywhere else 16 * i + i % 5
            while anywhere and table[slot] != -1:
                slot = (slot + 1) % 256
            table[16 * i : slot if not anywhere else 0] = -2
            table[slot], expected[i] = key, slot
    text = PROBE.replace("START", start).replace("FOLLOWING", following)
    function = device.load(code(text, "k", [("out", "ptr"), ("table", "ptr"), ("keys", "ptr")])).function("k")
    held, out = [to_device(table), to_device(keys)], to_device(np.zeros(64, np.int64))
    function.launch(1, 64, pack(function.kernel, out.address, *(array.address for array in held)))
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert (": vectors" in str(function.form)) == anywhere


@pytest.mark.parametrize("by_data", [False, True])
@pytest.mark.sample(2)
def test_branches_that_are_predicted_stay(device: Device, by_data: bool) -> None:
    """Under a mask of indices, the same lanes gather in each gang at an edge."""
    condition = "icmp ne i64 %place, 7" if by_data else "icmp slt i64 %i, %n"
    text = f"""
    define void @k(ptr noalias %item, ptr %out, ptr %x, ptr %places, i64 %n) {{
    entry:
    {GLOBAL_X}
      %pp = getelementptr i64, ptr %places, i64 %i
      %place = load i64, ptr %pp
      store i64 -1, ptr %pp
      %in = {condition}
      br i1 %in, label %do, label %end
    do:
      %from = getelementptr float, ptr %x, i64 %place
      %v = load float, ptr %from
      %to = getelementptr float, ptr %out, i64 %i
      store float %v, ptr %to
      br label %end
    end:
      ret void
    }}"""
    made = code(text, "k", [("out", "ptr"), ("x", "ptr"), ("places", "ptr"), ("n", "i64")])
    places = np.random.default_rng(13).permutation(64)
    there, out = to_device(places), to_device(np.zeros(64, np.float32))
    x = to_device(np.arange(64, dtype=np.float32))
    with config.cpu_form.scope("vectors"):
        launch(device, made, 1, 64, out.address, x.address, there.address, 43)
        optimised, _ = list_kernel(made, made.kernels[0], (64, 1, 1))
    chosen = places != 7 if by_data else np.arange(64) < 43
    np.testing.assert_array_equal(out.copy_to_host(), np.where(chosen, places, 0))
    assert ("llvm.masked.gather" in optimised) != by_data


@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("kind", ["i8", "i16", "float"])
@pytest.mark.sample(2)
def test_neighbours_within_bounds(device: Device, kind: str, width: int, guarded: Any) -> None:
    """What no instruction loads under a mask is loaded whole where one page holds it."""
    check_bounds(device, kind, width, guarded)


@pytest.mark.usefixtures("kept_programs")
def test_bytes_within_bounds_are_loaded_whole() -> None:
    """Gangs of which some lanes are active load a vector, too, rather than one byte after another."""
    made = bounded("i8")
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        optimised, _ = list_kernel(made, made.kernels[0], (128, 1, 1))
    assert optimised.count("= load <16 x i8>") >= 2


def test_rows_by_quotient_behind_a_barrier(device: Device, processor: str) -> None:
    """What gangs take whose lanes are in one row, as most are, decides: alone, lanes that divide would be slower."""
    text = write_crossing_kernel("i64", "u", branches=False)
    waiting = "%some = icmp"
    text = text.replace(waiting, f"call void @spmd.barrier(ptr %item)\n  {waiting}")
    count, width = 1000, 200
    given = np.arange(5 * (width + 2)).reshape(5, width + 2)
    out, sums, x = (to_device(array) for array in (np.zeros_like(given), np.zeros(144, np.int64), given))
    declared = "declare void @spmd.barrier(ptr) convergent\n"
    function = device.load(code(declared + text, "k", CROSSING_PARAMETERS)).function("k")
    function.launch(3, 48, pack(function.kernel, out.address, sums.address, x.address, count, width))
    np.testing.assert_array_equal(out.copy_to_host()[:, :width], given[:, :width])
    if processor == "haswell":
        assert "1 of 2 regions run 16 threads" in str(function.form), function.form


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("number", ["and i64 %v, 255", "srem i64 %v, 7", "add i64 %v, 0", "lshr i64 %v, 40"])
def test_fast_sums_with_converted_integers(device: Device, number: str, kind: str) -> None:
    """LLVM may rearrange the kernel's sums, but not with those that convert integers: these have no digits behind the
    point."""
    text = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %in) {{
entry:
{GLOBAL_X}
  %p = getelementptr i64, ptr %in, i64 %i
  %v = load i64, ptr %p
  %number = {number}
  %float = sitofp i64 %number to {kind}
  %less = fsub fast {kind} %float, 0.25
  %more = fadd fast {kind} %less, 0.0625
  %q = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %more, ptr %q
  ret void
}}
"""
    values = np.arange(64, dtype=np.int64) * 3 + (1 << 50 if "lshr" in number else 0)
    exact = {"and": values & 255, "sre": values % 7, "add": values, "lsh": values >> 40}[number[:3]] - 0.1875
    there = [to_device(array) for array in (np.zeros(64, {"float": np.float32, "double": float}[kind]), values)]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", [("out", "ptr"), ("in", "ptr")])).function("k")
        function.launch(1, 64, pack(function.kernel, *(array.address for array in there)))
    np.testing.assert_array_equal(there[0].copy_to_host(), exact)
