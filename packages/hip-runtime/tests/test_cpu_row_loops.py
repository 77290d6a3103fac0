"""Loops in which each lane reads a row of its own: several elements at once, as long as there are so many."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_strided import before_a_guard

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.row_loops import ROW
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.model import ROW as ROW_OPCODE
from hip_runtime.drivers.cpu.ir.model import Instruction

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "float": np.float32, "double": np.float64}
PARAMETERS = [("out", "ptr"), ("last", "ptr"), ("x", "ptr"), ("pitch", "i64"), ("n", "i64"), ("threads", "i64")]
THREADS, BLOCK = 90, 48
Array = np.ndarray[Any, Any]


class Rows:
    """How many loads of rows were written."""

    def __init__(self) -> None:
        self.count = 0

    def began(self, function: str, width: int, rows: int) -> None:
        """A gang function is written."""

    def wrote(
        self, function: str, partial: bool, instruction: Instruction, form: str, masked: bool, depth: int, stride: int
    ) -> None:  # fmt: skip
        """An instruction was written."""
        assert (instruction.opcode == ROW_OPCODE) == (form == remarks.ROWS)
        self.count += form == remarks.ROWS

    def placed(self, name: str, nbytes: int, on_heap: bool) -> None:
        """Storage was placed."""


@dataclass(frozen=True)
class Count:
    """How a loop counts: where it begins, by how much it goes on, how its next counter compares with which end as long
    as it goes on, and where the element of an iteration is."""

    begin: str = "0"
    step: int = 1
    goes_on: str = "ne"
    end: str = "%n"
    swapped: bool = False
    leaves_first: bool = True
    place: str = "%j"


COUNTS = {
    "up": Count(),
    "up, signed": Count(goes_on="slt"),
    "up, unsigned, swapped": Count(goes_on="ult", swapped=True),
    "up, goes on first": Count(leaves_first=False),
    "down to zero": Count("%n", -1, end="0", place="%turned"),
    "down, signed": Count("%n", -1, "sgt", "0", place="%turned"),
    "up from less than zero": Count("%negative", end="0", place="%shifted"),
}
OPPOSITE = {"ne": "eq", "slt": "sge", "ult": "uge", "sgt": "sle"}
SWAPPED = {"ne": "ne", "slt": "sgt", "ult": "ugt", "sgt": "slt", "eq": "eq", "sge": "sle", "uge": "ule", "sle": "sge"}


def kernel(kind: str, count: Count) -> str:
    """Thread i computes out[i] = ((x[i, 0] * 3 + x[i, 1]) * 3 + x[i, 2]) ... of n elements, which depends on their
    order, and notes the last element and the one before."""
    floats = "f" if kind in ("float", "double") else ""
    three = "3.0" if floats else "3"
    zero = "0.0" if floats else "0"
    predicate = OPPOSITE[count.goes_on] if count.leaves_first else count.goes_on
    compared = (
        f"{SWAPPED[predicate]} i64 {count.end}, %next" if count.swapped else f"{predicate} i64 %next, {count.end}"
    )
    targets = "label %behind, label %loop" if count.leaves_first else "label %loop, label %behind"
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %last, ptr noalias %x, i64 %pitch, i64 %n, i64 %threads) {{
entry:
{GLOBAL_X}
  %negative = sub i64 0, %n
  %in = icmp slt i64 %i, %threads
  br i1 %in, label %begin, label %end
begin:
  %apart = mul i64 %i, %pitch
  %row = getelementptr i8, ptr %x, i64 %apart
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %done
loop:
  %j = phi i64 [ {count.begin}, %begin ], [ %next, %loop ]
  %sum = phi {kind} [ {zero}, %begin ], [ %more, %loop ]
  %before = phi {kind} [ {zero}, %begin ], [ %v, %loop ]
  %turned = sub i64 %n, %j
  %shifted = add i64 %j, %n
  %p = getelementptr {kind}, ptr %row, i64 {count.place}
  %v = load {kind}, ptr %p, align 1
  %thrice = {floats}mul {kind} %sum, {three}
  %more = {floats}add {kind} %thrice, %v
  %next = add i64 %j, {count.step}
  %c = icmp {compared}
  br i1 %c, {targets}
behind:
  %both = {floats}add {kind} %v, %before
  br label %done
done:
  %result = phi {kind} [ {zero}, %begin ], [ %more, %behind ]
  %noted = phi {kind} [ {zero}, %begin ], [ %both, %behind ]
  %q = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %result, ptr %q
  %r = getelementptr {kind}, ptr %last, i64 %i
  store {kind} %noted, ptr %r
  br label %end
end:
  ret void
}}
"""  # noqa: E501


