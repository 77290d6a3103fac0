"""How the tables of workers grow, and the memory that CPU threads keep for them."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_devicelib.isolated_codegen import make_host_machine
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.abi.kept_memory import KEPT_BYTES
from hip_runtime.drivers.cpu.abi.launch_frame import CHUNKS_PER_THREAD, CHUNKS_WITH_TABLES
from hip_runtime.drivers.cpu.object_code.program import ProgramWords
from hip_runtime.drivers.cpu.vectorize.table_growth import TableGrowth
from hip_runtime.errors import MemoryFaultError

PER_MISS, OF_LARGE, LARGE = 128, 4, 1 << 18

Grow = Callable[[int, int], int]


class Table(ctypes.Structure):
    """A `table_growth.TABLE` in memory."""

    _fields_ = (("memory", ctypes.c_uint64), ("most", ctypes.c_int64), ("misses", ctypes.c_int64))


@pytest.fixture
def memory() -> np.ndarray:
    whole = np.full(KEPT_BYTES + 64, 0x55, np.uint8)
    return whole[-whole.ctypes.data % 64 :][:KEPT_BYTES]


@pytest.fixture
def table(memory: np.ndarray) -> Table:
    return Table(memory.ctypes.data, KEPT_BYTES // 4, 0)


@pytest.fixture
def grow(table: Table) -> Iterator[Grow]:
    """Grows a table of 32-bit elements, which has so many, for an operation on the one with an index."""
    module = ir.Module()
    function = TableGrowth(ir.IntType(32)(7), "grow").define(module)
    function.linkage, function.calling_convention = "", ""
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    with llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), make_host_machine()) as engine:
        engine.finalize_object()
        compiled = call(engine.get_function_address("grow"))
        yield lambda elements, index: compiled(ctypes.addressof(table), elements, index)


@pytest.mark.parametrize(("index", "elements"), [(0, 16), (15, 16), (16, 32), (63, 64), (100, 112)])
def test_a_small_table_is_there_at_once(grow: Grow, memory: np.ndarray, index: int, elements: int) -> None:
    assert grow(0, index) == elements
    assert set(memory.view(np.int32)[:elements]) == {7}
    assert set(memory[4 * elements :]) == {0x55}


def test_what_is_in_a_table_stays(grow: Grow, memory: np.ndarray) -> None:
    elements = grow(0, 20)
    memory.view(np.int32)[:elements] = range(elements)
    assert grow(elements, 40) == 48
    np.testing.assert_array_equal(memory.view(np.int32)[:48], [*range(32), *[7] * 16])


@pytest.mark.parametrize("index", [1000, LARGE // 4 - 1, LARGE // 4, KEPT_BYTES // 4 - 1])
def test_it_takes_as_many_operations_as_are_worth_a_table(grow: Grow, table: Table, index: int) -> None:
    part = 1 << (index.bit_length() - 4)
    wanted = (index // part + 1) * part
    needed = -(-wanted // (OF_LARGE if wanted * 4 > LARGE else PER_MISS))
    assert [grow(0, index) for _ in range(needed - 1)] == [0] * (needed - 1)
    assert grow(0, index) == wanted
    assert table.misses == 0


@pytest.mark.parametrize("most", [1, 5, 16, 50])
def test_a_table_ends_where_the_next_array_begins(grow: Grow, memory: np.ndarray, table: Table, most: int) -> None:
    table.most = most
    assert grow(0, most - 1) == most
    assert set(memory.view(np.int32)[:most]) == {7}


ADD = """
  %pb = getelementptr i32, ptr %bins, i32 %i
  %bin = load i32, ptr %pb
  %bound = sext i32 %bin to i64
  %place = getelementptr i32, ptr %counts, i64 %bound
  atomicrmw add ptr %place, i32 1 monotonic
"""
STORE = """
  %last = icmp eq i32 %i, {last}
  %address = select i1 %last, ptr %none, ptr %seen
  store i32 %i, ptr %address
