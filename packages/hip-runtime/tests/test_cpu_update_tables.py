"""Atomic operations on elements of arrays, which workers combine in tables of their own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import memory_accesses, table_growth, update_tables
from hip_runtime.drivers.cpu.vectorize.update_tables import UpdateTables
from hip_runtime.errors import MemoryFaultError

NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "float": np.float32, "double": np.float64}
AT = {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "max": np.maximum, "min": np.minimum, "umax": np.maximum, "umin": np.minimum, "fadd": np.add,
    "fsub": np.subtract, "fmax": np.fmax, "fmin": np.fmin,
}  # fmt: skip
THREADS = 75
BLOCKS = 40


@pytest.fixture(autouse=True)
def tabled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Kernels run in gangs, and tables grow at once; the operations that are written for a table are told."""
    monkeypatch.setattr(table_growth, "_ELEMENTS_PER_MISS", 1 << 20)
    told: list[str] = []
    update = UpdateTables.update

    def spy(tables: UpdateTables, code: Any, instruction: Any, operands: Any) -> None:
        told.append(instruction.operation)
        update(tables, code, instruction, operands)

    monkeypatch.setattr(UpdateTables, "update", spy)
    with config.cpu_form.scope("vectors"):
        yield told


def load(device: Device, body: str, arrays: int, *numbers: str) -> Any:
    """The kernel *body*, whose arguments are as many *arrays*, ``%a0``, ``%a1`` and so on, and *numbers*."""
    parameters = [(f"a{number}", "ptr") for number in range(arrays)] + [(name, "i64") for name in numbers]
    return device.load(kernel(body, parameters)).function("k")


def launch(function: Any, arrays: list[Any], blocks: int = BLOCKS, threads: Any = THREADS, *numbers: int) -> list[Any]:
    """What *function* leaves in *arrays*, of which one may be a view of another."""
    whole = [array if array.base is None else array.base for array in arrays]
    unique = {id(array): to_device(array) for array in whole}
    places = [
        unique[id(base)].address + array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        for array, base in zip(arrays, whole, strict=True)
    ]
    for _ in range(2):  # the first launch takes blocks one by one
        for base in whole:
            unique[id(base)].copy_to_device(base)
        function.launch(blocks, threads, pack(function.kernel, *places, *numbers))
    return [unique[id(base)].copy_to_host() for base in whole]


def run(
    device: Device, body: str, arrays: list[Any], blocks: int = BLOCKS, threads: Any = THREADS, **numbers: int
) -> list[Any]:  # fmt: skip
    """What the kernel *body* leaves in *arrays*, see `load`."""
    return launch(load(device, body, len(arrays), *numbers), arrays, blocks, threads, *numbers.values())


