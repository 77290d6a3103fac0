"""The tree of a program: statements and expressions are nodes of one kind, so that all of them can be walked alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("half", "float", "double")
SCALARS = (*INTEGERS, *FLOATS)

DTYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "half": np.float16, "float": np.float32, "double": np.float64,
}  # fmt: skip
"""NumPy's type of the values of each of LLVM's; integers have signs only where an operation says so."""

PRIVATE = 8
"""Elements of the private array of each type."""

CELLS = 4
"""Elements of the shared array, of each type, that atomic operations of all threads go to."""

COMMUTATIVE = ("add", "and", "or", "xor", "max", "min", "umax", "umin")
"""Atomic operations whose effect does not depend on the order; each has a cell of its own in device memory."""


def bits_of(kind: str) -> int:
    """Bits of a number of type *kind*."""
    return 1 if kind == "i1" else np.dtype(DTYPES[kind]).itemsize * 8


@dataclass(frozen=True)
class Node:
    """A statement or an expression: its *type* where it has one, names and numbers, the expressions that it uses, and
    the statements inside of it."""

    kind: str
    type: str = ""
    words: tuple[Any, ...] = ()
    parts: tuple[Node, ...] = ()
    body: tuple[Node, ...] = ()
    other: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """This node and all beneath it."""
        yield self
        for child in (*self.parts, *self.body, *self.other):
            yield from child.walk()


@dataclass(frozen=True)
class DeviceFunction:
    """A function that threads call: ``then`` where *condition* holds, else ``other``. Its parameters are ``arg``
    nodes."""

    parameters: tuple[str, ...]
    condition: Node
    then: Node
    other: Node
    inlined: bool


@dataclass(frozen=True)
class Layout:
    """Where the elements of an array lie that each thread has a row of: *rows* and *columns* are the steps, in
    elements, from one to the next, *known* whether the kernel has them as constants."""

    rows: int
    columns: int
    first: int
    size: int
    known: bool


@dataclass(frozen=True)
class Program:
    """Statements and what they refer to, and how the kernel is launched."""

    statements: tuple[Node, ...]
    functions: tuple[DeviceFunction, ...] = ()
    block: tuple[int, int, int] = (32, 1, 1)
    blocks: int = 1
    wave_size: int = 32
    n: int = 1
    layouts: dict[str, Layout] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def rows(self) -> int:
        """Threads of the grid."""
        return self.blocks * self.threads

    @property
    def input_size(self) -> int:
        """Elements of each array of numbers that all threads read."""
        return 5 * self.rows + 16

    @property
    def walked_size(self) -> int:
        """Elements of each array that threads go through in steps of the size of the grid."""
        return 3 * self.rows + 5

    def walk(self) -> Iterator[Node]:
        """Every node there is."""
        for statement in self.statements:
            yield from statement.walk()
        for function in self.functions:
            for part in (function.condition, function.then, function.other):
                yield from part.walk()

    def kinds(self) -> set[str]:
        """The kinds of all nodes."""
        return {node.kind for node in self.walk()}

    def types_of(self, *kinds: str) -> list[str]:
        """The types of the nodes of these kinds."""
        return sorted({node.type for node in self.walk() if node.kind in kinds})


WAVE_WIDE = frozenset({"ballot", "active", "shuffle"})
WAITING = WAVE_WIDE | {"meet", "barrier", "count", "exchange", "gather"}
"""Kinds of nodes at which threads wait for one another."""
