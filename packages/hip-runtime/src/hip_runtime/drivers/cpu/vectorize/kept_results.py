"""Results that a gang leaves for the next one, which computes them only from other numbers, see
`analyses.common_results`.

A worker has memory for them: the numbers that something was computed from, and what came of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.common_results import CommonResults
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I8, I64, allocate

if TYPE_CHECKING:
    from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues

_WORD = 8
"""Bytes of a number, and of the flag that there is one."""


class KeptResults:
    """The memory of a worker of *item* for results, of which each has a part."""

    def __init__(self, item: WorkItem) -> None:
        self._item = item
        self._parts: list[int] = []
        self._nbytes = 0

    def write(self, builder: ir.IRBuilder, place: ir.Value, start: ir.Block) -> None:
        """Write what is before the blocks of a chunk, once these are written: memory at *start*, which the work item
        *place* points to, and in which nothing is kept."""
        if not self._parts:
            return
        with builder.goto_block(start):
            memory = allocate(builder, ir.ArrayType(I8, self._nbytes), "kept")
            memory.align = _WORD
            for offset in self._parts:
                builder.store(I64(0), _at(builder, memory, offset))
            self._item.layout.store(builder, memory, place, "kept")

    def compute(self, code: GangValues, common: CommonResults) -> None:
        """Have *code*, which is at the first of the instructions of *common*, know the results."""
        builder = code.builder
        memory = self._reserve(builder, code.arguments[0], 1 + len(common.given) + len(common.results))
        places = [_at(builder, memory, _WORD * number) for number in range(1 + len(common.given) + len(common.results))]
        flag, given, kept = places[0], places[1 : 1 + len(common.given)], places[1 + len(common.given) :]
        values = {value: _settle(code, code.scalar(value)) for value in _operands(common)}
        holds = builder.icmp_unsigned("!=", builder.load(flag, typ=I64), I64(0))
        for value, place in zip(common.given, given, strict=True):
            kind = _bits(value.type)
            now = builder.bitcast(values[value], kind) if value.type != kind else values[value]
            holds = builder.and_(holds, builder.icmp_unsigned("==", builder.load(place, typ=kind), now))
        with builder.if_else(holds, likely=True) as (same, other):
            with same:
                found = [builder.load(place, typ=value.type) for value, place in zip(common.results, kept, strict=True)]
                same_block = builder.block
            with other:
                for value in common.instructions:
                    values[value] = write_instruction(builder, value, [values[part] for part in value.operands])
                for value, place in (*zip(common.given, given, strict=True), *zip(common.results, kept, strict=True)):
                    builder.store(values[value], place)
                builder.store(I64(1), flag)
                other_block = builder.block
        for value, known in zip(common.results, found, strict=True):
            result = builder.phi(value.type, name=value.name)
            result.add_incoming(known, same_block)
            result.add_incoming(values[value], other_block)
            code.values[value] = result

    def _reserve(self, builder: ir.IRBuilder, place: ir.Value, words: int) -> ir.Value:
        offset = self._nbytes
        self._parts.append(offset)
        self._nbytes += words * _WORD
        return _at(builder, self._item.layout.load(builder, place, "kept"), offset)


def _operands(common: CommonResults) -> list[Value]:
    """What the instructions take that they do not compute themselves."""
    own = set(common.instructions)
    operands = (operand for value in common.instructions for operand in value.operands)
    return list(dict.fromkeys(part for part in operands if not (isinstance(part, Instruction) and part in own)))


def _settle(code: GangValues, value: ir.Value) -> ir.Value:
    """*value*, or any if it is not defined, as under a mask without lanes: it decides where to go."""
    return value if isinstance(value, ir.Constant | ir.Argument) else code.lanes.freeze(value)


def _bits(kind: ir.Type) -> ir.IntType:
    """The integer of as many bits as a number of *kind* has."""
    if isinstance(kind, ir.IntType):
        return kind
    return ir.IntType({ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}[type(kind)])


def _at(builder: ir.IRBuilder, memory: ir.Value, offset: int) -> ir.Value:
    return builder.gep(memory, [I64(offset)], inbounds=True, source_etype=I8)
