"""Lanes that load and store every second, third or fourth element: contiguous vectors and shuffles, for elements of all
sizes, and nothing beyond the last lane's element. Under a mask, no element of another lane."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_alignments import Accesses

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers, spreads_masks

UNDER_MASK = remarks.STRIDED if spreads_masks() else remarks.GATHERED

TYPES = {"i8": np.int8, "i16": np.int16, "float": np.float32, "double": np.float64}
PARAMETERS = [("out", "ptr"), ("apart", "ptr"), ("x", "ptr")]


def kernel(kind: str, step: int, align: int = 1) -> str:
    """Loads every *step*-th element of x, and stores it to neighbouring elements of out and *step* apart."""
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %apart, ptr noalias %x) {{
entry:
{GLOBAL_X}
  %at = mul nsw i64 %i, {step}
  %p = getelementptr {kind}, ptr %x, i64 %at
  %v = load {kind}, ptr %p, align {align}
  %q = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %v, ptr %q, align 1
  %r = getelementptr {kind}, ptr %apart, i64 %at
  store {kind} %v, ptr %r, align 1
  ret void
}}
"""


def masked_kernel(kind: str, step: int, align: int = 1) -> str:
    """Does that, from x + *first* elements on, in threads whose flag is set."""
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %apart, ptr noalias %x, ptr %flags, i64 %base) {{
entry:
{GLOBAL_X}
  %f = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %f
  %on = icmp ne i8 %flag, 0
  br i1 %on, label %do, label %end
do:
  %times = mul i64 %i, {step}
  %at = add i64 %times, %base
  %p = getelementptr {kind}, ptr %x, i64 %at
  %v = load {kind}, ptr %p, align {align}
  %q = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %v, ptr %q, align 1
  %r = getelementptr {kind}, ptr %apart, i64 %at
  store {kind} %v, ptr %r, align {align}
  br label %end
end:
  ret void
}}
"""


MASKED_PARAMETERS = [*PARAMETERS, ("flags", "ptr"), ("first", "i64")]


def before_a_guard(nbytes: int) -> AbstractContextManager[int]:
    """The address of *nbytes* of memory behind which no page may be accessed."""
    return _guarded(nbytes, behind=True)


def behind_a_guard(nbytes: int) -> AbstractContextManager[int]:
    """The address of *nbytes* of memory before which no page may be accessed."""
    return _guarded(nbytes, behind=False)


@contextmanager
def _guarded(nbytes: int, behind: bool) -> Iterator[int]:
    page = mmap.PAGESIZE
    size = -(-nbytes // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    hold = ctypes.c_char.from_buffer(memory)
    begin = ctypes.addressof(hold) + page
    guards = [begin - page, begin + size]
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    for guard in guards:
        assert mprotect(ctypes.c_void_p(guard), page, 0) == 0
    try:
        yield begin + size - nbytes if behind else begin
    finally:
        for guard in guards:
            assert mprotect(ctypes.c_void_p(guard), page, 3) == 0
        del hold
        memory.close()


@pytest.mark.parametrize("width", [2, 4, 8, 32])
@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(5)
def test_every_nth_element_up_to_the_end_of_memory(device: Device, kind: str, step: int, width: int) -> None:
    count, dtype = 64, TYPES[kind]
    values = np.random.default_rng(step).integers(0, 100, (count - 1) * step + 1).astype(dtype)
    told = Accesses()
    out = to_device(np.zeros(count, dtype))
    with before_a_guard(values.nbytes) as x, before_a_guard(values.nbytes) as apart:
        ctypes.memmove(x, values.ctypes.data, values.nbytes)
        ctypes.memset(apart, 0x55, values.nbytes)
        with config.cpu_form.scope("vectors"), config.cpu_width.scope(width), remarks.listening(told):
            function = device.load(code(kernel(kind, step), "k", PARAMETERS)).function("k")
            function.launch(2, 32, pack(function.kernel, out.address, apart, x))
        found = np.frombuffer(ctypes.string_at(apart, values.nbytes), dtype)
    expected = np.frombuffer(b"\x55" * values.nbytes, dtype).copy()
    expected[::step] = values[::step]
    np.testing.assert_array_equal(out.copy_to_host(), values[::step])
    np.testing.assert_array_equal(found, expected)
    assert told.forms == {remarks.CONTIGUOUS, remarks.STRIDED}


def test_two_lanes_far_apart_load_nothing_beyond_the_second_element(device: Device) -> None:
    """The third of the four vectors of two elements would be the second lane's element and one more."""
    values = np.arange(8 * 4 - 3, dtype=np.float32)
    out, apart = to_device(np.zeros(8, np.float32)), to_device(values)
    with before_a_guard(values.nbytes) as x, config.cpu_form.scope("vectors"), config.cpu_width.scope(2):
        ctypes.memmove(x, values.ctypes.data, values.nbytes)
        function = device.load(code(kernel("float", 4), "k", PARAMETERS)).function("k")
        function.launch(1, 8, pack(function.kernel, out.address, apart.address, x))
        np.testing.assert_array_equal(out.copy_to_host(), values[::4])


