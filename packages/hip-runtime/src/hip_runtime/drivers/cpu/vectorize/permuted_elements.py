"""Elements of registers that permutations give all lanes, see `object_code.permutations`, and where such begin."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.varying_addresses import VaryingAddress
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64
from hip_runtime.drivers.cpu.object_code.permutations import Permutation
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder


class PermutedElements:
    """Takes elements out of registers by *permutation*, for lanes of *lanes*: as integers."""

    def __init__(self, lanes: VectorBuilder, permutation: Permutation) -> None:
        self._lanes = lanes
        self._permutation = permutation
        self.element = ir.IntType(8 * permutation.nbytes)

    @property
    def steps(self) -> range:
        """The first ones of the lanes that are looked up at once."""
        return range(0, self._lanes.width, self._permutation.lanes)

    def load(self, start: ir.Value, number: int = 0) -> ir.Value:
        """The register with this *number* of those whose elements are in memory from *start* on: its elements, again
        and again if it has room for more."""
        count = self._permutation.elements
        place = self._lanes.step(start, number * self._permutation.register_bytes)
        part = self._lanes.builder.load(place, typ=ir.VectorType(self.element, count), align=1)
        order = [lane % count for lane in range(self._permutation.lanes)]
        return self._lanes.shuffle(part, self._lanes.vector_of(I32, order))

    def take(self, numbers: ir.Value, first: int) -> ir.Value:
        """As many *numbers* from that of the lane *first* on as are looked up at once, any where there are fewer."""
        lanes = [min(first + number, self._lanes.width - 1) for number in range(self._permutation.lanes)]
        return self._lanes.shuffle(numbers, self._lanes.vector_of(I32, lanes))

    def permute(self, registers: Sequence[ir.Value], numbers: ir.Value) -> ir.Value:
        """The elements with these *numbers* of one or two *registers*."""
        first, *others = registers
        name = self._permutation.of_two if others else self._permutation.of_one
        return self._lanes.call(name, first.type, [first, numbers, *others])

    def join(self, parts: list[ir.Value]) -> ir.Value:
        """All lanes of what was found for some at a time."""
        while len(parts) > 1:
            order = self._lanes.vector_of(I32, range(2 * parts[0].type.count))
            parts = [self._lanes.merge(pair[0], pair[1], order) for pair in in_pairs(parts)]
        return self._lanes.shuffle(parts[0], self._lanes.step_vector(I32, 1))


def write_common(code: GangValues, address: VaryingAddress, distance: ir.Value) -> ir.Value:
    """What lanes have in common of *address*, plus *distance* in bytes."""
    builder = code.builder
    distance = builder.add(distance, I64(address.offset))
    for value, scale in address.terms:
        distance = builder.add(distance, builder.mul(code.scalar(value), I64(scale)))
    return builder.gep(code.scalar(address.base), [distance], source_etype=I8)


def in_pairs(values: list[ir.Value]) -> list[list[ir.Value]]:
    """*values*, two at a time, the last one alone where their number is odd."""
    return [values[first : first + 2] for first in range(0, len(values), 2)]
