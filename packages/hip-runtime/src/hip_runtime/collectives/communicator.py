"""`Communicator`: one rank of a group of GPUs that exchange arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from hip_runtime.array import DeviceArray, StreamLike
from hip_runtime.array_text import describe
from hip_runtime.collectives.library import DATA_TYPES, OPERATIONS, UNIQUE_ID_BYTES, UniqueId, call
from hip_runtime.device import Device, current_device, devices
from hip_runtime.errors import CollectiveError, UnsupportedError
from hip_runtime.stream_handle import stream_handle

if TYPE_CHECKING:
    from hip_runtime.drivers.hip.driver import HipDriver


def make_unique_id() -> bytes:
    """128 bytes that name a new group: one rank makes them, and hands them to all others, for example by MPI."""
    unique = UniqueId()
    call("ncclGetUniqueId", ctypes.byref(unique))
    return ctypes.string_at(ctypes.byref(unique), UNIQUE_ID_BYTES)


def connect(numbers: Sequence[int] | None = None) -> list[Communicator]:
    """A group of GPUs of this process, by default all; returns the communicator of each.

    With one thread for all of them, calls of one operation stand in a `group`.
    """
    known = devices()
    chosen = [known[number] for number in (range(len(known)) if numbers is None else numbers)]
    for device in chosen:
        check_device(device)
    handles = (ctypes.c_void_p * len(chosen))()
    call("ncclCommInitAll", handles, len(chosen), (ctypes.c_int * len(chosen))(*[device.id for device in chosen]))
    return [
        Communicator.of_handle(handle, device, rank, len(chosen))
        for rank, (handle, device) in enumerate(zip(handles, chosen, strict=True))
    ]


@contextmanager
def group() -> Iterator[None]:
    """Operations in this block begin together at its end: one thread for several devices, or sends and receives."""
    call("ncclGroupStart")
    try:
        yield
    finally:
        call("ncclGroupEnd")


class Communicator:
    """Rank *rank* of *size*, on the current device. Returns when all ranks with this *unique_id* have come.

    The operations take C-contiguous arrays of the communicator's device, or F-contiguous ones where all ranks use them
    alike. They run on *stream*, by default that of the array which receives, as a kernel would: the host does not wait.
    `close` frees what RCCL holds, as the end of a ``with`` block does.
    """

    def __init__(self, size: int, rank: int, unique_id: bytes) -> None:
        if not 0 <= rank < size:
            raise CollectiveError(f"rank is {rank}; a group of {size} has ranks from 0 to {size - 1}")
        if len(unique_id) != UNIQUE_ID_BYTES:
            raise CollectiveError(
                f"unique_id has {len(unique_id)} bytes; it must be the {UNIQUE_ID_BYTES} bytes that make_unique_id "
                "returned in one of the processes"
            )
        device = current_device()
        check_device(device)
        handle = ctypes.c_void_p()
        make_current(device)
        call("ncclCommInitRank", ctypes.byref(handle), size, UniqueId.from_buffer_copy(unique_id), rank)
        self._set(handle.value, device, rank, size)

    @classmethod
    def of_handle(cls, handle: int | None, device: Device, rank: int, size: int) -> Communicator:
        """The communicator that RCCL knows by *handle*, an ``ncclComm_t``; it belongs to the result from now on."""
        made = cls.__new__(cls)
        made._set(handle, device, rank, size)
        return made

    def _set(self, handle: int | None, device: Device, rank: int, size: int) -> None:
        self._handle, self.device, self.rank, self.size = handle, device, rank, size

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}, device {self.device.id}>"

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def handle(self) -> int:
        """RCCL's ``ncclComm_t``, for calls that this class lacks."""
        if self._handle is None:
            raise CollectiveError(f"{self!r} is closed")
        return self._handle

    def close(self) -> None:
        """Wait for the operations of this rank and free what it holds. Every rank does so."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call("ncclCommDestroy", handle)

    def abort(self) -> None:
        """End operations that wait for a rank which was lost. The communicator is closed after that."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call("ncclCommAbort", handle)

    def all_reduce(self, source: DeviceArray, target: DeviceArray, op: str = "sum", stream: StreamLike = None) -> None:
        """*target* becomes the sum of all ranks' *source*, element by element; or their prod, max, min or avg."""
        self._check_same(source, target)
        self._move("ncclAllReduce", source, target, source.size, stream, operation(op, source))

    def reduce(
        self, source: DeviceArray, target: DeviceArray | None, root: int = 0, op: str = "sum", stream: StreamLike = None
    ) -> None:
        """As `all_reduce`, but only rank *root* gets the result; others may pass None as *target*."""
        self._check_rank("root", root)
        if target is None and root == self.rank:
            raise CollectiveError(f"target is None; rank {root} is the root and needs an array for the result")
        into = source if target is None else target
        self._check_same(source, into)
        self._move("ncclReduce", source, target, source.size, stream, operation(op, source), root)

    def broadcast(self, array: DeviceArray, root: int = 0, stream: StreamLike = None) -> None:
        """*array* becomes that of rank *root*."""
        self._check_rank("root", root)
        if self.rank != root:
            array._check_writable()
        self._move("ncclBroadcast", array, array, array.size, stream, root)

    def all_gather(self, source: DeviceArray, target: DeviceArray, stream: StreamLike = None) -> None:
        """*target* becomes the *source* of all ranks, one after the other; it is as large as all of them."""
        self._check_parts("target", target, "source", source)
        self._move("ncclAllGather", source, target, source.size, stream)

    def reduce_scatter(
        self, source: DeviceArray, target: DeviceArray, op: str = "sum", stream: StreamLike = None
    ) -> None:
        """*target* becomes this rank's part of the sum of all ranks' *source*, which has a part for each rank."""
        self._check_parts("source", source, "target", target)
        self._move("ncclReduceScatter", source, target, target.size, stream, operation(op, source))

    def send(self, array: DeviceArray, to: int, stream: StreamLike = None) -> None:
        """Send *array* to rank *to*, which receives as many elements of that type."""
        self._check_rank("to", to)
        self._pass("ncclSend", array, to, stream)

    def receive(self, array: DeviceArray, source: int, stream: StreamLike = None) -> None:
        """*array* becomes what rank *source* sends."""
        self._check_rank("source", source)
        array._check_writable()
        self._pass("ncclRecv", array, source, stream)

    def _move(
        self, name: str, source: DeviceArray, target: DeviceArray | None, count: int, stream: StreamLike, *more: int
    ) -> None:
        address = 0
        if target is not None:
            if target is not source:
                target._check_writable()
            address = self._address("target", target)
        place = self._address("source", source)
        handle = self._stream(source if target is None else target, stream)
        number = data_type(source)
        make_current(self.device)
        call(name, place, address, count, number, *more, self.handle, handle)

    def _pass(self, name: str, array: DeviceArray, peer: int, stream: StreamLike) -> None:
        place = self._address("array", array)
        handle = self._stream(array, stream)
        number = data_type(array)
        make_current(self.device)
        call(name, place, array.size, number, peer, self.handle, handle)

    def _stream(self, array: DeviceArray, stream: StreamLike) -> int:
        return stream_handle(array.stream if stream is None else stream)

    def _address(self, name: str, array: DeviceArray) -> int:
        if array.device is not self.device:
            raise CollectiveError(f"{name} is {describe(array)}; this rank's arrays are on device {self.device.id}")
        if not (array.is_c_contiguous() or array.is_f_contiguous()):
            raise CollectiveError(f"{name} is {describe(array)}, whose elements are not contiguous; pass {name}.copy()")
        return array.address

    def _check_rank(self, name: str, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise CollectiveError(f"{name} is {rank}; this group has ranks from 0 to {self.size - 1}")

    def _check_same(self, source: DeviceArray, target: DeviceArray) -> None:
        if (source.shape, source.dtype) != (target.shape, target.dtype):
            raise CollectiveError(f"target is {describe(target)}; it must be like source, {describe(source)}")
        if source.ndim > 1 and source.is_c_contiguous() != target.is_c_contiguous():
            raise CollectiveError("source and target have different orders (C and Fortran); pass source.copy(order)")

    def _check_parts(self, whole_name: str, whole: DeviceArray, part_name: str, part: DeviceArray) -> None:
        if whole.size != part.size * self.size or whole.dtype != part.dtype:
            raise CollectiveError(
                f"{whole_name} is {describe(whole)}; it must have {self.size} times the {part.size} elements of "
                f"{part_name}, of type {part.dtype}"
            )


def check_device(device: Device) -> None:
    """RCCL knows AMD GPUs only."""
    if device.is_cpu:
        raise UnsupportedError(
            f"device {device.id} is a CPU device; collective operations of RCCL are among AMD GPUs. MPI takes arrays "
            "of both"
        )


def make_current(device: Device) -> None:
    """RCCL works on HIP's current device of the thread."""
    cast("HipDriver", device.driver).make_current(device.ordinal)


def data_type(array: DeviceArray) -> int:
    """RCCL's number for the type of the elements."""
    number = DATA_TYPES.get(array.dtype.name)
    if number is None or not array.dtype.isnative:
        raise CollectiveError(
            f"elements are {array.dtype}; RCCL has {', '.join(DATA_TYPES)}; a view may be one of them"
        )
    return number


def operation(name: str, array: DeviceArray) -> int:
    """RCCL's number for an operation. Sums of bool would be those of bytes."""
    number = OPERATIONS.get(name)
    if number is None:
        raise CollectiveError(f"op is {name!r}; it must be one of {', '.join(OPERATIONS)}")
    if array.dtype == bool and name not in ("max", "min"):
        raise CollectiveError(f"op is {name!r} and the elements are bool; only max (any) and min (all) are for those")
    return number
