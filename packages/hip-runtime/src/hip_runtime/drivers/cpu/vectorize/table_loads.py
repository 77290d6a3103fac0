"""Loads from tables that `analyses.small_tables` found: these are loaded whole, and elements taken out of registers.

A permutation gives all lanes any element of a register in a few cycles; a gather takes about one for each lane, and of
bytes, for which there is none, three. The processor protects memory in pages: where a table is in one page, any active
lane shows that all of it can be loaded.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.small_tables import SmallTable
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I8, I64, write_likely
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.page_loads import PAGE
from hip_runtime.drivers.cpu.vectorize.permuted_elements import PermutedElements, in_pairs, write_common
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder

_I16 = ir.IntType(16)


def load_from_table(code: GangValues, load: Instruction, table: SmallTable) -> ir.Value:
    """What *load* loads in each active lane, of which there is one, from *table*; undefined for others."""
    builder, lanes = code.builder, code.lanes
    lookup = _Lookup(lanes, table)
    start = write_common(code, table.address, I64(0))
    numbers, places = lookup.find_numbers(code), code.vector(load.operands[0])
    offset = builder.and_(builder.ptrtoint(start, I64), I64(PAGE - 1))
    return write_likely(
        builder,
        builder.icmp_unsigned("<=", offset, I64(PAGE - lookup.nbytes)),
        lambda: builder.bitcast(lookup.find(start, numbers), lanes.type_of(load.type)),
        lambda: lanes.gather(load.type, places, code.mask, load.align or 1),
    )


class _Lookup:
    """Takes elements out of *table*, for lanes of *lanes*."""

    def __init__(self, lanes: VectorBuilder, table: SmallTable) -> None:
        self._lanes = lanes
        self._builder = lanes.builder
        self._table = table
        self._permutation = table.permutation
        self._permuted = PermutedElements(lanes, table.permutation)
        self._registers = -(-table.count // table.permutation.elements)
        element = self._permuted.element
        self._index = _I16 if table.count > 1 << I8.width and element == I8 else element

    @property
    def nbytes(self) -> int:
        """Bytes of the registers that the table is in, with what is behind it."""
        return self._registers * self._permutation.register_bytes

    def find_numbers(self, code: GangValues) -> ir.Value:
        """The index of each lane."""
        builder, total = self._builder, self._lanes.splat(self._index(0))
        for value, shift, scale in self._table.indices:
            whole = builder.lshr(code.vector(value), self._lanes.splat(ir.Constant(value.type, shift)))
            number = builder.trunc(whole, self._lanes.type_of(self._index))
            total = builder.add(total, builder.mul(number, self._lanes.splat(self._index(scale))))
        return total

    def find(self, start: ir.Value, numbers: ir.Value) -> ir.Value:
        """The elements with these *numbers*, as integers."""
        permuted = self._permuted
        registers = [permuted.load(start, number) for number in range(self._registers)]
        return permuted.join([self._find_part(registers, permuted.take(numbers, first)) for first in permuted.steps])

    def _find_part(self, registers: list[ir.Value], numbers: ir.Value) -> ir.Value:
        """The same for as many lanes as are looked up at once: in each register, or two at a time, of which the higher
        bits of a number choose one."""
        builder, bit = self._builder, self._permutation.elements
        low = self._mask(numbers, bit - 1) if not self._permutation.of_two else numbers
        low = builder.trunc(low, ir.VectorType(self._permuted.element, self._permutation.lanes))
        if self._permutation.of_two:
            found = [self._permuted.permute(pair, low) for pair in in_pairs(registers)]
            bit *= 2
        else:
            found = [self._permuted.permute([register], low) for register in registers]
        while len(found) > 1:
            is_second = builder.icmp_unsigned("!=", self._mask(numbers, bit), self._constant(numbers, 0))
            found = [pair[0] if len(pair) == 1 else builder.select(is_second, *pair[::-1]) for pair in in_pairs(found)]
            bit *= 2
        return found[0]

    def _mask(self, numbers: ir.Value, bits: int) -> ir.Value:
        return self._builder.and_(numbers, self._constant(numbers, bits))

    def _constant(self, numbers: ir.Value, number: int) -> ir.Value:
        return ir.Constant(numbers.type, [number] * numbers.type.count)
