"""What calls in the manner of `cuda.compute` read and write, as `numba_hip.algorithms` takes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from hip_runtime import Stream, as_device_array, device_array, is_device_array
from hip_runtime.stream import find_stream
from numba_hip import algorithms, external_stream
from numba_hip.cooperative.value_functions import converted_to
from numba_hip.cooperative.value_parts import value_kind
from numba_hip.errors import AlgorithmError
from numba_hip_cuda.compute.iterators import DiscardIterator, TransformOutputIterator
from numba_hip_cuda.compute.struct import Struct, StructType


def stream_of(stream: Any) -> Any:
    """*stream*, or the one that another package's object with ``__cuda_stream__`` stands for. `StreamError` for what is
    none, `TypeError` for objects that say nothing of use."""
    if stream is None or isinstance(stream, Stream) or not hasattr(stream, "__cuda_stream__"):
        return find_stream(stream)
    told = stream.__cuda_stream__()
    if not (isinstance(told, tuple) and len(told) == 2 and isinstance(told[1], (int, np.integer))):
        raise TypeError(f"stream.__cuda_stream__() gives {told!r}; it has to give a version and a handle, two integers")
    return external_stream(int(told[1]))


def count_of(number: Any, argument: str) -> int:
    """*number* if it is a count. Raises `AlgorithmError` otherwise."""
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 0:
        raise AlgorithmError(f"{argument} is {number!r}; pass an integer that is not negative")
    return int(number)


def initial_of(value: Any, argument: str) -> Any:
    """The number or record that *value* has: an array of one element, of the host or the device, or itself."""
    if value is None or isinstance(value, np.generic):
        return value
    if isinstance(value, Struct):
        return np.array(value.as_tuple(), dtype=value.dtype)[()]
    host = as_device_array(value).copy_to_host() if is_device_array(value) else np.asarray(value)
    if host.size != 1:
        raise AlgorithmError(f"{argument} has {host.size} elements; pass an array of one")
    return host.reshape(-1)[0]


def source_of(source: Any, count: int, argument: str, init: Any = None) -> Any:
    """*source*, an array with one axis or an iterator. If *init* is a record of `gpu_struct`, the tuples of an iterator
    become such records, as an operator gets both."""
    if isinstance(source, algorithms.Iterator):
        return algorithms.TransformIterator(source, _make_record(type(init))) if isinstance(init, Struct) else source
    return array_of(source, count, argument)


@lru_cache
def _make_record(record: StructType) -> Callable[[Any], Any]:
    convert = converted_to(value_kind(record.dtype))
    return lambda parts: convert(record(*parts))


def first_of(source: Any, count: int, argument: str, stream: Any) -> Any:
    """The first *count* values of *source*, as an input with an end."""
    found, has_end = _limited(source, count, argument)
    return found if has_end else algorithms.transform(_same, found, count=count, stream=stream)


def _same(value: Any) -> Any:
    return value


def _limited(source: Any, count: int, argument: str) -> tuple[Any, bool]:
    """*source* with no more than *count* values, and whether it ends there."""
    if isinstance(source, algorithms.TransformIterator):
        inner, has_end = _limited(source.source, count, argument)
        return algorithms.TransformIterator(inner, source.function), has_end
    if isinstance(source, algorithms.ZipIterator):
        parts = [_limited(part, count, argument) for part in source.sources]
        return algorithms.ZipIterator(*(part for part, _ in parts)), any(has_end for _, has_end in parts)
    if isinstance(source, algorithms.PermutationIterator):
        indices, has_end = _limited(source.indices, count, argument)
        return algorithms.PermutationIterator(source.source, indices), has_end
    if isinstance(source, algorithms.CacheModifiedInputIterator):
        part = array_of(source.array, count, argument)[:count]
        return algorithms.CacheModifiedInputIterator(part, source.modifier), True
    if isinstance(source, (algorithms.ReverseIterator, algorithms.CountingIterator, algorithms.ConstantIterator)):
        return source, False
    return array_of(source, count, argument)[:count], True


def array_of(source: Any, count: int, argument: str) -> Any:
    """*source*, an array of the device with at least *count* elements, with one axis: those of more axes are taken in
    the order in which they lie in memory."""
    if isinstance(source, np.ndarray) or not is_device_array(source):
        raise AlgorithmError(f"{argument} is {type(source).__name__}; pass an array of the device, or an iterator")
    array = as_device_array(source)
    flat = array if array.ndim == 1 else array.reshape(-1, order="F" if array.is_f_contiguous() else "C")
    if flat.size < count:
        raise AlgorithmError(f"{argument} has {flat.size} elements; {count} are used")
    return flat


def run_into(target: Any, count: int, argument: str, stream: Any, run: Callable[[Any], Any]) -> None:
    """Let *run* store *count* results in the array that it gets, or return a new one for None: *target* is an array of
    the device, or an output iterator."""
    if is_device_array(target) and not isinstance(target, np.ndarray):
        run(array_of(target, count, argument)[: max(count, 1)])
        return
    store(run(None), target, count, argument, stream)


def store(results: Any, target: Any, count: int, argument: str, stream: Any) -> None:
    """Store the first *count* of *results* in *target*, an array of the device or an output iterator."""
    if isinstance(target, DiscardIterator) or not count:
        return
    if isinstance(target, TransformOutputIterator):
        store(algorithms.TransformIterator(results, target.function), target.target, count, argument, stream)
    elif isinstance(target, algorithms.ZipIterator):
        for place, part in enumerate(target.sources):
            store(algorithms.TransformIterator(results, _part(place)), part, count, argument, stream)
    elif isinstance(target, algorithms.PermutationIterator):
        values = array_of(target.source, 0, argument)
        algorithms.scatter(results, target.indices, values, count=count, check=False, stream=stream)
    elif isinstance(target, algorithms.ReverseIterator):
        values = array_of(target.source, count, argument)
        last = algorithms.ConstantIterator(np.int64(values.size - 1))
        places = algorithms.TransformIterator(algorithms.ZipIterator(last, counter()), _difference)
        algorithms.scatter(results, places, values, count=count, check=False, stream=stream)
    else:
        out = array_of(target, count, argument)
        algorithms.transform(_same, results, count=count, out=out[:count], stream=stream)


def _part(place: int) -> Callable[[Any], Any]:
    return lambda value: value[place]


def _difference(pair: Any) -> Any:
    return pair[0] - pair[1]


def counter() -> algorithms.CountingIterator:
    """The places 0, 1, and so on."""
    return algorithms.CountingIterator(np.int64(0))


def new_array(count: int, dtype: Any) -> Any:
    """Memory for results that go elsewhere afterwards."""
    return device_array(count, dtype)
