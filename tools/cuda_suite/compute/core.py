"""Stands for ``cuda.core`` and ``cuda.core.system``: devices and streams of `numba.hip`, as far as tests use them."""

from __future__ import annotations

from typing import Any

import numba_hip as hip


class Stream:
    """A stream, which other packages know by ``__cuda_stream__``."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    @property
    def handle(self) -> int:
        """The driver's number for it."""
        return int(self._stream.handle)

    @property
    def device(self) -> Device:
        """The device that it is of."""
        return Device()

    def sync(self) -> None:
        """Wait for what was launched."""
        self._stream.synchronize()

    def close(self) -> None:
        """Do nothing: it ends with this object."""


class Device:
    """The current device."""

    def __init__(self, number: int = 0) -> None:
        self.device_id = number

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The number that it answers while posing."""
        major, minor = hip.get_current_device().compute_capability
        return major, minor

    @property
    def default_stream(self) -> Stream:
        """The stream of launches that name none."""
        return Stream(hip.default_stream())

    def set_current(self) -> None:
        """Do nothing: there is one device."""

    def create_stream(self) -> Stream:
        """A new stream."""
        return Stream(hip.stream())

    def sync(self) -> None:
        """Wait for all that was launched."""
        hip.synchronize()


def get_num_devices() -> int:
    """How many devices there are."""
    return len(hip.gpus)
