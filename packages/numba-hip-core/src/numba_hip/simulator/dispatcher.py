"""Kernels whose launches are simulated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hip_devicelib.codeobject import Kernel
from hip_runtime import config as runtime_config
from hip_runtime import current_device
from hip_runtime.errors import LaunchError
from hip_runtime.launch_limits import LaunchLimits
from numba_hip._numba.typing import normalize_signature
from numba_hip.arguments.argument_types import check_arguments
from numba_hip.dispatch.argument_extensions import prepare
from numba_hip.dispatch.dispatcher import Dispatcher, Types
from numba_hip.dispatch.function_checks import check_result
from numba_hip.dispatch.launch import ConfiguredKernel, LaunchConfig, ReadyLaunches
from numba_hip.errors import KernelArgumentError
from numba_hip.language import stub
from numba_hip.simulator import functions, matrices, waves  # noqa: F401 - importing them says what names mean
from numba_hip.simulator.arrays import Arguments, wait_for_device
from numba_hip.simulator.messages import hide_own_frames
from numba_hip.simulator.scalars import as_declared
from numba_hip.simulator.schedule import Grid


class SimulatedOverload:
    """What stands for the code of a simulated kernel for some types."""

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """1, as in the simulator of Numba CUDA."""
        del blockdim, dynsmemsize
        return 1


class SimulatedOverloads(dict[Types, Any]):
    """The code of a simulated kernel: what was compiled on request, and a `SimulatedOverload` for all other types."""

    def __missing__(self, args: Types) -> SimulatedOverload:
        return SimulatedOverload()


class SimulatedDispatcher(Dispatcher):
    """The result of ``@hip.jit`` under ``NUMBA_HIP_SIMULATOR=1``: a kernel that Python itself runs.

    Its signatures are not compiled: they say which types numbers have. Kernels run when they are launched, whatever the
    stream, and the launch returns when they are done.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.overloads = SimulatedOverloads()

    def compile_explicit(self, signatures: Iterable[Any]) -> None:
        """Keep the types of a kernel's *signatures*: there is no code to generate."""
        if not self.is_device_function:
            for args, result in map(normalize_signature, signatures):
                check_result(self.__name__, result)
                self._explicit.append(tuple(args))

    def _configure(self, config: LaunchConfig) -> ConfiguredKernel:
        return SimulatedKernel(self, config, ReadyLaunches())  # the simulator gives no advice on grids

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """A device function runs if it is called from a simulated kernel; elsewhere the call is an error as usual."""
        thread = stub.interpreter()
        if thread is not None:
            return thread.call(self.py_func, self.options.raises_divisions, *args, **kws)
        return super().__call__(*args, **kws)

    def launch(self, configured: ConfiguredKernel, args: Sequence[Any]) -> None:
        """Run the kernel with plain Python. Raises what one of its threads raised; host arrays are then unchanged."""
        config = configured.config
        args = self.parameters.complete(args)
        names = self.parameters.names_of(args)
        args, _, finishers = prepare(self.extensions, args, names, config.stream)
        check_arguments(args, names)
        args = self._as_declared(args, names)
        _check_extents(config.grid, config.block, self.options.max_block_threads)
        LaunchLimits(current_device(), Kernel(self.__name__, (), 0)).check_shared(config.dynamic_shared)
        wait_for_device()
        arguments = Arguments()
        passed = [arguments.prepare(value) for value in args]
        lanes = self.options.wave_size or runtime_config.cpu_wave_size()
        raises = self.options.raises_divisions
        Grid(self.py_func, passed, config.grid, config.block, config.dynamic_shared, lanes, raises).run()
        arguments.write_back()
        for finish in finishers:
            finish()

    def _as_declared(self, args: Sequence[Any], names: Sequence[str]) -> Sequence[Any]:
        """*args* with numbers of the types in the signature that they select. Where they fit none, as nothing but
        numbers needs its type here, they stay as they are."""
        if not self._explicit:
            return args
        try:
            kinds = self._choose(self._types_of(args), current_device().target)
        except KernelArgumentError:
            return args
        return [as_declared(value, kind, name) for value, kind, name in zip(args, kinds, names, strict=True)]


class SimulatedKernel(ConfiguredKernel):
    """A simulated kernel with its launch configuration."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch; errors have the frames of the program, and not those of the simulator."""
        try:
            super().__call__(*args, **named)
        except Exception as error:
            hide_own_frames(error)
            raise


def _check_extents(grid: Sequence[int], block: Sequence[int], most: int) -> None:
    device = current_device()
    threads = block[0] * block[1] * block[2]
    if threads > most:
        raise LaunchError(f"block {tuple(block)} has {threads} threads; at most {most}")
    for name, extents, limits in (
        ("grid", grid, device.attributes.max_grid_dim),
        ("block", block, device.attributes.max_block_dim),
    ):
        for extent, limit in zip(extents, limits, strict=True):
            if extent > limit:
                raise LaunchError(f"{name} {tuple(extents)} is too large; at most {tuple(limits)} is possible")