def test_parts_have_the_alignment_of_an_element(device: Device) -> None:
    """Only the first of several vectors is known to be aligned as the first lane's element, to 16 bytes here."""
    values = np.arange(256, dtype=np.float32)
    x, out, apart = to_device(values), to_device(np.zeros(64, np.float32)), to_device(values)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(4):
        function = device.load(code(kernel("float", 4, align=16), "k", PARAMETERS)).function("k")
        function.launch(2, 32, pack(function.kernel, out.address, apart.address, x.address))
    np.testing.assert_array_equal(out.copy_to_host(), values[::4])


def test_bytes_are_not_inserted_one_by_one(device: Device, capfd: pytest.CaptureFixture[str]) -> None:
    if not llvm.get_host_cpu_features().get("avx512bw"):
        pytest.skip("the processor has no vectors of bytes with masks (AVX512BW)")
    memory = to_device(np.zeros(1024, np.int8))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(32), config.dump.scope("asm"):
        function = device.load(code(kernel("i8", 3), "k", PARAMETERS)).function("k")
        function.launch(2, 32, pack(function.kernel, memory.address, memory.address, memory.address))
    text = capfd.readouterr().err
    assert text.count("vpinsrb") + text.count("vpextrb") < 4
    assert "vpermt2b" in text or "vpshufb" in text or "vpermi2b" in text or "vpermb" in text


THREADS = 2, 88
"""Blocks and threads of each: the last gang of a row has fewer than 16, 32 or 64."""

