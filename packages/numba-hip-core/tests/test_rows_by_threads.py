"""A thread for each row, which goes through its elements one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float32, hip, uint8

from hip_runtime.drivers.cpu.object_code.host_machine import spreads_masks

on_the_cpu = pytest.mark.cpu_device("the form is its choice")


@hip.jit
def add_one(x, out):
    i, j = hip.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        for k in range(x.shape[2]):
            out[i, j, k] = x[i, j, k] + 1


def of_length(length: int, dtype: Any) -> Any:
    return (np.arange(19 * 23 * length) % 100).reshape(19, 23, length).astype(dtype)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 64, 90])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("block", [(16, 16), (1, 64), (64, 1)])
def test_rows_of_any_length(block: tuple[int, int], dtype: Any, length: int) -> None:
    """Of three bytes, these are probably pixels, for which the code has a version."""
    x = of_length(length, dtype)
    out = np.zeros_like(x)
    add_one[(-(-19 // block[0]), -(-23 // block[1])), block](x, out)
    np.testing.assert_array_equal(out, x + 1)


@on_the_cpu
@pytest.mark.skipif(not spreads_masks(), reason="the processor has no vectors of bytes with masks")
def test_long_rows_of_bytes_are_not_gathered() -> None:
    """The version for pixels is one for vectors; where rows are longer, threads run one after another."""
    types = (uint8[:, :, ::1], uint8[:, :, ::1])
    add_one.compile(types)
    assert "with a version" in add_one.explain(types, block=(16, 16)).reason
    assert "extractelement" not in add_one.inspect_llvm(types, block=(16, 16))


@on_the_cpu
def test_threads_with_loops_are_not_written_out() -> None:
    """Sixteen loops, one for each thread of a row, would take LLVM five times as long."""
    types = (float32[:, :, ::1], float32[:, :, ::1])
    add_one.compile(types)
    assert add_one.explain(types, block=(16, 16)).form == "loop"
    assert len(add_one.inspect_asm(types, block=(16, 16)).splitlines()) < 1000
