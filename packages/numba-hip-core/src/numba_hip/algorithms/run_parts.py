"""Runs reduced on the CPU device: one thread goes through each part of the elements, whose heads are marked.

A part begins with the rest of a run of those before, its *lead*, and ends within a run that may go on, its *trail*: one
thread puts these together in the end. The order of combining depends on the number of elements and the runs alone.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.algorithms.marked_parts import WORD, Marks, Test, marks_before
from numba_hip.algorithms.operands import Operands
from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import blockIdx

ROW = 8
"""So many elements of a run are combined as a tree, whose branches do not wait for one another."""


def reduce_marked(
    operands: Operands, marks: Marks, kind: types.Type, read_key: Any, read: Any, combine: Any, write_key: Any,
    write: Any, write_total: Any,
) -> None:  # fmt: skip
    """Launch the writing of the first key of each run, of its values of *kind*, combined, and of how many runs there
    are."""
    read_lead, write_lead = operands.scratch(marks.parts, kind)
    read_trail, write_trail = operands.scratch(marks.parts, kind)
    stream, leaves = operands.launch_stream, operands.leaves
    parts = reduce_kernel(
        read_key, read, combine, write_key, write, write_lead, write_trail, marks.words, marks.counts
    )  # fmt: skip
    parts[marks.parts, 1, stream](marks.elements, marks.length, *leaves)
    joining = join_kernel(combine, read_lead, read_trail, write, write_total, marks.words, marks.counts)
    joining[1, 1, stream](marks.length, marks.parts, *leaves)


def reduce_few(
    operands: Operands, count: int, heads: Test, read_key: Any, read: Any, combine: Any, write_key: Any, write: Any,
    write_total: Any,
) -> None:  # fmt: skip
    """Launch what `reduce_marked` does for few elements, of which *heads* tells where runs begin."""
    kernel = few_kernel(heads.of_later, read_key, read, combine, write_key, write, write_total)
    kernel[1, 1, operands.launch_stream](count, *operands.leaves)


@kept
def few_kernel(
    is_head: Any, read_key: Any, read: Any, combine: Any, write_key: Any, write: Any, write_total: Any
) -> Any:  # fmt: skip
    """A kernel of one thread that writes the runs of few elements."""

    @jit
    def reduce_all(count, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        run, value = types.int64(0), read(leaves, 0)
        write_key(leaves, 0, read_key(leaves, 0))
        for i in range(1, count):
            if is_head(leaves, i):
                write(leaves, run, value)
                run += 1
                write_key(leaves, run, read_key(leaves, i))
                value = read(leaves, i)
            else:
                value = combine(value, read(leaves, i))
        write(leaves, run, value)
        write_total(leaves, 0, run + 1)

    return reduce_all


@kept
def _read_row(read: Any, combine: Any, elements: int) -> Any:
    """A function of (leaves, i): so many elements from i on, a power of two, combined as a tree."""
    if elements == 1:
        return read
    half = elements // 2
    half_row = _read_row(read, combine, half)
    return jit(device=True)(lambda leaves, i: combine(half_row(leaves, i), half_row(leaves, i + half)))


@kept
def reduce_kernel(
    read_key: Any, read: Any, combine: Any, write_key: Any, write: Any, write_lead: Any, write_trail: Any, words: int,
    counts: int,
) -> Any:  # fmt: skip
    """A kernel that writes the runs that begin in each part, but for the values of the last one of them, which it keeps
    as the part's trail."""
    read_row = _read_row(read, combine, ROW)

    @jit(device=True)
    def combine_word(leaves, first, value):  # type: ignore[no-untyped-def]
        for row in range(0, WORD, ROW):
            value = combine(value, read_row(leaves, first + row))
        return value

    @jit
    def reduce_part(count, length, *leaves):  # type: ignore[no-untyped-def]
        part = blockIdx.x
        i, end = part * length, min((part + 1) * length, count)
        bits = leaves[words][types.uint64(i // WORD)]
        if not bits & types.uint32(1):
            lead = read(leaves, i)
            i += 1
            bits = types.uint32(bits >> types.uint32(1))
            while i < end and not bits & types.uint32(1):
                if i % WORD == 0 and bits == types.uint32(0) and i + WORD <= end:
                    lead = combine_word(leaves, i, lead)
                    i += WORD
                else:
                    lead = combine(lead, read(leaves, i))
                    i += 1
                    bits = types.uint32(bits >> types.uint32(1))
                if i % WORD == 0 and i < end:
                    bits = leaves[words][types.uint64(i // WORD)]
            write_lead(leaves, part, lead)
        if i < end:
            run = marks_before(leaves[counts], part)
            value = read(leaves, i)
            write_key(leaves, run, read_key(leaves, i))
            i += 1
            while i < end:
                bits = types.uint32(leaves[words][types.uint64(i // WORD)] >> types.uint32(i % WORD))
                behind = min(i - i % WORD + WORD, end)
                if bits == types.uint32(0) and behind - i == WORD:
                    value = combine_word(leaves, i, value)
                else:
                    for at in range(i, behind):
                        if bits & types.uint32(1):
                            write(leaves, run, value)
                            run += 1
                            write_key(leaves, run, read_key(leaves, at))
                            value = read(leaves, at)
                        else:
                            value = combine(value, read(leaves, at))
                        bits = types.uint32(bits >> types.uint32(1))
                i = behind
            write_trail(leaves, part, value)

    return reduce_part


@kept
def join_kernel(
    combine: Any, read_lead: Any, read_trail: Any, write: Any, write_total: Any, words: int, counts: int
) -> Any:  # fmt: skip
    """A kernel of one thread that writes the values of the runs that began in one part and may have gone on in others,
    and how many runs there are."""

    @jit
    def join_parts(length, parts, *leaves):  # type: ignore[no-untyped-def]
        value, runs = read_trail(leaves, 0), leaves[counts][0]
        for part in range(1, parts):
            if not leaves[words][types.uint64(part * length // WORD)] & types.uint32(1):
                value = combine(value, read_lead(leaves, part))
            begun = leaves[counts][types.uint64(part)]
            if begun > 0:
                write(leaves, runs - 1, value)
                value = read_trail(leaves, part)
                runs += begun
        write(leaves, runs - 1, value)
        write_total(leaves, 0, runs)

    return join_parts
