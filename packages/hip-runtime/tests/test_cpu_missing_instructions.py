"""Math and rounding on processors without a fused multiply-add, and without rounding to integers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from other_processors import as_processor, needs_x86
from spmd_kernels import DECLARATIONS, GLOBAL_X, code, lay_out, pack

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.cpu import FUNCTIONS, bitcode_of, has_fma
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel

pytestmark = needs_x86

KINDS: dict[str, Any] = {"float": np.float32, "double": np.float64}
SUFFIXES = {"float": "f32", "double": "f64"}


@pytest.fixture(params=["x86-64", "x86-64-v2"], autouse=True)
def processor(request: pytest.FixtureRequest) -> Iterator[str]:
    with as_processor(request.param) as name:
        yield name


def text_of(symbol: str, kind: str, count: int) -> str:
    """A kernel that passes *count* numbers of each thread to *symbol*."""
    parameters = ", ".join(f"ptr %x{n}" for n in range(count))
    loads = "\n".join(
        f"  %p{n} = getelementptr {kind}, ptr %x{n}, i64 %i\n  %v{n} = load {kind}, ptr %p{n}" for n in range(count)
    )
    values = ", ".join(f"{kind} %v{n}" for n in range(count))
    return f"""
    declare {kind} @{symbol}({", ".join([kind] * count)})
    define void @k(ptr noalias %item, ptr %out, {parameters}) {{
    entry:
    {GLOBAL_X}
    {loads}
      %r = call {kind} @{symbol}({values})
      %to = getelementptr {kind}, ptr %out, i64 %i
      store {kind} %r, ptr %to
      ret void
    }}"""


def parameters_of(count: int) -> list[tuple[str, str]]:
    return [("out", "ptr"), *((f"x{n}", "ptr") for n in range(count))]


def run(device: Device, made: CodeObject, *arrays: np.ndarray) -> np.ndarray:
    """The results of as many threads as there are elements, a multiple of 50."""
    out, inputs = to_device(np.zeros_like(arrays[0])), [to_device(array) for array in arrays]
    with config.cpu_form.scope("vectors"):
        function = device.load(made).function("k")
        addresses = [array.address for array in (out, *inputs)]
        function.launch(arrays[0].size // 50, 50, pack(function.kernel, *addresses))
    return out.copy_to_host()


def assembly_of(made: CodeObject) -> str:
    with config.cpu_form.scope("vectors"):
        return list_kernel(made, made.kernels[0], (64, 1, 1))[1]


def has_calls(assembly: str) -> bool:
    return bool(re.search(r"^\s+call", assembly, re.MULTILINE))


def rounded_away(x: np.ndarray) -> np.ndarray:
    """Ties away from 0."""
    magnitude = np.abs(x)
    finite = np.where(np.isfinite(magnitude), magnitude, 0)
    return np.copysign(np.trunc(magnitude) + (finite - np.trunc(finite) >= 0.5), x)


ROUNDINGS = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint, "roundeven": np.rint,
    "round": rounded_away,
}  # fmt: skip


def numbers(kind: Any) -> np.ndarray:
    """Halves and their neighbours, what is large or small, special numbers."""
    info = np.finfo(kind)
    halves = np.concatenate([np.arange(0, 40) / 2, 2.0 ** np.arange(info.nmant - 3, info.nmant + 3) + 0.5]).astype(kind)
    some = np.concatenate([
        halves, np.nextafter(halves, kind(0)), np.nextafter(halves, kind(np.inf)),
        np.array([info.max, info.tiny, info.smallest_subnormal, np.inf, 0.49999997, 1e10], kind),
        np.random.default_rng(1).uniform(-1e3, 1e3, 103).astype(kind), np.array([np.nan], kind),
    ])  # fmt: skip
    both = np.concatenate([some, -some])
    return np.resize(both, -(-both.size // 50) * 50)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.sample(10)
def test_rounding(device: Device, processor: str, kind: str, name: str) -> None:
    made = code(text_of(f"llvm.{name}.{SUFFIXES[kind]}", kind, 1), "k", parameters_of(1))
    x = numbers(KINDS[kind])
    found, expected = run(device, made, x), ROUNDINGS[name](x)
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))
    assert not has_calls(assembly_of(made))


def rounded(value: Fraction) -> np.float32:
    """The nearest float32, ties to even."""
    near = np.float32(float(value))
    candidates = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    distance = {one: abs(Fraction(float(one)) - value) for one in candidates if np.isfinite(one)}
    least = min(distance.values())
    return min((one for one in distance if distance[one] == least), key=lambda one: int(one.view(np.uint32)) & 1)


def test_fused_multiply_add_of_float32(device: Device) -> None:
    """Rounded once, where float64 would have to be rounded twice, too."""
    random = np.random.default_rng(3)
    x, y = (random.normal(size=2000).astype(np.float32) for _ in range(2))
    z = -(x * y) * random.choice([0, 1, 2.0**-24, 2.0**24, 1 + 2.0**-20], 2000).astype(np.float32)
    # halfway between two of float32 but for a bit far below those of float64
    x[:100], y[:100] = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)
    z[:50], z[50:100] = np.float32(2.0**-80), np.float32(-(2.0**-80))
    x[100:200], y[100:200] = np.float32(2.0**-75), np.float32(2.0**-75) * (1 + random.random(100).astype(np.float32))
    z[100:200] = random.integers(-5, 5, 100) * np.float32(2.0**-149)
    made = code(text_of("llvm.fma.f32", "float", 3), "k", parameters_of(3))
    found = run(device, made, x, y, z)
    expected = np.array([
        rounded(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))) for a, b, c in zip(x, y, z, strict=True)
    ])  # fmt: skip
    np.testing.assert_array_equal(found, expected)
    assert not has_calls(assembly_of(made))


def test_fused_multiply_add_of_special_numbers(device: Device) -> None:
    values = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45], np.float32)
    x, y, z = (grid.ravel() for grid in np.meshgrid(values, values, values))
    found = run(device, code(text_of("llvm.fma.f32", "float", 3), "k", parameters_of(3)), x, y, z)
    with np.errstate(all="ignore"):
        expected = (x.astype(np.float64) * y + z).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


def test_fused_multiply_add_of_float64(device: Device) -> None:
    """It stays the C library's, and exact."""
    x = np.full(50, 1 + 2.0**-30)
    found = run(device, code(text_of("llvm.fma.f64", "double", 3), "k", parameters_of(3)), x, x, -(x * x))
    np.testing.assert_array_equal(found, np.full(50, 2.0**-60))


