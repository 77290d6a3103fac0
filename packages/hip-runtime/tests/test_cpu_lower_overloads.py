"""Intrinsics that are overloaded on their operands, side by side: LLVM would crash on them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_runtime import Device, config, to_device
from hip_runtime.errors import ModuleLoadError

REALS = {"f16": ("half", np.float16), "f32": ("float", np.float32), "f64": ("double", np.float64)}
CONVERSIONS = [
    *product(("fptosi.sat", "fptoui.sat"), ("i1", "i8", "i16", "i32", "i64")),
    *product(("lrint", "llrint"), ("i32", "i64")),
]
EXPONENTS = ("i8", "i16", "i32", "i64")
VALUES = [0.0, -0.0, 0.5, 1.5, -2.5, -0.99, 255.99, -129.0, 65504.0, 3e9, -3e9, 2.0**31, 2.0**63, -(2.0**63), 1e30,
          float("nan"), float("inf"), float("-inf"), 12.25]  # fmt: skip
BY = [0, 1, -1, 3, 100, -100, 2**31, -(2**31) - 1, 2**62, 300, 7, 5, -7, 2**40, -(2**40), 1, 1, 1, 2]
BLOCK = len(VALUES)

PARAMETERS = [("whole", "ptr"), ("scaled", "ptr"), ("f16", "ptr"), ("f32", "ptr"), ("f64", "ptr"), ("by", "ptr")]


def body() -> tuple[str, str]:
    """All of them, for one number of each type and thread; and the declarations."""
    lines, declared = ["%k = zext i32 %t to i64"], set()
    for name, (kind, _) in REALS.items():
        lines += [f"%p.{name} = getelementptr {kind}, ptr %{name}, i64 %k", f"%{name}.x = load {kind}, ptr %p.{name}"]
    lines += ["%p.by = getelementptr i64, ptr %by, i64 %k", "%b.i64 = load i64, ptr %p.by"]
    lines += [f"%b.{kind} = trunc i64 %b.i64 to {kind}" for kind in EXPONENTS[:3]]
    for number, ((family, integer), real) in enumerate(product(CONVERSIONS, REALS)):
        kind, name = REALS[real][0], f"llvm.{family}.{integer}.{real}"
        declared.add(f"declare {integer} @{name}({kind})")
        widened = f"zext {integer} %v{number} to i64" if integer != "i64" else f"or i64 %v{number}, 0"
        lines += [f"%v{number} = call {integer} @{name}({kind} %{real}.x)", f"%w{number} = {widened}"]
        lines += store(number, len(CONVERSIONS) * len(REALS), f"i64 %w{number}", "whole")
    for number, exponent in enumerate(EXPONENTS):
        declared.add(f"declare float @llvm.ldexp.f32.{exponent}(float, {exponent})")
        lines.append(f"%s{number} = call float @llvm.ldexp.f32.{exponent}(float %f32.x, {exponent} %b.{exponent})")
        lines += store(number, len(EXPONENTS), f"float %s{number}", "scaled")
    return "".join(f"  {line}\n" for line in [*lines, "ret void"]), "\n".join(declared) + "\n"


def store(column: int, columns: int, value: str, array: str) -> list[str]:
    return [
        f"%m.{array}.{column} = mul i64 %k, {columns}",
        f"%a.{array}.{column} = add i64 %m.{array}.{column}, {column}",
        f"%q.{array}.{column} = getelementptr {value.split()[0]}, ptr %{array}, i64 %a.{array}.{column}",
        f"store {value}, ptr %q.{array}.{column}",
    ]


def expected_whole(value: float, family: str, bits: int) -> int:
    """The nearest number of *bits* bits, as one without a sign."""
    low, high = (0, (1 << bits) - 1) if family == "fptoui.sat" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if np.isnan(value):
        return 0
    rounded = np.trunc(value) if "sat" in family else np.rint(value)
    return int(min(max(rounded, low), high) if np.isinf(rounded) else min(max(int(rounded), low), high)) % (1 << bits)


@pytest.mark.parametrize(("form", "width"), [("auto", None), ("loop", None), ("regions", None), ("vectors", 8)])
@pytest.mark.sample(2)
def test_side_by_side(device: Device, form: str, width: int | None) -> None:
    text, declared = body()
    with config.cpu_form.scope(form), config.cpu_width.scope(width), np.errstate(over="ignore"):
        function = device.load(kernel(text, PARAMETERS, declared)).function("k")
        numbers = {name: np.array(VALUES).astype(kind) for name, (_, kind) in REALS.items()}
        whole, scaled = np.zeros((BLOCK, len(CONVERSIONS) * 3), np.uint64), np.zeros((BLOCK, 4), np.float32)
        arrays = [to_device(array) for array in (whole, scaled, *numbers.values(), np.array(BY))]
        function.launch(1, BLOCK, pack(function.kernel, *(array.address for array in arrays)))
    found = arrays[0].copy_to_host()
    for number, ((family, integer), real) in enumerate(product(CONVERSIONS, REALS)):
        expected = [expected_whole(float(value), family, int(integer[1:])) for value in numbers[real]]
        assert found[:, number].tolist() == expected, (family, integer, real)
    found = arrays[1].copy_to_host()
    for number, exponent in enumerate(EXPONENTS):
        by = np.array(BY).astype(f"i{int(exponent[1:]) // 8}").clip(-1000, 1000).astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_array_equal(found[:, number], np.ldexp(numbers["f32"], by), exponent)


def test_vectors_of_what_links(device: Device) -> None:
    declared = """declare <2 x i32> @llvm.fptosi.sat.v2i32.v2f32(<2 x float>)
