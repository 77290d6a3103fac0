"""Indices that are sums of the thread's, of arguments and of constants, in any order: none is negative, some are, or
all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip

from hip_runtime import config as runtime_config

INDICES = {
    "i + w - 1": lambda i, w, k: i + w - 1,
    "w - 1 + i": lambda i, w, k: w - 1 + i,
    "i + w + 3": lambda i, w, k: i + w + 3,
    "i - w + 40": lambda i, w, k: i - w + 40,
    "i + 2*w - 1": lambda i, w, k: i + 2 * w - 1,
    "i + k - 8": lambda i, w, k: i + k - 8,
    "i - 8 + k": lambda i, w, k: i - 8 + k,
    "i + k - w": lambda i, w, k: i + k - w,
    "12 - i - k": lambda i, w, k: 12 - i - k,
    "w - 2 - i": lambda i, w, k: w - 2 - i,
}


def kernel_of(text: str) -> Any:
    source = f"""
def kernel(source, out, w):
    i = hip.grid(1)
    if i < out.size:
        total = source[0]
        for k in range(out.size % 7 + 3):
            total += source[{text}]
        out[i] = total
"""
    names: dict[str, Any] = {"hip": hip}
    exec(source, names)
    return hip.jit(names["kernel"])


@pytest.mark.parametrize("form", ["auto", "vectors", "loop"])
@pytest.mark.parametrize("text", INDICES)
@pytest.mark.sample(3)
def test_sums(text: str, form: str) -> None:
    source = np.random.default_rng(3).random(1000)
    kernel = kernel_of(text)
    with runtime_config.cpu_form.scope(form):
        for w in (0, 1, 2, 5, 63, 64, 200):
            out = np.zeros(300)
            kernel[3, 128](source, out, w)
            i, expected = np.arange(300), np.full(300, source[0])
            for k in range(300 % 7 + 3):
                expected += source[INDICES[text](i, w, k)]
            np.testing.assert_allclose(out, expected, rtol=1e-12, err_msg=f"w = {w}")


@pytest.mark.cpu_device("it explains which accesses are gathers")
@pytest.mark.parametrize("text", INDICES)
def test_neighbours_are_loaded_as_vectors(text: str) -> None:
    told = str(kernel_of(text).explain("(float64[::1], float64[::1], int64)"))
    assert "contiguous" in told
    assert "gathered" not in told


def ring_of(length: int) -> Any:
    mask = length - 1

    @hip.jit
    def kernel(source, out, first):
        i = hip.grid(1)
        if i < out.size:
            total = 0.0
            for k in range(out.size % 7 + 3):
                total += source[(first + i + k) & mask] * (k + 1)
            out[i] = total

    return kernel


@pytest.mark.parametrize("form", ["auto", "vectors", "loop"])
@pytest.mark.parametrize("length", [64, 256, 512, 1024, 8192])
def test_rings(length: int, form: str) -> None:
    source, kernel = np.random.default_rng(4).random(length), ring_of(length)
    with runtime_config.cpu_form.scope(form):
        for first in (0, 3, length - 1, -5):
            out = np.zeros(3000)
            kernel[12, 256](source, out, first)
            places = first + np.arange(3000)
            expected = sum(source[(places + k) % length] * (k + 1) for k in range(3000 % 7 + 3))
            np.testing.assert_allclose(out, expected, rtol=1e-12, err_msg=f"first = {first}")


@pytest.mark.cpu_device("it explains which accesses are gathers")
def test_few_gangs_reach_over_the_end_of_a_ring() -> None:
    signature = "(float64[::1], float64[::1], int64)"
    assert "wraps around" in str(ring_of(512).explain(signature))
    assert "gathered" in str(ring_of(128).explain(signature))
