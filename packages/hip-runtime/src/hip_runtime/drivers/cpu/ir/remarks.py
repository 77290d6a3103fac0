"""Remarks of the vectoriser: in which form it wrote each instruction of a kernel.

Nothing is collected unless somebody listens: every function here then returns at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from hip_runtime.drivers.cpu.ir.model import Block, Instruction

UNIFORM = "uniform"
"""Once for all lanes."""

LINEAR = "linear in the lane"
"""Once for all lanes, for the first one: those of the others follow by a constant step."""

CONTIGUOUS = "contiguous"
"""A vector that is loaded or stored as it is."""

REVERSED = "contiguous in reverse"
"""A vector that is loaded or stored with its elements in the opposite order."""

STRIDED = "strided"
"""Contiguous vectors, of which the elements in between are left out."""

GATHERED = "gathered"
"""A load or a store for each lane's own address: a gather or a scatter."""

LOOKED_UP = "looked up in a table"
"""A permutation of the registers that a small table is loaded to."""

SHARED = "neighbours that lanes share"
"""A permutation of the few elements that lanes load."""

ROWS = "neighbouring elements for each lane"
"""A vector for each lane of what it loads in several iterations, of which vectors across the lanes are made."""

SPECULATED = "contiguous unless an index is negative or wraps around"
"""A vector, or a gather in gangs that have a negative index."""

CLAMPED = "contiguous but for lanes at a limit"
"""Vectors under a mask, and an element for the lanes whose index is clamped."""

SCALARIZED = "scalarised"
"""For one active lane after another."""

TABLED = "in a table"
"""For one active lane after another, in a table of the worker, which does in memory what is there at its end."""

COMBINED = "combined"
"""What all lanes do to one address, as a single operation."""

COMPUTED = "computed"
"""On vectors."""

ONE_LANE = "by one lane"
"""For the only lane that can run it."""

AHEAD = "once, before all blocks"
"""By the prologue of a launch."""

THREADS = "one thread after another"
"""In a loop over the threads, as the only thread that runs."""

DIVERGENT = "divergent"
"""A branch at which lanes take different paths."""


class Listener(Protocol):
    """Is told what the vectoriser does."""

    def began(self, function: str, width: int, rows: int) -> None:
        """The gang function *function* is written, for *rows* rows of *width* lanes; what was said of one of that name
        does not hold any more."""

    def wrote(
        self, function: str, partial: bool, instruction: Instruction, form: str, masked: bool, depth: int, stride: int
    ) -> None:  # fmt: skip
        """*instruction* was written in *form*, one of those above, in the version of *function* for whole gangs, or in
        that for *partial* ones.

        *masked*: under a mask. *depth*: in how many loops. *stride*: in elements, if the form is `STRIDED`.
        """

    def placed(self, name: str, nbytes: int, on_heap: bool) -> None:
        """Storage of a block's threads, *nbytes* together, was put on the stack or on the heap."""


_listeners: list[Listener] = []
"""Of the one compilation that there is at a time, see `jit.locked`."""


def are_wanted() -> bool:
    """Whether somebody listens."""
    return bool(_listeners)


def begin(function: str, width: int, rows: int) -> None:
    """Tell listeners of a gang function, see `Listener.began`."""
    for listener in _listeners:
        listener.began(function, width, rows)


def remark(
    function: str, partial: bool, instruction: Instruction, form: str, masked: bool, depth: int, stride: int = 0
) -> None:
    """Tell listeners of an instruction, see `Listener.wrote`."""
    for listener in _listeners:
        listener.wrote(function, partial, instruction, form, masked, depth, stride)


def remark_threads(blocks: Sequence[Block]) -> None:
    """Tell listeners that the instructions of *blocks* are executed for one thread after another."""
    for listener in _listeners:
        for block in blocks:
            for instruction in block.instructions:
                listener.wrote("", False, instruction, THREADS, False, 0, 0)


def place(name: str, nbytes: int, on_heap: bool) -> None:
    """Tell listeners of storage, see `Listener.placed`."""
    for listener in _listeners:
        listener.placed(name, nbytes, on_heap)


@contextmanager
def muted() -> Iterator[None]:
    """Tell nobody of what is written within the block, as it is written once more for what is expected."""
    heard = _listeners[:]
    _listeners.clear()
    try:
        yield
    finally:
        _listeners[:] = heard


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Notify *listener* of what is written within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