SCATTER = """
  %pb = getelementptr i32, ptr %a1, i32 %i
  %bin = load i32, ptr %pb
  %pv = getelementptr {kind}, ptr %a2, i32 %i
  %v = load {kind}, ptr %pv
  %taken = icmp sge i32 %bin, {least}
  br i1 %taken, label %in, label %end
in:
  %place = getelementptr {element}, ptr %a0, i32 %bin
  atomicrmw {operation} ptr %place, {kind} %v monotonic
  br label %end
end:
  ret void
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("count", [1, 7, 300, 5000])
@pytest.mark.parametrize(("kind", "operation"), [
    *((kind, operation) for kind in ("i8", "i16", "i32", "i64")
      for operation in ("add", "sub", "and", "or", "xor", "max", "min", "umax", "umin")),
    *((kind, operation) for kind in ("float", "double") for operation in ("fadd", "fsub", "fmax", "fmin")),
])  # fmt: skip
def test_operations(device: Device, tabled: list[str], kind: str, operation: str, count: int) -> None:
    total, dtype = BLOCKS * THREADS, NUMPY[kind]
    generator = np.random.default_rng(count)
    bins = generator.integers(0, count, total).astype(np.int32)
    values = generator.integers(-30, 30, total).astype(dtype)
    before = generator.integers(-30, 30, count).astype(dtype)
    body = SCATTER.format(kind=kind, element=kind, operation=operation, least=0)
    found, *_ = run(device, body, [before.copy(), bins, values])
    expected = before.copy()
    if operation in ("umax", "umin"):
        unsigned = f"u{expected.itemsize}"
        AT[operation].at(expected.view(unsigned), bins, values.view(unsigned))
    else:
        AT[operation].at(expected, bins, values)
    np.testing.assert_array_equal(found, expected)
    assert set(tabled) == {operation}


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 5])
@pytest.mark.parametrize(("kind", "operation"), [
    ("i8", "max"), ("i16", "xor"), ("i32", "add"), ("float", "fadd"), ("float", "fmin"), ("double", "fsub"),
])  # fmt: skip
@pytest.mark.sample(2)
def test_what_is_beside_an_element_stays(device: Device, kind: str, operation: str, offset: int) -> None:
    """Elements are replaced along with their neighbours, of which no bit changes: all here look like signalling NaN."""
    total, dtype = BLOCKS * THREADS, np.dtype(NUMPY[kind])
    whole = np.frombuffer(b"\x01\x00\xa0\x7f\x01\x00\xf4\x7f" * (60 * dtype.itemsize), dtype).copy()
    places = np.array([0, 1, 6, 15, 16, 37, 63], np.int32)
    whole[offset + places] = 3
    bins = np.random.default_rng(8).choice(places, total).astype(np.int32)
    values = np.random.default_rng(9).integers(-30, 30, total).astype(dtype)
    body = SCATTER.format(kind=kind, element=kind, operation=operation, least=0)
    found, *_ = run(device, body, [whole[offset:], bins, values])
    expected = whole[offset + places].copy()
    AT[operation].at(expected, np.searchsorted(places, bins), values)
    np.testing.assert_array_equal(found[offset + places], expected)
    bits = f"u{dtype.itemsize}"
    for array in (found, whole):
        array[offset + places] = 0
    np.testing.assert_array_equal(found.view(bits), whole.view(bits))


@pytest.mark.parametrize("operation", ["fadd", "fmin", "fmax"])
@pytest.mark.sample(2)
def test_special_values(device: Device, operation: str) -> None:
    """Infinities, zeros of both signs and NaN, the one that fills tables among them, come out as from operations."""
    values = np.tile(np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, 2.5], np.float32), 300)
    bins = np.arange(len(values), dtype=np.int32) % 8
    before = np.array([1, np.nan, 2, 3, -0.0, -0.0, np.nan, 0], np.float32)
    body = SCATTER.format(kind="float", element="float", operation=operation, least=0)
    found, *_ = run(device, body, [before.copy(), bins, values], 40, 60)
    expected = before.copy()
    with np.errstate(invalid="ignore"):
        AT[operation].at(expected, bins, values)
    np.testing.assert_array_equal(found, expected)
    assert np.signbit(found[4]) == np.signbit(expected[4])


def test_only_some_lanes(device: Device) -> None:
    generator = np.random.default_rng(3)
    bins = generator.integers(-5, 9, BLOCKS * THREADS).astype(np.int32)
    found, *_ = run(device, SCATTER.format(kind="i32", element="i32", operation="add", least=4),
                    [np.zeros(9, np.int32), bins, np.ones_like(bins)])  # fmt: skip
    np.testing.assert_array_equal(found, [0] * 4 + np.bincount(bins[bins >= 4], minlength=9)[4:].tolist())


@pytest.mark.parametrize("size", [128, 1024, 4096])
@pytest.mark.sample(2)
def test_elements_behind_a_table(device: Device, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(update_tables, "KEPT_BYTES", size)
    bins = np.random.default_rng(4).integers(0, 2000, BLOCKS * THREADS).astype(np.int32)
    body = SCATTER.format(kind="i32", element="i32", operation="add", least=0)
    found, *_ = run(device, body, [np.zeros(2000, np.int32), bins, np.ones_like(bins)])
    np.testing.assert_array_equal(found, np.bincount(bins, minlength=2000))


def test_elements_before_the_argument(device: Device) -> None:
    whole = np.zeros(64, np.int32)
    bins = np.random.default_rng(5).integers(-20, 44, BLOCKS * THREADS).astype(np.int32)
    body = SCATTER.format(kind="i32", element="i32", operation="add", least=-20)
    found, *_ = run(device, body, [whole[20:], bins, np.ones_like(bins)])
    np.testing.assert_array_equal(found, np.bincount(bins + 20, minlength=64))


@pytest.mark.parametrize("record", ["<{ i8, i32, i8 }>", "{ i32, i32, i16 }", "[5 x i8]"])
@pytest.mark.sample(2)
def test_fields_of_records(device: Device, record: str) -> None:
    """Elements that are not a multiple of their size apart are updated in memory; none of those that two lines of a
    cache share, as systems punish locked accesses to both: a program that makes a few stood for ten seconds."""
    step = {"<{ i8, i32, i8 }>": 6, "{ i32, i32, i16 }": 12, "[5 x i8]": 5}[record]
    in_one_line = [number for number in range(30) if number * step % 64 <= 60]
    bins = np.random.default_rng(6).choice(in_one_line, BLOCKS * THREADS).astype(np.int32)
    found, *_ = run(device, SCATTER.format(kind="i32", element=record, operation="add", least=0),
                    [np.zeros(30 * step + 4, np.uint8), bins, np.ones_like(bins)])  # fmt: skip
    counts = found[: 30 * step].reshape(30, step)[:, :4].copy().view(np.int32)[:, 0]
    np.testing.assert_array_equal(counts, np.bincount(bins, minlength=30))


@pytest.mark.parametrize("beyond", [0, 4])
def test_an_address_that_is_computed_before_a_branch(device: Device, tabled: list[str], beyond: int) -> None:
    """Nothing behind the branch uses the index itself."""
    body = f"""
      %pb = getelementptr i32, ptr %a1, i32 %i
      %bin = load i32, ptr %pb
      %begin = getelementptr i32, ptr %a0, i32 %bin
      %place = getelementptr i8, ptr %begin, i32 {beyond}
      %old = load i32, ptr %place
      %low = and i32 %old, 255
      %taken = icmp ult i32 %low, 10
      br i1 %taken, label %in, label %end
    in:
      %above = shl i32 %i, 8
      atomicrmw or ptr %place, i32 %above monotonic
      br label %end
    end:
      ret void
    """
    places = np.random.default_rng(7).integers(0, 30, BLOCKS * THREADS).astype(np.int32)
    before = np.random.default_rng(8).integers(0, 20, 31).astype(np.int32)
    found, *_ = run(device, body, [before.copy(), places])
    taken = before[beyond // 4 :][places] < 10
    np.bitwise_or.at(before[beyond // 4 :], places[taken], np.arange(len(places), dtype=np.int32)[taken] << 8)
    np.testing.assert_array_equal(found, before)
    assert set(tabled) == {"or"}


@pytest.mark.parametrize("begin", [0, 1000])
def test_a_store_in_steps_that_may_meet_two_tables(device: Device, tabled: list[str], begin: int) -> None:
    """Its address is computed before a branch; it meets the elements of both arrays if it starts at their *begin*."""
    body = """
      %wide = zext i32 %tx to i64
      %steps = mul i64 %wide, %step
      %at = add i64 %steps, %begin
      %kept = getelementptr i32, ptr %a0, i64 %at
      %before = load i32, ptr %kept
      %even = getelementptr i32, ptr %a1, i32 %i
      %bin = load i32, ptr %even
      %one = getelementptr i32, ptr %a0, i32 %bin
      atomicrmw add ptr %one, i32 1 monotonic
      %other = getelementptr i32, ptr %a2, i32 %bin
      atomicrmw add ptr %other, i32 2 monotonic
      %some = icmp sgt i64 %step, 0
      br i1 %some, label %in, label %end
    in:
      %sum = add i32 %i, %before
      store i32 %sum, ptr %kept
      br label %end
    end:
      ret void
    """
    bins = np.random.default_rng(9).integers(0, 10, 128).astype(np.int32)
    whole = np.zeros(2000, np.int32)
    numbers = [whole[:1900], bins, whole[10:20]]
    (found, *_) = run(device, body, numbers, 1, 128, step=3, begin=begin)
    np.testing.assert_array_equal(found[begin : begin + 3 * 128 : 3][7:], np.arange(7, 128))
    if begin:
        counts = np.bincount(bins, minlength=10)
        np.testing.assert_array_equal(found[:20], [*counts, *(2 * counts)])
    assert set(tabled) == {"add"}


def test_an_operation_whose_result_is_used_is_done_at_once(device: Device, tabled: list[str]) -> None:
    body = """
      %pb = getelementptr i32, ptr %a1, i32 %i
      %bin = load i32, ptr %pb
      %place = getelementptr i32, ptr %a0, i32 %bin
      %old = atomicrmw add ptr %place, i32 1 monotonic
      store i32 %old, ptr %pb
      ret void
    """
    bins = (np.arange(BLOCKS * THREADS) * 7 % 11).astype(np.int32)
    counts, places = run(device, body, [np.zeros(11, np.int32), bins])
    for number in range(11):
        np.testing.assert_array_equal(np.sort(places[bins == number]), np.arange(counts[number]))
    assert tabled == []


def test_a_fence_keeps_operations_in_memory(device: Device, tabled: list[str]) -> None:
    body = SCATTER.format(kind="i32", element="i32", operation="add", least=0)
    body = body.replace("monotonic\n", "monotonic\n  fence seq_cst\n")
    bins = (np.arange(BLOCKS * THREADS) * 7 % 11).astype(np.int32)
    found, *_ = run(device, body, [np.zeros(11, np.int32), bins, np.ones_like(bins)])
    np.testing.assert_array_equal(found, np.bincount(bins))
    assert tabled == []


def test_addresses_without_memory_are_faults(device: Device) -> None:
    function = load(device, SCATTER.format(kind="i32", element="i32", operation="add", least=0), 3)
    bins = to_device((np.arange(BLOCKS * THREADS) % 11).astype(np.int32))
    for _ in range(3):
        with pytest.raises(MemoryFaultError):
            function.launch(BLOCKS, THREADS, pack(function.kernel, 0, bins.address, bins.address))


FREE = 4
"""Elements at the start of each array that are nobody's."""

