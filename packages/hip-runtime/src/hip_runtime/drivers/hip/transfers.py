"""Copies and fills on streams. Those on the default stream are done on a stream of the driver's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hip_runtime.driver import PER_THREAD_STREAM, Strided
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.copies import Copier
from hip_runtime.drivers.hip.faults import raise_fault
from hip_runtime.drivers.hip.memory import HipHeap
from hip_runtime.drivers.hip.stream_table import HipStreamTable


class Transfers:
    """The copies and fills of a driver."""

    def __init__(self, calls: Calls, heap: HipHeap, streams: HipStreamTable) -> None:
        self._streams = streams
        self._copier = Copier(calls, heap)

    def copy(self, target: int, source: int, nbytes: int, stream: int, owners: object) -> None:
        """Copy bytes; *owners* keep the memory until that is done."""
        self._transfer(stream, self._copier.copy, (target, source), (target, source, nbytes), owners)

    def copy_strided(
        self, target: Strided, source: Strided, shape: tuple[int, ...], itemsize: int, stream: int, owners: object
    ) -> None:
        """Copy elements from one layout to another; *owners* keep the memory until that is done."""
        places = (target.address, source.address)
        self._transfer(stream, self._copier.copy_elements, places, (target, source, shape, itemsize), owners)

    def fill(self, address: int, value: int, nbytes: int, stream: int) -> None:
        """Set bytes to *value*."""
        self._transfer(stream, self._copier.fill, (address,), (address, value, nbytes))

    def writer(self, device: int) -> Callable[..., None]:
        """Writes bytes of the host to memory of *device*, before it returns."""
        return partial(self._copier.write, self._streams.transfers(device))

    def _transfer(
        self, stream: int, work: Callable[..., None], addresses: Sequence[int], given: Sequence[Any], *owners: object
    ) -> None:
        """Copy between, or fill, memory at *addresses*: *work*, given a stream, *given* and *owners*.

        Transfers on the default stream are done on another stream: after the work that they have to wait for, and
        before this returns, so in the same order. Raises the faults of that work.
        """
        if stream > PER_THREAD_STREAM:
            found = self._streams.find(stream)
            self._streams.activate(found).submit(partial(work, found, *given, *owners))
            return
        self._streams.captures.forbid("use the default stream")
        self._streams.settle()
        devices = self._copier.devices_of(*addresses)
        defaults = [self._streams.defaults[device] for device in devices]
        for default in defaults[::-1]:  # so that the device of the first one is current afterwards
            self._streams.activate(default).synchronize()
        transfers = self._streams.transfers(devices[0])
        try:
            work(transfers, *given, *(None for _ in owners))
        finally:
            transfers.finish()
        raise_fault(defaults[0].take_fault())
