"""Lanes that load and store every second, third or fourth element: contiguous vectors and shuffles, for elements of all
sizes, and nothing beyond the last lane's element."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_alignments import Accesses

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir import remarks

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


@contextmanager
def before_a_guard(nbytes: int) -> Iterator[int]:
    """The address of *nbytes* of memory behind which no page may be accessed."""
    page = mmap.PAGESIZE
    size = -(-nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    hold = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(hold)
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    assert mprotect(ctypes.c_void_p(address + size), page, 0) == 0
    try:
        yield address + size - nbytes
    finally:
        assert mprotect(ctypes.c_void_p(address + size), page, 3) == 0
        del hold
        memory.close()


@pytest.mark.parametrize("width", [1, 4, 8, 32])
@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("kind", TYPES)
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
