"""LLVM has each of the matrix instructions, for each processor that is said to have it."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from hip_devicelib import TARGETS, optimise
from hip_devicelib.amdgpu import assembly
from hip_devicelib.backend_limits import check_module
from hip_devicelib.matrix_instructions import (
    MatrixInstruction,
    known_instructions,
    matrix_instructions,
    matrix_wave_size,
)
from hip_devicelib.target import parse_target

SUMS = {"float32": "float", "float64": "double", "int32": "i32"}
NAMES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8"}


def module_of(one: MatrixInstruction) -> str:
    """A kernel that executes *one*."""
    sums = f"<{one.shape[0] * one.shape[1] // one.wave_size} x {SUMS[one.accumulator]}>"
    passed = [f"{one.operand} %a", f"{one.operand} %b", f"{sums} %c"]
    if one.signs:
        passed = ["i1 true", passed[0], "i1 true", passed[1], passed[2], "i1 false"]
    passed += ["i32 0"] * one.controls
    types = ", ".join(text.rpartition(" ")[0] for text in passed)
    return (
        f"declare {sums} @{one.intrinsic}({types})\n"
        f"define amdgpu_kernel void @kernel({one.operand} %a, {one.operand} %b, {sums} %c, ptr addrspace(1) %o) {{\n"
        f"  %d = call {sums} @{one.intrinsic}({', '.join(passed)})\n"
        f"  store {sums} %d, ptr addrspace(1) %o\n  ret void\n}}\n"
    )


def mnemonic(text: str) -> list[str]:
    """The matrix instructions in assembly, without underscores, in which targets differ."""
    return [name.replace("_", "") for name in re.findall(r"^\s+(v_(?:mfma|wmma)_\w+)", text, re.MULTILINE)]


HAVING = [name for name, target in TARGETS.items() if matrix_wave_size(target)]


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", HAVING)
def test_each_intrinsic_is_the_instruction_of_its_shape_and_types(target: str) -> None:
    having = matrix_instructions(parse_target(target))
    for one in having:
        code = optimise(module_of(one), target)
        assert not check_module(llvm.parse_bitcode(code), parse_target(target)), one
        (found,) = mnemonic(assembly(code, target))
        m, n, k = one.shape
        assert f"{m}x{n}x{k}" in found, one
        for kind in (one.a, one.b, one.accumulator):
            short = NAMES.get(kind, {"int32": "i32"}.get(kind, "fp8" if "e4m3" in kind else "bf8"))
            assert short in found or f"{short[0]}u{short[1:]}" in found, (one, found)


def test_what_targets_have() -> None:
    assert {"gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201", "gfx12-generic"} < set(HAVING)
    kinds = {name: {one.a for one in matrix_instructions(parse_target(name))} for name in TARGETS}
    assert "float8_e4m3fnuz" in kinds["gfx942"]
    assert "float8_e4m3fn" not in kinds["gfx942"]
    assert "float8_e4m3fn" in kinds["gfx950"] & kinds["gfx1201"]
    assert kinds["gfx1100"] == {"float16", "bfloat16", "int8"}
    assert not kinds["gfx1030"] | kinds["gfx906"]
    assert matrix_wave_size(parse_target("gfx1030")) is None
    assert matrix_wave_size(parse_target("gfx1100")) == 32
    assert not matrix_instructions(parse_target("gfx1100", wave_size=64))
    assert {one for name in TARGETS for one in matrix_instructions(parse_target(name))} == set(known_instructions())
