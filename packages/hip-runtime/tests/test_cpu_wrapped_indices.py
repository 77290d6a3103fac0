"""Indices that begin anew at an edge, as on a torus: consecutive in gangs of which no lane is at the edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device

COUNT, BLOCK, WIDTH, TABLE, ELSEWHERE = 160, 40, 16, 1024, 900
PARAMETERS = [("out", "ptr"), ("table", "ptr"), ("first", "i64"), ("bound", "i64"), ("elsewhere", "i64")]
Array = np.ndarray[Any, Any]

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda one, other: one == other,
    "ne": lambda one, other: one != other,
    "lt": lambda one, other: one < other,
    "le": lambda one, other: one <= other,
    "gt": lambda one, other: one > other,
    "ge": lambda one, other: one >= other,
}


def wrap(kind: str, predicate: str, stride: int, is_chosen: bool, is_first: bool) -> str:
    """A kernel that loads ``table[y % TABLE]``: ``y`` is ``ELSEWHERE`` if ``x + 3`` is to the bound as *predicate*
    says, or if it is not unless *is_chosen*; else it is ``x``, which is ``first + i * stride``. What is compared
    *is_first*, or last."""
    width = int(kind[1:])
    mask = min(TABLE, 1 << width - 1) - 1
    cut = "add i64 {}, 0" if kind == "i64" else f"trunc i64 {{}} to {kind}"
    wide = f"add i64 %y, {mask + 1}" if kind == "i64" else f"zext {kind} %y to i64"
    arms = f"{kind} %limit, {kind} %x" if is_chosen else f"{kind} %x, {kind} %limit"
    compared = f"{predicate} {kind} %further, %n"
    if not is_first:
        compared = f"{predicate.translate(str.maketrans('lg', 'gl'))} {kind} %n, %further"
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %bound, i64 %elsewhere) {{
entry:
{GLOBAL_X}
  %scaled = mul i64 %i, {stride}
  %sum = add i64 %first, %scaled
  %x = {cut.format("%sum")}
  %n = {cut.format("%bound")}
  %limit = {cut.format("%elsewhere")}
  %further = add {kind} %x, 3
  %c = icmp {compared}
  %y = select i1 %c, {arms}
  %wide = {wide}
  %at = and i64 %wide, {mask}
  %p = getelementptr i32, ptr %table, i64 %at
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q
  ret void
}}
"""


def expect(kind: str, predicate: str, stride: int, is_chosen: bool, first: int, bound: int, table: Array) -> Array:
    """What `wrap` stores, computed with Python's integers."""
    bits = int(kind[1:])

    def cut(number: int) -> int:
        number %= 1 << bits
        return number - (1 << bits) if predicate[0] in "se" and number >> (bits - 1) else number

    compare = COMPARE[predicate if predicate in COMPARE else predicate[1:]]
    found = []
    for i in range(COUNT):
        x = first + i * stride
        at_edge = compare(cut(x + 3), cut(bound)) == is_chosen
        y = ELSEWHERE if at_edge else x
        found.append(y % min(TABLE, 1 << bits - 1))
    return table[found]


@pytest.mark.sample(3)
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("is_chosen", [True, False])
@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
@pytest.mark.parametrize("stride", [1, -1, 3])
@pytest.mark.parametrize("predicate", ["eq", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_numbers_that_begin_anew(
    device: Device, coherent_versions: list[int], kind: str, stride: int, predicate: str, is_chosen: bool,
    is_first: bool,
) -> None:  # fmt: skip
    bits = int(kind[1:])
    table = np.random.default_rng(7).integers(0, 1 << 20, TABLE, np.int32)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(wrap(kind, predicate, stride, is_chosen, is_first), "k", PARAMETERS)).function("k")
        memory = to_device(table)
        for bound in (0, 1, 40, -3, 100, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1):
            for first in (0, -3, 3, -20, 60, bound - 60, bound + 40, (1 << bits - 1) - 70, (1 << bits) - 70):
                wrapped = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in (first, bound)]
                out = to_device(np.zeros(COUNT, np.int32))
                function.launch(
                    COUNT // BLOCK, BLOCK, pack(function.kernel, out.address, memory.address, *wrapped, ELSEWHERE)
                )
                expected = expect(kind, predicate, stride, is_chosen, *wrapped, table)
                np.testing.assert_array_equal(out.copy_to_host(), expected, f"{first}, {bound}")
    is_versioned = predicate != "eq" or is_chosen  # else nearly all lanes load the same element
    assert max(coherent_versions) == is_versioned


