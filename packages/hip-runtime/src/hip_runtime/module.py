"""Modules and functions: code objects on a device, and launches of their kernels."""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.errors import CodeObjectError
from hip_runtime.activity import Activity, Observer
from hip_runtime.device import Device, current_device
from hip_runtime.driver import Dim3, block_threads
from hip_runtime.errors import KernelFault, LaunchError, LaunchTypeError, SymbolError
from hip_runtime.stream import Stream
from hip_runtime.stream_handle import stream_handle

_AXES = ("x", "y", "z")


class Module:
    """A code object that is loaded on *device*; it is unloaded with the last reference to it and its functions."""

    def __init__(self, device: Device | None, code: CodeObject) -> None:
        self.device = current_device() if device is None else device
        self.code = code
        driver = self.device.driver
        self.handle = driver.load_module(self.device.ordinal, code)
        self._functions: dict[str, Function] = {}
        self._finalizer = weakref.finalize(self, driver.unload_module, self.handle)
        self._finalizer.atexit = False
        self._last_calls: list[Callable[[Module], object]] = []
        self._teardown: weakref.finalize[Any, Any] | None = None

    def function(self, name: str) -> Function:
        """A new `Function` for the kernel called *name*; `SymbolError` lists those that there are."""
        try:
            kernel = self.code.kernel(name)
        except CodeObjectError as error:
            raise SymbolError(str(error)) from None
        return Function(self, kernel)

    def global_variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a global variable; `SymbolError`."""
        return self.device.driver.get_global(self.handle, name)

    def before_unload(self, callback: Callable[[Module], object]) -> None:
        """Call *callback* with this module just before it is unloaded, at the latest when the process ends.

        The last of several is called first.
        """
        self._last_calls.append(callback)
        if self._teardown is None:
            # Finalizers are called when their object is gone; another one of the same handle stands for it. The last
            # one that was made is called first.
            self._teardown = weakref.finalize(self, _call_each, copy.copy(self), self._last_calls)

    def unload(self) -> None:
        """Unload the code now, once launches that have begun are done with it."""
        if self._teardown is not None:
            self._teardown()
        self._finalizer()


def _call_each(module: Module, callbacks: Sequence[Callable[[Module], object]]) -> None:
    """Call each of *callbacks*, the last first, whichever fails."""
    with ExitStack() as stack:
        for callback in callbacks:
            stack.callback(callback, module)


class FunctionAttributes(NamedTuple):
    """A kernel's resource usage, as far as its code shows it: vector registers and bytes of local memory of a thread,
    bytes of static shared memory of a block, and the largest number of threads of a block."""

    regs: int
    shared: int
    local: int
    const: int
    """0: constants lie with other global variables."""
    maxthreads: int


class LaunchLimits(NamedTuple):
    """The largest grid, block and dynamic shared memory of a kernel on its device, as one comparison asks for them."""

    grid: Dim3
    block: Dim3
    block_threads: int
    threads_along: int
    """Threads along an axis, of all blocks together."""
    dynamic_shared: int

    @classmethod
    def of(cls, device: Device, kernel: Kernel) -> LaunchLimits:
        """The limits of *kernel* on *device*."""
        attributes = device.attributes
        return cls(
            attributes.max_grid_dim, attributes.max_block_dim,
            min(attributes.max_threads_per_block, kernel.max_block_threads), attributes.max_threads_along,
            attributes.shared_bytes_per_block - kernel.shared_bytes,
        )  # fmt: skip

    def allow(self, grid: Dim3, block: Dim3) -> bool:
        """Whether *grid* and *block*, whose extents are positive, are within the limits."""
        (x, y, z), (across, down, deep) = grid, block
        (most_x, most_y, most_z), (most_across, most_down, most_deep), threads, along, _ = self
        return (
            x <= most_x and y <= most_y and z <= most_z
            and across <= most_across and down <= most_down and deep <= most_deep and across * down * deep <= threads
            and x * across <= along and y * down <= along and z * deep <= along
        )  # fmt: skip


class Function:
    """One kernel of a module, to launch.

    ``describe_fault`` may be set by a layer above: it makes the exception to raise from a `KernelFault` of this
    function.
    """

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.module = module
        self.device = module.device
        self.kernel = kernel
        self.handle = self.device.driver.get_function(module.handle, kernel)
        self.limits = LaunchLimits.of(self.device, kernel)
        self.describe_fault: Callable[[KernelFault], BaseException] | None = None

    @property
    def name(self) -> str:
        """The name of the kernel in its code object."""
        return self.kernel.name

    @property
    def attrs(self) -> FunctionAttributes:
        """The kernel's resource usage."""
        kernel = self.kernel
        most = min(kernel.max_block_threads, self.device.attributes.max_threads_per_block)
        return FunctionAttributes(kernel.vector_registers or 0, kernel.shared_bytes, kernel.private_bytes, 0, most)

    @property
    def form(self) -> str:
        """How the device runs the kernel, and why, for each block shape that was launched: one line each.

        Empty before the first launch and on devices that run a kernel in one way only.
        """
        forms = getattr(self.handle, "forms", {})
        return "\n".join(f"{block}: {form} ({reason})" for block, (form, reason) in forms.items())

    def keep_code(self, directory: Path, variable: str) -> None:
        """Cache in *directory* the machine code that is generated when the kernel is launched, for other processes.

        Devices that generate no code cache nothing. *variable* is the setting that warnings mention. If the directory
        cannot be used, or others can write to it, nothing is cached, and a `RuntimeWarning` says so.
        """
        keep = getattr(self.handle, "keep_code", None)
        if keep is not None:
            keep(directory, variable)

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: bytes,
        *,
        stream: Stream | int | None = None,
        dynamic_shared: int = 0,
        cooperative: bool = False,
        owners: object = None,
    ) -> None:
        """Launch over *grid* blocks of *block* threads (1 to 3 extents each, x first).

        *arguments* are the packed parameters, as `Kernel.parameters` lays them out; *owners* is kept alive until the
        kernel is done. On the default stream the kernel has finished when this returns, and a fault of it is raised
        here. Raises `LaunchError` for an impossible configuration.
        """
        self.configure(grid, block, stream=stream, dynamic_shared=dynamic_shared, cooperative=cooperative)(
            arguments, owners
        )

    def configure(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *,
        stream: Stream | int | None = None,
        dynamic_shared: int = 0,
        cooperative: bool = False,
    ) -> Launch:
        """Check a configuration once, to launch with it many times."""
        return Launch(self, grid, block, stream, dynamic_shared, cooperative)

    def max_active_blocks(self, block: int | Sequence[int], dynamic_shared: int = 0) -> int:
        """How many blocks of the shape *block* a compute unit runs at a time."""
        threads = block_threads(dim3("block", block))
        return self.device.driver.max_active_blocks(self.handle, threads, dynamic_shared)


