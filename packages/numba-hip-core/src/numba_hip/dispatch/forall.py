"""Launches over a number of tasks, without a grid chosen by hand."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hip_runtime import Stream
from hip_runtime.errors import LaunchError
from numba_hip.errors import hide_frames, says_enough

if TYPE_CHECKING:
    from numba_hip.dispatch.dispatcher import Dispatcher

DEFAULT_BLOCK = 256
"""Threads of a block where nobody chose: a multiple of every wave size, and small enough for several blocks on a
compute unit."""


@dataclass(frozen=True)
class ForAll:
    """A kernel with as many threads as there are tasks, at least. Calling it launches. Made by `Dispatcher.forall`."""

    dispatcher: Dispatcher
    ntasks: int
    thread_per_block: int
    stream: Stream | int | None
    sharedmem: int

    def __post_init__(self) -> None:
        if type(self.ntasks) is type(self.thread_per_block) is int and self.ntasks >= 0 <= self.thread_per_block:
            return  # the common case
        for name, what in (("ntasks", "task count"), ("thread_per_block", "block")):
            value = getattr(self, name)
            try:
                number = operator.index(value)
            except TypeError:
                from hip_runtime.float_advice import advice_on_floats  # most programs do without

                advice = advice_on_floats([value])
                raise LaunchError(f"{name} must be a whole number, not {value!r}{advice}") from None
            if isinstance(value, bool):
                raise LaunchError(f"{name} must be a whole number, not {value!r}")
            if number < 0:
                raise LaunchError(f"Can't create ForAll with negative {what}: {name} is {value!r}")

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch with *args*, and those *named* as the parameters are; without tasks there is nothing to do."""
        if self.ntasks == 0:
            return
        block = self.thread_per_block or min(DEFAULT_BLOCK, self.dispatcher.options.max_block_threads)
        grid = -(-self.ntasks // block)
        configured = self.dispatcher[grid, block, self.stream, self.sharedmem]
        try:
            configured(*args, **named)
        except BaseException as error:
            if says_enough(error):
                hide_frames(error)
            raise
