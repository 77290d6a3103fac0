"""Private arrays that threads keep from one region to the next: interleaved by thread where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir import trace
from hip_runtime.drivers.cpu.ir.model import Function

PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("n", "i64")]
COUNT = 6
SIZES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8}


def kernel(kind: str, align: int = 8, more: str = "", last: str = "", waits: bool = True) -> str:
    """Fills an array before a barrier, changes an element that depends on data behind it, and adds them up behind
    another one; *more* and *last* is what else is done with the array, at first and in the end. Without barriers unless
    it *waits*."""
    barrier = "call void @spmd.barrier(ptr %item)" if waits else ""
    nbytes = SIZES[kind]
    fill = f"call void @llvm.memset.p0.i64(ptr align {align} %own, i8 3, i64 {COUNT * nbytes}, i1 false)"
    wide = "%bits = zext" if kind in ("i8", "i16") else "%bits = trunc" if kind == "i64" else "%bits = bitcast"
    return f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memcpy.p0.p0.i32(ptr, ptr, i32, i1)
declare void @spmd.barrier(ptr)
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
  %own = alloca [{COUNT} x {kind}], align {align}
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %px = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %px
  %v64 = zext i32 %v to i64
  {fill}
  {more}
  {barrier}
  %which = urem i64 %v64, {COUNT}
  %hit = getelementptr {kind}, ptr %own, i64 %which
  %old = load {kind}, ptr %hit
  %new = add {kind} %old, 5
  store {kind} %new, ptr %hit
  {barrier}
  br label %head
head:
  %k = phi i64 [ 0, %do ], [ %next, %head ]
  %sum = phi i32 [ 0, %do ], [ %more, %head ]
  %one = getelementptr {kind}, ptr %own, i64 %k
  %element = load {kind}, ptr %one
  %number = trunc i64 %k to i32
  {wide} {kind} %element to i32
  %weighed = mul i32 %bits, %number
  %more = add i32 %sum, %weighed
  %next = add nuw nsw i64 %k, 1
  %go = icmp ult i64 %next, {COUNT}
  br i1 %go, label %head, label %done
done:
  %place = getelementptr i32, ptr %out, i64 %i
  store i32 %more, ptr %place
  {last}
  br label %end
end:
  ret void
}}
"""


VALUES = np.random.default_rng(8).integers(0, 1 << 20, 150).astype(np.int32)


ROOM = 12
"""Words for a copy of each thread's array, behind the sums."""


def filled(kind: str) -> Any:
    """What each thread's array has at first."""
    return np.full((len(VALUES), COUNT * SIZES[kind]), 3, np.uint8).view(f"u{SIZES[kind]}")


def expected(kind: str, own: Any = None) -> Any:
    """The sum of each thread, of what it has in *own* at first; that is changed."""
    own = filled(kind) if own is None else own
    own[np.arange(len(VALUES)), VALUES % COUNT] += own.dtype.type(5)
    return (own.astype(np.uint32) * np.arange(COUNT, dtype=np.uint32)).sum(axis=1, dtype=np.uint32).view(np.int32)