"""
ARRAYS = [("counts", "ptr"), ("bins", "ptr"), ("seen", "ptr"), ("none", "ptr")]
THREADS, BLOCKS = 64, 50


def load(device: Device, body: str) -> Any:
    with config.cpu_form.scope("vectors"):
        return device.load(kernel(body + "  ret void\n", ARRAYS)).function("k")


@pytest.mark.parametrize("count", [1, 10, 1000, 30000, 300000])
def test_counts(device: Device, count: int) -> None:
    """The table begins with none of the elements, and has some, all, or the first of them in the end."""
    bins = np.random.default_rng(count).integers(0, count, BLOCKS * THREADS * 8).astype(np.int32)
    function, counts, places = load(device, ADD), to_device(np.zeros(count, np.int32)), to_device(bins)
    for _ in range(2):
        function.launch(BLOCKS * 8, THREADS, pack(function.kernel, counts.address, places.address, 0, 0))
    np.testing.assert_array_equal(counts.copy_to_host(), 2 * np.bincount(bins, minlength=count))


def test_an_array_behind_that_of_a_table_does_not_empty_it(device: Device) -> None:
    """Gangs of a block store into memory right behind the array until the last one faults. What is in the table then is
    lost."""
    count, threads = 40, 1024
    function = load(device, ADD + STORE.format(last=threads - 1))
    bins = np.arange(threads, dtype=np.int32) % count
    whole, places = to_device(np.zeros(200, np.int32)), to_device(bins)
    arguments = whole.address, places.address, whole.address + 4 * count, 0
    with pytest.raises(MemoryFaultError):
        function.launch(1, threads, pack(function.kernel, *arguments))
    found = np.frombuffer((ctypes.c_int32 * count).from_address(whole.address), np.int32).copy()
    assert found.sum() < threads // 4


@pytest.mark.parametrize(("count", "parts"), [(100, CHUNKS_PER_THREAD), (20000, CHUNKS_WITH_TABLES)])
@pytest.mark.parametrize("blocks", [800, 801])
def test_launches_with_large_tables_have_few_chunks(device: Device, count: int, parts: int, blocks: int) -> None:
    """Also where one block is left behind the chunks, whose table stays small."""
    bins = np.random.default_rng(2).integers(0, count, blocks * THREADS).astype(np.int32)
    bins[-THREADS:] = count - 1
    function, counts, places = load(device, ADD), to_device(np.zeros(count, np.int32)), to_device(bins)
    words = ProgramWords.from_address(function.handle.worker((THREADS, 1, 1)).entry)
    for _ in range(6):
        function.launch(blocks, THREADS, pack(function.kernel, counts.address, places.address, 0, 0))
        words.cost = 1000.0  # that of a small grid would not be divided
    assert words.parts == parts
    np.testing.assert_array_equal(counts.copy_to_host(), 6 * np.bincount(bins, minlength=count))


class MallocNumbers(ctypes.Structure):
    """A ``struct mallinfo2`` of glibc."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    ))  # fmt: skip


def allocated_bytes() -> int:
    """How many bytes of the heap are in use, of all threads."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("mallinfo2, of glibc since 2.33, is missing")
    library.mallinfo2.restype = MallocNumbers
    numbers = library.mallinfo2()
    return int(numbers.hblkhd + numbers.uordblks)


def test_threads_keep_no_memory_of_workers_that_fault(device: Device) -> None:
    function = load(device, ADD + STORE.format(last=5))
    counts, places = to_device(np.zeros(9, np.int32)), to_device(np.zeros(BLOCKS * THREADS, np.int32))
    before = allocated_bytes()
    for _ in range(30):
        with pytest.raises(MemoryFaultError):  # one block is run by the launching thread
            function.launch(1, THREADS, pack(function.kernel, counts.address, places.address, counts.address, 0))
    assert allocated_bytes() - before < 10 * KEPT_BYTES


def test_threads_that_end_keep_no_memory(device: Device) -> None:
    function, count, number = load(device, ADD), 100, 30
    counts, places = to_device(np.zeros(count, np.int32)), to_device(np.zeros(BLOCKS * THREADS, np.int32))
    launched = threading.Barrier(number + 1)
    ending = threading.Event()

    def run() -> None:
        function.launch(1, THREADS, pack(function.kernel, counts.address, places.address, 0, 0))
        launched.wait()
        ending.wait()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    launched.wait()
    meanwhile = allocated_bytes()
    ending.set()
    for thread in threads:
        thread.join()
    assert meanwhile - allocated_bytes() > number * KEPT_BYTES // 2
    assert counts.copy_to_host()[0] == number * THREADS
