"""Modules that are no longer used, unloaded once the device is idle."""

from __future__ import annotations

from hip_runtime.drivers.hip.modules import HipModule
from hip_runtime.drivers.hip.stream_table import HipStreamTable

UNLOADING_COUNT = 32
"""Modules and executable graphs that nobody wants wait for the next synchronisation of the device, unless there are so
many of them."""


class Unloader:
    """Unloads modules once no kernel of theirs can run: the runtime itself does not wait before it takes code away."""

    def __init__(self, streams: HipStreamTable) -> None:
        self._streams = streams
        self._waiting: set[HipModule] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, module: HipModule) -> None:
        """Unload *module* when its device is idle."""
        if not module.unloaded:
            module.unloaded = True
            self._waiting.add(module)

    def unload(self) -> None:
        """Unload the modules that wait for it; first all their devices that are not idle are waited for."""
        for module in list(self._waiting):
            if module.users:
                continue  # a graph still runs its kernels
            self._streams.wait_for_work(module.device)
            for stream in self._streams.everything(module.device):
                stream.look_for_fault()
            self._waiting.discard(module)
            module.release()
