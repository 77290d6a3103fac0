"""Atomic operations on shared memory, which need no locked instruction where one thread runs a whole block.

What they give is compared with Python doing the same, one thread after another.
"""

from __future__ import annotations

import operator
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import code, pack
from spmd_programs import OPERATIONS

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu import finalise
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.demote_atomics import find_private_atomics

THREADS = 96
PLACES = 4
INTEGER_KINDS = ("i8", "i16", "i32", "i64")
NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "float": np.float32, "double": np.float64}
NAN = float("nan")


def update_kernel(kind: str, update: str, memory: str = "%s") -> CodeObject:
    """Threads meet, run *update* on a place of an array of shared memory, whose address is in %p, with their value in
    %v and the place's first content in %f, and put away what it gave, %old; then the array is written to *after*."""
    text = f"""{OPERATIONS}
declare ptr @spmd.shared.s.64.16(ptr)
define void @k(ptr noalias %item, ptr %first, ptr %values, ptr %olds, ptr %after) {{
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %s = call ptr @spmd.shared.s.64.16(ptr %item)
  %place = urem i32 %t, {PLACES}
  %begins = icmp ult i32 %t, {PLACES}
  %pf = getelementptr {kind}, ptr %first, i32 %place
  %f = load {kind}, ptr %pf
  %own = getelementptr {kind}, ptr {memory}, i32 %t
  br i1 %begins, label %begin, label %meet
begin:
  store {kind} %f, ptr %own
  br label %meet
meet:
  call void @spmd.barrier(ptr %item)
  %pv = getelementptr {kind}, ptr %values, i32 %t
  %v = load {kind}, ptr %pv
  %p = getelementptr {kind}, ptr {memory}, i32 %place
  {update}
  %po = getelementptr {kind}, ptr %olds, i32 %t
  store {kind} %old, ptr %po
  call void @spmd.barrier(ptr %item)
  br i1 %begins, label %end, label %out
end:
  %w = load {kind}, ptr %own
  %pa = getelementptr {kind}, ptr %after, i32 %t
  store {kind} %w, ptr %pa
  br label %out
out:
  ret void
}}"""
    return code(text, "k", [(name, "ptr") for name in ("first", "values", "olds", "after")], shared_bytes=64)


def run_update(device: Device, code_object: CodeObject, kind: str, first: Any, values: Any) -> tuple[Any, Any]:
    """What the threads of one block were given, and what is in the array afterwards."""
    function = device.load(code_object).function("k")
    arrays = [to_device(part.astype(NUMPY[kind])) for part in (first, values)]
    results = [to_device(np.zeros(part.size, NUMPY[kind])) for part in (values, first)]
    arguments = pack(function.kernel, *(array.address for array in (*arrays, *results)))
    with config.cpu_form.scope("regions"):
        function.launch(1, THREADS, arguments)
    return tuple(result.copy_to_host() for result in results)  # type: ignore[return-value]


def one_after_another(kind: str, update: Callable[[Any, Any], Any], first: Any, values: Any) -> tuple[Any, Any]:
    """The same in Python."""
    places, values = first.astype(NUMPY[kind]), values.astype(NUMPY[kind])
    olds = np.zeros(THREADS, NUMPY[kind])
    with np.errstate(over="ignore"):
        for thread, value in enumerate(values):
            place = thread % PLACES
            olds[thread] = places[place]
            places[place] = update(olds[thread], value)
    return olds, places


def unsigned(value: Any) -> Any:
    return value.view(f"u{value.itemsize}")


INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "xchg": lambda old, value: value,
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "nand": lambda old, value: ~(old & value),
    "or": operator.or_,
    "xor": operator.xor,
    "max": max,
    "min": min,
    "umax": lambda old, value: max(old, value, key=unsigned),
    "umin": lambda old, value: min(old, value, key=unsigned),
    "uinc_wrap": lambda old, value: 0 if unsigned(old) >= unsigned(value) else old + 1,
    "udec_wrap": lambda old, value: value if old == 0 or unsigned(old) > unsigned(value) else old - 1,
}
FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "xchg": lambda old, value: value,
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmax": np.fmax,
    "fmin": np.fmin,
}


