"""What an array's length is added to: indices that are compared with 0, as LLVM writes that."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS, GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.stride_speculation import match_index_select
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.vectorize.speculative_bases import SpeculativeBases

PARAMETERS = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("w", "i64"), ("size", "i64")]
SIZE, THREADS = 1000, 200
KERNEL = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %n, i64 %w, i64 %size) {{{{
entry:
{GLOBAL_X}
  %sum = add i64 %i, %w
  %is = icmp {{test}}
  %more = select i1 %is, i64 {{chosen}}
  %place = add i64 %sum, %more
  %low = icmp slt i64 %place, 0
  %up = select i1 %low, i64 0, i64 %place
  %high = icmp sgt i64 %up, 999
  %held = select i1 %high, i64 999, i64 %up
  %q = getelementptr i64, ptr %x, i64 %held
  %v = load i64, ptr %q
  %p = getelementptr i64, ptr %out, i64 %i
  store i64 %v, ptr %p
  ret void
}}}}
"""
IF, UNLESS = "%size, i64 0", "0, i64 %size"

MATCHED = {
    "slt i64 %sum, 0": (IF, 0),
    "slt i64 %sum, 7": (IF, 7),
    "slt i64 %sum, -7": (IF, -7),
    "ult i64 %sum, 7": (IF, 7),
    "eq i64 %sum, 0": (IF, 1),
    "sgt i64 %sum, -1": (UNLESS, 0),
    "sgt i64 %sum, 6": (UNLESS, 7),
    "ugt i64 %sum, 6": (UNLESS, 7),
    "ne i64 %sum, 0": (UNLESS, 1),
}
NOT_MATCHED = {
    "ult i64 %sum, -7": IF,
    "ugt i64 %sum, -1": UNLESS,
    "ugt i64 %sum, -7": UNLESS,
    "slt i64 %sum, 7": "%n, i64 %size",
    "slt i64 %sum, 4611686018427387904": IF,
    "sle i64 %sum, 6": IF,
    "slt i64 %sum, %n": IF,
}
HOLDS = {
    "slt": lambda a, b: a < b,
    "sgt": lambda a, b: a > b,
    "ult": lambda a, b: a % 2**64 < b % 2**64,
    "ugt": lambda a, b: a % 2**64 > b % 2**64,
    "sle": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def select_of(test: str, chosen: str) -> Instruction:
    module = LlvmContext().read_text(KERNEL.format(test=test, chosen=chosen) + DECLARATIONS)
    function = read_function(PrintedModule(module), "k", ir.Context())
    (found,) = (value for value in function.instructions() if value.name == "more")
    return found


@pytest.mark.parametrize("test", MATCHED)
def test_an_index_that_is_compared(test: str) -> None:
    chosen, least = MATCHED[test]
    select = select_of(test, chosen)
    matched = match_index_select(select)
    assert matched is not None
    assert matched == (select.operands[0].operands[0], select.operands[1 if chosen is UNLESS else 2], least)  # type: ignore[attr-defined]


@pytest.mark.parametrize("test", NOT_MATCHED)
def test_other_comparisons(test: str) -> None:
    assert match_index_select(select_of(test, NOT_MATCHED[test])) is None


@pytest.mark.parametrize("form", ["vectors", "loop"])
@pytest.mark.parametrize("test", [*MATCHED, *NOT_MATCHED])
@pytest.mark.sample(4)
def test_elements(device: Device, test: str, form: str) -> None:
    """Gangs in which all lanes, some, or none are below the limit."""
    chosen = MATCHED[test][0] if test in MATCHED else NOT_MATCHED[test]
    x = np.arange(SIZE) * 3
    with config.cpu_form.scope(form):
        function = device.load(code(KERNEL.format(test=test, chosen=chosen), "k", PARAMETERS)).function("k")
        for w in (-300, -65, -64, -7, -1, 0, 1, 6, 7, 40):
            out, source = to_device(np.zeros(THREADS, np.int64)), to_device(x)
            function.launch(2, 100, pack(function.kernel, out.address, source.address, 5, w, SIZE))
            expected = []
            for i in range(THREADS):
                compared = test.split()[-1].replace("%n", "5")
                values = {"%size": SIZE, "%n": 5, "0": 0}
                one, other = (values[part] for part in chosen.split(", i64 "))
                place = i + w + (one if HOLDS[test.split()[0]](i + w, int(compared)) else other)
                expected.append(x[min(max(place, 0), SIZE - 1)])
            np.testing.assert_array_equal(out.copy_to_host(), expected, f"w = {w}")


CHECKED = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %n, i64 %w, i64 %size) {{
entry:
{GLOBAL_X}
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %loop, label %end
loop:
  %k = phi i64 [ %i, %entry ], [ %next, %more ]
  %from = add i64 %k, %w
  %below = icmp slt i64 %from, 0
  %by = select i1 %below, i64 %size, i64 0
  %place = add i64 %from, %by
  %fits = icmp ult i64 %place, %size
  br i1 %fits, label %more, label %fault
more:
  %q = getelementptr i64, ptr %x, i64 %place
  %v = load i64, ptr %q
  %p = getelementptr i64, ptr %out, i64 %k
  store i64 %v, ptr %p
  %next = add i64 %k, 32
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %end
fault:
  %r = getelementptr i64, ptr %out, i64 %i
  %minus = sub i64 -1, %place
  store i64 %minus, ptr %r
  br label %end
end:
  ret void
}}
"""
"""Copies elements from *w* on, each of which is checked. A thread that finds none says behind the loop which it was."""


def check_copies(device: Device) -> str:
    """Run `CHECKED` and compare what it does; the kernel's form."""
    x = np.random.default_rng(5).integers(0, 1000, SIZE)
    function = device.load(code(CHECKED, "k", PARAMETERS)).function("k")
    for n, w, size in [(100, 0, 900), (100, 3, 50), (32, -5, 900), (77, -20, 60), (7, 0, 3)]:
        out, held = to_device(np.zeros(128, np.int64)), to_device(x)
        function.launch(1, 32, pack(function.kernel, out.address, held.address, n, w, size))
        expected = np.zeros(128, np.int64)
        for thread in range(min(32, n)):
            for k in range(thread, n, 32):
                place = k + w + (size if k + w < 0 else 0)
                if not 0 <= place < size:
                    expected[thread] = -1 - place
                    break
                expected[k] = x[place]
        np.testing.assert_array_equal(out.copy_to_host(), expected, f"{n} {w} {size}")
    return str(function.form)


@pytest.mark.parametrize("form", ["vectors", "regions"])
@pytest.mark.parametrize("width", [4, 16])
def test_an_index_that_is_used_in_a_loop_and_behind_it(device: Device, form: str, width: int) -> None:
    with config.cpu_form.scope(form), config.cpu_width.scope(width):
        assert f": {form} (" in check_copies(device)


def test_what_is_speculated_and_not_kept_is_refused(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than that lanes go by what was never stored."""
    monkeypatch.setattr(SpeculativeBases, "keep", lambda self, instruction: None)
    assert "nothing keeps the speculated base of" in check_copies(device)
