"""Gangs that reach over the end of a row and are split there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes
from hip_runtime.drivers.cpu.vectorize import gang_function

PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("height", "{kind}"), ("width", "{kind}")]

NEIGHBOURS = """
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, {kind} %height, {kind} %width) {{
entry:
{index}
  {cut}
  %y = {sign}div {kind} {n}, %width
  %c = {sign}rem {kind} {n}, %width
  %inside = icmp slt {kind} %y, %height
  br i1 %inside, label %go, label %end
go:
  %columns = add nsw {kind} %width, 2
  %line = mul nsw {kind} %y, %columns
  %at = add nsw {kind} %line, %c
  %at2 = add nsw {kind} %at, 2
  %p = getelementptr i64, ptr %x, {kind} %at
  %q = getelementptr i64, ptr %x, {kind} %at2
  %left = load i64, ptr %p
  %right = load i64, ptr %q
  %odd = trunc {kind} %y to i1
  br i1 %odd, label %turn, label %keep
turn:
  %less = sub i64 %left, %right
  br label %join
keep:
  %more = add i64 %left, %right
  br label %join
join:
  %v = phi i64 [ %less, %turn ], [ %more, %keep ]
  %plain = mul nsw {kind} %y, %width
  %place = add nsw {kind} %plain, %c
  %r = getelementptr i64, ptr %out, {kind} %place
  %old = load i64, ptr %r
  %new = add i64 %old, %v
  store i64 %new, ptr %r
  br label %end
end:
  ret void
}}
"""
"""Adds to each element the sum of two that are two columns apart, in odd rows their difference; rows of the input have
two columns more."""


@pytest.fixture
def splits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether gangs are split, for each gang function with a guard that they could be split at."""
    found: list[bool] = []
    split_rows = gang_function.split_rows

    def spy(*arguments: Any, **named: Any) -> Any:
        made = split_rows(*arguments, **named)
        found.append(made is not None)
        return made

    monkeypatch.setattr(gang_function, "split_rows", spy)
    return found


def expect(shape: tuple[int, int], given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    sums = given[:, :-2] + given[:, 2:]
    sums[1::2] = given[1::2, :-2] - given[1::2, 2:]
    assert sums.shape == shape
    return 1000 + sums


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize(("block", "width"), [(96, 32), (50, 16), (33, 32), (64, 4)])
@pytest.mark.sample(2)
def test_each_element_is_computed_once(
    device: Device, splits: list[bool], kind: str, sign: str, block: int, width: int
) -> None:
    cut, n = ("", "%i") if kind == "i64" else ("%n = trunc i64 %i to i32", "%n")
    text = NEIGHBOURS.format(kind=kind, sign=sign, index=GLOBAL_X, cut=cut, n=n)
    parameters = [(name, of.format(kind=kind)) for name, of in PARAMETERS]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(text, "k", parameters)).function("k")
        for shape in ((1, 1), (9, 3), (31, 7), (20, 8), (7, 33), (12, 31), (3, 254), (2, 64), (5, 100)):
            given = np.random.default_rng(3).integers(0, 99, (shape[0], shape[1] + 2))
            out, x = to_device(np.full(shape, 1000)), to_device(given)
            blocks = shape[0] * shape[1] // block + 2
            function.launch(blocks, block, pack(function.kernel, out.address, x.address, *shape))
            np.testing.assert_array_equal(out.copy_to_host(), expect(shape, given), str(shape))
    assert splits
    assert all(splits)


PLANES = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %height, i64 %width) {{
entry:
{GLOBAL_X}
  %plane = mul nuw nsw i64 %height, %width
  %z = udiv i64 %i, %plane
  %in.plane = urem i64 %i, %plane
  %inside = icmp ult i64 %z, 3
  br i1 %inside, label %go, label %end
go:
  %y = udiv i64 %in.plane, %width
  %c = urem i64 %in.plane, %width
  %turned = mul nuw nsw i64 %y, 3
  %line = add nuw nsw i64 %turned, %z
  %first = mul nuw nsw i64 %line, %width
  %at = add nuw nsw i64 %first, %c
  %p = getelementptr i64, ptr %x, i64 %at
  %v = load i64, ptr %p
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %v, ptr %q
  br label %end
end:
  ret void
}}
"""
"""Rows of planes, in the order in which all first rows are neighbours, then all second ones."""


@pytest.mark.parametrize(("block", "width"), [(96, 32), (50, 16), (64, 8)])
def test_rows_of_planes_are_split(device: Device, splits: list[bool], block: int, width: int) -> None:
    parameters = [(name, of.format(kind="i64")) for name, of in PARAMETERS]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(PLANES, "k", parameters)).function("k")
        for height, length in ((1, 1), (9, 3), (2, 90), (31, 7), (20, 8), (7, 33), (1, 254)):
            given = np.random.default_rng(3).integers(0, 99, (height, 3, length))
            out, x = to_device(np.zeros((3, height, length), np.int64)), to_device(given)
            blocks = given.size // block + 2
            function.launch(blocks, block, pack(function.kernel, out.address, x.address, height, length))
            np.testing.assert_array_equal(out.copy_to_host(), given.transpose(1, 0, 2), f"{height} x {length}")
    assert splits
    assert all(splits)


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The widths of the gangs that begin where rows do."""
    found: list[int] = []
    follow_rows = gang_function.GangFunction.follow_rows

    def spy(made: gang_function.GangFunction, widens: bool) -> Any:
        following = follow_rows(made, widens)
        found.extend([] if following is None else [following.width])
        return following

    monkeypatch.setattr(gang_function.GangFunction, "follow_rows", spy)
    return found


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("block", [48, 64, 96, 130, 256, 512, 1000])
@pytest.mark.sample(2)
def test_short_kernels_have_wide_gangs(device: Device, widths: list[int], kind: str, block: int) -> None:
    """Elements have four bytes, so the values of twice as many lanes still fit into registers. Blocks of less than 512
    threads are joined."""
    cut, n = ("", "%i") if kind == "i64" else ("%n = trunc i64 %i to i32", "%n")
    text = NEIGHBOURS.replace("i64", "i32").format(kind=kind, sign="s", index=GLOBAL_X, cut=cut, n=n)
    parameters = [(name, of.format(kind=kind)) for name, of in PARAMETERS]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", parameters)).function("k")
        for shape in ((1, 1), (9, 3), (31, 17), (40, 33), (12, 63), (5, 64), (7, 65), (3, 254), (2, 1000)):
            given = np.random.default_rng(3).integers(0, 99, (shape[0], shape[1] + 2), np.int32)
            out, x = to_device(np.full(shape, 1000, np.int32)), to_device(given)
            blocks = shape[0] * shape[1] // block + 2
            function.launch(blocks, block, pack(function.kernel, out.address, x.address, *shape))
            np.testing.assert_array_equal(out.copy_to_host(), expect(shape, given), str(shape))
    assert widths == [2 * default_lanes()]
    assert ("blocks" in function.form) == (block < 512)


