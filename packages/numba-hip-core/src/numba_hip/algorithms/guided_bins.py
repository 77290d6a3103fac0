"""Histograms of bins of any width on the CPU device: where a value is among the edges, by a guide and a few halvings.

The guide divides what is between the first and the last finite edge into equal cells, and tells for each cell how many
edges are in those before it. The cell of a number is never before that of a smaller one, however its arithmetic rounds:
an edge in a later cell than a value's is above it, and one in an earlier cell is not. So only the edges of its own cell
are compared, by bisection; how many steps that takes, the fullest cell tells. If it is full, cells are made of the
numbers' ranks among floating-point numbers instead, which suits edges whose ratios are alike.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import atomic_add, blockIdx, local_array

TABLES = 4
"""Neighbours are counted in different tables, as often they have the same bin."""

AT_ONCE = 256
CELLS_OF_BIN = 8
FEW_HALVINGS = 3
"""More than that, and cells are made of ranks."""

LEAST_CELLS, MOST_CELLS = 64, 8192
NARROW = (types.float32, types.float16, types.int16, types.uint16, types.int8, types.uint8, types.boolean)
"""What float32 has room for: more lanes than float64."""


def can_guide(*kinds: types.Type) -> bool:
    """Whether values and edges of these *kinds* are numbers of a line."""
    return all(isinstance(kind, (types.Integer, types.Float, types.Boolean)) for kind in kinds)


@kept
def reaching(kind: types.Type, edge_kind: types.Type) -> Any:
    """A function of (value, edge), of these kinds: whether the edge is not above the value. Numba compares int64 with
    uint64 as float64."""
    if isinstance(kind, types.Integer) and isinstance(edge_kind, types.Integer):
        if kind.signed and not edge_kind.signed:
            return jit(device=True)(lambda value, edge: value >= 0 and types.uint64(value) >= types.uint64(edge))
        if edge_kind.signed and not kind.signed:
            return jit(device=True)(lambda value, edge: edge < 0 or types.uint64(value) >= types.uint64(edge))
    return jit(device=True)(lambda value, edge: edge <= value)


@kept
def guided_kernel(read: Any, read_edge: Any, kind: types.Type, edge_kind: types.Type, bins: int, place: int) -> Any:
    """A kernel in which each thread counts its part of the values of *kind*, for the *bins* counters at *place*. What
    has no bin is counted at 0."""
    marks, width = bins + 1, bins + 1
    cells = min(max(1 << (CELLS_OF_BIN * bins - 1).bit_length(), LEAST_CELLS), MOST_CELLS)
    line = types.float32 if kind in NARROW else types.float64
    fill_guide, cell_of = _fill_guide(line, marks, cells), _cell_of(line, cells)
    counters, places, reaches = TABLES * width, cells + 1, reaching(kind, edge_kind)

    @jit
    def count_in_bins(count, length, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        edges, guide = local_array(marks, edge_kind), local_array(places, types.int32)
        found, below = local_array(counters, types.int32), local_array(AT_ONCE, types.int32)
        values = local_array(AT_ONCE, kind)
        for one in range(marks):
            edges[one] = read_edge(leaves, one)
        lowest, scale, halvings = fill_guide(edges, guide, False)
        by_rank = halvings > FEW_HALVINGS
        if by_rank:
            lowest, scale, halvings = fill_guide(edges, guide, True)
        for one in range(counters):
            found[one] = 0
        start, end = blockIdx.x * length, min((blockIdx.x + 1) * length, count)
        for first in range(start, end, AT_ONCE):
            number = min(end - first, AT_ONCE)
            for k in range(number):
                values[k] = read(leaves, first + k)
            if by_rank:
                for k in range(number):
                    below[k] = guide[cell_of(values[k], lowest, scale, True)]
            else:
                for k in range(number):
                    below[k] = guide[cell_of(values[k], lowest, scale, False)]
            for step in range(halvings):
                half = types.int32(1 << (halvings - 1 - step))
                for k in range(number):
                    more = types.int32(below[k] + half)
                    below[k] = more if reaches(values[k], edges[types.uint32(min(more, marks) - 1)]) else below[k]
            for k in range(number):
                one = types.uint32(below[k] if below[k] < marks else types.int32(0))
                found[types.uint64(k % TABLES * width + one)] += 1
        for one in range(bins):
            total = types.int64(0)
            for table in range(TABLES):
                total += found[table * width + one + 1]
            if total > 0:
                atomic_add(leaves[place], one, total)

    return count_in_bins


@kept
def _point_of(line: types.Type) -> Any:
    """A function of (value, by_rank): where it is on the line, or its rank among the line's numbers."""
    word = types.int32 if line is types.float32 else types.int64
    positive, sign = word((1 << (word.bitwidth - 1)) - 1), word(word.bitwidth - 1)

    @jit(device=True)
    def point_of(value, by_rank):  # type: ignore[no-untyped-def]
        point = line(line(value) + line(0))  # no -0.0, which equals 0.0
        if by_rank:
            bits = point.view(word)
            return line(word(bits ^ word((bits >> sign) & positive))) if point == point else point
        return point

    return point_of


@kept
def _cell_of(line: types.Type, cells: int) -> Any:
    """A function of (value, lowest, scale, by_rank): its cell, where cells begin at *lowest*, *scale* of them for 1."""
    last, point_of = line(cells - 1), _point_of(line)

    @jit(device=True)
    def cell_of(value, lowest, scale, by_rank):  # type: ignore[no-untyped-def]
        distance = line(line(point_of(value, by_rank) - lowest) * scale)
        distance = distance if distance > line(0) else line(0)  # NaN is at 0, too
        return types.uint32(types.int32(distance if distance < last else last))

    return cell_of


@kept
def _fill_guide(line: types.Type, marks: int, cells: int) -> Any:
    """A function of (edges, guide, by_rank) that fills the guide, and returns where cells begin, how many there are for
    1, and how many halvings the fullest needs."""
    cell_of = _cell_of(line, cells)
    point_of = _point_of(line)

    @jit(device=True)
    def fill_guide(edges, guide, by_rank):  # type: ignore[no-untyped-def]
        lowest, highest, is_first = line(0), line(0), True
        for one in range(marks):
            if line(edges[one]) - line(edges[one]) == line(0):  # a finite one
                highest = point_of(edges[one], by_rank)
                lowest, is_first = highest if is_first else lowest, False
        scale = line(cells) / line(highest - lowest)  # infinite for equal edges, whose cell is the first
        for one in range(cells + 1):
            guide[one] = 0
        for one in range(marks):
            guide[cell_of(edges[one], lowest, scale, by_rank)] += 1
        before, most, halvings = types.int32(0), types.int32(0), types.int32(0)
        for one in range(cells + 1):
            inside = guide[one]
            guide[one] = before
            before, most = types.int32(before + inside), max(most, inside)
        while most >> halvings > 0:
            halvings += 1
        return lowest, scale, halvings

    return fill_guide