def run(device: Device, text: str, form: str, width: int = 8, block: int = 37) -> tuple[Any, bool]:
    """What the kernel *text* stores, and whether its array was interleaved."""
    x, out = to_device(VALUES), to_device(np.full((1 + ROOM) * len(VALUES), -1, np.int32))
    stages: list[str] = []

    def note(stage: str, function: Function, _: Any) -> None:
        stages.append(stage)

    with config.cpu_form.scope(form), config.cpu_width.scope(width), trace.listening(note):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        launched = pack(function.kernel, out.address, x.address, len(VALUES))
        function.launch(-(-len(VALUES) // block), block, launched)
    expected_stage = "interleave_kept" if "spmd.barrier(ptr %item)" in text else "interleave_private spmd.gang"
    return out.copy_to_host(), expected_stage in stages


@pytest.mark.parametrize("form", ["regions", "vectors"])
@pytest.mark.parametrize("block", [37, 64])
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.sample(3)
def test_interleaved(device: Device, kind: str, block: int, form: str) -> None:
    found, is_interleaved = run(device, kernel(kind, 16), form, block=block)
    np.testing.assert_array_equal(found[: len(VALUES)], expected(kind))
    assert is_interleaved


ESCAPES = {
    "stored": "%held = alloca ptr\n  store volatile ptr %own, ptr %held",
    "of another size": "store volatile i16 771, ptr %own",
    "as a number": "%held = alloca i64\n  %number.own = ptrtoint ptr %own to i64\n  "
    "store volatile i64 %number.own, ptr %held",
    "between elements": "%off = getelementptr i8, ptr %own, i64 2\n  store volatile i32 50529027, ptr %off",
}


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("form", ["regions", "vectors"])
@pytest.mark.sample(3)
def test_left_as_it_is(device: Device, escape: str, form: str) -> None:
    found, is_interleaved = run(device, kernel("i32", more=ESCAPES[escape]), form)
    np.testing.assert_array_equal(found[: len(VALUES)], expected("i32"))
    assert not is_interleaved


@pytest.mark.parametrize(("form", "waits"), [("regions", True), ("vectors", True), ("vectors", False)])
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.sample(3)
def test_filled_in_part(device: Device, kind: str, form: str, waits: bool) -> None:
    """By a number of elements that differs among threads, and may be none."""
    fill = f"""
  %some = urem i64 %v64, {COUNT + 1}
  %bytes = mul i64 %some, {SIZES[kind]}
  call void @llvm.memset.p0.i64(ptr %own, i8 200, i64 %bytes, i1 false)"""
    found, is_interleaved = run(device, kernel(kind, more=fill, waits=waits), form)
    own = filled(kind)
    own[np.arange(COUNT) < VALUES[:, None] % (COUNT + 1)] = int.from_bytes(bytes([200]) * SIZES[kind], "little")
    np.testing.assert_array_equal(found[: len(VALUES)], expected(kind, own))
    assert is_interleaved


@pytest.mark.parametrize(("form", "waits"), [("regions", True), ("vectors", True), ("vectors", False)])
@pytest.mark.parametrize("word", ["i32", "i64"])
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.sample(2)
def test_copied(device: Device, kind: str, word: str, form: str, waits: bool) -> None:
    """From where a thread's number says, by as many elements as it says, and in the end to other memory."""
    count = "%v64" if word == "i64" else "%v"
    read = f"""
  %from = and i64 %v64, 63
  %source = getelementptr i32, ptr %x, i64 %from
  %some = urem {word} {count}, {COUNT + 1}
  %bytes = mul {word} %some, {SIZES[kind]}
  call void @llvm.memcpy.p0.p0.{word}(ptr %own, ptr align 1 %source, {word} %bytes, i1 false)"""
    written = f"""
  %row = mul i64 %i, {4 * ROOM}
  %behind = getelementptr i8, ptr %out, i64 {4 * len(VALUES)}
  %target = getelementptr i8, ptr %behind, i64 %row
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %own, i64 {COUNT * SIZES[kind]}, i1 false)"""
    found, is_interleaved = run(device, kernel(kind, more=read, last=written, waits=waits), form)
    own = filled(kind)
    for thread, number in enumerate(VALUES):
        source = VALUES[number & 63 :][:ROOM].view(own.dtype)
        there = source[: number % (COUNT + 1)]
        own[thread, : len(there)] = there
    sums = expected(kind, own)
    np.testing.assert_array_equal(found[: len(VALUES)], sums)
    rows = np.full((len(VALUES), 4 * ROOM), 255, np.uint8)
    rows[:, : own[0].nbytes] = own.view(np.uint8)
    np.testing.assert_array_equal(found[len(VALUES) :].view(np.uint8).reshape(rows.shape), rows)
    assert is_interleaved
