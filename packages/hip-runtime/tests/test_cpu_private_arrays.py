"""Private arrays of threads that run as lanes: interleaved by lane where that is possible, else one after another."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS, GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.private_arrays import find_private_arrays
from hip_runtime.drivers.cpu.analyses.type_sizes import measure_types
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine

PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("n", "i64")]
HEAD = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {
entry:
"""
INDEX = f"""{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %px = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %px
  %v64 = zext i32 %v to i64
  %place = getelementptr i32, ptr %out, i64 %i
"""
END = """
end:
  ret void
}
"""


CASTS = {
    "i8": "zext i8 %element to i32", "i16": "zext i16 %element to i32", "i32": "add i32 %element, 0",
    "i64": "trunc i64 %element to i32",
}  # fmt: skip
"""An element as 32 bits."""


def filled(kind: str, count: int, nbytes: int, byte: int) -> str:
    """An array that is filled by one call, and then read and written at an index that depends on data."""
    return f"""{HEAD}
  %own = alloca [{count} x {kind}], align 8
{INDEX}
  call void @llvm.memset.p0.i64(ptr %own, i8 {byte}, i64 {count * nbytes}, i1 false)
  %which = urem i64 %v64, {count}
  %hit = getelementptr {kind}, ptr %own, i64 %which
  %old = load {kind}, ptr %hit
  %new = add {kind} %old, 5
  store {kind} %new, ptr %hit
  br label %head
head:
  %k = phi i64 [ 0, %do ], [ %next, %head ]
  %sum = phi i32 [ 0, %do ], [ %more, %head ]
  %one = getelementptr {kind}, ptr %own, i64 %k
  %element = load {kind}, ptr %one
  %number = trunc i64 %k to i32
  %bits = {CASTS[kind]}
  %weighed = mul i32 %bits, %number
  %more = add i32 %sum, %weighed
  %next = add nuw nsw i64 %k, 1
  %go = icmp ult i64 %next, {count}
  br i1 %go, label %head, label %done
done:
  store i32 %more, ptr %place
  br label %end
{END}"""


