"""Options of `jit` that decide how code is made: inlining before typing, and registers of AMD GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip
from numba.core import ir as numba_ir
from numba.core.errors import TypingError

from hip_devicelib.errors import UnsupportedError
from hip_devicelib.kernel_metadata import read_kernels
from numba_hip.caching.fingerprint import fingerprint_options
from numba_hip.errors import OptionError


def call_double(inline: Any) -> tuple[Any, Any]:
    """A kernel that calls a device function, and that function."""

    @hip.jit(device=True, inline=inline)
    def double(value: Any) -> Any:
        return value * 2

    @hip.jit
    def kernel(values: Any) -> None:
        i = hip.grid(1)
        if i < values.size:
            values[i] = double(values[i])

    return kernel, double


def compiled(function: Any) -> int:
    """For how many types *function* was compiled on its own: for none where every call was inlined before typing."""
    return len(function.device_form().nopython_signatures)


@pytest.mark.parametrize(("inline", "inlined"), [("always", True), (True, False), ("never", False), (False, False)])
def test_inlining_before_typing(inline: Any, inlined: bool) -> None:
    kernel, double = call_double(inline)
    values = np.arange(3.0)
    kernel[1, 32](values)
    assert values.tolist() == [0, 2, 4]
    assert compiled(double) == (0 if inlined else 1)


@pytest.mark.parametrize("answer", [False, True])
def test_a_cost_model_is_asked(answer: bool) -> None:
    asked = []

    def cost_model(call: Any, caller: Any, callee: Any) -> bool:
        asked.append(call)
        return answer

    kernel, double = call_double(cost_model)
    values = np.arange(3.0)
    kernel[1, 32](values)
    assert values.tolist() == [0, 2, 4]
    assert compiled(double) == (0 if answer else 1)
    assert asked
    assert all(isinstance(call, numba_ir.Expr) and call.op == "call" for call in asked)


def test_kernels_whose_calls_are_inlined_otherwise_are_kept_apart() -> None:
    def answering(answer: bool) -> Any:
        return lambda *_: answer

    first, again, other = (
        fingerprint_options(call_double(answering(answer))[1].options) for answer in (True, True, False)
    )
    assert first == again != other


def sum_of_products(x: Any, y: Any) -> None:
    i = hip.grid(1)
    a0, a1, a2, a3, a4, a5, a6, a7 = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]
    hip.syncthreads()
    y[i] = a0 * a7 + a1 * a6 + a2 * a5 + a3 * a4
    y[i + 1] = (a0 + a1) * (a2 + a3) + (a4 + a5) * (a6 + a7)


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
@pytest.mark.sample(1)
def test_registers_of_amd_gpus_are_limited(target: str) -> None:
    signature = "(float64[::1], float64[::1])"

    def registers(**options: Any) -> int:
        image, _ = hip.compile(sum_of_products, signature, target=target, output="object", **options)
        (kernel,) = read_kernels(image)
        return kernel.vector_registers

    free = registers()
    assert free > 12
    assert registers(max_registers=12) <= 12
    assert registers(max_registers=256) == free
    with pytest.raises(UnsupportedError, match="registers"):
        registers(max_registers=2)


def test_what_is_linked_is_always_optimised_with_the_kernel() -> None:
    plain, named = hip.jit(sum_one), hip.jit(sum_one, lto=True)
    assert (named.options.lto, fingerprint_options(named.options)) == (True, fingerprint_options(plain.options))


def test_what_changes_nothing_is_taken() -> None:
    for carveout in (None, -1, 0, 100, "default", "MaxL1", "MaxShared", "maxshared", "Default"):
        values = np.ones(2)
        hip.jit(sum_one, shared_memory_carveout=carveout, max_registers=8)[1, 2](values)
        assert values.tolist() == [2, 2]


def sum_one(values: Any) -> None:
    values[hip.grid(1)] += 1


def add_product(x: Any, y: Any, out: Any) -> None:
    i = hip.grid(1)
    out[i] = x[i] * y[i] + out[i]


def test_products_and_sums_are_fused_where_that_is_asked_for() -> None:
    fused, rounded = -(2.0**-60), 0.0
    for options, wanted in (
        ({}, rounded), ({"fma": True}, fused), ({"fma": False}, rounded), ({"fastmath": True}, fused),
        ({"fastmath": {"contract"}, "fma": False}, rounded), ({"fastmath": True, "fma": False}, rounded),
        ({"fastmath": {"nnan"}, "fma": True}, fused),
    ):  # fmt: skip
        x, y, out = np.array([1.0 + 2.0**-30]), np.array([1.0 - 2.0**-30]), np.array([-1.0])
        hip.jit(add_product, **options)[1, 1](x, y, out)
        assert out[0] == wanted, options
    flags = hip.jit(add_product, fastmath=True, fma=False).options.fastmath
    assert flags == {"nnan", "ninf", "nsz", "arcp", "afn", "reassoc"}
    code, _ = hip.compile(add_product, "(float32[::1],) * 3", target="gfx942", output="asm", fma=True)
    assert "v_fma" in code
    with pytest.raises(OptionError, match="fma is 'yes'; it can be a bool"):
        hip.jit(fma="yes")


def test_waves_of_a_simd_unit() -> None:
    signature = "(float64[::1], float64[::1])"

    def attribute(waves: Any) -> str:
        text, _ = hip.compile(sum_of_products, signature, target="gfx942", output="llvm", waves_per_eu=waves)
        return text.partition('"amdgpu-waves-per-eu"="')[2].partition('"')[0]

    assert [attribute(waves) for waves in (None, 4, (2, 4))] == ["", "4", "2,4"]
    values = np.ones(2)
    hip.jit(sum_one, waves_per_eu=8)[1, 2](values)
    assert values.tolist() == [2, 2]
    for wrong in (0, -1, 1.5, True, (1,), (4, 2), (1, 2, 3), "4"):
        with pytest.raises(OptionError, match="waves_per_eu is .*; it can be the fewest waves"):
            hip.jit(waves_per_eu=wrong)
    with pytest.raises(OptionError, match="both say how many waves share a SIMD unit"):
        hip.jit(waves_per_eu=2, launch_bounds=(256, 2))
    with pytest.raises(TypingError, match="waves_per_eu=9: a SIMD unit of gfx942 has room for 8 waves"):
        hip.compile(sum_of_products, signature, target="gfx942", waves_per_eu=9)


def test_the_first_parameter_has_the_name_that_numba_gives_it():
    twice = hip.jit(func_or_sig=None, device=True)(lambda x: 2 * x)

    @hip.jit(func_or_sig="void(int64[:])")
    def kernel(values):
        values[0] = twice(values[0])

    values = np.array([4])
    kernel[1, 1](values)
    assert values[0] == 8
    assert hip.jit(func_or_sig=kernel.py_func).py_func is kernel.py_func
