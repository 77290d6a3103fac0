"""Lanes that access neighbours in the opposite order, as on an anti-diagonal: whole vectors and a shuffle. Nothing
before the last active lane's element is touched, nor behind the first one's."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_alignments import Accesses
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir import remarks

TYPES = {"i8": np.int8, "i16": np.int16, "half": np.float16, "float": np.float32, "i64": np.int64, "double": np.float64}
PARAMETERS = [("out", "ptr"), ("back", "ptr"), ("x", "ptr"), ("flags", "ptr"), ("last", "i64")]
GUARDS = {"before": before_a_guard, "behind": behind_a_guard}
COUNT = 96


def kernel(kind: str, index: str, masked: bool = True) -> str:
    """Loads x[j], where j falls by one from thread to thread, and stores it to out[i] and back[j]: in threads whose
    flag is set, if it is *masked*. *index* computes ``%j`` from ``%last - i``, which is ``%at``."""
    check = "%on = icmp ne i8 %flag, 0\n  br i1 %on, label %do, label %end" if masked else "br label %do"
    return f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %back, ptr noalias %x, ptr %flags, i64 %last) {{
entry:
{GLOBAL_X}
  %f = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %f
  {check}
do:
  %at = sub i64 %last, %i
  {index}
  %p = getelementptr {kind}, ptr %x, i64 %j
  %v = load {kind}, ptr %p
  %q = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %v, ptr %q
  %r = getelementptr {kind}, ptr %back, i64 %j
  store {kind} %v, ptr %r
  br label %end
end:
  ret void
}}
"""


PLAIN = "%j = add i64 %at, 0"
FROM_THE_END = f"%low = icmp slt i64 %at, 0\n  %more = add i64 %at, {COUNT}\n  %j = select i1 %low, i64 %more, i64 %at"
"""Python's: negative indices count from the end."""


def launch(device: Device, text: str, width: int, arguments: tuple[int, ...], grid: int = 3) -> set[str]:
    """Run the kernel; the forms of its accesses."""
    told = Accesses()
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width), remarks.listening(told):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        function.launch(grid, 32, pack(function.kernel, *arguments))
    return told.forms


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("width", [2, 8, 32])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.sample(9)
def test_nothing_else_is_accessed(device: Device, kind: str, masked: bool, width: int, guard: str) -> None:
    dtype, rng = TYPES[kind], np.random.default_rng(width)
    flags = (rng.random(COUNT) < 0.6).astype(np.int8) if masked else np.ones(COUNT, np.int8)
    if masked:
        flags[:7] = flags[-9:] = 0  # of the first and last gangs, inactive lanes have no element
    active = np.flatnonzero(flags)
    size = int(active[-1] - active[0]) + 1
    values = rng.integers(-100, 100, size).astype(dtype)
    last = size - 1 + int(active[0])  # x[last - active[0]] is the last element
    out, told_flags = to_device(np.zeros(COUNT, dtype)), to_device(flags)
    with GUARDS[guard](values.nbytes) as x, GUARDS[guard](values.nbytes) as back:
        ctypes.memmove(x, values.ctypes.data, values.nbytes)
        ctypes.memset(back, 0x55, values.nbytes)
        arguments = (out.address, back, x, told_flags.address, last)
        forms = launch(device, kernel(kind, PLAIN, masked), width, arguments)
        written = np.frombuffer(ctypes.string_at(back, values.nbytes), dtype)
    expected, kept = np.zeros(COUNT, dtype), np.frombuffer(b"\x55" * values.nbytes, dtype).copy()
    expected[active] = values[last - active]
    kept[last - active] = values[last - active]
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    np.testing.assert_array_equal(written, kept)
    if width > 1:
        assert forms == {remarks.CONTIGUOUS, remarks.REVERSED}


@pytest.mark.parametrize("last", [COUNT - 1, 50, 31, 10, 0])
@pytest.mark.parametrize("width", [4, 16, 32])
@pytest.mark.sample(5)
def test_negative_indices(device: Device, width: int, last: int) -> None:
    """Gangs in which an index is negative gather."""
    values = np.arange(COUNT, dtype=np.float32) + 1
    x, flags = to_device(values), to_device(np.ones(COUNT, np.int8))
    out, back = to_device(np.zeros(COUNT, np.float32)), to_device(np.zeros(COUNT, np.float32))
    arguments = (out.address, back.address, x.address, flags.address, last)
    forms = launch(device, kernel("float", FROM_THE_END), width, arguments)
    np.testing.assert_array_equal(out.copy_to_host(), values[last - np.arange(COUNT)])
    np.testing.assert_array_equal(back.copy_to_host(), values)
    assert remarks.REVERSED in forms


def test_steps_backwards_are_gathered(device: Device) -> None:
    """Every second element in the opposite order is neither."""
    values = np.arange(2 * COUNT, dtype=np.float32)
    x, flags = to_device(values), to_device(np.ones(COUNT, np.int8))
    out, back = to_device(np.zeros(COUNT, np.float32)), to_device(np.zeros(2 * COUNT, np.float32))
    arguments = (out.address, back.address, x.address, flags.address, COUNT - 1)
    forms = launch(device, kernel("float", "%j = mul i64 %at, 2"), 16, arguments)
    np.testing.assert_array_equal(out.copy_to_host(), values[::2][::-1])
    np.testing.assert_array_equal(back.copy_to_host()[::2], values[::2])
    assert remarks.REVERSED not in forms
