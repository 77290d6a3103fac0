"""Integers of widths that vectors do not hold: of 24 bits, of 65, and others."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.passes.packed_choices import unpack_choices

COUNT = 200

CHOICE = """
  %few = icmp ult i8 %s, 3
  %cast = zext i8 %s to i24
  %amount = shl nuw nsw i24 %cast, 3
  %shifted = lshr i24 197125, %amount
  %chosen = trunc i24 %shifted to i8
  %r = select i1 %few, i8 %chosen, i8 %s
  %w = zext i8 %r to i64
"""
"""What LLVM makes of ``5 if s == 0 else 2 if s == 1 else 3 if s == 2 else s``."""

CASES = {
    "a choice of bytes": (CHOICE, lambda s, x: (5, 2, 3)[s] if s < 3 else s),
    "a choice of two bytes": (
        CHOICE.replace("i24", "i48").replace("197125", "12885032965").replace("%cast, 3", "%cast, 4"),
        lambda s, x: s if s >= 3 else (12885032965 >> 16 * s) & 255,
    ),
    "a choice of four bytes": (
        "  %cast = zext i8 %s to i32\n  %amount = mul nuw i32 %cast, 8\n  %shifted = lshr i32 -2130640380, %amount\n"
        "  %four = icmp ult i8 %s, 4\n  %chosen = trunc i32 %shifted to i8\n  %r = select i1 %four, i8 %chosen, i8 9\n"
        "  %w = sext i8 %r to i64\n",
        lambda s, x: (4, 2, 1, -127)[s] if s < 4 else 9,
    ),
    "a choice of ten": (
        "  %few = icmp ult i8 %s, 16\n  %cast = zext i8 %s to i64\n  %amount = shl nuw nsw i64 %cast, 2\n"
        "  %shifted = lshr i64 1311768467294899695, %amount\n  %chosen = trunc i64 %shifted to i4\n"
        "  %r = select i1 %few, i4 %chosen, i4 0\n  %w = zext i4 %r to i64\n",
        lambda s, x: (1311768467294899695 >> 4 * s & 15) if s < 16 else 0,
    ),
    "cut and wider": ("  %cut = trunc i64 %x to i24\n  %w = zext i24 %cut to i64\n", lambda s, x: x % 2**24),
    "cut to as many": ("  %y = trunc i64 %x to i32\n  %cut = trunc i32 %y to i24\n  %w = zext i24 %cut to i64\n",
                       lambda s, x: x % 2**24),
    "cut twice": ("  %cut = trunc i64 %x to i48\n  %less = trunc i48 %cut to i12\n  %w = zext i12 %less to i64\n",
                  lambda s, x: x % 2**12),
    "wider twice": ("  %cut = trunc i64 %x to i12\n  %less = zext i12 %cut to i40\n  %w = zext i40 %less to i64\n",
                    lambda s, x: x % 2**12),
    "bits and comparisons": (
        "  %cut = trunc i64 %x to i24\n  %less = xor i24 %cut, -1\n  %e = and i24 %less, 8388863\n"
        "  %f = icmp ugt i24 %e, 128\n  %g = select i1 %f, i24 %e, i24 7\n  %h = lshr i24 %g, 2\n"
        "  %w = zext i24 %h to i64\n",
        lambda s, x: (lambda e: (e if e > 128 else 7) >> 2)((~x % 2**24) & 8388863),
    ),
    "with a sign": (
        "  %cut = trunc i64 %x to i24\n  %f = icmp sgt i24 %cut, 128\n  %w = zext i1 %f to i64\n",
        lambda s, x: int((x + 2**23) % 2**24 - 2**23 > 128),
    ),
    "half of a product": (
        "  %y = add i64 %x, -1\n  %f = zext i64 %x to i65\n  %g = zext i64 %y to i65\n  %h = mul i65 %f, %g\n"
        "  %half = lshr i65 %h, 1\n  %w = trunc i65 %half to i64\n",
        lambda s, x: x % 2**64 * ((x - 1) % 2**64) % 2**65 >> 1,
    ),
    "of four factors": (
        "  %y = xor i64 %x, 12345\n  %f = zext i64 %x to i66\n  %g = zext i64 %y to i66\n  %h = mul i66 %f, %g\n"
        "  %z = mul i66 %g, %g\n  %both = mul i66 %h, %z\n  %half = lshr i66 %both, 1\n"
        "  %w = trunc i66 %half to i64\n",
        lambda s, x: (x % 2**64) * ((x ^ 12345) % 2**64) ** 3 % 2**66 >> 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["auto", "vectors", "regions"])
@pytest.mark.parametrize("case", CASES)
def test_numbers_of_odd_widths(device: Device, form: str, case: str) -> None:
    steps, evaluate = CASES[case]
    text = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %bytes, ptr noalias %numbers) {{
entry:
{GLOBAL_X}
  %ps = getelementptr i8, ptr %bytes, i64 %i
  %s = load i8, ptr %ps
  %px = getelementptr i64, ptr %numbers, i64 %i
  %x = load i64, ptr %px
{steps}
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %w, ptr %q
  ret void
}}
"""
    rng = np.random.default_rng(3)
    small = rng.integers(0, 6, COUNT).astype(np.uint8)
    small[::7] = rng.integers(0, 256, small[::7].size)
    numbers = rng.integers(-(2**63), 2**63 - 1, COUNT)
    numbers[::3] = rng.integers(-300, 300, numbers[::3].size)
    bytes_there, numbers_there = to_device(small), to_device(numbers)
    out = to_device(np.zeros(COUNT, np.int64))
    names = [("out", "ptr"), ("bytes", "ptr"), ("numbers", "ptr")]
    can_be_vectors = case != "with a sign"
    with config.cpu_form.scope(form if can_be_vectors or form == "regions" else "auto"):
        function = device.load(code(text, "k", names)).function("k")
        arguments = pack(function.kernel, out.address, bytes_there.address, numbers_there.address)
        function.launch(2, COUNT // 2, arguments)
    expected = [evaluate(int(s), int(x)) % 2**64 for s, x in zip(small, numbers, strict=True)]
    np.testing.assert_array_equal(out.copy_to_host().view(np.uint64), np.array(expected, np.uint64))
    if form != "regions":
        assert ("): vectors (" in str(function.form)) == can_be_vectors


@pytest.mark.parametrize(("bits", "is_choice"), [(24, True), (32, True), (36, False), (8, False)])
def test_choices_are_of_equal_parts(bits: int, is_choice: bool) -> None:
    """Of 36 bits, the last four would be a choice, too."""
    text = f"""
define i8 @k(ptr %item, i{bits} %s) {{
entry:
  %amount = shl nuw i{bits} %s, 3
  %shifted = lshr i{bits} 100, %amount
  %chosen = trunc i{bits} %shifted to i{min(bits - 1, 8)}
  %r = sext i{min(bits - 1, 8)} %chosen to i{max(bits, 9)}
  %t = trunc i{max(bits, 9)} %r to i8
  ret i8 %t
}}
"""
    function = read_function(PrintedModule(LlvmContext().read_text(text)), "k", ir.Context())
    assert unpack_choices(function) == is_choice
