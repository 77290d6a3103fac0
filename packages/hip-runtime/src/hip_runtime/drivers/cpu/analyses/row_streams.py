"""Kernels that go through rows of arrays, element after element: in which order blocks run decides how memory is read.

Memory is read fastest from beginning to end. A kernel that reads several rows for each of its own, as a stencil does,
finds most of them in caches if threads of neighbouring rows run soon after one another.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.effects import needs_active_lane
from hip_runtime.drivers.cpu.analyses.near_accesses import find_contiguous
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Value

_ACCESSES = frozenset({"load", "store"})


def streams_rows(shapes: VectorShapes) -> bool:
    """Whether each thread makes a known number of loads and stores, no other access, and all lanes of a gang access
    neighbours, or the same element."""
    if any(shapes.order.loops.values()):
        return False
    contiguous = find_contiguous(shapes, shapes.size_of)
    return all(
        value in contiguous or shapes.of(value.address, block) == 0
        for value, block in shapes.homes.items()
        if value.opcode in _ACCESSES
    ) and not any(needs_active_lane(value) and value.opcode in _OTHERS for value in shapes.homes)


_OTHERS = frozenset({"atomicrmw", "cmpxchg", "fence", "call"})


def reads_one_row(shapes: VectorShapes) -> bool:
    """Whether all loads of a thread from the same array are a number of bytes apart that is known: of one row."""
    rows: dict[Value, frozenset[tuple[Value, int]]] = {}
    for value in shapes.homes:
        if value.opcode == "load":
            terms = take_apart(value.operands[0], shapes.size_of).terms
            for base in (part for part, _ in terms if isinstance(part.type, ir.PointerType)):
                if rows.setdefault(base, terms) != terms:
                    return False
    return True
