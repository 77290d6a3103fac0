"""Which values that a loop carries are reductions, so that its iterations can be reordered."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.reductions import is_reduction
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function

LOOP = """
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.fmuladd.f32(float, float, float)
declare i32 @llvm.smin.i32(i32, i32)
define void @k(ptr %item, float %x, i32 %m, i1 %c) {{
entry:
  br label %loop
loop:
  %v = phi {kind} [ {first}, %entry ], [ %next, %{last} ]
  %j = phi i32 [ 0, %entry ], [ %more, %{last} ]
  {body}
  %more = add nuw nsw i32 %j, 1
  %again = icmp slt i32 %more, %m
  br i1 %again, label %loop, label %done
done:
  store {kind} %next, ptr %item
  ret void
}}
"""

FLOATS = {
    "a sum": ("%next = fadd fast float %v, %x", True),
    "a sum that may be reassociated": ("%next = fadd reassoc float %x, %v", True),
    "a sum in order": ("%next = fadd nnan float %v, %x", False),
    "a sum and a difference": ("%one = fadd fast float %v, %x \n %next = fsub fast float %one, %x", True),
    "a sum of products": ("%next = call fast float @llvm.fmuladd.f32(float %x, float %x, float %v)", True),
    "a polynomial": ("%next = call fast float @llvm.fmuladd.f32(float %v, float %x, float %x)", False),
    "a product": ("%next = fmul fast float %v, %x", True),
    "a square": ("%next = fmul fast float %v, %v", False),
    "a product and a sum": ("%one = fmul fast float %v, %x \n %next = fadd fast float %one, %x", False),
    "from a number": ("%next = fsub fast float %x, %v", False),
    "a quotient": ("%next = fdiv fast float %v, %x", False),
    "a maximum": ("%next = call fast float @llvm.maxnum.f32(float %x, float %v)", True),
    "a maximum by comparison": (
        "%less = fcmp fast olt float %v, %x \n %next = select nnan nsz i1 %less, float %x, float %v", True
    ),
    "a maximum by comparison that NaN may be": (
        "%less = fcmp fast olt float %v, %x \n %next = select nsz i1 %less, float %x, float %v", False
    ),
    "a maximum that NaN may be": ("%next = call nsz float @llvm.maxnum.f32(float %x, float %v)", False),
    "a sum of some, behind a branch": (
        "br i1 %c, label %do, label %join \n do: \n %one = fadd fast float %v, %x \n br label %join \n join: "
        "\n %next = phi float [ %v, %loop ], [ %one, %do ]", True
    ),
    "a choice of sums, behind a branch": (
        "br i1 %c, label %do, label %join \n do: \n %one = fadd fast float %v, %x \n br label %join \n join: "
        "\n %next = phi float [ %x, %loop ], [ %one, %do ]", False
    ),
    "another comparison": ("%less = fcmp fast olt float %v, %x \n %next = select i1 %less, float %x, float 1.0", False),
    "a sum of some": ("%one = fadd fast float %v, %x \n %next = select i1 %c, float %one, float %v", True),
    "a choice of sums": ("%one = fadd fast float %v, %x \n %next = select i1 %c, float %one, float %x", False),
    "stored in between": ("%next = fadd fast float %v, %x \n store float %next, ptr %item", False),
    "used in between": (
        "%one = fadd fast float %v, %x \n store float %one, ptr %item \n %next = fadd fast float %one, %x", False
    ),
    "unchanged": ("%next = fadd fast float %x, %x", False),
}  # fmt: skip
INTEGERS = {
    "a sum": ("%next = add i32 %v, %m", True),
    "bits": ("%next = xor i32 %j, %v", True),
    "random numbers": ("%one = mul i32 %v, 1664525 \n %next = add i32 %one, 1013904223", False),
    "a minimum": ("%next = call i32 @llvm.smin.i32(i32 %v, i32 %m)", True),
    "two extremes": ("%one = call i32 @llvm.smin.i32(i32 %v, i32 %m) \n %next = or i32 %one, %j", False),
    "a shift": ("%next = shl i32 %v, 1", False),
    "from a number": ("%next = sub i32 %m, %v", False),
}


def found(kind: str, first: str, body: str) -> bool:
    """Whether %v is a reduction in a loop with *body*."""
    last = "join" if "join:" in body else "loop"
    module = llvm.parse_assembly(LOOP.format(kind=kind, first=first, body=body, last=last))
    graph = read_function(PrintedModule(module), "k", ir.Context())
    shapes = VectorShapes(graph, {}, lambda stored: 4, lambda alloca: 4, True)
    (header,) = (block for block in graph.blocks if block.name == "loop")
    return is_reduction(next(iter(header.phis)), shapes.order.loops[header][-1], shapes)


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    body, expected = FLOATS[name]
    assert found("float", "0.0", body) is expected


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    body, expected = INTEGERS[name]
    assert found("i32", "0", body) is expected
