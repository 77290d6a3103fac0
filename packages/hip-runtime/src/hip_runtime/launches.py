"""Launches of functions: what is configured is checked once, and then called with packed arguments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hip_devicelib.codeobject import Kernel
from hip_runtime import activity
from hip_runtime.activity import Activity, Observer
from hip_runtime.driver import Dim3
from hip_runtime.errors import LaunchError
from hip_runtime.launch_limits import LaunchLimits, dim3
from hip_runtime.stream_handle import stream_handle

if TYPE_CHECKING:
    from hip_runtime.module import Function
    from hip_runtime.stream import Stream


class BlockLaunches:
    """Launches of a function in blocks of one shape, with as much dynamic shared memory each; any grid."""

    __slots__ = ("_launcher", "_limits", "_most", "_size", "block", "dynamic_shared", "function")

    def __init__(
        self, function: Function, block: int | Sequence[int], dynamic_shared: int = 0, cooperative: bool = False
    ) -> None:
        self.function = function
        self.block = dim3("block", block)
        self._limits = limits = LaunchLimits(function.device, function.kernel)
        limits.check_block(self.block)
        self.dynamic_shared = limits.check_shared(dynamic_shared)
        self._most = limits.largest_grid(self.block)
        self._size = function.kernel.argument_bytes
        driver = function.device.driver
        self._launcher = driver.launcher(function.handle, self.block, self.dynamic_shared, bool(cooperative))

    def launch(self, arguments: bytes, grid: Dim3, stream: int, owners: object = None) -> None:
        """Launch over *grid*, whose extents are positive, on the stream with that handle; see `Function.launch`."""
        if type(arguments) is not bytes or len(arguments) != self._size:
            arguments = _check_arguments(arguments, self.function.kernel)
        x, y, z = grid
        most_x, most_y, most_z = self._most
        if x > most_x or y > most_y or z > most_z:
            self.check_grid(grid)
        launcher = self._launcher  # Python calls a local variable faster
        observer = activity.observer
        if observer is None:
            launcher(arguments, grid, stream, owners, self.function.describe_fault)
        else:
            self._measure(observer, arguments, grid, stream, owners)

    def _measure(self, observer: Observer, arguments: bytes, grid: Dim3, stream: int, owners: object) -> None:
        function = self.function
        launched = Activity("kernel", function.name, function.device, stream, grid=grid, block=self.block)
        self.prepare()
        run = partial(self._launcher, arguments, grid, stream, owners, function.describe_fault)
        observer.measure(launched, run)

    def check_grid(self, grid: Dim3) -> None:
        """`LaunchError` where the device does not allow *grid*."""
        self._limits.check_grid(grid, self.block)

    def prepare(self) -> None:
        """Generate the machine code for this block shape, if the device has to and has not yet; otherwise the first
        launch does. Raises the same errors as that."""
        make = getattr(self.function.device.driver, "prepare", None)
        if make is not None:
            make(self.function.handle, self.block, self.function.describe_fault)


class Launch:
    """A function with a checked configuration: call it with packed arguments."""

    __slots__ = ("_in_blocks", "_stream", "_stream_owner", "grid")

    def __init__(
        self,
        function: Function,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        stream: Stream | int | None,
        dynamic_shared: int,
        cooperative: bool,
    ) -> None:
        self.grid = dim3("grid", grid)
        self._in_blocks = BlockLaunches(function, block, dynamic_shared, cooperative)
        self._in_blocks.check_grid(self.grid)
        self._stream = stream_handle(stream)
        self._stream_owner = stream

    @property
    def function(self) -> Function:
        """What is launched."""
        return self._in_blocks.function

    @property
    def block(self) -> Dim3:
        """Threads of a block."""
        return self._in_blocks.block

    @property
    def dynamic_shared(self) -> int:
        """Bytes of dynamic shared memory of each block."""
        return self._in_blocks.dynamic_shared

    def __call__(self, arguments: bytes, owners: object = None, stream: int | None = None) -> None:
        """Launch, on the stream with the handle *stream* where one is given; see `Function.launch`."""
        self._in_blocks.launch(arguments, self.grid, self._stream if stream is None else stream, owners)

    def prepare(self) -> None:
        """See `BlockLaunches.prepare`."""
        self._in_blocks.prepare()


def _check_arguments(arguments: Any, kernel: Kernel) -> bytes:
    try:
        packed = bytes(memoryview(arguments))
    except TypeError:
        raise LaunchError(f"arguments must be bytes, not {type(arguments).__name__}") from None
    if len(packed) != kernel.argument_bytes:
        raise LaunchError(
            f"arguments are {len(packed)} bytes; kernel {kernel.name!r} takes {kernel.argument_bytes} bytes for its "
            f"{len(kernel.parameters)} parameters"
        )
    return packed
