"""Launch configurations: what the methods of dispatchers for ``kernel[grid, block]`` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from hip_runtime import Stream
from hip_runtime.errors import LaunchError
from hip_runtime.stream import find_stream
from numba_hip import config as settings
from numba_hip.advisory_warnings import advise_on_grid, needs_advice
from numba_hip.dispatch.function_checks import check_function
from numba_hip.dispatch.launch import (
    AdvisedKernel,
    ConfiguredKernel,
    Dim3,
    LaunchConfig,
    ReadyLaunches,
    Remembered,
    is_plain,
)
from numba_hip.errors import SHORTENED, DeviceFunctionError, hide_frames

if TYPE_CHECKING:
    from numba_hip.dispatch.dispatcher import Dispatcher

OWN_MODULES = "numba_hip."


class Configurable:
    """The part of a dispatcher that configures launches."""

    __name__: str
    py_func: Callable[..., Any]
    is_device_function: bool

    def _start_configuring(self) -> None:
        """Have no configuration yet, or forget all."""
        self._configured: Remembered[Any, ConfiguredKernel] = Remembered()
        """By what was written, integers alone."""
        self._latest: tuple[object, object, ConfiguredKernel | None] = (None, None, None)
        """The latest grid and block, integers and tuples of them, and the kernel with these on the default stream: with
        the same objects it is found without a look at what is in them. Of two integers nothing is noted: that takes
        longer than the look."""
        self._shapes: Remembered[tuple[Dim3, Dim3, int], ConfiguredKernel] = Remembered()
        """By what it means: those on the default stream."""
        self._ready: Remembered[tuple[Dim3, int], ReadyLaunches] = Remembered()
        """By the shape of the blocks and their dynamic shared memory."""

    def __getitem__(self, config: Any) -> ConfiguredKernel:
        """Configure a launch: ``kernel[grid, block, stream, dynamic_shared, cluster]``, the last three optional.

        Grid and block are integers or tuples of one to three; raises `hip_runtime.errors.LaunchError`, and
        `KernelSignatureError` for what only other kernels can call.
        """
        grid, block, latest = self._latest
        known = latest is not None and type(config) is tuple and 1 < len(config) < 4
        if known and config[0] is grid and config[1] is block:
            return latest if len(config) == 2 else self._on_stream(latest, config[2])  # type: ignore[return-value,arg-type]
        plain = is_plain(config)
        configured = self._configured.get(config) if plain else None
        if configured is None:
            configured = self._find(config)
            if plain:
                self._configured.keep(config, configured)
        if plain and len(config) == 2 and not type(config[0]) is type(config[1]) is int:
            self._latest = *config, configured
        return configured

    def _find(self, given: Any) -> ConfiguredKernel:
        """The kernel for what stands in ``kernel[...]``; raises what `LaunchConfig.of` does, and `DeviceFunctionError`.

        No stream is kept: it would live as long as the kernel.
        """
        if self.is_device_function:
            raise DeviceFunctionError(
                f"Cannot compile a device function as a kernel: kernels call {self.__name__}, only they are launched"
            )
        try:
            config = LaunchConfig.of(given)
            known = self._find_shape(config)
        except (LaunchError, *SHORTENED) as error:
            hide_frames(error)
            raise
        if type(given) is tuple and len(given) == 3 and is_plain(given[:2]):
            self._latest = *given[:2], known
        return known if config.stream is None else type(known)(cast("Dispatcher", self), config, known.ready)

    def _find_shape(self, config: LaunchConfig) -> ConfiguredKernel:
        """The kernel configured so, but on the default stream. What was prepared for it holds for all streams."""
        grid, block, stream, shared = config
        shape = grid, block, shared
        known = self._shapes.get(shape)
        if known is None:
            if not self._shapes:
                check_function(self.py_func, device=False, launched=True)
            known = self._configure(config if stream is None else LaunchConfig(grid, block, None, shared))
            self._shapes.keep(shape, known)
        return known

    def _on_stream(self, configured: ConfiguredKernel, given: Any) -> ConfiguredKernel:
        """The kernel as *configured*, but on the stream *given*. Raises what `find_stream` does."""
        try:
            stream = find_stream(given)
        except SHORTENED as error:
            hide_frames(error)
            raise
        if stream is None:
            return configured
        grid, block, _, shared = configured.config
        return type(configured)(cast("Dispatcher", self), LaunchConfig(grid, block, stream, shared), configured.ready)

    def _configure(self, config: LaunchConfig) -> ConfiguredKernel:
        # Callers do not choose the grids of our own kernels.
        kind = AdvisedKernel if not self._is_own() and needs_advice(config.grid) else ConfiguredKernel
        if kind is AdvisedKernel and settings.early_warnings():
            advise_on_grid(config.grid)
            kind = ConfiguredKernel
        return kind(cast("Dispatcher", self), config, self._ready_launches(config))

    def _is_own(self) -> bool:
        """Whether it is a kernel of this library."""
        return str(self.py_func.__module__).startswith(OWN_MODULES)

    def _ready_launches(self, config: LaunchConfig) -> ReadyLaunches:
        """What was prepared for blocks as in *config*."""
        shape = config.block, config.dynamic_shared
        known = self._ready.get(shape)
        return self._ready.keep(shape, ReadyLaunches()) if known is None else known

    def configure(
        self,
        griddim: Any,
        blockdim: Any,
        stream: Stream | int | None = 0,
        sharedmem: int | None = 0,
        cluster: Any = None,
    ) -> ConfiguredKernel:
        """``kernel[griddim, blockdim, stream, sharedmem, cluster]``."""
        config = griddim, blockdim, stream, 0 if sharedmem is None else sharedmem
        return self[config if cluster is None else (*config, cluster)]