BOXES = f"""
define void @k(ptr noalias %item, ptr noalias %out, i64 %n, i64 %h, i64 %w) {{
entry:
{GLOBAL_X}
  %there = icmp slt i64 %i, %n
  br i1 %there, label %go, label %end
go:
  %plane = mul i64 %h, %w
  %z = sdiv i64 %i, %plane
  %rest = srem i64 %i, %plane
  %y = sdiv i64 %rest, %w
  %x = srem i64 %rest, %w
  %zh = mul i64 %z, %h
  %zy = add i64 %zh, %y
  %zyw = mul i64 %zy, %w
  %at = add i64 %zyw, %x
  %p = getelementptr i64, ptr %out, i64 %at
  %y100 = mul i64 %y, 1000
  %z100 = mul i64 %z, 1000000
  %xy = add i64 %x, %y100
  %v = add i64 %xy, %z100
  store i64 %v, ptr %p
  br label %end
end:
  ret void
}}
"""


@pytest.mark.parametrize("form", ["auto", "vectors"])
def test_planes_rows_and_columns(device: Device, form: str) -> None:
    parameters = [("out", "ptr"), ("n", "i64"), ("h", "i64"), ("w", "i64")]
    with config.cpu_form.scope(form), config.cpu_width.scope(16):
        function = device.load(code(BOXES, "k", parameters)).function("k")
        for shape in ((3, 5, 7), (4, 3, 37), (2, 9, 16), (5, 2, 100), (200, 1, 1), (1, 1, 300)):
            z, y, x = np.indices(shape)
            out = to_device(np.zeros(shape, np.int64))
            function.launch(z.size // 80 + 1, 80, pack(function.kernel, out.address, z.size, *shape[1:]))
            np.testing.assert_array_equal(out.copy_to_host(), x + 1000 * y + 1000000 * z, str(shape))


NUMBERED = f"""
declare i32 @spmd.lane(ptr)
define void @k(ptr noalias %item, ptr noalias %out, i64 %n, i64 %width) {{
entry:
{GLOBAL_X}
  %y = udiv i64 %i, %width
  %c = urem i64 %i, %width
  %lane = call i32 @spmd.lane(ptr %item)
  %wide = zext i32 %lane to i64
  %line = mul i64 %c, %n
  %at = add i64 %line, %y
  %p = getelementptr i64, ptr %out, i64 %at
  store i64 %wide, ptr %p
  ret void
}}
"""


def test_lanes_that_know_their_number_are_not_split(device: Device, splits: list[bool]) -> None:
    parameters = [("out", "ptr"), ("n", "i64"), ("width", "i64")]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(32):
        function = device.load(code(NUMBERED, "k", parameters)).function("k")
        out = to_device(np.zeros(640, np.int64))
        function.launch(10, 64, pack(function.kernel, out.address, 16, 40))
        np.testing.assert_array_equal(out.copy_to_host().reshape(40, 16).T.ravel(), np.arange(640) % 64)
    assert splits == [False]


WIDENED = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %row, i32 %n, i64 %w) {{
entry:
{GLOBAL_X}
  %in = icmp slt i32 %t32, %n
  br i1 %in, label %go, label %end
go:
  %first = mul nuw nsw i32 %b32, 40
  %narrow = add nuw nsw i32 %first, %t32
  %wide = zext nneg i32 %narrow to i64
  %x = urem i64 %wide, %w
  %from = getelementptr inbounds i64, ptr %row, i64 %x
  %v = load i64, ptr %from
  %p = getelementptr inbounds i64, ptr %out, i64 %i
  store i64 %v, ptr %p
  br label %end
end:
  ret void
}}
"""
"""Widens the index behind the check, where it is not known of inactive lanes that the sum does not wrap."""


def test_an_index_that_is_widened_behind_a_check(device: Device) -> None:
    parameters = [("out", "ptr"), ("row", "ptr"), ("n", "i32"), ("w", "i64")]
    index = np.arange(160)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        function = device.load(code(WIDENED, "k", parameters)).function("k")
        for count, width in ((40, 66), (37, 33), (5, 70), (40, 7)):
            out, row = to_device(np.full(160, -1)), to_device(np.arange(width) * 3)
            function.launch(4, 40, pack(function.kernel, out.address, row.address, count, width))
            np.testing.assert_array_equal(out.copy_to_host(), np.where(index % 40 < count, index % width * 3, -1))
