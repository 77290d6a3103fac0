"""Kernels for which distances between elements are arguments: a version of the code for what they probably are, which
is only run where they are that."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_alignments import Accesses
from test_cpu_strided import TYPES, before_a_guard

from hip_runtime import Device, Function, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.ir import remarks

VERSION = "with a version for the distances"
PARAMETERS = [("out", "ptr"), ("apart", "ptr"), ("x", "ptr"), ("n", "i64"), ("from", "i64"), ("to", "i64")]
COUNT = 75


def kernel(kind: str, channels: int, nbytes: int) -> str:
    """Adds *channels* elements of x at a distance of *from* bytes to one of out, and copies them *to* bytes apart."""
    lines, total = "", "zeroinitializer" if kind.startswith("i") else "0.0"
    add = "add" if kind.startswith("i") else "fadd"
    for number in range(channels):
        lines += f"""
  %p{number} = getelementptr i8, ptr %base, i64 {number * nbytes}
  %v{number} = load {kind}, ptr %p{number}, align 1
  %s{number} = {add} {kind} {total}, %v{number}
  %q{number} = getelementptr i8, ptr %place, i64 {number * nbytes}
  store {kind} %v{number}, ptr %q{number}, align 1
"""
        total = f"%s{number}"
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %apart, ptr noalias %x, i64 %n, i64 %from, i64 %to) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %done
do:
  %at = mul nsw i64 %i, %from
  %base = getelementptr i8, ptr %x, i64 %at
  %there = mul nsw i64 %i, %to
  %place = getelementptr i8, ptr %apart, i64 %there
{lines}
  %r = getelementptr {kind}, ptr %out, i64 %i
  store {kind} {total}, ptr %r, align 1
  br label %done
done:
  ret void
}}
""".replace("zeroinitializer", "0")


def load(device: Device, text: str, parameters: list[tuple[str, str]]) -> tuple[Function, Accesses]:
    """The kernel as vectors of 16 lanes, and what whole gangs are told to do once it was launched."""
    return device.load(code(text, "k", parameters)).function("k"), Accesses()


@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("apart", [(0, 0), (1, 0), (0, 1), (2, 3)])
@pytest.mark.sample(3)
def test_distances_as_guessed_and_others(device: Device, kind: str, channels: int, apart: tuple[int, int]) -> None:
    """Nothing beyond the last element is accessed, as there is a page behind it that must not be."""
    dtype = np.dtype(TYPES[kind])
    steps = [channels + more for more in apart]
    lengths = [(COUNT - 1) * step + channels for step in steps]
    values = np.random.default_rng(channels).integers(0, 30, lengths[0]).astype(dtype)
    out = to_device(np.zeros(COUNT, dtype))
    function, told = load(device, kernel(kind, channels, dtype.itemsize), PARAMETERS)
    nbytes = [length * dtype.itemsize for length in lengths]
    with before_a_guard(nbytes[0]) as x, before_a_guard(nbytes[1]) as place:
        ctypes.memmove(x, values.ctypes.data, nbytes[0])
        ctypes.memset(place, 0x55, nbytes[1])
        with config.cpu_form.scope("vectors"), config.cpu_width.scope(16), remarks.listening(told):
            distances = [step * dtype.itemsize for step in steps]
            function.launch(3, 32, pack(function.kernel, out.address, place, x, COUNT, *distances))
        found = np.frombuffer(ctypes.string_at(place, nbytes[1]), dtype)
    pixels = np.stack([values[number :: steps[0]][:COUNT] for number in range(channels)], axis=1)
    expected = np.frombuffer(b"\x55" * nbytes[1], dtype).copy()
    for number in range(channels):
        expected[number :: steps[1]][:COUNT] = pixels[:, number]
    np.testing.assert_array_equal(out.copy_to_host(), pixels.sum(axis=1, dtype=dtype))
    np.testing.assert_array_equal(found, expected)
    assert VERSION in function.form
    assert told.forms == {remarks.CONTIGUOUS, remarks.STRIDED}


