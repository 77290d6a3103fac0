"""Addresses that differ between lanes, taken apart into what is the same in all lanes and what varies."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


@dataclass(frozen=True)
class VaryingAddress:
    """*base*, an address, plus *offset* bytes and *terms*, values with their factors, which are all the same in all
    lanes, and *varying* ones."""

    base: Value
    terms: tuple[tuple[Value, int], ...]
    offset: int
    varying: tuple[tuple[Value, int], ...]

    @property
    def common(self) -> tuple[Value, ...]:
        """What is the same in all lanes."""
        return (self.base, *(value for value, _ in self.terms))


def find_varying_address(load: Instruction, block: Block, shapes: VectorShapes) -> VaryingAddress | None:
    """The address that lanes *load* from, as seen from *block*, if it differs between them and all of them may be
    loaded from together."""
    (pointer,) = load.operands
    is_plain = not (load.volatile or load.atomic or load.meets_tables) and not is_private_address(pointer)
    if not is_plain or shapes.of(pointer, block) is not VARYING:
        return None
    address = take_apart(pointer, shapes.size_of)
    bases = [value for value, _ in address.terms if isinstance(value.type, ir.PointerType)]
    if len(bases) != 1 or shapes.of(bases[0], block) != 0:
        return None
    varying = tuple(term for term in address.in_order if shapes.of(term[0], block) != 0)
    terms = tuple(term for term in address.in_order if term[0] is not bases[0] and term not in varying)
    return VaryingAddress(bases[0], terms, address.offset, varying)
