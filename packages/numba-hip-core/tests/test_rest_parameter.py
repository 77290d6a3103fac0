"""Kernels with ``*args``: as many arguments as a launch passes, or a signature names."""

import pickle

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import config
from numba_hip.errors import KernelArgumentError


def add_all(out, scale=1.0, *arrays):
    i = hip.grid(1)
    if i < out.size:
        total = 0.0
        for array in arrays:
            total += array[i]
        out[i] = scale * total + 100 * len(arrays)


@pytest.mark.parametrize("simulated", [False, True])
def test_any_number_of_arguments(simulated):
    out = np.zeros(4)
    with config.simulator.scope(simulated):
        kernel = hip.jit(add_all)
        for arrays in ((np.ones(4),), (np.ones(4), np.arange(4.0)), (np.arange(4.0),) * 3):
            kernel[1, 4](out, 2, *arrays)
            np.testing.assert_array_equal(out, 2 * sum(arrays, np.zeros(4)) + 100 * len(arrays))
        with pytest.raises(KernelArgumentError, match=r"add_all takes at least 2 arguments \(out, scale\)"):
            kernel[1, 4]()
        with pytest.raises(KernelArgumentError, match=r"argument 'arrays\[1\]' is a set"):
            kernel[1, 4](out, 1.0, np.ones(4), {1})


@pytest.mark.parametrize("simulated", [False, True])
def test_none(simulated):
    out = np.ones(1)
    with config.simulator.scope(simulated):

        @hip.jit
        def count(out, *rest):
            out[0] = len(rest)

        count[1, 1](out)
    assert out[0] == 0


@hip.jit
def described(*args):
    args[0][0] = len(args)
    args[0][1] = args[1] + args[2]


def test_device_arrays_and_numbers():
    out = hip.to_device(np.zeros(2))
    for number in (1, 2.5, np.float32(7)):
        described[1, 1](out, number, 3)
        described.forall(1)(out, number, 3)
        assert out.copy_to_host().tolist() == [3, number + 3]
    described[1, 1](hip.In(np.zeros(2)), 1, 2)
    described.specialize(out, 1.0, 2.0)[1, 1](out, 1.0, 2)
    assert out.copy_to_host().tolist() == [3, 3]
    assert len(described.signatures) == 3


def test_signatures_name_single_arguments():
    kernel = hip.jit(["void(float64[:], int64, int64)", "void(float64[:], int64, float64, int32)"])(described.py_func)
    out = np.zeros(2)
    kernel[1, 1](out, 1, 2)
    assert out.tolist() == [3, 3]
    kernel[1, 1](out, 1, 2.5, 3)
    assert out.tolist() == [4, 3.5]
    with pytest.raises(KernelArgumentError, match="No matching definition"):
        kernel[1, 1](out, 1)
    pickle.loads(pickle.dumps(kernel))[1, 1](out, 3, 4)
    assert out.tolist() == [3, 7]
    hip.compile(add_all, "(float64[:], float64, float64[:], float64[:])", target="gfx942", output="object")
