"""Memory of HIP devices: allocations by address, freed in batches, as each call of `hipFree` stops the device."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from ctypes import byref, c_size_t, c_void_p
from typing import NamedTuple

from hip_runtime.driver import MemoryKind
from hip_runtime.drivers.hip.calls import IPC_HANDLE_BYTES, Calls, HipIpcHandle
from hip_runtime.drivers.hip.errors import NOT_FOUND, OUT_OF_MEMORY, OWN_MEMORY
from hip_runtime.errors import InvalidAddressError, InvalidHandleError, OutOfDeviceMemoryError, UnsupportedError

RETIRED_COUNT = 32
RETIRED_BYTES = 256 << 20
"""Freed memory goes back to the runtime, which has to stop the device for it, when there is this much of it and more is
wanted: not when it is freed, which finalisers do in any thread, also in one that the device waits for."""

_HOST_MALLOC_PORTABLE, _HOST_MALLOC_MAPPED = 1, 2
_MEM_ATTACH_GLOBAL = 1
_IPC_LAZY_ENABLE_PEER_ACCESS = 1

_NO_MEMORY_THERE = (1, 17, NOT_FOUND)
"""What ``hipMemGetAddressRange`` answers for other addresses: ``hipErrorInvalidValue``, up to ROCm 5
``hipErrorInvalidDevicePointer``, and ``hipErrorNotFound`` since."""


class Allocation(NamedTuple):
    """Memory at an address. ``release`` is the function of HIP that gives it back."""

    device: int
    address: int
    nbytes: int
    release: str


class HipHeap:
    """Live allocations by address. *reclaim* waits for all work and lets go of what it owned, *wait* for a device."""

    def __init__(self, calls: Calls, reclaim: Callable[[], None], wait: Callable[[int], None]) -> None:
        self._calls = calls
        self._wait = wait
        self._reclaim = reclaim
        self._live: dict[int, Allocation] = {}
        self._retired: deque[Allocation] = deque()
        self._retired_bytes = 0
        self._flushing = threading.RLock()

    def allocate(self, device: int, nbytes: int, kind: MemoryKind) -> int:
        """Address of new memory; `OutOfDeviceMemoryError`, after everything that could be given back was."""
        size = max(nbytes, 1)  # an allocation of no bytes has no address of its own
        if len(self._retired) >= RETIRED_COUNT or self._retired_bytes >= RETIRED_BYTES:
            self.flush()
        code, name, place = self._ask(device, size, kind)
        if code == OUT_OF_MEMORY:
            self._calls.hipGetLastError()
            self._reclaim()
            code, name, place = self._ask(device, size, kind)
        if code == OUT_OF_MEMORY:
            self._calls.hipGetLastError()
            raise self._exhausted(device, nbytes, kind)
        if code:
            raise self._calls.error(name, code)
        release = "hipHostFree" if name == "hipHostMalloc" else "hipFree"
        self._live[place] = Allocation(device, place, size, release)
        if kind is MemoryKind.MAPPED:
            self._check_mapped(place)
        return place

    def take(self, address: int) -> Allocation:
        """Forget the allocation at *address*, which lives until it is handed to `retire`. Takes no lock."""
        allocation = self._live.pop(address, None)
        if allocation is None:
            raise InvalidAddressError(
                f"{address:#x} is not the start of memory of a HIP device: it was freed already or never allocated"
            )
        return allocation

    def retire(self, allocation: Allocation) -> None:
        """Give memory back later, with more of its kind; waits for nothing, and may be called in a finaliser."""
        self._retired.append(allocation)
        self._retired_bytes += allocation.nbytes

    def flush(self) -> None:
        """Give all freed memory back. HIP waits for the work of the device first; so do we, where it does not."""
        synchronized: set[int] = set()
        with self._flushing:
            while self._retired:
                allocation = self._retired[0]
                self._calls.activate(allocation.device)
                if allocation.device not in synchronized:
                    self._wait(allocation.device)
                    synchronized.add(allocation.device)
                self._retired.popleft()
                self._retired_bytes -= allocation.nbytes
                self._calls.call(allocation.release, allocation.address)

    def info(self, device: int) -> tuple[int, int]:
        """Free and total bytes."""
        self.flush()
        free, total = c_size_t(), c_size_t()
        self._calls.activate(device)
        self._calls.call("hipMemGetInfo", byref(free), byref(total))
        return free.value, total.value

    def find(self, address: int) -> tuple[int, int]:
        """Start and bytes of the allocation that *address* lies in, whoever made it; `InvalidAddressError`."""
        start, nbytes = c_void_p(), c_size_t()
        code = self._calls.hipMemGetAddressRange(byref(start), byref(nbytes), address)
        if code in _NO_MEMORY_THERE:
            self._calls.hipGetLastError()
            raise InvalidAddressError(f"{address:#x} does not lie in memory of a HIP device")
        if code:
            raise self._calls.error("hipMemGetAddressRange", code)
        return start.value or 0, nbytes.value

    def ipc_handle(self, address: int) -> bytes:
        """The handle by which another process opens the memory at *address*."""
        handle = HipIpcHandle()
        allocation = self._live.get(address)
        if allocation is not None:
            self._calls.activate(allocation.device)
        self._calls.call("hipIpcGetMemHandle", byref(handle), address)
        return bytes(handle)

    def open_ipc_handle(self, device: int, handle: bytes) -> int:
        """The address in this process of the memory behind *handle*."""
        if len(handle) != IPC_HANDLE_BYTES:
            raise InvalidHandleError(f"an IPC handle has {IPC_HANDLE_BYTES} bytes, this one {len(handle)}")
        place = c_void_p()
        self._calls.activate(device)
        given = HipIpcHandle.from_buffer_copy(handle)
        code = self._calls.hipIpcOpenMemHandle(byref(place), given, _IPC_LAZY_ENABLE_PEER_ACCESS)
        if code == OWN_MEMORY:
            self._calls.hipGetLastError()
            raise InvalidHandleError(
                "this process made the IPC handle, and HIP opens handles in other processes only: use the array that "
                "it was made from"
            )
        if code:
            raise self._calls.error("hipIpcOpenMemHandle", code)
        address = place.value or 0
        self._live[address] = Allocation(device, address, 0, "hipIpcCloseMemHandle")
        return address

    def _ask(self, device: int, size: int, kind: MemoryKind) -> tuple[int, str, int]:
        place = c_void_p()
        self._calls.activate(device)
        if kind is MemoryKind.DEVICE:
            return self._calls.hipMalloc(byref(place), size), "hipMalloc", place.value or 0
        if kind is MemoryKind.MANAGED:
            code = self._calls.hipMallocManaged(byref(place), size, _MEM_ATTACH_GLOBAL)
            return code, "hipMallocManaged", place.value or 0
        flags = _HOST_MALLOC_PORTABLE | (_HOST_MALLOC_MAPPED if kind is MemoryKind.MAPPED else 0)
        return self._calls.hipHostMalloc(byref(place), size, flags), "hipHostMalloc", place.value or 0

    def _check_mapped(self, address: int) -> None:
        """Mapped memory has one address for both, as everywhere where addressing is unified."""
        there = c_void_p()
        try:
            self._calls.call("hipHostGetDevicePointer", byref(there), address, 0)
            if there.value != address:
                raise UnsupportedError("this device sees mapped host memory at another address than the host")
        except BaseException:
            self.retire(self.take(address))
            raise

    def _exhausted(self, device: int, nbytes: int, kind: MemoryKind) -> OutOfDeviceMemoryError:
        free, total = self.info(device)
        advice = "free arrays that are no longer needed, or use smaller ones"
        if kind is not MemoryKind.DEVICE:
            advice = f"this is {kind.value} memory, of which the host may have too little"
        return OutOfDeviceMemoryError(nbytes, free, total, advice)
