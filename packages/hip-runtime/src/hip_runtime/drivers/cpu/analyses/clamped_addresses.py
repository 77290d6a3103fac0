"""Addresses of neighbours whose index is clamped: an array, an index within limits, and what all lanes have in common.

In a gang of which some lanes are at a limit, the others still access neighbours, and those at one limit one element.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.clamps import Clamp, Reflection, Wrap, as_clamp
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING, Shape
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


@dataclass(frozen=True)
class ClampedAddress:
    """*base*, an address, plus *scale* times the value of the first of *clamps*, *offset* bytes, and *terms*, values
    with their factors. Each clamp but the last is one of the next. All but the clamps are uniform."""

    base: Value
    terms: tuple[tuple[Value, int], ...]
    offset: int
    scale: int
    clamps: tuple[Clamp, ...]

    @property
    def index(self) -> Value:
        """The value that is clamped."""
        return self.clamps[-1].index

    @property
    def stride(self) -> int:
        """By how many bytes addresses of lanes that are at no limit grow."""
        return self.scale * self.clamps[-1].stride

    @property
    def values(self) -> tuple[Value, ...]:
        """What it is computed from, and what is clamped."""
        limits = [clamp.limit for clamp in self.clamps]
        return (self.base, self.clamps[0].value, self.index, *limits, *(value for value, _ in self.terms))


def find_clamped_address(pointer: Value, block: Block, shapes: VectorShapes) -> ClampedAddress | None:
    """*pointer*, as seen from *block*, as such an address; ``None`` if it is none."""
    address = take_apart(pointer, shapes.size_of)
    bases = [value for value, _ in address.terms if isinstance(value.type, ir.PointerType)]
    differing = [term for term in address.terms if shapes.of(term[0], block) != 0]
    if len(differing) != 1 or len(bases) != 1 or bases[0] is differing[0][0]:
        return None
    ((value, scale),) = differing
    clamps = _find_chain(value, block, shapes)
    if not clamps:
        return None
    terms = tuple(term for term in address.in_order if term not in differing and term[0] is not bases[0])
    return ClampedAddress(bases[0], terms, address.offset, scale, clamps)


def _find_chain(value: Value, block: Block, shapes: VectorShapes) -> tuple[Clamp, ...]:
    """The clamp that *value* is, that of which it is a clamp, and so on, down to one of a strided number; empty if it
    is no such clamp."""
    clamps: list[Clamp] = []
    while isinstance(value, Instruction) and shapes.of(value, block) is VARYING:
        clamp = as_clamp(value, lambda operand: _stride_of(operand, block, shapes))
        if clamp is None or isinstance(clamp, Reflection):
            return ()
        clamps.append(clamp)
        value = clamp.index
    if any(isinstance(clamp, Wrap) for clamp in clamps[:-1]):
        return ()  # one number does not tell whether others of the same lane are at an edge
    return tuple(clamps)


def _stride_of(value: Value, block: Block, shapes: VectorShapes) -> Shape:
    """By how much *value* grows from lane to lane, if it is at no limit."""
    shape = shapes.of(value, block)
    if shape is VARYING and (clamps := _find_chain(value, block, shapes)):
        return clamps[0].stride
    return shape
