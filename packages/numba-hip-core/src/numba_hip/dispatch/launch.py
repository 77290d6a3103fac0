"""Launches: over which grid, on which stream, with which arguments."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hip_runtime import Device, Stream, current_device
from hip_runtime.driver import DEFAULT_STREAM
from hip_runtime.errors import LaunchError, LaunchTypeError
from hip_runtime.launch_limits import dim3
from hip_runtime.stream import find_stream
from numba_hip.advisory_warnings import advise_on_grid
from numba_hip.arguments.binding import Bind
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.errors import SHORTENED, hide_frames, says_enough

if TYPE_CHECKING:
    from numba_hip.dispatch.dispatcher import Dispatcher
    from numba_hip.dispatch.loading import LaunchFunction, LoadedKernel
    from numba_hip.explanation.model import Explanation

Dim3 = tuple[int, int, int]


MOST_REMEMBERED = 256
"""How many launch configurations of one kernel are remembered, so that they are checked once."""

K = TypeVar("K")
V = TypeVar("V")


class Remembered(dict[K, V]):
    """What was made before, by its key."""

    __slots__ = ()

    def keep(self, key: K, value: V) -> V:
        """Remember *value*, and forget all others where they are many: of a program whose grid changes all the time."""
        if len(self) >= MOST_REMEMBERED:
            self.clear()
        self[key] = value
        return value


class LaunchConfig(NamedTuple):
    """Where a launch runs: blocks of the grid and threads of a block along three axes, the stream (``None`` is the
    default one), and bytes of dynamic shared memory for each block."""

    grid: Dim3
    block: Dim3
    stream: Stream | None = None
    dynamic_shared: int = 0

    @classmethod
    def of(cls, given: Any) -> LaunchConfig:
        """From what stands in ``kernel[...]``: grid, block, and optionally stream, bytes of shared memory, and cluster.

        The blocks of a cluster only have to divide the grid: AMD GPUs have no clusters, and run their blocks as any.
        Raises `LaunchError`, naming what is wrong and what is possible.
        """
        if type(given) is tuple and len(given) == 2:
            grid, block = given
            return cls(dim3("griddim", grid), dim3("blockdim", block))
        if not isinstance(given, (tuple, list)) or not 2 <= len(given) <= 5:
            raise LaunchTypeError(
                "a launch is configured as kernel[grid, block, stream, dynamic_shared, cluster], the last three "
                f"optional; got {given!r}"
            )
        extents = dim3("griddim", given[0])
        if len(given) == 5 and given[4] is not None:
            _check_cluster(dim3("cluster", given[4]), extents)
        block = dim3("blockdim", given[1])
        stream = find_stream(given[2]) if len(given) > 2 else None
        shared = given[3] if len(given) > 3 else None
        return cls(extents, block, stream, 0 if shared is None else shared)


def _check_cluster(cluster: Dim3, grid: Dim3) -> None:
    if any(blocks % most for blocks, most in zip(grid, cluster, strict=True)):
        raise LaunchError(f"griddim {grid} is not a multiple of the cluster {cluster} along each axis")


def is_plain(given: Any) -> bool:
    """Whether *given* is made of integers alone, so that what equals it is as good: ``True`` and ``1.0`` equal 1."""
    if type(given) is not tuple:
        return False
    if len(given) == 2 and type(given[0]) is type(given[1]) is int:  # most are: a launch pays for this
        return True
    for part in given:
        kind = type(part)
        if kind is not int and (kind is not tuple or not _INTEGER.issuperset(map(type, part))):
            return False
    return True


_INTEGER = frozenset([int])


class ReadyLaunch(NamedTuple):
    """A kernel on a device, in blocks of one shape, with what was loaded."""

    launch: LaunchFunction
    loaded: LoadedKernel
    device: Device
    bind: Bind | None
    """Recognises and packs arguments of the same types."""


class ReadyLaunches(dict[tuple[Any, ...], ReadyLaunch]):
    """Launches in blocks of one shape that were made before, by the device, what stands for the types of the arguments,
    and what of the configuration their code is for, if any."""

    __slots__ = ("recent",)

    def __init__(self) -> None:
        self.recent: ReadyLaunch | None = None
        """The last one that can ``bind``: the next is mostly like it."""


class ConfiguredKernel:
    """A kernel with its launch configuration: what ``kernel[grid, block]`` gives. Calling it launches.

    ``pre_launch_callbacks`` are called with the `KernelCode` and this object right before each launch; one that raises
    prevents it. ``kernel[grid, block]`` gives the same object again while the dispatcher remembers it.
    """

    __slots__ = ("config", "dispatcher", "handle", "pre_launch_callbacks", "ready")

    def __init__(self, dispatcher: Dispatcher, config: LaunchConfig, ready: ReadyLaunches) -> None:
        self.dispatcher = dispatcher
        self.config = config
        stream = config.stream
        self.handle = DEFAULT_STREAM if stream is None else stream.handle
        """The driver's number for the stream."""
        self.pre_launch_callbacks: list[Callable[[KernelCode, ConfiguredKernel], object]] = []
        self.ready = ready
        """What was prepared for blocks of this shape, the same for all grids and streams."""

    def __repr__(self) -> str:
        return f"<{self.dispatcher!r} configured with {self.config}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.pre_launch_callbacks:
            raise pickle.PicklingError(
                f"Cannot pickle configured launches with pre-launch callbacks; remove those of {self!r} first"
            )
        if self.config.stream is not None:
            raise pickle.PicklingError(f"{self!r} belongs to a stream of this process, which cannot be pickled")
        return _configure, (self.dispatcher, tuple(self.config))

    @property
    def griddim(self) -> Dim3:
        """Blocks of the grid along x, y and z."""
        return self.config.grid

    @property
    def blockdim(self) -> Dim3:
        """Threads of a block along x, y and z."""
        return self.config.block

    @property
    def stream(self) -> Stream | None:
        """The stream of the launch; ``None`` is the default one."""
        return self.config.stream

    @property
    def sharedmem(self) -> int:
        """Bytes of dynamic shared memory of each block."""
        return self.config.dynamic_shared

    def call_back(self, code: KernelCode) -> None:
        """Tell those who want to know that *code* is about to be launched so."""
        for callback in self.pre_launch_callbacks:
            callback(code, self)

    def explain(self, *args: Any, target: str | None = None) -> Explanation:
        """What becomes of the kernel in such blocks: see `Dispatcher.explain`."""
        try:
            return self.dispatcher._explain(args, target, self.config.block, self.config)
        except SHORTENED as error:
            hide_frames(error)
            raise

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch with *args*, and those *named* as the parameters are; see `numba_hip.jit`."""
        try:
            if named:
                args = self.dispatcher.parameters.place(args, named)
            recent = self.ready.recent
            if recent is not None:
                launch, loaded, device, bind = recent
                if device is current_device() and not self.dispatcher.extensions:
                    packed = bind(args)  # type: ignore[misc]
                    if packed is not None:
                        if self.pre_launch_callbacks:
                            self.call_back(loaded.code)
                        return launch(packed, self.config[0], self.handle, args)
            self.dispatcher.launch(self, args)
        except BaseException as error:
            if says_enough(error):
                hide_frames(error)
            raise


class AdvisedKernel(ConfiguredKernel):
    """A configured kernel whose grid leaves the device idle. The first launch that takes place warns of that."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch, warn, and be like any other from then on."""
        try:
            super().__call__(*args, **named)
        except BaseException as error:
            if says_enough(error):
                hide_frames(error)
            raise
        advise_on_grid(self.config.grid)
        self.__class__ = ConfiguredKernel  # type: ignore[assignment]  # later launches do not pay for this


def _configure(dispatcher: Dispatcher, config: tuple[Any, ...]) -> ConfiguredKernel:
    return dispatcher[config]
