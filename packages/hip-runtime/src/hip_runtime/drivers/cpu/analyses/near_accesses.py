"""Loads and stores of lanes that are near to each other in memory."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE, VARYING
from hip_runtime.drivers.cpu.analyses.stride_speculation import speculate_strides, speculated_shape
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Instruction

MOST_NEAR = 16
"""The largest stride, in elements, of lanes that are near to each other, as of records that lie side by side: a gang
accesses a few pages."""


def find_contiguous(shapes: VectorShapes, size_of: SizeOf) -> frozenset[Instruction]:
    """The loads and stores that lanes make as whole vectors, unless an index is negative."""
    return find_near(shapes, size_of, MAX_STRIDE)


def find_near(shapes: VectorShapes, size_of: SizeOf, most: int = MOST_NEAR) -> frozenset[Instruction]:
    """The loads and stores of lanes that are up to *most* elements apart, or in the reverse order of memory, unless an
    index is negative."""
    speculated = speculate_strides(shapes)
    found = set()
    for value, block in shapes.homes.items():
        if value.opcode in ("load", "store"):
            shape = speculated_shape(shapes, speculated, value.address, block)
            nbytes = size_of(value.accessed)
            if shape is not VARYING and (0 < shape <= most * nbytes or shape == -nbytes):
                found.add(value)
    return frozenset(found)
