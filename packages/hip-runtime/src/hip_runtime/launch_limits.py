"""Extents of grids and blocks, and what a kernel on its device allows of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hip_devicelib.codeobject import Kernel
from hip_runtime.device import Device
from hip_runtime.driver import Dim3, block_threads
from hip_runtime.errors import LaunchError, LaunchTypeError

_AXES = ("x", "y", "z")


def dim3(what: str, value: Any) -> Dim3:
    """*value*, a whole number or 1 to 3 of them, as three extents of a grid or block, x first; `LaunchError`."""
    kind = type(value)
    if kind is tuple and 1 <= len(value) <= 3:  # the common cases first: launches pay for this
        x, y, z = value if len(value) == 3 else (*value, 1, 1)[:3]
        if type(x) is type(y) is type(z) is int and x > 0 and y > 0 and z > 0:
            return x, y, z
    elif kind is int or isinstance(value, np.integer):
        extent = int(value)
        if extent > 0:
            return extent, 1, 1
    parts = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    try:
        if any(isinstance(part, bool) for part in parts):
            raise TypeError
        extents = tuple(operator.index(part) for part in parts)
    except TypeError:
        from hip_runtime.float_advice import advice_on_floats  # most programs do without

        advice = advice_on_floats(parts) or "; one alone can stand for a sequence of one"
        raise LaunchTypeError(f"{what} must be a sequence of integers, got {parts}{advice}") from None
    if not 1 <= len(extents) <= 3:
        raise LaunchError(f"{what} must be a sequence of 1, 2 or 3 integers, got {parts}")
    for axis, extent in zip(_AXES, extents, strict=False):
        if extent < 1:
            empty = "; where there is nothing to do, as for an empty array, leave out the launch" if extent == 0 else ""
            raise LaunchError(f"{what} has extent {extent} along {axis}; each must be at least 1{empty}")
    return (*extents, 1, 1)[:3]  # type: ignore[return-value]


class LaunchLimits(NamedTuple):
    """What *device* allows of launches of *kernel*."""

    device: Device
    kernel: Kernel

    def check_block(self, block: Dim3) -> None:
        """`LaunchError` where blocks of the shape *block* are too large."""
        attributes = self.device.attributes
        self._check_extents("block", block, attributes.max_block_dim)
        threads = block_threads(block)
        for limit, whose in (
            (attributes.max_threads_per_block, f"{attributes.name} allows"),
            (self.kernel.max_block_threads, f"kernel {self.kernel.name!r} was compiled for"),
        ):
            if threads > limit:
                raise LaunchError(f"block {block} has {threads} threads; {whose} at most {limit}")

    def largest_grid(self, block: Dim3) -> Dim3:
        """The most blocks of the shape *block* along each axis."""
        attributes = self.device.attributes
        along = attributes.max_threads_along
        x, y, z = map(min, attributes.max_grid_dim, (along // extent for extent in block))
        return x, y, z

    def check_grid(self, grid: Dim3, block: Dim3) -> None:
        """`LaunchError` where *grid* has more blocks of the shape *block* than `largest_grid`."""
        attributes = self.device.attributes
        self._check_extents("grid", grid, attributes.max_grid_dim)
        most = attributes.max_threads_along
        for axis, blocks, extent in zip(_AXES, grid, block, strict=True):
            if blocks * extent > most:
                raise LaunchError(
                    f"grid and block have {blocks} times {extent} threads along {axis}; {self.device.name} allows at "
                    f"most {most}"
                )

    def check_shared(self, dynamic_shared: Any) -> int:
        """*dynamic_shared*, the bytes of a block, as an integer; `LaunchError` where it is none or too large."""
        try:
            dynamic = operator.index(dynamic_shared)
        except TypeError:
            from hip_runtime.float_advice import advice_on_floats

            advice = advice_on_floats([dynamic_shared])
            raise LaunchError(f"dynamic_shared must be a number of bytes, not {dynamic_shared!r}{advice}") from None
        limit = self.device.attributes.shared_bytes_per_block
        static = self.kernel.shared_bytes
        if dynamic < 0 or static + dynamic > limit:
            raise LaunchError(
                f"dynamic_shared is {dynamic} bytes; it must be 0 or more and, with the {static} bytes that kernel "
                f"{self.kernel.name!r} declares, at most {limit}"
            )
        return dynamic

    def _check_extents(self, what: str, extents: Dim3, limits: Dim3) -> None:
        for axis, extent, limit in zip(_AXES, extents, limits, strict=True):
            if extent > limit:
                raise LaunchError(f"{what} has extent {extent} along {axis}; {self.device.name} allows at most {limit}")
