"""Comparisons of consecutive numbers with a bound, of which a difference tells for how many lanes they hold."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import widen

PARAMETERS = [("y", "ptr"), ("begin", "i64"), ("bound", "i64"), ("n", "i64")]
BLOCK, COUNT = 128, 250
ENDS = {"i64": 1 << 63, "i32": 1 << 31}
PREDICATES = ["eq", "ne", *(sign + order for sign in "su" for order in ("lt", "le", "gt", "ge"))]


def comparing(kind: str, predicate: str, swapped: bool) -> str:
    """A kernel that writes whether the number of a thread, from *begin* on, is in an order with *bound*; only *n*
    threads do, and of those only one in two in the second half."""
    narrow = "trunc i64 {} to i32" if kind == "i32" else "add i64 {}, 0"
    operands = "%bound.narrow, %number" if swapped else "%number, %bound.narrow"
    return f"""
define void @k(ptr noalias %item, ptr %y, i64 %begin, i64 %bound, i64 %n) {{
{GLOBAL_X}
  %bound.narrow = {narrow.format("%bound")}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %odd = and i64 %i, 1
  %second = icmp uge i64 %i, 128
  %first = xor i1 %second, true
  %is.odd = icmp eq i64 %odd, 1
  %some = or i1 %first, %is.odd
  br i1 %some, label %write, label %out
write:
  %wide = add i64 %i, %begin
  %number = {narrow.format("%wide")}
  %holds = icmp {predicate} {kind} {operands}
  %byte = select i1 %holds, i8 1, i8 2
  %p = getelementptr i8, ptr %y, i64 %i
  store i8 %byte, ptr %p
  br label %out
out:
  ret void
}}
"""


def expected(kind: str, predicate: str, swapped: bool, start: int, bound: int) -> np.ndarray:
    """What that kernel writes for *COUNT* threads."""
    half = ENDS[kind]
    shift = 0 if predicate.startswith("u") else half
    numbers = [(number + start + shift) % (2 * half) for number in range(COUNT)]
    limit = (bound + shift) % (2 * half)
    compare = getattr(operator, predicate if predicate in ("eq", "ne") else predicate[1:])
    holds = [compare(limit, one) if swapped else compare(one, limit) for one in numbers]
    found = np.where(holds, 1, 2).astype(np.int8)
    found[128::2] = 0
    return found


def check(device: Device, predicate: str, kind: str, widths: Iterable[int]) -> None:
    """Compare numbers around both ends of their range with such that some lanes, none and all are beyond."""
    half = ENDS[kind]
    starts = [0, -3, 5 - half, half - 40, -half - 70, half]
    for width in widths:
        for swapped in (False, True):
            with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
                function = device.load(code(comparing(kind, predicate, swapped), "k", PARAMETERS)).function("k")
                for start in starts:
                    for distance in (-1, 0, 1, 31, 32, 63, 64, 65, 130, 249, 250, half, 2 - half):
                        bound = (start + distance + half) % (2 * half) - half
                        y = to_device(np.zeros(COUNT, np.int8), device=device)
                        given = (start + half) % (2 * half) - half
                        function.launch(2, BLOCK, pack(function.kernel, y.address, given, bound, COUNT))
                        wanted = expected(kind, predicate, swapped, start, bound)
                        np.testing.assert_array_equal(y.copy_to_host(), wanted, f"{width} {swapped} {start} {bound}")


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.sample(1)
def test_lanes_are_counted(device: Device, predicate: str, kind: str) -> None:
    check(device, predicate, kind, (16, 32, 64))


@pytest.mark.parametrize(("width", "kind", "counts"), [(64, "i64", 1), (64, "i32", 1), (16, "i32", 0)])
def test_few_registers_are_compared(
    device: Device, monkeypatch: pytest.MonkeyPatch, width: int, kind: str, counts: int
) -> None:
    """Numbers that fill few registers are compared as vectors."""
    written: list[object] = []
    write = widen.write_linear_mask
    monkeypatch.setattr(widen, "write_linear_mask", lambda *both: written.append(both) or write(*both))
    monkeypatch.setattr("hip_runtime.drivers.cpu.vectorize.linear_masks.has_mask_registers", lambda: True)
    monkeypatch.setattr("hip_runtime.drivers.cpu.vectorize.linear_masks.vector_bytes", lambda: 64)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(comparing(kind, "slt", False), "k", PARAMETERS)).function("k")
        y = to_device(np.zeros(COUNT, np.int8), device=device)
        function.launch(2, BLOCK, pack(function.kernel, y.address, 0, 100, COUNT))
    assert bool(written) == bool(counts)
    np.testing.assert_array_equal(y.copy_to_host(), expected(kind, "slt", False, 0, 100))