MASKS = {
    "random": lambda threads: np.random.default_rng(7).integers(0, 2, threads),
    "from the 19th to the 150th": lambda threads: (np.arange(threads) >= 19) & (np.arange(threads) < 150),
    "one": lambda threads: np.arange(threads) == 133,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("width", [2, 4, 16, 32, 64])
@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("kind", TYPES)
def test_every_nth_element_of_some_lanes(
    device: Device, kind: str, step: int, width: int, mask: str, guarded: Callable[[int], AbstractContextManager[int]]
) -> None:
    """Memory reaches from the element of the first lane that accesses it to that of the last."""
    dtype, count = np.dtype(TYPES[kind]), int(np.prod(THREADS))
    on = MASKS[mask](count).astype(np.uint8)
    threads = np.flatnonzero(on)
    first, last = threads[0] * step, threads[-1] * step
    values = np.random.default_rng(step).integers(0, 100, last - first + 1).astype(dtype)
    told = Accesses()
    out, flags = to_device(np.full(count, 111, dtype)), to_device(on)
    with guarded(values.nbytes) as x, guarded(values.nbytes) as apart:
        ctypes.memmove(x, values.ctypes.data, values.nbytes)
        ctypes.memset(apart, 0x55, values.nbytes)
        with config.cpu_form.scope("vectors"), config.cpu_width.scope(width), remarks.listening(told):
            function = device.load(code(masked_kernel(kind, step), "k", MASKED_PARAMETERS)).function("k")
            passed = pack(function.kernel, out.address, apart, x, flags.address, -int(first))
            function.launch(*THREADS, passed)
        found = np.frombuffer(ctypes.string_at(apart, values.nbytes), dtype)
    expected = np.frombuffer(b"\x55" * values.nbytes, dtype).copy()
    expected[threads * step - first] = values[threads * step - first]
    np.testing.assert_array_equal(found, expected)
    kept = np.full(count, 111, dtype)
    kept[threads] = values[threads * step - first]
    np.testing.assert_array_equal(out.copy_to_host(), kept)
    assert told.forms == {remarks.CONTIGUOUS, remarks.ONE_LANE if width == 1 else UNDER_MASK}


def members_kernel(kind: str, step: int, members: tuple[int, ...], checks: bool = True) -> str:
    """Adds up the elements *members* behind every *step*-th one of x, in threads whose flag is set if it
    *checks*, and stores sums to the same elements of apart."""
    branch = "i1 %on, label %do, label %end" if checks else "label %do"
    loads = "".join(
        f"""
  %at.{member} = add i64 %at, {member}
  %p.{member} = getelementptr {kind}, ptr %x, i64 %at.{member}
  %v.{member} = load {kind}, ptr %p.{member}
  %s.{number + 1} = add {kind} %s.{number}, %v.{member}
  %r.{number} = getelementptr {kind}, ptr %apart, i64 %at.{member}
  store {kind} %s.{number + 1}, ptr %r.{number}"""
        for number, member in enumerate(members)
    )
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %apart, ptr noalias %x, ptr %flags, i64 %base) {{
entry:
{GLOBAL_X}
  %f = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %f
  %on = icmp ne i8 %flag, 0
  br {branch}
do:
  %times = mul i64 %i, {step}
  %at = add i64 %times, %base
  %s.0 = add {kind} 0, 0
{loads}
  %q = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %s.{len(members)}, ptr %q
  br label %end
end:
  ret void
}}
"""


MEMBERS = [
    (2, (0, 1)), (2, (1, 0)), (2, (0, 1, 2, 3)), (2, (0, 3)), (3, (0, 1, 2)), (3, (2, 0)), (3, (1, 0, 5, 4, 3, 2)),
    (4, (0, 1, 2)), (4, (3, 1)), (4, (0, 1, 2, 3)), (4, (2, 0, 7, 5)),
]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("mask", ["all", "random", "one"])
@pytest.mark.parametrize("width", [2, 16, 64])
@pytest.mark.parametrize(("step", "members"), MEMBERS)
@pytest.mark.parametrize("kind", ["i8", "i32"])
def test_elements_between_each_other(
    device: Device, kind: str, step: int, members: tuple[int, ...], width: int, mask: str,
    guarded: Callable[[int], AbstractContextManager[int]],
) -> None:  # fmt: skip
    """Memory reaches from the first element that an active lane accesses to the last one."""
    text = members_kernel(kind, step, members, mask in MASKS)
    dtype, count = np.dtype(f"i{int(kind[1:]) // 8}"), int(np.prod(THREADS))
    on = (MASKS[mask](count) if mask in MASKS else np.ones(count)).astype(np.uint8)
    threads = np.flatnonzero(on)
    first = threads[0] * step + min(members)
    values = np.random.default_rng(step).integers(0, 100, threads[-1] * step + max(members) - first + 1).astype(dtype)
    sums = np.cumsum([values[threads * step + member - first] for member in members], axis=0, dtype=dtype)
    out, flags = to_device(np.full(count, 111, dtype)), to_device(on)
    with guarded(values.nbytes) as x, guarded(values.nbytes) as apart:
        ctypes.memmove(x, values.ctypes.data, values.nbytes)
        ctypes.memset(apart, 0x55, values.nbytes)
        with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
            function = device.load(code(text, "k", MASKED_PARAMETERS)).function("k")
            function.launch(*THREADS, pack(function.kernel, out.address, apart, x, flags.address, -int(first)))
        found = np.frombuffer(ctypes.string_at(apart, values.nbytes), dtype)
    kept = np.full(count, 111, dtype)
    kept[threads] = sums[-1]
    np.testing.assert_array_equal(out.copy_to_host(), kept)
    if step > max(members):  # else elements are written by several threads
        expected = np.frombuffer(b"\x55" * values.nbytes, dtype).copy()
        for member, total in zip(members, sums, strict=True):
            expected[threads * step + member - first] = total
        np.testing.assert_array_equal(found, expected)


def test_elements_between_each_other_are_loaded_once(device: Device, capfd: pytest.CaptureFixture[str]) -> None:
    """Two vectors of 16 hold the pairs of 16 lanes."""
    if not llvm.get_host_cpu_features().get("avx512f"):
        pytest.skip("the processor has no vectors of 16 numbers of 32 bits (AVX512F)")
    text = (
        members_kernel("i32", 2, (0, 1)).replace("store i32 %s.1, ptr %r.0", "").replace("store i32 %s.2, ptr %r.1", "")
    )
    memory = to_device(np.ones(1024, np.int32))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16), config.dump.scope("ir"):
        function = device.load(code(text, "k", MASKED_PARAMETERS)).function("k")
        out, flags = to_device(np.zeros(64, np.int32)), to_device(np.ones(64, np.int8))
        passed = pack(function.kernel, out.address, memory.address, memory.address, flags.address, 0)
        function.launch(2, 32, passed)
    assert (out.copy_to_host() == 2).all()
    whole = capfd.readouterr().err
    assert whole.count("call <16 x i32> @llvm.masked.load.v16i32") == 2


@pytest.mark.parametrize("step", [-3, -2, 5])
def test_other_distances_under_a_mask_are_gathered(device: Device, step: int) -> None:
    values = np.arange(64 * abs(step), dtype=np.int32)
    on = np.random.default_rng(3).integers(0, 2, 64).astype(np.uint8)
    x, out, apart, flags = map(to_device, (values, np.full(64, -1, np.int32), np.zeros_like(values), on))
    first = len(values) - 1 if step < 0 else 0
    told = Accesses()
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(32), remarks.listening(told):
        function = device.load(code(masked_kernel("i32", step), "k", MASKED_PARAMETERS)).function("k")
        addresses = out.address, apart.address, x.address, flags.address
        function.launch(1, 64, pack(function.kernel, *addresses, first))
    at = first + step * np.arange(64)
    np.testing.assert_array_equal(out.copy_to_host(), np.where(on, values[at], -1))
    expected = np.zeros_like(values)
    expected[at[on != 0]] = values[at[on != 0]]
    np.testing.assert_array_equal(apart.copy_to_host(), expected)
    assert told.forms == {remarks.CONTIGUOUS, remarks.GATHERED}


@pytest.mark.parametrize("kind", TYPES)
def test_narrow_elements_under_a_mask_are_gathered_without_branches(device: Device, kind: str) -> None:
    """No instruction gathers them. Lanes that are not active access nothing: their elements are not in memory."""
    dtype = np.dtype(TYPES[kind])
    on = np.random.default_rng(4).integers(0, 2, 64).astype(np.uint8)
    on[60:] = 0
    values = np.arange(5 * 59 + 1).astype(dtype)
    out, apart, flags = map(to_device, (np.full(64, 77, dtype), np.zeros(5 * 64, dtype), on))
    object_ = code(masked_kernel(kind, 5), "k", MASKED_PARAMETERS)
    function = device.load(object_).function("k")
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(32), before_a_guard(values.nbytes) as x:
        ctypes.memmove(x, values.ctypes.data, values.nbytes)
        function.launch(1, 64, pack(function.kernel, out.address, apart.address, x, flags.address, 0))
        text, _ = list_kernel(object_, object_.kernels[0], (64, 1, 1))
    taken = np.where(on[:60], values[::5], 77)
    np.testing.assert_array_equal(out.copy_to_host(), np.append(taken, [77] * 4).astype(dtype))
    np.testing.assert_array_equal(apart.copy_to_host()[: len(values) : 5], np.where(on[:60], values[::5], 0))
    assert ("@llvm.masked.gather" in text) == (has_mask_registers() and dtype.itemsize >= 4)


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.sample(2)
def test_the_first_lane_is_only_aligned_as_far_as_all_are(device: Device, step: int) -> None:
    """One lane in four accesses memory, at multiples of 16 bytes; the others' elements are not aligned."""
    count = 64
    memory = to_device(np.arange(4 * count + 16, dtype=np.float32))
    copied = to_device(np.zeros(4 * count + 16, np.float32))
    out, flags = to_device(np.zeros(count, np.float32)), to_device((np.arange(count) % 4 == 1).astype(np.uint8))
    first = -step % 4  # so that the second lane's element is aligned
    assert memory.address % 16 == copied.address % 16 == 0
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(4):
        function = device.load(code(masked_kernel("float", step, align=16), "k", MASKED_PARAMETERS)).function("k")
        addresses = out.address, copied.address, memory.address, flags.address
        function.launch(1, count, pack(function.kernel, *addresses, first))
    threads = np.arange(count)
    expected = np.where(threads % 4 == 1, threads * step + first, 0)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    found = copied.copy_to_host()
    np.testing.assert_array_equal(found[threads * step + first], expected)
    assert np.count_nonzero(found) == np.count_nonzero(expected)


