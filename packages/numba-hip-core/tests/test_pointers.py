"""Addresses of memory of the device as arguments: `CPointer` in signatures, numbers in launches."""

from __future__ import annotations

import numpy as np
import pytest
from numba import carray, farray, types
from numba.core.errors import TypingError

import numba_hip as hip
from hip_runtime.protocols import array_interface
from numba_hip.errors import KernelArgumentError

SIGNATURE = types.void(types.CPointer(types.float32), types.CPointer(types.int64), types.uint32)


def add(values, steps, count):
    i = hip.grid(1)
    if i < count:
        values[i] += steps[i]


def shape(values, steps, count):
    i, j = hip.grid(2)
    rows = carray(values, (count, 3), dtype=np.float32)
    columns = farray(steps, (count, 3))
    if i < count and j < 3:
        rows[i, j] = 10 * columns[i, j] + rows.shape[1]


def test_elements_behind_pointers():
    values, steps = hip.to_device(np.zeros(5, np.float32)), hip.to_device(np.arange(5))
    hip.jit(SIGNATURE)(add)[1, 8](values.address, np.uint64(steps.address), 4)
    assert values.copy_to_host().tolist() == [0, 1, 2, 3, 0]
    hip.jit(SIGNATURE)(add)[1, 8](array_interface(values)["data"][0] + 4, steps.address, 4)
    assert values.copy_to_host().tolist() == [0, 1, 3, 5, 3]


def test_arrays_over_pointers():
    values, steps = hip.to_device(np.zeros((2, 3), np.float32)), hip.to_device(np.arange(6))
    hip.jit(SIGNATURE)(shape)[1, (2, 3)](values.address, steps.address, 2)
    np.testing.assert_array_equal(values.copy_to_host(), 10 * np.arange(6).reshape(3, 2).T + 3)


@pytest.mark.parametrize("function", [add, shape])
def test_for_amd_gpus(function):
    code, _ = hip.compile(function, SIGNATURE, target="gfx942", output="object")
    assert code[:4] == b"\x7fELF"


@pytest.mark.parametrize("address", [-1, 2**64])
def test_what_is_no_address(address):
    values = hip.to_device(np.zeros(5, np.float32))
    with pytest.raises(KernelArgumentError):
        hip.jit(SIGNATURE)(add)[1, 8](values.address, address, 4)


def test_what_is_no_number():
    with pytest.raises(KernelArgumentError, match="No matching definition"):
        hip.jit(SIGNATURE)(add)[1, 8](1.5, 0, 4)

    def mixed(values, steps, count):
        carray(values, (count,), dtype=np.int32)[0] = 1

    with pytest.raises(TypingError, match="mismatching dtype 'int32' for pointer type"):
        hip.jit(SIGNATURE)(mixed)