def math_kernel(symbol: str) -> CodeObject:
    """A kernel that calls a function of the CPU device's math, linked as for this processor."""
    entry = FUNCTIONS[symbol]
    count = len(entry.parameters)
    text = text_of(symbol, entry.result, count) + DECLARATIONS
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    module.link_in(llvm.parse_bitcode(bitcode_of([symbol], fused=has_fma()), context))
    module.triple = llvm.get_process_triple()
    laid_out, nbytes = lay_out(parameters_of(count))
    return CodeObject("cpu", bytes(module.as_bitcode()), (Kernel("k", laid_out, nbytes),))


@pytest.mark.parametrize("symbol", [symbol for symbol, entry in FUNCTIONS.items() if entry.result != "void"])
@pytest.mark.sample(8)
def test_math_is_vector_code(symbol: str) -> None:
    assembly = assembly_of(math_kernel(symbol))
    assert not has_calls(assembly)
    assert re.search("(mul|sqrt)p[sd]", assembly)


@pytest.mark.parametrize("name", ["sin", "pow", "erfc", "log"])
@pytest.mark.sample(4)
def test_math(device: Device, name: str) -> None:
    """A few values only: hip-devicelib's tests check these functions against their bounds."""
    symbol = f"__hip_cpu_{name}_f64"
    inputs = [np.linspace(0.3 + n, 9.7, 200) for n in range(len(FUNCTIONS[symbol].parameters))]
    expected = {"sin": np.sin, "pow": np.power, "log": np.log, "erfc": np.vectorize(math.erfc)}[name]
    np.testing.assert_allclose(run(device, math_kernel(symbol), *inputs), expected(*inputs), rtol=1e-14)