def expect(x: Array) -> tuple[Array, Array]:
    """What `kernel` stores for the rows of *x*."""
    count, zero = x.shape[1], np.zeros(len(x), x.dtype)
    total = zero
    for j in range(count):
        total = (total * x.dtype.type(3) + x[:, j]).astype(x.dtype)
    return total, sum((x[:, j] for j in range(max(count - 2, 0), count)), zero)


def count_rows(device: Device, kind: str, count: Count) -> int:
    """Compare rows of all lengths up to twice of what is loaded at once, where the memory ends with the last element;
    the number of loads of rows."""
    told = Rows()
    dtype = np.dtype(TYPES[kind])
    with config.cpu_form.scope("vectors"), remarks.listening(told):
        function = device.load(code(kernel(kind, count), "k", PARAMETERS)).function("k")
        for length in range(2 * ROW + 2):
            pitch = length + length % 3
            whole = np.random.default_rng(length).integers(0, 9, (THREADS, pitch)).astype(dtype)
            rows = whole[:, :length]
            nbytes = max(THREADS * pitch - (pitch - length), 0) * dtype.itemsize
            out, last = to_device(np.full(THREADS + 6, 7, dtype)), to_device(np.full(THREADS + 6, 7, dtype))
            with before_a_guard(nbytes) as place:
                ctypes.memmove(place, whole.tobytes(), nbytes)
                function.launch(
                    2,
                    BLOCK,
                    pack(function.kernel, out.address, last.address, place, pitch * dtype.itemsize, length, THREADS),
                )
            total, noted = expect(rows)
            np.testing.assert_array_equal(out.copy_to_host()[:THREADS], total, f"{kind}, {count}, {length}")
            np.testing.assert_array_equal(last.copy_to_host()[:THREADS], noted, f"{kind}, {count}, {length}")
            assert (out.copy_to_host()[THREADS:] == 7).all()
    return told.count


def test_rows_at_known_distances(device: Device) -> None:
    """Those of a tile in shared memory, which neighbours' are 17 elements from."""
    body = """
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %n) {
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %wide = zext i32 %t to i64
  %apart = mul nuw nsw i64 %wide, 68
  %row = getelementptr i8, ptr %x, i64 %apart
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %p = getelementptr float, ptr %row, i64 %j
  %v = load float, ptr %p
  %thrice = fmul float %sum, 3.0
  %more = fadd float %thrice, %v
  %next = add i64 %j, 1
  %c = icmp ne i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  %q = getelementptr float, ptr %out, i32 %t
  store float %more, ptr %q
  ret void
}
"""
    told = Rows()
    x = np.random.default_rng(1).integers(0, 9, (32, 17)).astype(np.float32)
    with config.cpu_form.scope("vectors"), remarks.listening(told):
        function = device.load(code(body, "k", [("out", "ptr"), ("x", "ptr"), ("n", "i64")])).function("k")
        for length in range(1, 18):
            out, rows = to_device(np.full(32, 7, np.float32)), to_device(x)
            function.launch(1, 32, pack(function.kernel, out.address, rows.address, length))
            np.testing.assert_array_equal(out.copy_to_host(), expect(x[:, :length])[0])
    assert told.count == 1


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.sample(2)
def test_loops_count_in_any_way(device: Device, count: str) -> None:
    assert count_rows(device, "float", COUNTS[count]) == 1


@pytest.mark.parametrize("width", [4, 8, 64])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(2)
def test_elements_of_all_sizes(device: Device, kind: str, width: int) -> None:
    with config.cpu_width.scope(width):
        assert count_rows(device, kind, COUNTS["up"]) == 1