def run(device: Device, text: str, values: Any, width: int, block: int = 37) -> Any:
    x, out = to_device(values), to_device(np.full(len(values), -1, np.int32))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        launched = pack(function.kernel, out.address, x.address, len(values))
        function.launch(-(-len(values) // block), block, launched)
    return out.copy_to_host()


VALUES = np.random.default_rng(5).integers(0, 1 << 20, 150).astype(np.int32)


@pytest.mark.parametrize("width", [4, 32])
@pytest.mark.parametrize(("kind", "count", "byte"), [("i8", 40, 3), ("i16", 5, -2), ("i32", 16, 0), ("i64", 17, 1)])
@pytest.mark.sample(3)
def test_filled(device: Device, kind: str, count: int, byte: int, width: int) -> None:
    nbytes = int(kind[1:]) // 8
    found = run(device, filled(kind, count, nbytes, byte), VALUES, width)
    own = np.full((len(VALUES), count * nbytes), byte, np.int8).view(f"u{nbytes}")
    own[np.arange(len(VALUES)), VALUES % count] += own.dtype.type(5)
    sums = (own.astype(np.uint32) * np.arange(count, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
    np.testing.assert_array_equal(found, sums.view(np.int32))


def copied(kind: str, count: int, nbytes: int, waits: bool) -> str:
    """An array whose elements are written one by one, and copied to the second element on of another, of which one is
    then changed at an index that depends on data."""
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @spmd.barrier(ptr) convergent
{HEAD}
  %own = alloca [{count} x {kind}], align 8
  %other = alloca [{count + 1} x {kind}], align 8
{INDEX}
  br label %fill
fill:
  %f = phi i64 [ 0, %do ], [ %f.next, %fill ]
  %f.sum = add i64 %f, %v64
  %f.value = {"add i64 %f.sum, 0" if nbytes == 8 else f"trunc i64 %f.sum to {kind}"}
  %f.at = getelementptr {kind}, ptr %own, i64 %f
  store {kind} %f.value, ptr %f.at
  %f.next = add nuw nsw i64 %f, 1
  %f.go = icmp ult i64 %f.next, {count}
  br i1 %f.go, label %fill, label %copy
copy:
  store {kind} 7, ptr %other
  %second = getelementptr {kind}, ptr %other, i64 1
  call void @llvm.memcpy.p0.p0.i64(ptr %second, ptr %own, i64 {count * nbytes}, i1 false)
  {"call void @spmd.barrier(ptr %item)" if waits else ""}
  %which = urem i64 %v64, {count}
  %hit = getelementptr {kind}, ptr %other, i64 %which
  store {kind} 1, ptr %hit
  br label %head
head:
  %k = phi i64 [ 0, %copy ], [ %next, %head ]
  %sum = phi i32 [ 0, %copy ], [ %more, %head ]
  %one = getelementptr {kind}, ptr %other, i64 %k
  %element = load {kind}, ptr %one
  %number = trunc i64 %k to i32
  %bits = {CASTS[kind]}
  %weighed = mul i32 %bits, %number
  %more = add i32 %sum, %weighed
  %next = add nuw nsw i64 %k, 1
  %go = icmp ule i64 %next, {count}
  br i1 %go, label %head, label %done
done:
  store i32 %more, ptr %place
  br label %end
{END}"""


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("width", [4, 32])
@pytest.mark.parametrize(("kind", "count"), [("i8", 40), ("i16", 5), ("i32", 16), ("i64", 17), ("i64", 51)])
@pytest.mark.sample(4)
def test_copied_from_one_array_to_another(device: Device, kind: str, count: int, width: int, waits: bool) -> None:
    nbytes = int(kind[1:]) // 8
    text = copied(kind, count, nbytes, waits)
    graph = read_function(PrintedModule(llvm.parse_assembly(text + DECLARATIONS)), "k", ir.Context())
    assert element_sizes_in(graph) == [nbytes, nbytes]
    other = np.zeros((len(VALUES), count + 1), f"u{nbytes}")
    other[:, 0] = 7
    other[:, 1:] = VALUES[:, None] + np.arange(count)
    other[np.arange(len(VALUES)), VALUES % count] = 1
    sums = (other.astype(np.uint32) * np.arange(count + 1, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
    np.testing.assert_array_equal(run(device, text, VALUES, width), sums.view(np.int32))


SORT = f"""{HEAD}
  %own = alloca [8 x i32]
{INDEX}
  br label %draw
draw:
  %k = phi i64 [ 0, %do ], [ %k.next, %draw ]
  %seed = phi i32 [ %v, %do ], [ %seed.next, %draw ]
  %seed.times = mul i32 %seed, 1664525
  %seed.next = add i32 %seed.times, 1013904223
  %drawn = lshr i32 %seed.next, 16
  %at = getelementptr i32, ptr %own, i64 %k
  store i32 %drawn, ptr %at
  %k.next = add nuw nsw i64 %k, 1
  %k.more = icmp ult i64 %k.next, 8
  br i1 %k.more, label %draw, label %insert
insert:
  %p = phi i64 [ 1, %draw ], [ %p.next, %settled ]
  %p.at = getelementptr i32, ptr %own, i64 %p
  %value = load i32, ptr %p.at
  br label %sift
sift:
  %m = phi i64 [ %p, %insert ], [ %below, %moves ]
  %first = icmp eq i64 %m, 0
  br i1 %first, label %settled, label %compares
compares:
  %below = add nsw i64 %m, -1
  %below.at = getelementptr i32, ptr %own, i64 %below
  %under = load i32, ptr %below.at
  %larger = icmp ugt i32 %under, %value
  br i1 %larger, label %moves, label %settled
moves:
  %m.at = getelementptr i32, ptr %own, i64 %m
  store i32 %under, ptr %m.at
  br label %sift
settled:
  %rest.at = getelementptr i32, ptr %own, i64 %m
  store i32 %value, ptr %rest.at
  %p.next = add nuw nsw i64 %p, 1
  %p.more = icmp ult i64 %p.next, 8
  br i1 %p.more, label %insert, label %sorted
sorted:
  %median.at = getelementptr i8, ptr %own, i64 12
  %median = load i32, ptr %median.at
  store i32 %median, ptr %place
  br label %end
{END}"""
"""Sorts eight numbers by insertion: elements that are moved at an index that differs among lanes."""


@pytest.mark.parametrize("width", [2, 8, 64])
def test_sorted(device: Device, width: int) -> None:
    drawn, seed = [], VALUES.astype(np.uint32)
    for _ in range(8):
        seed = seed * np.uint32(1664525) + np.uint32(1013904223)
        drawn.append(seed >> np.uint32(16))
    expected = np.sort(np.array(drawn), axis=0)[3]
    np.testing.assert_array_equal(run(device, SORT, VALUES, width, block=70), expected.view(np.int32))


MASKED = f"""{HEAD}
  %own = alloca [3 x i32]
{INDEX}
  %second = getelementptr [3 x i32], ptr %own, i64 0, i64 1
  store i32 7, ptr %own
  store i32 %v, ptr %second
  %odd = trunc i32 %v to i1
  br i1 %odd, label %changes, label %reads
changes:
  store i32 9, ptr %own
  %old = load i32, ptr %second
  %more = mul i32 %old, 3
  store volatile i32 %more, ptr %second
  br label %reads
reads:
  %first = load i32, ptr %own
  %last = load volatile i32, ptr %second
  %sum = add i32 %first, %last
  store i32 %sum, ptr %place
  br label %end
{END}"""
"""Lanes that are not in a branch keep their elements."""


@pytest.mark.parametrize("width", [4, 32])
def test_changed_by_some_lanes(device: Device, width: int) -> None:
    expected = np.where(VALUES & 1, 9 + 3 * VALUES, 7 + VALUES)
    np.testing.assert_array_equal(run(device, MASKED, VALUES, width), expected)


ATOMIC = f"""{HEAD}
  %own = alloca [4 x i32]
{INDEX}
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 16, i1 false)
  %which = and i64 %v64, 3
  %hit = getelementptr i32, ptr %own, i64 %which
  %old = atomicrmw add ptr %hit, i32 %v monotonic
  %third.at = getelementptr i32, ptr %own, i64 2
  %swapped = cmpxchg ptr %third.at, i32 0, i32 77 monotonic monotonic
  %third = load i32, ptr %third.at
  %found = load i32, ptr %hit
  %sum = add i32 %third, %found
  store i32 %sum, ptr %place
  br label %end
{END}"""


def test_atomic_operations(device: Device) -> None:
    third = VALUES & 3 == 2
    nonzero = third & (VALUES != 0)
    expected = np.where(nonzero, 2 * VALUES, np.where(third, 154, 77 + VALUES))
    np.testing.assert_array_equal(run(device, ATOMIC, VALUES, 8), expected)


def body(*lines: str) -> Function:
    """The graph of a function with *lines*."""
    module = llvm.parse_assembly(
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\ndeclare void @take(ptr)\n"
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        "define void @k(i64 %i, ptr %out, i1 %c) {\nentry:\n" + "\n".join(lines) + "\n  ret void\n}"
    )
    return read_function(PrintedModule(module), "k", ir.Context())


def element_sizes(*lines: str) -> list[int]:
    """Of the arrays that can be interleaved."""
    return element_sizes_in(body(*lines))


def element_sizes_in(function: Function) -> list[int]:
    found = find_private_arrays(function, measure_types(target_machine().target_data, ir.Context()))
    return [array.nbytes for array in found.values()]


A = "%a = alloca [8 x i32]"
AT = "%p = getelementptr i32, ptr %a, i64 %i"
LOAD = "%v = load i32, ptr %p"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([A, AT, LOAD], [4]),
        (["%a = alloca [8 x {float, float}]", "%q = getelementptr {float, float}, ptr %a, i64 %i",
          "%p = getelementptr i8, ptr %q, i64 4", "%v = load float, ptr %p", "%w = load float, ptr %q"], [4]),
        ([A, "%s = shl i64 %i, 2", "%p = getelementptr i8, ptr %a, i64 %s", LOAD], [4]),
        ([A, "%s = mul i64 %i, 12", "%p = getelementptr i8, ptr %a, i64 %s", LOAD], [4]),
        ([A, "%s = shl i64 %i, 1", "%p = getelementptr i8, ptr %a, i64 %s", LOAD], []),
        ([A, "%p = getelementptr i8, ptr %a, i64 6", LOAD], []),
        ([A, "%s = and i64 %i, 28", "%t = select i1 %c, i64 %s, i64 4", "%u = add i64 %t, 8",
          "%p = getelementptr i8, ptr %a, i64 %u", LOAD], [4]),
        ([A, AT, LOAD, "store i16 1, ptr %a"], []),
        ([A, AT, LOAD, "store ptr %a, ptr %out"], []),
        ([A, AT, LOAD, "call void @take(ptr %p)"], []),
        ([A, AT, LOAD, "%e = icmp eq ptr %p, %out"], []),
        ([A, "%p = select i1 %c, ptr %a, ptr %out", LOAD], []),
        (["%a = alloca [8 x {i32, i64}]", "%p = getelementptr {i32, i64}, ptr %a, i64 %i, i32 1", LOAD], []),
        ([A, AT, LOAD, "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 32, i1 false)"], [4]),
        ([A, AT, LOAD, "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 30, i1 false)"], []),
        ([A, AT, LOAD, "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %i, i1 false)"], []),
        ([A, AT, LOAD, "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 32, i1 true)"], []),
        ([A, AT, LOAD, "%s = shl i64 %i, 2", "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %s, i1 false)"], [4]),
        ([A, AT, LOAD, "call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %a, i64 32, i1 false)"], [4]),
        ([A, AT, LOAD, "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %out, i64 8, i1 false)"], [4]),
        ([A, AT, LOAD, "call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %out, i64 30, i1 false)"], []),
        ([A, AT, LOAD, "call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %out, i64 32, i1 true)"], []),
        ([A, AT, LOAD, "%b = alloca [8 x i32]", "call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 32, i1 false)",
          "%w = load i32, ptr %b"], [4, 4]),
        ([A, AT, LOAD, "%b = alloca [8 x i64]", "call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 32, i1 false)",
          "%w = load i64, ptr %b"], []),
        ([A, AT, LOAD, "%b = alloca [8 x i32]", "%w = load i32, ptr %b", "call void @take(ptr %b)",
          "%c3 = alloca [8 x i32]", "%x = load i32, ptr %c3",
          "call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 32, i1 false)",
          "call void @llvm.memcpy.p0.p0.i64(ptr %c3, ptr %a, i64 32, i1 false)"], []),
        ([A], []),
        ([A, AT, LOAD, "%b = alloca [2 x i64]", "store i64 %i, ptr %b"], [4, 8]),
    ],
)  # fmt: skip
def test_which_arrays_are_interleaved(lines: list[str], expected: list[int]) -> None:
    assert element_sizes(*lines) == expected


KNOWN = f"""{HEAD}
  %own = alloca [8 x i32]
{INDEX}
  br label %writes
writes:
  %k = phi i64 [ 0, %do ], [ %k.next, %writes ]
  %k32 = trunc i64 %k to i32
  %number = mul i32 %v, %k32
  %at = getelementptr i32, ptr %own, i64 %k
  store i32 %number, ptr %at
  %k.next = add nuw nsw i64 %k, 1
  %k.more = icmp ult i64 %k.next, 8
  br i1 %k.more, label %writes, label %reads
reads:
  %j = phi i64 [ 7, %writes ], [ %j.next, %reads ]
  %sum = phi i32 [ 0, %writes ], [ %sum.next, %reads ]
  %j.at = getelementptr i32, ptr %own, i64 %j
  %found = load i32, ptr %j.at
  %times = mul i32 %sum, 3
  %sum.next = add i32 %times, %found
  %j.next = add nsw i64 %j, -1
  %j.more = icmp sgt i64 %j, 0
  br i1 %j.more, label %reads, label %done
done:
  store i32 %sum.next, ptr %place
  br label %end
{END}"""


def test_arrays_whose_elements_are_known_are_registers(device: Device) -> None:
    expected = np.zeros(len(VALUES), np.int32)
    for number in reversed(range(8)):
        expected = expected * 3 + VALUES * number
    np.testing.assert_array_equal(run(device, KNOWN, VALUES, 8), expected)
    made = code(KNOWN.replace("icmp slt i64 %i, %n", "icmp eq i64 0, 0"), "k", PARAMETERS)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(8):
        optimised, _ = list_kernel(made, made.kernels[0], (64, 1, 1))
    assert "%private" not in optimised