declare <2 x i32> @llvm.fptosi.sat.v2i32.v2f64(<2 x double>)
"""
    text = """  %x = load <2 x float>, ptr %f32
  %y = load <2 x double>, ptr %f64
  %a = call <2 x i32> @llvm.fptosi.sat.v2i32.v2f32(<2 x float> %x)
  %c = call <2 x i32> @llvm.fptosi.sat.v2i32.v2f64(<2 x double> %y)
  %both = shufflevector <2 x i32> %a, <2 x i32> %c, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x i32> %both, ptr %whole
  ret void
"""
    function = device.load(kernel(text, PARAMETERS, declared)).function("k")
    whole = to_device(np.zeros(4, np.int32))
    singles, doubles = to_device(np.array([1e20, -2.5], np.float32)), to_device(np.array([float("nan"), 7.9]))
    function.launch(1, 1, pack(function.kernel, whole.address, 0, 0, singles.address, doubles.address, 0))
    assert whole.copy_to_host().tolist() == [2**31 - 1, -2, 0, 7]


@pytest.mark.parametrize("kinds", [("f32", "f64"), ("f64", "bf16")])
def test_integers_that_no_function_is_made_for(device: Device, kinds: tuple[str, str]) -> None:
    spelt: dict[str, Any] = {"f32": "float", "f64": "double", "bf16": "bfloat"}
    declared = "".join(f"declare i128 @llvm.fptosi.sat.i128.{kind}({spelt[kind]})\n" for kind in kinds)
    calls = "".join(
        f"  %{kind}.v = call i128 @llvm.fptosi.sat.i128.{kind}({spelt[kind]} {'0xR3F80' if kind == 'bf16' else 1.0})\n"
        f"  store i128 %{kind}.v, ptr %whole\n"
        for kind in kinds
    )
    function = device.load(kernel(f"{calls}  ret void\n", PARAMETERS, declared)).function("k")
    with pytest.raises(ModuleLoadError, match=rf"'llvm.fptosi.sat.i128.{kinds[0]}' and .*{kinds[1]}'.*at most 64 bits"):
        function.launch(1, 1, pack(function.kernel, 0, 0, 0, 0, 0, 0))
