"""Finds the array argument of a launch, and its element, that an address belongs to."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba.core import types

from hip_devicelib.codeobject import Parameter
from numba_hip._numba.typing import as_dtype
from numba_hip.abi.array_parameters import stride_axes
from numba_hip.arguments.packing import leaf_count
from numba_hip.bfloat import Bfloat16
from numba_hip.float8 import Float8


@dataclass(frozen=True)
class ArrayPlace:
    """The memory of an array argument, whose elements have *itemsize* bytes."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The first address, and the one behind the last."""
        if 0 in self.shape:
            return self.address, self.address
        spans = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(span for span in spans if span < 0)
        return low, self.address + sum(span for span in spans if span > 0) + self.itemsize

    def find(self, address: int) -> tuple[int, ...] | None:
        """The index of the element that *address* lies in, or None."""
        low, high = self.bounds
        if not low <= address < high:
            return None
        rest, index = address - low, [0] * len(self.shape)
        order = sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis]))
        for axis in order:
            step = abs(self.strides[axis])
            if step == 0 or self.shape[axis] == 1:
                continue
            number = min(rest // step, self.shape[axis] - 1)
            rest -= number * step
            index[axis] = number if self.strides[axis] > 0 else self.shape[axis] - 1 - number
        return tuple(index) if rest < self.itemsize else None


def find_arrays(
    names: Sequence[str], kinds: Sequence[types.Type], parameters: Sequence[Parameter], arguments: bytes
) -> list[ArrayPlace]:
    """The arrays and records among packed *arguments* of Numba types *kinds*, in order."""
    places: list[ArrayPlace] = []
    position = 0
    for name, kind in zip(names, kinds, strict=True):
        count = leaf_count(kind)
        _add(places, name, kind, parameters[position : position + count], arguments)
        position += count
    return places


def _add(places: list[ArrayPlace], name: str, kind: types.Type, leaves: Sequence[Parameter], arguments: bytes) -> None:
    if isinstance(kind, types.BaseTuple):
        position = 0
        for number, member in enumerate(kind):
            count = leaf_count(member)
            _add(places, f"{name}[{number}]", member, leaves[position : position + count], arguments)
            position += count
    elif isinstance(kind, types.Array):
        address, *numbers = (struct.unpack_from("<q", arguments, leaf.offset)[0] for leaf in leaves)
        ndim, itemsize = int(kind.ndim), _element_bytes(kind.dtype)
        passed = dict(zip(stride_axes(kind), numbers[ndim:], strict=True))
        strides = tuple(passed.get(axis, itemsize) for axis in range(ndim))
        places.append(ArrayPlace(name, address, tuple(numbers[:ndim]), strides, itemsize))
    elif isinstance(kind, types.Record):
        (address,) = struct.unpack_from("<q", arguments, leaves[0].offset)
        places.append(ArrayPlace(name, address, (), (), int(kind.size)))


def _element_bytes(kind: types.Type) -> int:
    if isinstance(kind, (Bfloat16, Float8)):
        return kind.bitwidth // 8
    return int(np.dtype(as_dtype(kind)).itemsize)