def test_operations_on_integers_in_one_kernel(device: Device) -> None:
    """Each operation has bytes of the array for itself."""
    updates = "".join(
        f"""
  %here{number} = add i32 %place, {PLACES * number}
  %p{number} = getelementptr i8, ptr %s, i32 %here{number}
  %own{number} = add i32 %t, {THREADS * number}
  %pv{number} = getelementptr i8, ptr %values, i32 %own{number}
  %v{number} = load i8, ptr %pv{number}
  %old{number} = atomicrmw {operation} ptr %p{number}, i8 %v{number} monotonic
  %po{number} = getelementptr i8, ptr %olds, i32 %own{number}
  store i8 %old{number}, ptr %po{number}"""
        for number, operation in enumerate(INTEGERS)
    )
    cells = PLACES * len(INTEGERS)
    text = f"""{OPERATIONS}
declare ptr @spmd.shared.s.64.16(ptr)
define void @k(ptr noalias %item, ptr %first, ptr %values, ptr %olds, ptr %after) {{
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %s = call ptr @spmd.shared.s.64.16(ptr %item)
  %place = urem i32 %t, {PLACES}
  %moves = icmp ult i32 %t, {cells}
  %own = getelementptr i8, ptr %s, i32 %t
  br i1 %moves, label %begin, label %meet
begin:
  %pf = getelementptr i8, ptr %first, i32 %t
  %f = load i8, ptr %pf
  store i8 %f, ptr %own
  br label %meet
meet:
  call void @spmd.barrier(ptr %item){updates}
  call void @spmd.barrier(ptr %item)
  br i1 %moves, label %end, label %out
end:
  %w = load i8, ptr %own
  %pa = getelementptr i8, ptr %after, i32 %t
  store i8 %w, ptr %pa
  br label %out
out:
  ret void
}}"""
    code_object = code(text, "k", [(name, "ptr") for name in ("first", "values", "olds", "after")], shared_bytes=64)
    samples = [sample_integers(operation, "i8") for operation in INTEGERS]
    first, values = (np.concatenate(parts) for parts in zip(*samples, strict=True))
    olds, after = run_update(device, code_object, "i8", first, values)
    for number, (operation, sample) in enumerate(zip(INTEGERS, samples, strict=True)):
        expected = one_after_another("i8", INTEGERS[operation], *sample)
        for found, wanted in zip((olds, after), expected, strict=True):
            count = len(wanted)
            np.testing.assert_array_equal(found[count * number : count * (number + 1)], wanted, operation)


def sample_integers(operation: str, kind: str) -> tuple[Any, Any]:
    """What is in the places at first, and the values of the threads."""
    small = operation in ("uinc_wrap", "udec_wrap")
    most = np.iinfo(NUMPY[kind]).max
    generator = np.random.default_rng(5)
    values = generator.integers(-3 if small else -most - 1, 9 if small else most, THREADS, endpoint=True)
    return np.array([0, 1, -1, most]), values