@pytest.mark.parametrize("instructions", [10, 100])
@pytest.mark.parametrize("more", [0, 2])
def test_other_distances_have_only_code_under_a_mask_if_there_is_much(
    device: Device, instructions: int, more: int
) -> None:
    """A load of all lanes that is no vector is one for each lane, one under a mask a gather."""
    lines = ["%m0 = add i32 %s2, 1"]
    for number in range(1, instructions, 2):
        lines += [f"%m{number} = mul i32 %m{number - 1}, %m{number - 1}", f"%m{number + 1} = add i32 %m{number}, %s2"]
    text = kernel("i32", 3, 4).replace("store i32 %s2,", "\n  ".join([*lines, f"store i32 %m{number + 1},"]))
    values = np.random.default_rng(5).integers(0, 30, (COUNT, 3 + more)).astype(np.int32)
    x, out, apart = to_device(values), to_device(np.zeros(COUNT, np.int32)), to_device(np.zeros((COUNT, 3), np.int32))
    object_ = code(text, "k", PARAMETERS)
    function = device.load(object_).function("k")
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        distances = 4 * (3 + more), 12
        function.launch(3, 32, pack(function.kernel, out.address, apart.address, x.address, COUNT, *distances))
        optimised, _ = list_kernel(object_, object_.kernels[0], (32, 1, 1))
    total = values[:, :3].sum(axis=1, dtype=np.int32)
    expected = total + 1
    for _ in range(1, instructions, 2):
        expected = expected * expected + total
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    np.testing.assert_array_equal(apart.copy_to_host(), values[:, :3])
    assert VERSION in function.form
    assert (optimised.count("= load i32, ptr") >= 3 * 16) is (instructions == 10)


@pytest.mark.parametrize("distance", [0, -3])
def test_distances_that_are_no_arrays(device: Device, distance: int) -> None:
    values = np.random.default_rng(1).integers(0, 30, 3 * COUNT).astype(np.int8)
    first = 3 * (COUNT - 1) if distance < 0 else 0
    x, out, apart = to_device(values), to_device(np.zeros(COUNT, np.int8)), to_device(np.zeros(3 * COUNT, np.int8))
    function, _ = load(device, kernel("i8", 3, 1), PARAMETERS)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        arguments = (out.address, apart.address, x.address + first, COUNT, distance, 3)
        function.launch(3, 32, pack(function.kernel, *arguments))
    pixels = values.reshape(COUNT, 3)
    expected = pixels[::-1] if distance else np.broadcast_to(pixels[0], (COUNT, 3))
    np.testing.assert_array_equal(out.copy_to_host(), expected.sum(axis=1, dtype=np.int8))
    np.testing.assert_array_equal(apart.copy_to_host().reshape(COUNT, 3), expected)


NEGATIVE = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %n, i64 %by, i64 %from) {{
entry:
{GLOBAL_X}
  %j = sub nsw i64 %i, %by
  %low = icmp slt i64 %j, 0
  %more = select i1 %low, i64 %n, i64 0
  %index = add i64 %more, %j
  %at = mul nsw i64 %index, %from
  %p = getelementptr i8, ptr %x, i64 %at
  %v = load i8, ptr %p, align 1
  %p2 = getelementptr i8, ptr %p, i64 2
  %w = load i8, ptr %p2, align 1
  %s = add i8 %v, %w
  %q = getelementptr i8, ptr %out, i64 %i
  store i8 %s, ptr %q, align 1
  ret void
}}
"""


@pytest.mark.parametrize("by", [0, 1, 40, 64])
@pytest.mark.sample(2)
def test_indices_from_the_end(device: Device, by: int) -> None:
    values = np.random.default_rng(by).integers(0, 60, (64, 3)).astype(np.int8)
    x, out = to_device(values), to_device(np.zeros(64, np.int8))
    parameters = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("by", "i64"), ("from", "i64")]
    function, told = load(device, NEGATIVE, parameters)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16), remarks.listening(told):
        function.launch(2, 32, pack(function.kernel, out.address, x.address, 64, by, 3))
    pixels = values[np.arange(64) - by]
    np.testing.assert_array_equal(out.copy_to_host(), pixels[:, 0] + pixels[:, 2])
    assert VERSION in function.form
    assert told.forms == {remarks.CONTIGUOUS, remarks.STRIDED}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%at = mul nsw i64 %i, %from", "%at = mul nsw i64 %b, %from"),  # the same for all lanes
        ("getelementptr i8, ptr %base, i64 2", "getelementptr i8, ptr %base, i64 7"),  # eight elements
        ("getelementptr i8, ptr %base, i64 2", "getelementptr i8, ptr %base, i64 -2"),
        ("getelementptr i8, ptr %base, i64 2", "getelementptr i8, ptr %base, i64 %t"),
    ],
)
@pytest.mark.sample(2)
def test_what_is_no_distance_between_elements(device: Device, before: str, after: str) -> None:
    text = kernel("i8", 3, 1).replace("%there = mul nsw i64 %i, %to", "%there = mul nsw i64 %i, 3")
    assert before in text
    memory = to_device(np.zeros(4096, np.int8))
    function, _ = load(device, text.replace(before, after), PARAMETERS)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        arguments = (memory.address, memory.address, memory.address + 1024, COUNT, 3, 3)
        function.launch(3, 32, pack(function.kernel, *arguments))
    assert VERSION not in function.form
