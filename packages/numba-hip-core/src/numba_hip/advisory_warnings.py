"""Advisory warnings: the program is correct, but could be better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from numba.core import types
from numba.core.errors import NumbaInvalidConfigWarning, NumbaPerformanceWarning, NumbaWarning

from hip_runtime import current_device
from hip_runtime.config import Setting
from hip_runtime.device import stack_level
from hip_runtime.said_names import our_variable, platform
from numba_hip import config
from numba_hip.plain_messages import warn_plainly


class DebugOptions(Protocol):
    """The options of `jit` of which some combinations cause a warning."""

    @property
    def debug(self) -> bool:
        """Whether the code has exceptions, line tables and variable descriptions."""

    @property
    def opt(self) -> bool:
        """Whether the code is optimised."""

    @property
    def lineinfo(self) -> bool:
        """Whether the code has line tables."""


def needs_advice(grid: tuple[int, int, int]) -> bool:
    """Whether *grid* has fewer blocks than the current device has compute units, and the setting asks for a warning."""
    return _blocks(grid) < current_device().compute_units and _is_wanted(config.low_occupancy_warnings)


def advise_on_grid(grid: tuple[int, int, int]) -> None:
    """Warn about a *grid* that `needs_advice`."""
    device, blocks = current_device(), _blocks(grid)
    units = device.compute_units
    _warn(
        NumbaPerformanceWarning,
        f"Grid size {blocks} leaves {units - blocks} of the {units} compute units of {device.name} without work: "
        f"low occupancy. {our_variable(config.low_occupancy_warnings.variable)}=0 turns this warning off",
    )


def advise_on_copies() -> None:
    """Warn that a host array is copied to the device and back for a launch, if the setting asks for it."""
    if _is_wanted(config.implicit_copy_warnings):
        _warn(
            NumbaPerformanceWarning,
            f"Host array used in {platform()} kernel will incur copy overhead to and from the device; keep it there "
            f"with to_device, or say with In, Out or InOut which copies are needed. "
            f"{our_variable(config.implicit_copy_warnings.variable)}=0 turns this warning off",
        )


def advise_on_options(options: DebugOptions) -> None:
    """Warn about options that make little sense together, if the setting asks for it."""
    if not config.option_warnings() or not options.debug:
        return
    if options.opt:
        _warn(
            NumbaInvalidConfigWarning,
            "debug=True with opt=True (the default) is not supported by CUDA; here a debugger shows what the optimiser "
            "has left of lines and variables: set opt=False to see all",
        )
    if options.lineinfo:
        _warn(
            NumbaInvalidConfigWarning,
            "debug and lineinfo are mutually exclusive in CUDA; here debug has the lines, too: leave lineinfo out",
        )


def advise_on_needless(option: str, value: object, why: str) -> None:
    """Warn that `jit` ignores an *option*, and *why*."""
    _warn(NumbaWarning, f"jit ignores {option}={value!r}: {why}")


def advise_on_truncation(message: str, instead: float) -> None:
    """Warn that *instead* is passed for an argument that does not fit the type in the signature, as *message*
    explains."""
    _warn(NumbaWarning, f"{message}; {instead} is passed instead, as {platform()} does")


def advise_on_conversion(function: str, actual: Sequence[object], formal: Sequence[object]) -> None:
    """Warn that inputs of element types *actual* are converted to the types *formal* that gufunc *function* has."""
    _warn(
        NumbaWarning,
        f"inputs of {function} are converted from ({', '.join(map(str, actual))}) to "
        f"({', '.join(map(str, formal))}), for which it was compiled, and may lose precision or range, as with "
        f"{platform()}: convert them before the call",
    )


def advise_on_narrowing(kernel: str, name: str, actual: types.Array, formal: types.Array) -> None:
    """Warn that *kernel*, compiled for *formal*, only accesses a part of each element of argument *name*."""
    _warn(
        NumbaWarning,
        f"argument {name!r} of kernel {kernel} has elements of type {actual.dtype}, and the kernel was compiled for "
        f"{formal}: convert it; the first {int(formal.dtype.bitwidth) // 8} bytes of each element are taken for "
        f"{formal.dtype}, as {platform()} does",
    )


def _blocks(grid: tuple[int, int, int]) -> int:
    return grid[0] * grid[1] * grid[2]


def _is_wanted(setting: Setting[bool | None]) -> bool:
    """Whether *setting* is on; by default it is on for AMD GPUs and off for the CPU device."""
    chosen = setting()
    return not current_device().is_cpu if chosen is None else chosen


def _warn(category: type[NumbaWarning], message: str) -> None:
    warn_plainly(category, message, stack_level())