WRAPPING = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr noalias %flags, i64 %from, i64 %length) {{
entry:
{GLOBAL_X}
  %f = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %f
  %on = icmp ne i8 %flag, 0
  br i1 %on, label %do, label %end
do:
  %times = mul i64 %i, 3
  %at = add i64 %times, %from
  %is.negative = icmp slt i64 %at, 0
  %added = add i64 %at, %length
  %index = select i1 %is.negative, i64 %added, i64 %at
  %p = getelementptr float, ptr %x, i64 %index
  %v = load float, ptr %p
  %more = fadd float %v, 1.0
  %r = getelementptr float, ptr %out, i64 %index
  store float %more, ptr %r
  br label %end
end:
  ret void
}}
"""


@pytest.mark.parametrize("start", [-200, -96, -30, 0, 7])
@pytest.mark.sample(2)
def test_indices_that_may_be_negative_under_a_mask(device: Device, start: int) -> None:
    """As Python counts them, from the end."""
    values = np.random.default_rng(5).random(400, np.float32)
    on = np.random.default_rng(6).integers(0, 2, 100).astype(np.uint8)
    x, out, flags = map(to_device, (values, np.zeros_like(values), on))
    names = [("out", "ptr"), ("x", "ptr"), ("flags", "ptr"), ("from", "i64"), ("length", "i64")]
    told = Accesses()
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(32), remarks.listening(told):
        function = device.load(code(WRAPPING, "k", names)).function("k")
        function.launch(1, 100, pack(function.kernel, out.address, x.address, flags.address, start, 400))
    at = (3 * np.flatnonzero(on) + start) % 400
    expected = np.zeros_like(values)
    expected[at] = values[at] + 1
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert told.forms == {remarks.CONTIGUOUS, UNDER_MASK}
