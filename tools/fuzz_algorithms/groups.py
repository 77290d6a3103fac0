"""Random uses of ``hip.block`` and ``hip.wave``: one function, in blocks of a shape, and items of each thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from numba_hip import block, wave
from tools.fuzz_algorithms.group_kernels import items_kernel
from tools.fuzz_algorithms.inputs import draw_numbers
from tools.fuzz_algorithms.operators import Values

SHAPES = (1, 7, 31, 32, 33, 64, 65, 96, 128, 200, (8, 8), (16, 9), (5, 3, 7), (70, 2))
BLOCKS = 3

Drawing = Callable[[np.random.Generator, np.dtype[Any], int], Values]
Answer = Callable[[Values, Values, int], "tuple[Values | None, Values | None, Any]"]
"""What becomes of the two arrays of a group, and what its threads return, for a number that the kernel gets. None, and
in masked arrays what is masked, may be anything."""


@dataclass
class Use:
    """A *function* of the makers "block" or "wave", in a *kernel*, see `group_kernels`, which returns numbers of the
    dtype *returned*."""

    function: str
    makers: str
    threads: Any
    items: int
    kinds: tuple[np.dtype[Any], np.dtype[Any]]
    returned: np.dtype[Any]
    kernel: Any
    answer: Answer
    draw: Drawing
    most: int
    """The largest number that kernels get; the least is 1."""
    told: str = ""
    begins: bool = False
    """Whether the second array has what scans begin with, which is the same for all threads."""

    def __str__(self) -> str:
        kinds = ", ".join(kind.str for kind in self.kinds)
        return f"{self.makers}.{self.function}({kinds}, threads={self.threads}, items={self.items}){self.told}"


class Shape:
    """What is the same for all calls of a seed: the makers, the block and the items."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.makers = self.random.choice(["block", "wave"])
        self.threads = self.random.choice(SHAPES)
        self.items = self.random.choice([1, 1, 2, 3, 4, 7])
        self.lanes = self.random.choice([64, 64, 32])

    @property
    def made_by(self) -> Any:
        """The module that makes functions."""
        return block if self.makers == "block" else wave

    @property
    def count(self) -> int:
        """How many threads a block has."""
        return math.prod(np.atleast_1d(self.threads).tolist())

    @property
    def group_lanes(self) -> int:
        """How many threads a group has, the last of a block maybe fewer."""
        return self.count if self.makers == "block" else self.lanes

    @property
    def most(self) -> int:
        """How many items the largest group has."""
        return min(self.group_lanes, self.count) * self.items

    def use(
        self,
        function: str,
        kinds: tuple[np.dtype[Any], np.dtype[Any]],
        apply: Any,
        answer: Answer,
        draw: Drawing,
        told: str = "",
        *,
        returned: Any = "i8",
    ) -> Use:
        """A use of *function* in *apply*, which `items_kernel` calls."""
        kernel = items_kernel(apply, self.items, self.count, kinds)
        return self.use_of_kernel(function, kinds, kernel, answer, draw, told, returned=returned)

    def use_of_kernel(
        self,
        function: str,
        kinds: tuple[np.dtype[Any], np.dtype[Any]],
        kernel: Any,
        answer: Answer,
        draw: Drawing,
        told: str = "",
        *,
        returned: Any = "i8",
    ) -> Use:
        """A use of *function* in a *kernel* of `group_kernels`."""
        number = np.dtype(returned)
        return Use(
            function, self.makers, self.threads, self.items, kinds, number, kernel, answer, draw, self.most, told
        )

    def groups(self) -> Iterator[slice]:
        """The items of each group of the grid."""
        lanes = self.group_lanes
        for first in range(BLOCKS):
            for start in range(0, self.count, lanes):
                end = min(start + lanes, self.count)
                yield slice((first * self.count + start) * self.items, (first * self.count + end) * self.items)


def draw_alike(data: np.random.Generator, kind: np.dtype[Any], size: int) -> Values:
    made = draw_numbers(data, kind, size)
    return made + kind.type(0) if kind.kind == "f" else made


def draw_others(use: Use, shape: Shape, data: np.random.Generator) -> Values:
    """The second array: ranks for exchanges, lengths of runs, what scans begin with, else numbers."""
    size = BLOCKS * shape.count * shape.items
    if use.function == "make_exchange":
        made = np.empty(size, use.kinds[1])
        for group in shape.groups():
            made[group] = data.permutation(group.stop - group.start)
        return made
    if use.function == "make_run_length_decode":
        return data.integers(0, int(data.choice([2, 4, 40])), size).astype(use.kinds[1])
    if use.begins:
        return np.repeat(draw_alike(data, use.kinds[1], 1), size)
    return draw_alike(data, use.kinds[1], size)
