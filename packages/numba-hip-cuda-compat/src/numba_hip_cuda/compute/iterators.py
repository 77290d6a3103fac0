"""Iterators of `cuda.compute`: inputs that are computed where they are read, and outputs that do more than store."""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime import as_device_array, is_device_array, to_device
from numba_hip import algorithms
from numba_hip.errors import AlgorithmError
from numba_hip_cuda.compute.op import function_of


class CountingIterator(algorithms.CountingIterator):
    """*start*, *start* + 1, and so on, of its type."""


class ConstantIterator(algorithms.ConstantIterator):
    """One *value* each time: a number, or a record of `gpu_struct`."""

    def __init__(self, value: Any) -> None:
        super().__init__(value.as_tuple() if hasattr(value, "as_tuple") else value)


class TransformIterator(algorithms.TransformIterator):
    """What *transform_op* makes of each value of *underlying*."""

    def __init__(self, underlying: Any, transform_op: Any, value_type: Any = None, is_input: bool = True) -> None:
        if not is_input:
            raise AlgorithmError("is_input is False: make a TransformOutputIterator")
        super().__init__(underlying, function_of(transform_op, "transform_op"))


class TransformOutputIterator:
    """An output that stores in *underlying* what *transform_op* makes of each result."""

    def __init__(self, underlying: Any, transform_op: Any, output_value_type: Any = None) -> None:
        self.target = underlying
        self.function = function_of(transform_op, "transform_op")


class ZipIterator(algorithms.ZipIterator):
    """Tuples of the values of several inputs; as an output, it takes tuples apart."""


class PermutationIterator(algorithms.PermutationIterator):
    """The values at *indices* of *values*; as an output, it stores at those places."""

    def __init__(self, values: Any, indices: Any) -> None:
        super().__init__(values, indices)


class ReverseIterator(algorithms.ReverseIterator):
    """*underlying* from its last value to its first, read or written."""

    def __init__(self, underlying: Any) -> None:
        super().__init__(underlying)


class DiscardIterator(algorithms.ConstantIterator):
    """An output that keeps nothing; as an input, zeros."""

    def __init__(self, reference_iterator: Any = None) -> None:
        super().__init__(np.uint8(0))


def CacheModifiedInputIterator(array: Any, modifier: str = "stream") -> Any:  # the name that it has there
    """*array*, whose values are read as *modifier* says: "stream", "global" or "volatile"."""
    if not is_device_array(array):
        raise AlgorithmError(f"array is {type(array).__name__}; pass an array of the device")
    return algorithms.CacheModifiedInputIterator(as_device_array(array), modifier)


def ShuffleIterator(num_items: int, seed: int = 0) -> Any:
    """The numbers 0 to *num_items* - 1 in an order that *seed* decides, as an array of int64: another order than on
    NVIDIA's GPUs."""
    if num_items <= 0:
        raise ValueError(f"num_items is {num_items}; pass a number above 0")
    return to_device(np.random.default_rng(seed).permutation(num_items).astype(np.int64))
