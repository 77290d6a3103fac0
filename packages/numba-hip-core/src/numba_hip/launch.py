"""Launches: over which grid, on which stream, with which arguments."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hip_runtime import Stream
from hip_runtime.errors import LaunchError

if TYPE_CHECKING:
    from numba_hip.dispatcher import Dispatcher

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchConfig:
    """Where a launch runs: blocks of the grid and threads of a block along three axes, the stream (``None`` is the
    default one), and bytes of dynamic shared memory for each block."""

    grid: Dim3
    block: Dim3
    stream: Stream | None = None
    dynamic_shared: int = 0

    @classmethod
    def of(cls, given: Any) -> LaunchConfig:
        """From what stands in ``kernel[...]``: grid, block, and optionally stream and bytes of shared memory.

        Raises `LaunchError`, naming what is wrong and what is possible.
        """
        if not isinstance(given, tuple) or not 2 <= len(given) <= 4:
            raise LaunchError(
                f"a launch is configured as kernel[grid, block, stream, dynamic_shared], the last two optional; got {given!r}"
            )
        grid, block, *rest = given
        stream = _stream(rest[0]) if rest else None
        shared = _dynamic_shared(rest[1]) if len(rest) > 1 else 0
        return cls(_dim3(grid, "grid"), _dim3(block, "block"), stream, shared)


def _dim3(given: Any, what: str) -> Dim3:
    """One to three positive integers, filled up with ones."""
    extents = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(extents) <= 3:
        raise LaunchError(f"the {what} has {len(extents)} dimensions ({given!r}); it can have 1 to 3")
    whole: list[int] = []
    for axis, extent in zip("xyz", extents, strict=False):
        try:
            number = operator.index(extent)
        except TypeError:
            raise LaunchError(
                f"the {what}'s {axis} is {extent!r}, a {type(extent).__name__}; it has to be an integer"
            ) from None
        if isinstance(extent, bool) or number < 1:
            raise LaunchError(f"the {what}'s {axis} is {extent!r}; it has to be at least 1")
        whole.append(number)
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z


def _stream(given: Any) -> Stream | None:
    if given is None or isinstance(given, Stream):
        return given
    if isinstance(given, int) and not isinstance(given, bool) and given == 0:
        return None
    raise LaunchError(f"the stream is {given!r}, a {type(given).__name__}; it has to come from hip.stream(), or be 0")


def _dynamic_shared(given: Any) -> int:
    try:
        size = operator.index(given)
    except TypeError:
        raise LaunchError(f"dynamic shared memory is {given!r}; it has to be a number of bytes") from None
    if size < 0:
        raise LaunchError(f"dynamic shared memory is {size} bytes; it cannot be negative")
    return size


class ConfiguredKernel:
    """A kernel with its launch configuration: what ``kernel[grid, block]`` gives. Calling it launches."""

    __slots__ = ("config", "dispatcher")

    def __init__(self, dispatcher: Dispatcher, config: LaunchConfig) -> None:
        self.dispatcher = dispatcher
        self.config = config

    def __repr__(self) -> str:
        return f"<{self.dispatcher!r} configured with {self.config}>"

    def __call__(self, *args: Any) -> None:
        """Launch with *args*; see `numba_hip.jit`."""
        self.dispatcher.launch(self.config, args)
