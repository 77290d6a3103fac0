"""How many results an algorithm has found: a number that the host waits for, or one that stays on the device."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.algorithms.operands import Operands
from numba_hip.cooperative import values
from numba_hip.errors import AlgorithmError

NUMBER = types.int64
"""The type in which values are counted."""


class Found:
    """The number of results of one call, in memory of the device: *given* by the caller, or asked of the host."""

    def __init__(self, operands: Operands, given: Any) -> None:
        self._operands, self._given = operands, given
        if given is None:
            self._target = operands.array(1, "int64")
        else:
            self._target = operands.output(given, "found", 1, NUMBER)
            if self._target.dtype.kind not in "iu":
                raise AlgorithmError(f"found has elements of {self._target.dtype}; pass an array of an integer")
            operands.keep_contents()  # what is behind the results stays, whose number the host does not know

    def writer(self) -> Any:
        """A function of (leaves, 0, number) that stores it."""
        return self._operands.writer(self._target, NUMBER)

    def reader(self) -> Any:
        """A function of (leaves, 0) that reads what was stored."""
        return values.read_leaf(self._operands.add(self._target))

    def none(self) -> int | None:
        """Say that there are no results, as `number` does."""
        if self._given is None:
            return 0
        self._target[:1].fill(0, self._operands.stream)
        return None

    def number(self) -> int | None:
        """The number, for which this waits; None if the caller has it on the device."""
        return int(self._operands.number(self._target)) if self._given is None else None