class Launch:
    """A function with a checked configuration: call it with packed arguments."""

    __slots__ = (
        "_cooperative", "_driver_launch", "_handle", "_size", "_stream", "_stream_owner",
        "block", "dynamic_shared", "function", "grid",
    )  # fmt: skip

    def __init__(
        self,
        function: Function,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        stream: Stream | int | None,
        dynamic_shared: int,
        cooperative: bool,
    ) -> None:
        self.function = function
        self.grid = dim3("grid", grid)
        self.block = dim3("block", block)
        if not function.limits.allow(self.grid, self.block):
            _explain_extents(self.grid, self.block, function)
        self.dynamic_shared = _check_shared(dynamic_shared, function)
        self._stream = stream_handle(stream)
        self._stream_owner = stream
        self._cooperative = bool(cooperative)
        self._driver_launch = function.device.driver.launch
        self._handle = function.handle
        self._size = function.kernel.argument_bytes

    def __call__(self, arguments: bytes, owners: object = None, stream: int | None = None) -> None:
        """Launch, on the stream with the handle *stream* where one is given; see `Function.launch`."""
        if type(arguments) is not bytes or len(arguments) != self._size:
            arguments = _check_arguments(arguments, self.function.kernel)
        self._driver_launch(
            self._handle, self.grid, self.block, self.dynamic_shared, self._stream if stream is None else stream,
            arguments, self._cooperative, owners, self.function.describe_fault,
        )  # fmt: skip

    _call_unobserved = __call__

    def prepare(self) -> None:
        """Generate the machine code for this block shape, if the device has to and has not yet; otherwise the first
        launch does. Raises the same errors as that."""
        make = getattr(self.function.device.driver, "prepare", None)
        if make is not None:
            make(self._handle, self.block, self.function.describe_fault)

    @classmethod
    def observe(cls, observer: Observer | None) -> None:
        """Let *observer* know of each launch from now on, or nobody.

        Python looks for ``__call__`` in the class at each call, so that launches that nobody observes pay nothing.
        """

        def call(self: Launch, arguments: bytes, owners: object = None, stream: int | None = None) -> None:
            name, device = self.function.name, self.function.device
            used = self._stream if stream is None else stream
            launched = Activity("kernel", name, device, used, grid=self.grid, block=self.block)
            self.prepare()
            assert observer is not None
            observer.measure(launched, partial(self._call_unobserved, arguments, owners, stream))

        cls.__call__ = cls._call_unobserved if observer is None else call  # type: ignore[method-assign]


