"""The launch that a thread compiles a kernel for: passes of a compiler can ask for it, such as rewrites of libraries.

Code that depends on more of a launch than the types of its arguments says so by `mark_launch_config_sensitive` of the
dispatcher: it is compiled anew for each grid, block and size of dynamic shared memory then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from hip_runtime import Stream
from numba_hip.dispatch.launch import Dim3, LaunchConfig

if TYPE_CHECKING:
    from numba_hip.dispatch.dispatcher import Dispatcher


class CurrentLaunch(NamedTuple):
    """A launch for which a kernel is compiled: blocks of the grid, threads of a block, the stream (``None`` is the
    default one), bytes of dynamic shared memory, and the arguments, which are on the device already."""

    dispatcher: Dispatcher
    griddim: Dim3
    blockdim: Dim3
    stream: Stream | None
    sharedmem: int
    args: tuple[Any, ...]


class _Thread(threading.local):
    launch: CurrentLaunch | None = None


_thread = _Thread()
_captures: list[tuple[Dispatcher, dict[str, CurrentLaunch | None]]] = []


def current_launch_config() -> CurrentLaunch | None:
    """The launch that this thread compiles a kernel for; ``None`` where it compiles none, or one without a launch."""
    return _thread.launch


def ensure_current_launch_config() -> CurrentLaunch:
    """`current_launch_config`; `RuntimeError` where there is none."""
    if _thread.launch is None:
        raise RuntimeError("No launch config set for this thread: there is one only while a launch compiles a kernel")
    return _thread.launch


@contextmanager
def capture_compile_config(dispatcher: Dispatcher) -> Iterator[dict[str, CurrentLaunch | None]]:
    """A dictionary whose ``"config"`` is the last launch that *dispatcher* was compiled for within ``with``."""
    if dispatcher is None:
        raise TypeError("dispatcher is required: capture_compile_config(kernel)")
    record: dict[str, CurrentLaunch | None] = {"config": None}
    capture = (dispatcher, record)
    _captures.append(capture)
    try:
        yield record
    finally:
        _captures[:] = [other for other in _captures if other is not capture]


@contextmanager
def compiling_for(dispatcher: Dispatcher, config: LaunchConfig, args: Sequence[Any]) -> Iterator[None]:
    """What is compiled within ``with`` is compiled for that launch."""
    before, _thread.launch = _thread.launch, CurrentLaunch(dispatcher, *config, tuple(args))
    try:
        yield
    finally:
        _thread.launch = before


def note_compilation(dispatcher: object) -> None:
    """Tell those who capture what *dispatcher* is compiled for: it is about to be."""
    for captured, record in list(_captures):
        if captured is dispatcher and _thread.launch is not None:
            record["config"] = _thread.launch