LOADED = """
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %bound, i64 %elsewhere) {{
entry:
{index}
  %place = getelementptr i64, ptr %table, i64 %i
  %x = add i64 %first, %i
  %data = load i64, ptr %place
  %c = icmp slt i64 {compared}
  %y = select i1 %c, i64 {taken}, i64 {otherwise}
  %at = and i64 %y, 1023
  %p = getelementptr i32, ptr %table, i64 %at
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q
  ret void
}}
"""


@pytest.mark.parametrize(("compared", "taken", "otherwise"), [
    ("%data, %bound", "%elsewhere", "%x"),
    ("%x, %data", "%elsewhere", "%x"),
    ("%x, %bound", "%data", "%x"),
    ("%x, %bound", "%x", "%data"),
])  # fmt: skip
@pytest.mark.sample(2)
def test_data_decides(
    device: Device, coherent_versions: list[int], compared: str, taken: str, otherwise: str
) -> None:  # fmt: skip
    """What is loaded differs from lane to lane, so neither end of the gang tells anything."""
    text = LOADED.format(index=GLOBAL_X, compared=compared, taken=taken, otherwise=otherwise)
    table = np.random.default_rng(7).integers(0, 160, 512)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        memory = to_device(table)
        for first, bound in ((0, 50), (3, 0), (-5, 100), (20, 160)):
            out = to_device(np.zeros(COUNT, np.int32))
            function.launch(COUNT // BLOCK, BLOCK, pack(function.kernel, out.address, memory.address, first, bound, 7))
            values = {
                "%x": np.arange(COUNT) + first, "%data": table[:COUNT], "%bound": np.full(COUNT, bound),
                "%elsewhere": np.full(COUNT, 7),
            }  # fmt: skip
            left, right = (values[name] for name in compared.split(", "))
            places = np.where(left < right, values[taken], values[otherwise]) & 1023
            np.testing.assert_array_equal(out.copy_to_host(), table.view(np.int32)[places], f"{first}, {bound}")
    assert max(coherent_versions) == 0


JUMPS = """
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %bound, i64 %elsewhere) {{
entry:
{index}
  %x = add i64 %first, %i
  %c = icmp {predicate} i64 %x, %bound
  %by = select i1 %c, i64 {taken}, i64 {otherwise}
  %y = add i64 %x, %by
  %p = getelementptr i32, ptr %table, i64 %y
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q
  ret void
}}
"""


@pytest.mark.parametrize(("predicate", "taken", "otherwise", "is_versioned"), [
    ("slt", 1, -100, True),
    ("sgt", -100, 1, True),
    ("ult", 1, 200, True),
    ("eq", 300, -1, True),
    ("eq", -1, 300, False),
    ("slt", 2, -1, False),
])  # fmt: skip
@pytest.mark.sample(2)
def test_jumps_at_an_edge(
    device: Device, coherent_versions: list[int], predicate: str, taken: int, otherwise: int, is_versioned: bool
) -> None:
    text = JUMPS.format(index=GLOBAL_X, predicate=predicate, taken=taken, otherwise=otherwise)
    table = np.random.default_rng(7).integers(0, 1 << 20, TABLE, np.int32)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        memory = to_device(table)
        for first, bound in ((150, 200), (150, 150), (150, 149), (150, 309), (150, 310), (200, 0), (200, 1000)):
            out = to_device(np.zeros(COUNT, np.int32))
            function.launch(COUNT // BLOCK, BLOCK, pack(function.kernel, out.address, memory.address, first, bound, 0))
            compare = COMPARE[predicate if predicate in COMPARE else predicate[1:]]
            places = [x + (taken if compare(x, bound) else otherwise) for x in range(first, first + COUNT)]
            np.testing.assert_array_equal(out.copy_to_host(), table[places], f"{first}, {bound}")
    assert max(coherent_versions) == is_versioned
