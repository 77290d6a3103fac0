"""What the tests here let other processes do: a module that those import, too."""

import os
import time

import numpy as np
from numba import hip

N = 10_000


@hip.jit(cache=True)
def scale(values, factor):
    i = hip.grid(1)
    if i < values.size:
        values[i] *= factor


@hip.vectorize(["float64(float64, float64)"])
def add(left, right):
    return left + right


def make(n):
    return hip.to_device(np.arange(float(n)))


def same(array):
    return array


def scaled(values, factor):
    result = values.copy()
    scale.forall(result.size)(result.ravel(), factor)
    return result


def slowly_scaled(values, factor):
    time.sleep(1)
    return scaled(values, factor)


def total(arrays):
    return sum(array.copy_to_host().sum() for array in arrays)


def run_kernel(kernel, values):
    kernel.forall(values.size)(values, 5.0)
    return values.copy_to_host()


def compile_shared():
    """Cache hits and misses of a kernel that every process needs."""
    kernel = hip.jit(cache=True)(scale.py_func)
    kernel.compile("void(float32[::1], float64)")
    return [sum(count.values()) for count in kernel.stats[1:]]


def end_process(values):
    os._exit(3)


def allocate(nbytes):
    return hip.device_array(nbytes, np.uint8)


def describe_place():
    """What a worker was told of its device, and a number that it computed."""
    names = ("HIP_VISIBLE_DEVICES", "NUMBA_HIP_CPU_THREADS", "NUMBA_HIP_CACHE_DIR")
    return [os.environ.get(name) for name in names], scaled(make(N), 2.0).copy_to_host()[1]


class Kept:
    """An actor with an array on its device."""

    def __init__(self, n):
        self.array = make(n)

    def pid(self):
        return os.getpid()

    def scale(self, factor):
        scale.forall(self.array.size)(self.array, factor)
        return self.array
