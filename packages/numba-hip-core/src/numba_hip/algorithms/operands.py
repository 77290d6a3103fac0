"""What a call of an algorithm reads and writes: arrays of the device or the host, and iterators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import typeof
from numba.core import types

from hip_runtime import Device, DeviceArray, Stream, as_device_array, current_device, device_array, is_device_array
from hip_runtime.array import StreamLike
from hip_runtime.copying import check_dtype
from hip_runtime.foreign_arrays import check_unmasked
from hip_runtime.host_view import view_memory
from hip_runtime.layout import dense
from hip_runtime.memory import Buffer
from hip_runtime.stream import find_stream
from numba_hip.algorithms.argument_checks import check_number, checked_start, is_array, pair_of
from numba_hip.algorithms.array_parts import beginning, columns_of, is_same_place, share_memory
from numba_hip.algorithms.element_checks import can_store, check_elements
from numba_hip.algorithms.iterators import (
    CacheModifiedInputIterator,
    ConstantIterator,
    CountingIterator,
    PermutationIterator,
    ReverseIterator,
    TransformIterator,
    ZipIterator,
)
from numba_hip.algorithms.readers import Reader, hint_of
from numba_hip.algorithms.workspaces import Lease
from numba_hip.arguments.argument_types import describe
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.cooperative.value_parts import element_dtype, without_literals
from numba_hip.errors import AlgorithmError

Operator = Callable[[Any, Any], Any]
Pair = tuple[DeviceArray, DeviceArray]


class Operands:
    """The arrays and numbers that the kernels of one call get, and what is done with results afterwards."""

    def __init__(self, stream: StreamLike = None) -> None:
        self.stream: Stream | None = find_stream(stream)
        self.device: Device = current_device() if self.stream is None else self.stream.device
        self.leaves: list[Any] = []
        self._seen: set[bool] = set()
        self._copies: list[tuple[DeviceArray, np.ndarray[Any, Any]]] = []
        self._read_in_place: list[np.ndarray[Any, Any]] = []
        self._reads: list[tuple[DeviceArray, bool]] = []  # with whether element i is read for result i alone
        self._asides: list[tuple[DeviceArray, DeviceArray]] = []
        self._waits = False
        self._lease = Lease(self.device, self.stream)

    @classmethod
    def like(cls, other: Operands) -> Operands:
        """No operands yet, for kernels on the same device and stream as *other*'s."""
        made = cls.__new__(cls)
        made.stream, made.device = other.stream, other.device
        made.leaves, made._seen, made._copies = [], set(), []
        made._read_in_place, made._reads, made._asides = [], [], []
        made._waits, made._lease = False, other._lease
        return made

    @property
    def from_host(self) -> bool:
        """Whether all arrays that are read are on the host: so is the result then, unless the caller gave an array."""
        return self._seen == {False}

    @property
    def launch_stream(self) -> Any:
        """The stream as launches take it."""
        return 0 if self.stream is None else self.stream

    def add(self, leaf: Any) -> int:
        """Give *leaf*, an array of the device or a number, to the kernels; returns its place."""
        if isinstance(leaf, DeviceArray):
            describe(leaf)  # launches that know all of their arrays' types take less time
        self.leaves.append(leaf)
        return len(self.leaves) - 1

    def type_of(self, read: Any, argument: str) -> types.Type:
        """The Numba type of what *read* returns: a number, or a tuple of numbers."""
        kind = _type_of_read(read, tuple(map(_leaf_type, self.leaves)))
        values.dtypes_of(kind, argument)
        return kind

    def reader(self, source: Any, argument: str, *, anywhere: bool = False) -> Reader:
        """How kernels read *source*, an array of one axis or an iterator; callers know it as *argument*. A thread reads
        the value at its own place, unless it says *anywhere*."""
        before = len(self._reads)
        made = self._reader(source, argument)
        if anywhere or isinstance(source, (PermutationIterator, ReverseIterator)):
            self._reads[before:] = [(array, False) for array, _ in self._reads[before:]]
        return made

    def _reader(self, source: Any, argument: str) -> Reader:
        if isinstance(source, CountingIterator):
            return Reader(values.read_counter(self.add(checked_start(source.start, argument))), None)
        if isinstance(source, ConstantIterator):
            check_number(source.value, f"{argument}.value")
            return Reader(values.read_constant(self.add(source.value)), None)
        if isinstance(source, TransformIterator):
            read, count = self.reader(source.source, argument)
            return Reader(values.read_transformed(read, in_kernels(source.function, f"{argument}.function", 1)), count)
        if isinstance(source, ZipIterator):
            return self._zipped(source.sources, argument)
        if isinstance(source, PermutationIterator):
            read, size = self.reader(source.source, argument)
            index, count = self.reader(source.indices, f"{argument}.indices")
            kind = self.type_of(index, f"{argument}.indices")
            if not isinstance(kind, (types.Integer, types.Boolean)):
                raise AlgorithmError(f"{argument}.indices has values of type {kind}; pass integers")
            return Reader(values.read_permuted(read, index, None if size is None else self.add(size)), count)
        if isinstance(source, ReverseIterator):
            read, count = self.reader(source.source, argument)
            return Reader(values.read_reversed(read, self.add(0 if count is None else count - 1)), count)
        if isinstance(source, CacheModifiedInputIterator):
            return self._array_reader(self.input_array(source.array, f"{argument}.array"), argument, source.modifier)
        return self._array_reader(self.input_array(source, argument), argument)

    def _zipped(self, sources: Sequence[Any], argument: str) -> Reader:
        if not sources:
            raise AlgorithmError(f"{argument} is a ZipIterator of nothing: pass at least one source")
        readers = [
            self.reader(source, f"{argument}.sources[{place}]".lstrip(".")) for place, source in enumerate(sources)
        ]
        counts = [reader.size for reader in readers if reader.size is not None]
        return Reader(values.read_together(tuple(reader.read for reader in readers)), min(counts, default=None))

    def _array_reader(self, array: DeviceArray, argument: str, modifier: str | None = None) -> Reader:
        self._reads.append((array, True))
        columns = columns_of(array)
        check_elements(columns, argument)
        if array.dtype.names is None:
            return Reader(values.read_leaf(self.add(array), modifier and hint_of(array.dtype, modifier)), array.size)
        kind = values.kind_of(array.dtype, argument)
        return Reader(values.read_parts(tuple(map(self.add, columns)), kind), array.size)

    def input_array(self, source: Any, argument: str) -> DeviceArray:
        """*source* as an array of the device with one axis."""
        array = source if isinstance(source, DeviceArray) else self._on_device(source, argument)
        self._seen.add(is_device_array(source))
        if array.ndim != 1:
            raise AlgorithmError(
                f"{argument} has {array.ndim} axes; algorithms take one: pass array.reshape(-1), or rows one by one"
            )
        return array

    def _on_device(self, source: Any, argument: str) -> DeviceArray:
        if is_device_array(source):
            return as_device_array(source)
        if not is_array(source):
            raise AlgorithmError(
                f"{argument} is {type(source).__name__}; pass an array of the device or the host, or an iterator of "
                "hip.algorithms"
            )
        check_unmasked(source, argument)
        try:
            host = np.ascontiguousarray(source)
        except (ValueError, OverflowError) as error:  # a list of lists of several lengths
            raise AlgorithmError(f"{argument} makes no array: {error}") from None
        if host.dtype.hasobject:
            raise AlgorithmError(f"{argument} holds Python objects; algorithms take numbers and records of numbers")
        if self._is_direct(host):
            self._read_in_place.append(host)
            return self._direct(host)
        made = device_array(host.shape, host.dtype, device=self.device)
        made.copy_to_device(host, stream=self.stream)
        return made

    def array(self, count: int, dtype: Any) -> DeviceArray:
        """Memory for *count* elements of *dtype* on the device, until the call returns: not for results."""
        return self._lease.array(count, dtype)

    def values(self, count: int, kind: types.Type) -> DeviceArray:
        """Memory for *count* values of *kind*, as `array` has it."""
        return self.array(count, element_dtype(kind))

    def scratch(self, count: int, kind: types.Type) -> tuple[Any, Any]:
        """Give memory for *count* values of *kind* to the kernels; returns a function of (leaves, i) and one of
        (leaves, i, value), which read and write them."""
        places = tuple(self.add(self.array(count, dtype)) for dtype in values.dtypes_of(kind, "the operator"))
        return values.read_parts(places, kind), values.write_parts(places, kind)

    def output(
        self, given: Any, argument: str, count: int, kind: types.Type, over: Sequence[Any] = ()
    ) -> DeviceArray:  # fmt: skip
        """The array for *count* results of *kind*: the one that the caller has *given*, on the device or the host, or
        a new one. If it shares memory with what is read, it is another one, which `finish` copies; but not where it is
        one of the arrays *over* whose elements results may replace, as each is read before its own place is written.
        """
        dtypes = values.dtypes_of(kind, argument)
        if given is None:
            return device_array(count, element_dtype(kind), device=self.device)
        if isinstance(given, DeviceArray):
            target = given
        elif isinstance(given, np.ndarray):
            check_unmasked(given, argument)
            target = self._on_host(given, argument, count)
        elif is_device_array(given):
            target = as_device_array(given)
        else:
            raise AlgorithmError(f"{argument} is {type(given).__name__}; pass an array of the device or the host")
        if target.ndim != 1 or target.size < count:
            raise AlgorithmError(f"{argument} has the shape {given.shape}; {count} results need ({count},)")
        apart = (given if isinstance(given, np.ndarray) else target).strides[0]
        if target.size > 1 and abs(apart) < target.dtype.itemsize:
            raise AlgorithmError(f"{argument} has elements that share memory: pass an array with some for each result")
        if target.readonly or (isinstance(given, np.ndarray) and not given.flags.writeable):
            raise AlgorithmError(f"{argument} is read-only")
        columns = columns_of(target)
        check_elements(columns, argument)
        if len(columns) != len(dtypes):
            raise AlgorithmError(
                f"{argument} has {len(columns)} numbers in an element of {target.dtype}; results are {kind}"
            )
        if not all(map(can_store, dtypes, (column.dtype for column in columns))):
            raise AlgorithmError(f"{argument} has elements of {target.dtype}, which cannot be {kind}, as results are")
        return self._aside(target) if self._is_read_elsewhere(target, over) else target

    def _is_read_elsewhere(self, target: DeviceArray, over: Sequence[Any]) -> bool:
        """Whether a kernel that stores in *target* may change what another thread has still to read."""
        replaced = [as_device_array(array) for array in over if is_device_array(array)]
        return any(
            share_memory(array, target)
            and not (is_direct and is_same_place(array, target) and any(is_same_place(array, one) for one in replaced))
            for array, is_direct in self._reads
        )

    def _aside(self, target: DeviceArray) -> DeviceArray:
        """Memory with the contents of *target*, which gets those that are there in the end."""
        made = self.array(target.size, target.dtype)
        made.copy_to_device(target, stream=self.stream)
        self._asides.append((target, made))
        return made

    def _on_host(self, given: np.ndarray[Any, Any], argument: str, count: int) -> DeviceArray:
        """Memory for what goes to *given*: its own on the CPU device, unless kernels read what they would overwrite."""
        self._waits = True
        if self._is_direct(given) and not any(np.may_share_memory(given, read) for read in self._read_in_place):
            return self._direct(given)
        if given.dtype.hasobject:
            raise AlgorithmError(f"{argument} holds Python objects; algorithms take numbers and records of numbers")
        target = self.array(given.size, given.dtype)
        self._copies.append((target, given))
        if given.size > count and given.ndim == 1:
            target.copy_to_device(given, stream=self.stream)  # what is behind the results stays
        return target

    def _is_direct(self, host: np.ndarray[Any, Any]) -> bool:
        """Whether kernels can work in the memory of *host*."""
        flags = host.flags
        return bool(
            self.device.is_cpu and host.size and flags.aligned and flags.c_contiguous and not host.dtype.hasobject
        )

    def _direct(self, host: np.ndarray[Any, Any]) -> DeviceArray:
        check_dtype(host.dtype)
        memory = Buffer(host.ctypes.data, host.nbytes, owner=host)
        return DeviceArray(dense(host.shape, host.itemsize), host.dtype, memory, device=self.device)

    def outputs(
        self, given: Any, counts: tuple[int, int], kinds: tuple[types.Type, types.Type], over: Sequence[Any] = ((), ())
    ) -> Pair:  # fmt: skip
        """The two arrays for *counts* results of *kinds*: those of the caller's pair, ``out``, where it has them; each
        may replace what is *over* it, see `output`."""
        first, second = pair_of(given)
        return (
            self.output(first, "out[0]", counts[0], kinds[0], over[0]),
            self.output(second, "out[1]", counts[1], kinds[1], over[1]),
        )

    def finish_both(self, targets: Pair, given: Any, count: int | None = None) -> tuple[Any, Any]:
        """The two results as the caller gets them, see `finish`."""
        first, second = pair_of(given)
        return self.finish(targets[0], first, count), self.finish(targets[1], second, count)

    def keep_contents(self) -> None:
        """Let results of the host keep what the algorithm does not write."""
        for target, host in self._copies:
            target.copy_to_device(host, stream=self.stream)

    def writer(self, target: DeviceArray, kind: types.Type) -> Any:
        """A function of (leaves, i, value) that stores a value of *kind* in *target*."""
        return values.write_parts(tuple(map(self.add, columns_of(target))), kind)

    def finish(self, target: DeviceArray, given: Any, count: int | None = None) -> Any:
        """The result as the caller gets it: the array that was *given*, the first *count* elements of *target*, or
        their copy on the host if the inputs were there."""
        for source, host in self._copies:
            source[:count].copy_to_host(host[:count], stream=self.stream)
        for result, aside in self._asides:
            result.copy_to_device(aside, stream=self.stream)
        self._copies, self._asides = [], []
        if self._waits or (given is None and self.from_host):
            self.wait()
        if given is not None:
            return given if count is None else given[:count]
        found = target if count is None else beginning(target, count)
        if not self.from_host:
            return found
        host = found.copy_to_host(stream=self.stream)
        self.wait()
        return host

    def wait(self) -> None:
        """Wait for what was launched."""
        if self.stream is not None:
            self.stream.synchronize()
        else:
            self.device.synchronize()

    def number(self, array: DeviceArray) -> Any:
        """Element 0 of *array*, on the host."""
        if self.device.is_cpu:
            self.wait()
            return view_memory(array.layout, array.dtype, array.buffer, array.address)[:1].copy()[0]
        host = array.copy_to_host(stream=self.stream)
        self.wait()
        return host[0]


def _leaf_type(leaf: Any) -> types.Type:
    return describe(leaf).type if isinstance(leaf, DeviceArray) else typeof(leaf)


@kept
def _type_of_read(read: Any, leaf_types: tuple[types.Type, ...]) -> types.Type:
    return without_literals(values.returned_type(read, types.Tuple(leaf_types), values.PLACE))