OPERATIONS = ("add", "max", "xor", "sub", "umin", "or", "and")


class Program:
    """What each thread does to elements of its own: atomic operations, loads that add up in a register, and stores.

    The elements are in one array, which two arguments point into, and in another. Each thread has three neighbouring
    ones in a random place of each, so that lanes scatter. Nobody else accesses them, so what it finds is certain.
    """

    OWN = 3

    def __init__(self, seed: int) -> None:
        self._choose = choose = random.Random(seed)
        self.shift = choose.choice((0, 1, 2, 3, 4, 40))
        """The elements from the first argument to the second."""
        kinds = choose.choice((["atomic"], ["atomic", "atomic", "load"], ["atomic"] * 4 + ["load"] * 2 + ["store"]))
        arrays, operations = choose.choice(((0, 1), (0, 1, 2))), OPERATIONS[: choose.choice((1, 2, 7))]
        self.in_order = choose.choice((False, True))
        """Whether the elements of neighbours are neighbours, which they may compute as well as load."""
        self.steps = [
            (choose.choice(kinds), choose.choice(arrays), choose.randrange(self.OWN), choose.choice(operations),
             choose.choice((0, 0, 0, 1)), choose.randrange(1, 100), self.in_order and choose.random() < 0.5)
            for _ in range(choose.randint(2, 9))
        ]  # fmt: skip
        self.rounds = choose.choice((1, 1, 3))
        self.total = choose.choice((None, None, "add", "umax"))
        """What all threads do to one element that is nobody's."""

    def write(self) -> str:
        """The body of the kernel: the arguments are both arrays, the place of each thread's elements and an output."""
        lines = [
            "%pp = getelementptr i32, ptr %a3, i32 %i", "%start = load i32, ptr %pp",
            "%ps = getelementptr i32, ptr %a4, i32 %i", "%x = load i32, ptr %ps",
"%wide = sext i32 %start to i64", "%b.wide = zext i32 %b to i64", "%threads.wide = zext i32 %threads to i64",
            "%first.wide = mul nsw i64 %b.wide, %threads.wide", "%row.wide = zext i32 %row to i64",
            "%tx.wide = zext i32 %tx to i64", "%t.wide = add nsw i64 %row.wide, %tx.wide",
            "%i.wide = add nsw i64 %first.wide, %t.wide", f"%times = mul nsw i64 %i.wide, {self.OWN}",
            f"%computed = add nsw i64 %times, {FREE}", "br label %round", "round:",
            "%turn = phi i32 [ 0, %entry ], [ %next, %again ]", "%r0 = phi i32 [ %x, %entry ], [ %r.last, %again ]",
        ]  # fmt: skip
        register, label = "%r0", "round"
        for number, (kind, array, own, operation, only_odd, operand, is_computed) in enumerate(self.steps):
            n = f"{number}"
            shift = own - (self.shift if array == 1 else 0)
            if only_odd:
                lines += [
                    f"%bit{n} = and i32 %t, 1", f"%odd{n} = icmp eq i32 %bit{n}, 1",
                    f"br i1 %odd{n}, label %do{n}, label %after{n}", f"do{n}:",
                ]  # fmt: skip
            start = "%computed" if is_computed else "%wide"
            lines += [f"%e{n} = add nsw i64 {start}, {shift}", f"%p{n} = getelementptr i32, ptr %a{array}, i64 %e{n}",
                      f"%v{n} = add i32 {register}, {operand}"]  # fmt: skip
            made = register
            if kind == "atomic":
                lines += [f"atomicrmw {operation} ptr %p{n}, i32 %v{n} monotonic"]
            elif kind == "store":
                lines += [f"store i32 %v{n}, ptr %p{n}"]
            else:
                lines += [f"%l{n} = load i32, ptr %p{n}", f"%m{n} = mul i32 {register}, 31",
                          f"%new{n} = add i32 %m{n}, %l{n}"]  # fmt: skip
                made = f"%new{n}"
            if only_odd:
                lines += [f"br label %after{n}", f"after{n}:"]
                if made != register:
                    lines += [f"%q{n} = phi i32 [ {register}, %{label} ], [ {made}, %do{n} ]"]
                    made = f"%q{n}"
                label = f"after{n}"
            register = made
        if self.total is not None:
            lines += ["%pt = getelementptr i32, ptr %a0, i32 1",
                      f"atomicrmw {self.total} ptr %pt, i32 5 monotonic"]  # fmt: skip
        lines += [
            "br label %again", "again:", f"%r.last = add i32 {register}, 0", "%next = add i32 %turn, 1",
            f"%more = icmp ult i32 %next, {self.rounds}", "br i1 %more, label %round, label %end", "end:",
            "store i32 %r.last, ptr %ps", "ret void",
        ]  # fmt: skip
        return "\n".join(f"  {line}" if not line.endswith(":") else line for line in lines) + "\n"

    def evaluate(self, first: Any, second: Any, start: Any, register: Any, thread: Any) -> None:
        """Do the same with NumPy, in place."""
        for _ in range(self.rounds):
            for kind, array, own, operation, only_odd, operand, _ in self.steps:
                active = (thread % 2 == 1) | (not only_odd)
                where, places = (second if array == 2 else first), (start + own)[active]
                value = (register + np.int32(operand))[active]
                if kind == "atomic":
                    view = where.view(np.uint32) if operation[0] == "u" else where
                    AT[operation].at(view, places, value.view(view.dtype))
                elif kind == "store":
                    where[places] = value
                else:
                    register[active] = register[active] * np.int32(31) + where[places]
            if self.total == "add":
                first[1] += 5 * len(thread)
            elif self.total is not None:
                element = first[1:2].view(np.uint32)
                element[0] = max(element[0], 5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(90))
