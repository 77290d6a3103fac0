"""Fragments of ``hip.matrix`` in the simulator: each thread has the elements that it has on the CPU device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from numba_hip._numba.typing import from_dtype
from numba_hip.errors import MatrixError
from numba_hip.language.matrix.kinds import ROLES, Fragment, check_kind, check_operands, check_product, together
from numba_hip.simulator.functions import means, to_dtype
from numba_hip.simulator.schedule import SimulatedThread

HostArray = np.ndarray[Any, Any]


class SimulatedFragment:
    """What one lane has of a small matrix."""

    def __init__(self, thread: SimulatedThread, kind: Fragment, dtype: np.dtype[Any]) -> None:
        self.kind = kind
        turn = together(kind)
        self.places = [
            (first + within, column)
            for first in range(0, kind.rows, turn)
            for column in range(kind.columns)
            for within in range(turn)
            if thread.lane == 0
        ]
        self.elements = np.full(len(self.places) * dtype.itemsize, 0xFF, np.uint8).view(dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix."""
        return self.kind.rows, self.kind.columns

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Any:
        return self.elements[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self.elements[index] = value

    def wide(self) -> HostArray:
        """The matrix of the first lane, in the type in which products are added up."""
        kind = self.elements.dtype
        wide = np.dtype(np.int32) if kind.kind == "i" else kind if kind in (np.float32, np.float64) else np.float32
        whole = np.empty(self.shape, wide)
        whole[tuple(np.transpose(self.places))] = self.elements.astype(wide)
        return whole


@means("matrix.fragment")
def _fragment(thread: SimulatedThread, role: str, shape: tuple[int, int, int], dtype: Any) -> SimulatedFragment:
    if role not in ROLES or len(shape) != 3:
        raise MatrixError(
            f"hip.matrix.fragment: role is {role!r} and shape {shape}; pass one of {ROLES}, and (m, n, k)"
        )
    element = to_dtype(dtype)
    m, n, k = map(int, shape)
    kind = Fragment(role, (m, n, k), dtype if isinstance(dtype, types.Type) else from_dtype(element))
    check_kind(kind)
    return SimulatedFragment(thread, kind, element)


@means("matrix.fill")
def _fill(thread: SimulatedThread, fragment: SimulatedFragment, value: Any) -> None:
    fragment.elements[:] = value


@means("matrix.position")
def _position(thread: SimulatedThread, fragment: SimulatedFragment, index: int) -> tuple[int, int]:
    return fragment.places[index]


@means("matrix.mma")
def _mma(
    thread: SimulatedThread, d: SimulatedFragment, a: SimulatedFragment, b: SimulatedFragment, c: SimulatedFragment
) -> None:
    check_operands(*(operand.kind for operand in (d, a, b, c)))
    check_product(d.kind, a.kind, b.kind)
    if thread.lane != 0:
        return
    left, right, sums = a.wide(), b.wide(), c.wide()
    for k in range(left.shape[1]):
        sums = sums + left[:, k : k + 1] * right[k : k + 1]
    d.elements[:] = sums.reshape(-1)


def _place(array: HostArray, row: int, column: int, leading: int | None, layout: str) -> Any:
    """The index of an element of the matrix that *array* has."""
    if array.ndim == 2:
        return row, column
    if leading is None:
        raise MatrixError("hip.matrix: an array with one axis needs leading, the elements from one row to the next")
    return row * leading + column if layout == "row" else column * leading + row


def _is_outside(array: HostArray, row: int, column: int, partial: bool) -> bool:
    """Whether an element is one that a partial tile leaves out."""
    if partial and array.ndim != 2:
        raise MatrixError("hip.matrix: partial is for arrays with two axes, whose ends are known")
    return partial and not (0 <= row < array.shape[0] and 0 <= column < array.shape[1])


@means("matrix.load")
def _load(
    thread: SimulatedThread, fragment: SimulatedFragment, source: HostArray, row: int = 0, column: int = 0,
    leading: int | None = None, layout: str = "row", partial: bool = False,
) -> None:  # fmt: skip
    for index, (i, j) in enumerate(fragment.places):
        outside = _is_outside(source, row + i, column + j, partial)
        value = 0 if outside else source[_place(source, row + i, column + j, leading, layout)]
        fragment.elements[index] = value


@means("matrix.store")
def _store(
    thread: SimulatedThread, fragment: SimulatedFragment, target: HostArray, row: int = 0, column: int = 0,
    leading: int | None = None, layout: str = "row", partial: bool = False,
) -> None:  # fmt: skip
    for (i, j), value in zip(fragment.places, fragment.elements, strict=True):
        if not _is_outside(target, row + i, column + j, partial):
            target[_place(target, row + i, column + j, leading, layout)] = value
