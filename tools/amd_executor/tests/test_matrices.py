"""Matrix instructions: single elements in the registers and lanes that AMD's matrix instruction calculator names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from amd_kernels import machine, run

from tools.amd_executor.decoding import UnknownInstruction


@dataclass(frozen=True)
class Spot:
    """Where an element lies: its lanes, and its number of those of its type that a lane has."""

    lanes: tuple[int, ...]
    index: int


@dataclass(frozen=True)
class Case:
    """An instruction, with the places of A[12][k], B[k][4] and D[12][4]."""

    target: str
    intrinsic: str
    operand: str
    sums: str
    element: str
    a: Spot
    b: Spot
    d: Spot


CASES = [
    Case("gfx942", "mfma.f32.16x16x16f16", "<4 x half>", "<4 x float>", "f2",
         Spot((44,), 1), Spot((36,), 1), Spot((52,), 0)),
    Case("gfx942", "mfma.f64.16x16x4f64", "double", "<4 x double>", "f8",
         Spot((60,), 0), Spot((52,), 0), Spot((4,), 3)),
    Case("gfx942", "mfma.f32.32x32x16.fp8.bf8", "i64", "<16 x float>", "u1",
         Spot((44,), 1), Spot((36,), 1), Spot((36,), 4)),
    Case("gfx1100", "wmma.f32.16x16x16.f16.v8f32.v16f16", "<16 x half>", "<8 x float>", "f2",
         Spot((12, 28), 9), Spot((4, 20), 9), Spot((4,), 6)),
    Case("gfx1100", "wmma.i32.16x16x16.iu8.v8i32.v4i32", "<4 x i32>", "<8 x i32>", "i1",
         Spot((12, 28), 9), Spot((4, 20), 9), Spot((4,), 6)),
    Case("gfx1201", "wmma.f32.16x16x16.f16.v8f32.v8f16", "<8 x half>", "<8 x float>", "f2",
         Spot((12,), 5), Spot((4,), 5), Spot((20,), 4)),
    Case("gfx1201", "wmma.f32.16x16x16.fp8.bf8.v8f32.v2i32", "<2 x i32>", "<8 x float>", "u1",
         Spot((28,), 1), Spot((20,), 1), Spot((20,), 4)),
]  # fmt: skip

SUMS = {"float": np.float32, "double": np.float64, "i32": np.int32}
BITS = {("gfx942", 0): 0x48, ("gfx942", 1): 0x46, ("gfx1201", 0): 0x40, ("gfx1201", 1): 0x42}
"""2.0 in e4m3 and 3.0 in e5m2, whose bias is one higher on gfx942."""


def kernel_of(case: Case, flags: str = "i32 0, i32 0, i32 0") -> tuple[str, str, str]:
    """Parameters, body and declarations of a kernel that loads both factors of a lane and stores its sums."""
    passed = [f"{case.operand} %x", f"{case.operand} %y", f"{case.sums} zeroinitializer"]
    if "iu8" in case.intrinsic:
        passed = ["i1 true", passed[0], "i1 true", passed[1], passed[2], "i1 false"]
    if case.intrinsic.startswith("mfma"):
        passed += flags.split(", ")
    types = ", ".join(text.rpartition(" ")[0] for text in passed)
    lines = []
    for name, array, kind in (("x", "a", case.operand), ("y", "b", case.operand), ("z", "o", case.sums)):
        lines.append(f"  %p{name} = getelementptr {kind}, ptr addrspace(1) %{array}, i64 %i")
        if name != "z":
            lines.append(f"  %{name} = load {kind}, ptr addrspace(1) %p{name}")
    lines.append(f"  %r = call {case.sums} @llvm.amdgcn.{case.intrinsic}({', '.join(passed)})")
    lines.append(f"  store {case.sums} %r, ptr addrspace(1) %pz")
    declaration = f"declare {case.sums} @llvm.amdgcn.{case.intrinsic}({types})"
    return ", ".join(f"ptr addrspace(1) %{name}" for name in "abo"), "\n".join(lines), declaration


def factor(case: Case, spot: Spot, number: int, lanes: int) -> np.ndarray:
    """The elements of a factor by lane: 2 or 3 at the spot, 0 elsewhere."""
    count, _, kind = case.operand.strip("<>").rpartition(" x ")
    size = int(count or 1) * {"half": 2, "double": 8, "i64": 8, "i32": 4}[kind]
    elements = np.zeros((lanes, size // np.dtype(case.element).itemsize), case.element)
    bits = case.element == "u1"
    elements[list(spot.lanes), spot.index] = BITS[case.target, number] if bits else 2 + number
    return elements


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.target}-{case.intrinsic[:25]}")
def test_elements_are_where_the_calculator_has_them(case: Case) -> None:
    lanes = 64 if case.target == "gfx942" else 32
    parameters, body, declarations = kernel_of(case)
    kernel = machine(case.target, parameters, body, declarations, block=lanes)
    count, _, kind = case.sums.strip("<>").rpartition(" x ")
    out = np.full((lanes, int(count)), 9, SUMS[kind])
    run(kernel, [factor(case, case.a, 0, lanes), factor(case, case.b, 1, lanes), out], block=lanes)
    expected = np.zeros_like(out)
    expected[list(case.d.lanes), case.d.index] = 6
    np.testing.assert_array_equal(out, expected)


def test_modifiers_are_not_guessed() -> None:
    case = Case("gfx942", "mfma.f32.32x32x2f32", "float", "<16 x float>", "f4", *[Spot((0,), 0)] * 3)
    parameters, body, declarations = kernel_of(case, "i32 1, i32 0, i32 0")
    kernel = machine(case.target, parameters, body, declarations)
    arrays = [np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros((64, 16), np.float32)]
    with pytest.raises(UnknownInstruction, match="cbsz=1"):
        run(kernel, arrays)