def test_threads_find_what_they_did(device: Device, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    check_program(device, monkeypatch, seed)


def check_program(device: Device, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Run the program of *seed* beside NumPy."""
    program, choose = Program(seed), random.Random(seed)
    monkeypatch.setattr(update_tables, "KEPT_BYTES", choose.choice((2048, 1 << 18)))
    monkeypatch.setattr(table_growth, "_ELEMENTS_PER_MISS", random.Random(-seed).choice((2, 100, 1 << 20)))
    blocks, threads = choose.choice(((40, 75), (33, 64), (5, 300), (12, (16, 8)), (2, 32)))
    count = blocks * int(np.prod(threads))
    generator = np.random.default_rng(seed)
    offset = FREE
    order = np.arange(count) if program.in_order else generator.permutation(count)
    start = (offset + program.OWN * order).astype(np.int32)
    length = offset + program.OWN * count + program.shift
    first, second = (generator.integers(-99, 99, length).astype(np.int32) for _ in range(2))
    register = generator.integers(-99, 99, count).astype(np.int32)
    found = run(
        device, program.write(), [first, first[program.shift :], second, start, register.copy()], blocks, threads
    )
    thread = np.arange(count) % int(np.prod(threads))
    with np.errstate(over="ignore"):
        program.evaluate(first, second, start, register, thread)
    for have, want in zip((found[0], found[2], found[4]), (first, second, register), strict=True):
        np.testing.assert_array_equal(have, want, f"seed {seed}: {program.steps}")


@pytest.mark.parametrize("step", [1, -1])
def test_a_row_of_which_only_the_end_has_been_updated(device: Device, step: int) -> None:
    """The first lanes find elements before the array that the others updated."""
    index = "%i.wide" if step == 1 else "%mirrored"
    body = f"""
      %b.wide = zext i32 %b to i64
      %first.wide = mul nsw i64 %b.wide, 64
      %t.wide = zext i32 %tx to i64
      %i.wide = add nsw i64 %first.wide, %t.wide
      %mirrored = sub nsw i64 {BLOCKS * 64 - 1}, %i.wide
      %pp = getelementptr i32, ptr %a2, i64 %i.wide
      %start = load i32, ptr %pp
      %place = getelementptr i32, ptr %a1, i32 %start
      atomicrmw add ptr %place, i32 %start monotonic
      %own = getelementptr i32, ptr %a0, i64 {index}
      %found = load i32, ptr %own
      store i32 %found, ptr %pp
      ret void
    """
    count = BLOCKS * 64
    before = np.arange(count, dtype=np.int32) * 3
    start = np.arange(count, dtype=np.int32)[::step] - 20
    whole, found = run(device, body, [before, before[20:], start.copy()], BLOCKS, 64)[::2]
    np.testing.assert_array_equal(whole, before + np.arange(count) - 20)
    np.testing.assert_array_equal(found, whole[::step])


ROWS = """
  %b.wide = zext i32 %b to i64
  %first.wide = mul nsw i64 %b.wide, 64
  %t.wide = zext i32 %tx to i64
  %i.wide = add nsw i64 %first.wide, %t.wide
  %from = mul i64 %i.wide, %step
  %pb = getelementptr i32, ptr %a1, i64 %i.wide
  %bin = load i32, ptr %pb
  %start = getelementptr i32, ptr %a2, i64 %from
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %more, label %end
more:
  %d = phi i64 [ 0, %entry ], [ %next, %more ]
  %pv = getelementptr i32, ptr %start, i64 %d
  %v = load i32, ptr %pv
  %bins = getelementptr i32, ptr %a0, i32 %bin
  %place = getelementptr i32, ptr %bins, i64 %d
  atomicrmw add ptr %place, i32 %v monotonic
  %next = add i64 %d, 1
  %go = icmp slt i64 %next, %n
  br i1 %go, label %more, label %end
end:
  ret void
"""
"""Adds up rows, as sums of clusters do."""


def test_rows_that_are_added_up(device: Device, tabled: list[str]) -> None:
    """The sums are apart from the rows, or between two of them, where these are longer than what is read of them."""
    total, room = 20 * 64, 16
    bins = np.random.default_rng(5).integers(0, 4, total).astype(np.int32)
    function = load(device, ROWS, 3, "step", "n")
    for step, between, elements in product([3, 40, -3, -40, 0], [False, True], [0, 1, 3, 9]):
        end = abs(step) * total + room
        middle = 40 * 500 + 20 if between and abs(step) == 40 else end
        whole = np.random.default_rng(4).integers(-99, 99, end + room).astype(np.int32)
        first = abs(step) * (total - 1) if step < 0 else 0
        expected = whole.copy()
        for d in range(elements):
            np.add.at(expected[middle:], bins + d, whole[first + step * np.arange(total) + d])
        found, *_ = launch(function, [whole[middle:], bins, whole[first:]], 20, 64, step, elements)
        np.testing.assert_array_equal(found, expected, f"step {step}, {elements} elements, {between=}")
    assert set(tabled) == {"add"}


@pytest.mark.parametrize("step", [12, -12])
def test_rows_of_which_each_element_is_added_to_the_next(device: Device, step: int) -> None:
    """A thread finds in its row what it has just added there."""
    total, elements = 20 * 64, 10
    whole = np.random.default_rng(4).integers(-9, 9, (total, abs(step))).astype(np.int32)
    expected = whole.copy()
    expected[:, : elements + 1] = np.cumsum(expected[:, : elements + 1], axis=1)
    first = abs(step) * (total - 1) if step < 0 else 0
    bins = (first + step * np.arange(total) + 1).astype(np.int32)
    flat = whole.reshape(-1)
    found, *_ = run(device, ROWS, [flat[0:], bins, flat[first:]], 20, 64, step=step, n=elements)
    np.testing.assert_array_equal(found.reshape(whole.shape), expected)


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operations are done together, each time that some are written for tables."""
    told: list[int] = []
    original = memory_accesses.find_joint_updates

    def spy(*arguments: Any) -> Any:
        found = original(*arguments)
        told.append(len(found))
        return found

    monkeypatch.setattr(memory_accesses, "find_joint_updates", spy)
    return told


def many(updates: str = "", count: str = "%n", index: str = "%d") -> str:
    """`ROWS` with further *updates* in its loop, that ends with *count* and begins at *index* of each row's sums."""
    return (
        ROWS.replace("%next = add i64 %d, 1", f"{updates}\n  %next = add i64 %d, 1")
        .replace("icmp slt i64 %next, %n", f"icmp slt i64 %next, {count}")
        .replace("ptr %bins, i64 %d", f"ptr %bins, i64 {index}")
    )


SECOND = """
  %after = getelementptr i32, ptr %place, i64 1
  atomicrmw add ptr %after, i32 1 monotonic"""
FOUND = "%w = zext i32 %v to i64\n  %found = and i64 %w, 3"
LOOPS = {
    "one": (many(), {4, 1}), "two": (many(SECOND), {4, 2}), "three": (many(SECOND + SECOND.replace("%a", "%b")), {3}),
    "each thread's own count": (many("%own = and i64 %t.wide, 3\n  %far = add i64 %own, 7", "%far"), {1}),
    "each thread's own start": (
        many().replace("[ 0, %entry", "[ %own, %entry").replace("%any =", "%own = and i64 %t.wide, 3\n  %any ="), {1}
    ),
    "loaded places": (many("", index="%found").replace("%bins =", FOUND + "\n  %bins ="), {1}),
    "a store": (many("store i32 5, ptr %pb"), {1}),
}  # fmt: skip
"""Loops, and of how many updates each that are done together."""


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_updates(device: Device, joined: list[int], name: str) -> None:
    """Several iterations are done together where they update other elements, and all threads leave at once."""
    total, room, (body, counts) = 20 * 64, 16, LOOPS[name]
    values = np.random.default_rng(4).integers(-99, 99, (total, room)).astype(np.int32)
    bins = np.random.default_rng(5).integers(0, 4, total).astype(np.int32)
    thread, function = np.arange(total), load(device, body, 3, "step", "n")
    own = thread % 64 & 3
    for elements in (1, 2, 4, 7, 8, 13):
        expected, starts, ends = np.zeros(40, np.int32), 0 * thread, np.full(total, elements)
        if name == "each thread's own start":
            starts, ends = own, np.maximum(elements, own + 1)
        elif name == "each thread's own count":
            ends = own + 7
        for d in range(max(ends)):
            on = (starts <= d) & (d < ends)
            at = bins + (values[:, d] & 3 if name == "loaded places" else d)
            np.add.at(expected, at[on], values[on, d])
            for _ in range({"two": 1, "three": 2}.get(name, 0)):
                np.add.at(expected, at[on] + 1, 1)
        found, *_ = launch(function, [expected * 0, bins, values.reshape(-1)[0:]], 20, 64, room, elements)
        np.testing.assert_array_equal(found, expected, f"{elements} elements")
    assert set(joined) == counts


STATISTICS = """
  %pb = getelementptr i32, ptr %a3, i32 %i
  %bin = load i32, ptr %pb
  %taken = icmp sge i32 %bin, {least}
  br i1 %taken, label %in, label %end
in:
  %pv = getelementptr float, ptr %a4, i32 %i
  %sum = getelementptr float, ptr %a0, i32 %bin
  %most = getelementptr float, ptr %a1, i32 %bin
  %count = getelementptr i32, ptr %a2, i32 %bin
  %v = load float, ptr %pv
  atomicrmw fadd ptr %sum, float %v monotonic
  %again = load float, ptr %pv
  %twice = fadd float %again, %again
  atomicrmw fmax ptr %most, float %twice monotonic
  atomicrmw add ptr %count, i32 1 monotonic
  br label %end
end:
  ret void
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("least", [0, 5, 11])
@pytest.mark.parametrize("size", [1 << 18, 4096, 300])
@pytest.mark.parametrize("width", [4, 16, 64])
def test_operations_that_follow_one_another(
    device: Device, joined: list[int], monkeypatch: pytest.MonkeyPatch, least: int, size: int, width: int
) -> None:  # fmt: skip
    """The tables have all elements, or some of them, or none but the first."""
    monkeypatch.setattr(update_tables, "KEPT_BYTES", size)
    total, bins = BLOCKS * THREADS, 400 if size == 4096 else 12
    generator = np.random.default_rng(least)
    places = generator.integers(0, bins, total).astype(np.int32)
    values = generator.integers(-30, 30, total).astype(np.float32)
    before = [np.zeros(bins, np.float32), np.full(bins, -9, np.float32), np.zeros(bins, np.int32)]
    with config.cpu_width.scope(width):
        sums, most, counts, *_ = run(device, STATISTICS.format(least=least), [*before, places, values])
    taken = places >= least
    np.add.at(before[0], places[taken], values[taken])
    np.maximum.at(before[1], places[taken], 2 * values[taken])
    np.add.at(before[2], places[taken], 1)
    for found, expected in zip((sums, most, counts), before, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert set(joined) == {3}


def between(step: str) -> str:
    """Two additions to the element that a thread is told, and *step* in between."""
    return f"""
  %pb = getelementptr i32, ptr %a1, i32 %i
  %bin = load i32, ptr %pb
  %place = getelementptr i32, ptr %a0, i32 %bin
  %out = getelementptr i32, ptr %a2, i32 %i
  atomicrmw add ptr %place, i32 %bin monotonic
  {step}
  atomicrmw add ptr %place, i32 1 monotonic
  ret void
"""


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_load_between_operations_finds_what_was_done(device: Device, joined: list[int], is_shuffled: bool) -> None:
    """Of elements that a table has, as those of the first gangs if they are not shuffled, and of others."""
    total = BLOCKS * THREADS
    places = np.arange(total, dtype=np.int32) ^ 3
    if is_shuffled:
        places = np.random.default_rng(1).permutation(total).astype(np.int32)
    body = between("%found = load i32, ptr %place")
    body = body.replace("ret void", "store i32 %found, ptr %out\n  ret void")
    before = np.arange(total, dtype=np.int32) * 3
    after, _, found = run(device, body, [before, places, np.zeros(total, np.int32)])
    np.testing.assert_array_equal(found, (before + np.arange(total))[places])
    np.testing.assert_array_equal(after, before + np.arange(total) + 1)
    assert set(joined) == {2}


def test_a_store_between_operations_keeps_them_apart(device: Device, joined: list[int]) -> None:
    total = BLOCKS * THREADS
    places = np.random.default_rng(1).permutation(total).astype(np.int32)
    after, *_ = run(device, between("store i32 5, ptr %place"), [np.zeros(total, np.int32), places, places.copy()])
    np.testing.assert_array_equal(after, np.full(total, 6))
    assert set(joined) == {1}


def test_many_operations(device: Device, joined: list[int]) -> None:
    """Of which the first four are done together, and the next four."""
    total = BLOCKS * THREADS
    places = (np.random.default_rng(1).integers(0, 30, total)).astype(np.int32)
    body = between("\n".join(["atomicrmw add ptr %place, i32 10 monotonic"] * 7))
    after, *_ = run(device, body, [np.zeros(30, np.int32), places, places.copy()])
    np.testing.assert_array_equal(after, np.bincount(places, minlength=30) * (np.arange(30) + 71))
    assert set(joined) == {4, 1}