@pytest.mark.sample(6)
@pytest.mark.parametrize(("operation", "kind"), [(name, kind) for name in INTEGERS for kind in INTEGER_KINDS])
def test_integers(device: Device, operation: str, kind: str) -> None:
    first, values = sample_integers(operation, kind)
    update = update_kernel(kind, f"%old = atomicrmw {operation} ptr %p, {kind} %v monotonic")
    for found, expected in zip(
        run_update(device, update, kind, first, values),
        one_after_another(kind, INTEGERS[operation], first, values),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("operation", FLOATS)
def test_floats(device: Device, operation: str, kind: str) -> None:
    values = np.random.default_rng(6).normal(size=THREADS) * 1e3
    values[[3, 17, 40]] = NAN, np.inf, -0.0
    first = np.array([0.0, 1.5, NAN, -np.inf])
    update = update_kernel(kind, f"%old = atomicrmw {operation} ptr %p, {kind} %v monotonic")
    for found, expected in zip(
        run_update(device, update, kind, first, values),
        one_after_another(kind, FLOATS[operation], first, values),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


def test_compare_and_swap(device: Device) -> None:
    """The first thread that comes to a place finds what it expects, and no other does."""
    update = update_kernel("i32", "%pair = cmpxchg ptr %p, i32 %f, i32 %v monotonic monotonic\n"
                           "  %old = extractvalue { i32, i1 } %pair, 0")  # fmt: skip
    first, values = np.arange(PLACES), np.arange(THREADS) + 100
    olds, after = run_update(device, update, "i32", first, values)
    np.testing.assert_array_equal(after, values[:PLACES])
    np.testing.assert_array_equal(olds, [*first, *np.tile(values[:PLACES], THREADS // PLACES - 1)])


def test_success_of_an_exchange(device: Device) -> None:
    update = update_kernel("i32", "%pair = cmpxchg weak ptr %p, i32 %f, i32 %v seq_cst monotonic\n"
                           "  %same = extractvalue { i32, i1 } %pair, 1\n  %old = zext i1 %same to i32")  # fmt: skip
    olds, _ = run_update(device, update, "i32", np.arange(PLACES), np.arange(THREADS) + 100)
    np.testing.assert_array_equal(olds, np.arange(THREADS) < PLACES)


ADDRESSES = """
  %own = alloca i32
  %shared = call ptr @spmd.shared.s.64.16(ptr %item)
  %dynamic = call ptr @spmd.dynamic_shared(ptr %item)
  %element = getelementptr i32, ptr %shared, i32 %i
  %frozen = freeze ptr %element
  %either = select i1 %c, ptr %own, ptr %frozen
  %foreign = select i1 %c, ptr %out, ptr %own
  %loaded = load ptr, ptr %own
  %number = ptrtoint ptr %own to i64
  %back = inttoptr i64 %number to ptr
  br label %head
head:
  %place = phi ptr [ %either, %entry ], [ %next, %head ]
  %next = getelementptr i32, ptr %place, i32 1
  %wanders = phi ptr [ %own, %entry ], [ %out, %head ]"""
OF_THE_BLOCK = ("own", "shared", "dynamic", "element", "frozen", "either", "place", "next")
OF_ANYONE = ("out", "foreign", "loaded", "back", "wanders")


def test_which_memory_is_of_the_block() -> None:
    names = (*OF_THE_BLOCK, *OF_ANYONE)
    updates = "".join(f"\n  %{n}.old = atomicrmw add ptr %{n}, i32 %i monotonic" for n in names)
    swaps = "".join(f"\n  %{n}.pair = cmpxchg ptr %{n}, i32 %i, i32 0 monotonic monotonic" for n in names)
    text = f"""{OPERATIONS}
declare ptr @spmd.shared.s.64.16(ptr)
define void @k(ptr %item, ptr %out, i32 %i, i1 %c) {{
entry:{ADDRESSES}{updates}{swaps}
  %volatile = atomicrmw volatile add ptr %own, i32 %i monotonic
  %rare = atomicrmw usub_sat ptr %own, i32 %i monotonic
  br i1 %c, label %head, label %done
done:
  ret void
}}"""
    graph = read_function(PrintedModule(llvm.parse_assembly(text)), "k", ir.Context())
    found = find_private_atomics(instruction for block in graph.blocks for instruction in block.instructions)
    assert {instruction.name for instruction in found} == {f"{n}.{x}" for n in OF_THE_BLOCK for x in ("old", "pair")}


@pytest.mark.sample(2)
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump (binutils) is not installed")
@pytest.mark.parametrize(
    ("address", "locked"),
    [
        ("getelementptr i32, ptr %s, i32 %place", False),
        ("select i1 %begins, ptr %s, ptr %own", False),
        ("freeze ptr %own", False),
        ("select i1 %begins, ptr %s, ptr %after", True),
        ("select i1 %begins, ptr %after, ptr %s", True),
        ("select i1 %begins, ptr %after, ptr %own", True),
        ("getelementptr i32, ptr %after, i32 %place", True),
        ("load ptr, ptr %after", True),
    ],
)
@pytest.mark.parametrize(
    "update", ["atomicrmw add ptr %q, i32 %v monotonic", "cmpxchg ptr %q, i32 %f, i32 %v monotonic monotonic"]
)
def test_only_memory_of_the_block_is_not_locked(
    device: Device, tmp_path: Path, address: str, locked: bool, update: str
) -> None:
    value = "%old = add i32 %v, 0" if "cmpxchg" in update else ""
    result = "%pair" if "cmpxchg" in update else "%old"
    code_object = update_kernel("i32", f"%q = {address}\n  {result} = {update}\n  {value}")
    path = tmp_path / "k.o"
    plain = update_kernel("i32", "%old = add i32 %v, %f")
    assert (count_locks(code_object, path) > count_locks(plain, path)) == locked


def count_locks(code_object: CodeObject, path: Path) -> int:
    """Locked instructions in the code of a kernel; the counter of blocks is always one, or two."""
    with config.cpu_form.scope("regions"):
        path.write_bytes(finalise.finalise_kernel(code_object, code_object.kernels[0], (64, 1, 1)).image)
    listing = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True).stdout
    names = ("lock ",) if "x86-64" in listing else ("ldadd", "cas", "ldxr", "ldaxr")
    return sum(listing.count(name) for name in names)


def test_dynamic_shared_memory(device: Device) -> None:
    text = f"""{OPERATIONS}
define void @k(ptr noalias %item, ptr %out) {{
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %s = call ptr @spmd.dynamic_shared(ptr %item)
  %first = icmp eq i32 %t, 0
  br i1 %first, label %begin, label %meet
begin:
  store i32 0, ptr %s
  br label %meet
meet:
  call void @spmd.barrier(ptr %item)
  %old = atomicrmw add ptr %s, i32 %t monotonic
  call void @spmd.barrier(ptr %item)
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %p = getelementptr i32, ptr %out, i32 %b
  %sum = load i32, ptr %s
  store i32 %sum, ptr %p
  ret void
}}"""
    out = to_device(np.zeros(7, np.int32))
    function = device.load(code(text, "k", [("out", "ptr")])).function("k")
    function.launch(7, 100, pack(function.kernel, out.address), dynamic_shared=4)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(7, 4950))