def dim3(what: str, value: Any) -> Dim3:
    """*value*, a whole number or 1 to 3 of them, as three extents of a grid or block, x first; `LaunchError`."""
    if type(value) is int and value > 0:  # the common case
        return value, 1, 1
    if type(value) is tuple and len(value) == 3:
        x, y, z = value
        if type(x) is type(y) is type(z) is int and x > 0 and y > 0 and z > 0:
            return value
    parts = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    try:
        if any(isinstance(part, bool) for part in parts):
            raise TypeError
        extents = tuple(operator.index(part) for part in parts)
    except TypeError:
        raise LaunchTypeError(
            f"{what} must be a sequence of integers, got {parts}; one alone can stand for a sequence of one"
        ) from None
    if not 1 <= len(extents) <= 3:
        raise LaunchError(f"{what} must be a sequence of 1, 2 or 3 integers, got {parts}")
    for axis, extent in zip(_AXES, extents, strict=False):
        if extent < 1:
            empty = "; where there is nothing to do, as for an empty array, leave out the launch" if extent == 0 else ""
            raise LaunchError(f"{what} has extent {extent} along {axis}; each must be at least 1{empty}")
    return (*extents, 1, 1)[:3]  # type: ignore[return-value]


def _check_limits(what: str, extents: Dim3, limits: Dim3, device: Device) -> None:
    for axis, extent, limit in zip(_AXES, extents, limits, strict=True):
        if extent > limit:
            raise LaunchError(f"{what} has extent {extent} along {axis}; {device.name} allows at most {limit}")


def _explain_extents(grid: Dim3, block: Dim3, function: Function) -> None:
    """`LaunchError` for what of *grid* and *block* exceeds the limits of *function*."""
    device = function.device
    attributes = device.attributes
    _check_limits("grid", grid, attributes.max_grid_dim, device)
    _check_limits("block", block, attributes.max_block_dim, device)
    threads = block_threads(block)
    for limit, whose in (
        (attributes.max_threads_per_block, f"{attributes.name} allows"),
        (function.kernel.max_block_threads, f"kernel {function.kernel.name!r} was compiled for"),
    ):
        if threads > limit:
            raise LaunchError(f"block {block} has {threads} threads; {whose} at most {limit}")
    most = attributes.max_threads_along
    for axis, blocks, extent in zip(_AXES, grid, block, strict=True):
        if blocks * extent > most:
            raise LaunchError(
                f"grid and block have {blocks} times {extent} threads along {axis}; {device.name} allows at most {most}"
            )


def _check_shared(dynamic_shared: Any, function: Function) -> int:
    if type(dynamic_shared) is int and 0 <= dynamic_shared <= function.limits.dynamic_shared:
        return dynamic_shared
    try:
        dynamic = operator.index(dynamic_shared)
    except TypeError:
        raise LaunchError(f"dynamic_shared must be a number of bytes, not {dynamic_shared!r}") from None
    limit = function.device.attributes.shared_bytes_per_block
    static = function.kernel.shared_bytes
    if dynamic < 0 or static + dynamic > limit:
        raise LaunchError(
            f"dynamic_shared is {dynamic} bytes; it must be 0 or more and, with the {static} bytes that kernel "
            f"{function.kernel.name!r} declares, at most {limit}"
        )
    return dynamic


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
