"""Selections on the CPU device: one thread goes through each part of the elements, twice.

First it marks which are chosen, a bit for each, and then it writes those, from the number of marks of the parts before
on. What is asked of an element is asked once, and where no bit of a word is set nothing else is read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from numba_hip.algorithms.operands import Operands
from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import blockIdx, ffs, popc

WORD = 32
"""Elements of which one word of marks tells."""

MOST_PARTS = 256
LEAST_IN_PART = 16384
"""A multiple of `WORD`, as all lengths of parts."""

FEW = 4
"""With so many marks in a word, finding them one by one takes less time than going through all elements."""


MOST_AT_ONCE = 4096
"""So few elements one thread goes through once, without marks: further launches would take longer than the work."""


class Marks(NamedTuple):
    """*elements* in *parts* parts of *length*, and the places of the words of marks and of their number in each part
    among the leaves of a call."""

    elements: int
    length: int
    parts: int
    words: int
    counts: int


class Test(NamedTuple):
    """Functions of (leaves, i) that are true for what is chosen: for any element, and for all but the first."""

    of_any: Any
    of_later: Any


def goes_by_parts(operands: Operands) -> bool:
    """Whether a thread goes through each part, rather than waves through tiles."""
    return operands.device.is_cpu


def is_few(count: int) -> bool:
    """Whether *count* elements are worth one thread alone."""
    return count <= MOST_AT_ONCE


def write_few(operands: Operands, count: int, test: Test, read: Any, write: Any, write_total: Any) -> None:
    """Launch the writing of what *read* returns for few elements, where *test* is true, and of how many there are."""
    few_kernel(test.of_any, read, write, write_total)[1, 1, operands.launch_stream](count, *operands.leaves)


def mark_parts(operands: Operands, count: int, test: Test) -> Marks:
    """Launch the marking of *count* elements, at least one."""
    length = max(-(-count // (MOST_PARTS * WORD)) * WORD, LEAST_IN_PART)
    parts = -(-count // length)
    words = operands.add(operands.array(-(-count // WORD), "uint32"))
    counts = operands.add(operands.array(parts, "int64"))
    kernel = mark_kernel(test, words, counts)
    kernel[parts, 1, operands.launch_stream](count, length, *operands.leaves)
    return Marks(count, length, parts, words, counts)


def write_marked(
    operands: Operands, marks: Marks, read: Any, write: Any, write_total: Any, *, reads_all: bool
) -> None:  # fmt: skip
    """Launch the writing of what *read* returns for the elements that are marked, one behind the other, and of how many
    there are. With *reads_all*, *read* may be called for others too."""
    kernel = write_kernel(read, write, write_total, marks.words, marks.counts, reads_all=reads_all)
    kernel[marks.parts, 1, operands.launch_stream](marks.elements, marks.length, *operands.leaves)


@jit(device=True)
def _with_mark(bits, is_marked, k):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    return types.uint32(bits | (types.uint32(1 if is_marked else 0) << types.uint32(k)))


@kept
def few_kernel(test: Any, read: Any, write: Any, write_total: Any) -> Any:
    """A kernel of one thread that writes what is chosen of few elements."""

    @jit
    def write_chosen(count, *leaves):  # type: ignore[no-untyped-def]
        to = types.int64(0)
        for i in range(count):
            if test(leaves, i):
                write(leaves, to, read(leaves, i))
                to += 1
        write_total(leaves, 0, to)

    return write_chosen


@kept
def mark_kernel(test: Test, words: int, counts: int) -> Any:
    """A kernel that marks the elements of each part, and counts its marks."""
    of_any, of_later = test

    @jit
    def mark_part(count, length, *leaves):  # type: ignore[no-untyped-def]
        start, end = blockIdx.x * length, min((blockIdx.x + 1) * length, count)
        found, bits = types.int64(0), types.uint32(0)
        for k in range(min(end - start, WORD)):
            bits = _with_mark(bits, of_any(leaves, start + k), k)
        leaves[words][types.uint64(start // WORD)] = bits
        found += popc(bits)
        whole = end - (end - start) % WORD
        for first in range(start + WORD, whole, WORD):
            bits = types.uint32(0)
            for k in range(WORD):
                bits = _with_mark(bits, of_later(leaves, first + k), k)
            leaves[words][types.uint64(first // WORD)] = bits
            found += popc(bits)
        if start < whole < end:
            bits = types.uint32(0)
            for k in range(end - whole):
                bits = _with_mark(bits, of_later(leaves, whole + k), k)
            leaves[words][types.uint64(whole // WORD)] = bits
            found += popc(bits)
        leaves[counts][types.uint64(blockIdx.x)] = found

    return mark_part


@kept
def write_kernel(read: Any, write: Any, write_total: Any, words: int, counts: int, *, reads_all: bool) -> Any:
    """A kernel that writes what is marked in each part, and the number of all marks.

    With *reads_all* words of many marks are gone through without a branch: what is not marked is written too, where the
    next one replaces it, as long as there is a next one in the part.
    """

    @jit(device=True)
    def write_word(leaves, first, bits, to):  # type: ignore[no-untyped-def]
        while bits != types.uint32(0):
            write(leaves, to, read(leaves, first + ffs(bits) - 1))
            bits = types.uint32(bits & (bits - types.uint32(1)))
            to += 1

    @jit
    def write_part(count, length, *leaves):  # type: ignore[no-untyped-def]
        to = marks_before(leaves[counts], blockIdx.x)
        behind = to + leaves[counts][types.uint64(blockIdx.x)]
        start, end = blockIdx.x * length, min((blockIdx.x + 1) * length, count)
        for first in range(start, end, WORD):
            bits = leaves[words][types.uint64(first // WORD)]
            number = types.int64(popc(bits))
            if reads_all and number > FEW and to + number < behind:
                place = to
                for k in range(WORD):
                    write(leaves, place, read(leaves, first + k))
                    place += types.int64((bits >> types.uint32(k)) & types.uint32(1))
            else:
                write_word(leaves, first, bits, to)
            to += number
        if end == count:
            write_total(leaves, 0, behind)

    return write_part


@jit(device=True)
def marks_before(counts, part):  # type: ignore[no-untyped-def]
    """How many marks the parts before *part* have."""
    found = types.int64(0)
    for one in range(part):
        found += counts[types.uint64(one)]
    return found
