"""Loads of neighbours at indices that are clamped, in gangs of which some lanes are at a limit.

Lanes that are at no limit load a contiguous vector, or one of every second element and so on, under a mask. Those at a
limit all load one element. Gathers take several times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.clamped_addresses import ClampedAddress
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I8, I64, allocate
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.strided_accesses import load_strided
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory


@dataclass(frozen=True)
class _Part:
    """The active lanes that are at one limit, or at none: *index* is theirs, or would be that of the first lane."""

    index: ir.Value
    mask: ir.Value
    runs: ir.Value
    """Whether there are any."""


class ClampedLoads:
    """Those of one block, which *code* writes."""

    def __init__(self, code: GangValues) -> None:
        self._code = code
        self._parts: dict[Instruction, list[_Part]] = {}

    def write(self, load: Instruction, address: ClampedAddress) -> ir.Value:
        """*load* of active lanes from *address*; undefined for others."""
        lanes = self._code.lanes
        clamp = address.clamps[0].value
        if clamp not in self._parts:
            self._parts[clamp] = self._divide(address)
        near, *at_limits = self._parts[clamp]
        step = address.stride // size_in_memory(load.type)
        align = min(load.align or 1, address.stride & -address.stride)
        place = self._write_address(address, near.index)
        if step == 1:
            found = lanes.load(load.type, place, near.mask, align)
        else:
            found = load_strided(lanes, load.type, place, step, near.mask, align)
        for part in at_limits:
            found = lanes.blend(part.mask, lanes.splat(self._load_one(load, address, part)), found)
        return found

    def _divide(self, address: ClampedAddress) -> list[_Part]:
        """The lanes at no limit, and those at each."""
        code, lanes, builder = self._code, self._code.lanes, self._code.builder
        clamped = code.vector(address.clamps[0].value)
        index = self._write_unclamped(address)
        is_near = builder.icmp_unsigned("==", clamped, lanes.spread(index, address.clamps[0].stride))
        rest = lanes.all_lanes() if code.mask is None else code.mask
        near = is_near if code.mask is None else self._both(rest, is_near)
        rest = self._both(rest, builder.not_(is_near))
        parts = [_Part(index, near, lanes.any(near))]
        for number in range(len(address.clamps)):
            limit, mask = self._write_limit(address, number), rest
            if number < len(address.clamps) - 1:
                is_there = builder.icmp_unsigned("==", clamped, lanes.splat(limit))
                mask, rest = self._both(rest, is_there), self._both(rest, builder.not_(is_there))
            parts.append(_Part(limit, mask, lanes.any(mask)))
        return parts

    def _both(self, one: ir.Value, other: ir.Value) -> ir.Value:
        """The lanes of *one* that are in *other*, too, which may be poison elsewhere."""
        return self._code.builder.select(one, other, self._code.lanes.no_lanes())

    def _write_unclamped(self, address: ClampedAddress) -> ir.Value:
        """What the first lane's index is if it is at no limit."""
        index = self._code.scalar(address.index)
        for clamp in reversed(address.clamps):
            if clamp.subtracts:
                index = self._code.builder.sub(index, self._code.scalar(clamp.limit))
        return index

    def _write_limit(self, address: ClampedAddress, number: int) -> ir.Value:
        """What the index of lanes is that are at the limit of the clamp with *number*."""
        code = self._code
        clamp = address.clamps[number]
        found = ir.Constant(clamp.value.type, 0) if clamp.subtracts else code.scalar(clamp.limit)
        for inner in range(number, 0, -1):
            outer = address.clamps[inner - 1].value
            replaced = address.clamps[inner].value
            operands = [found if value is replaced else code.scalar(value) for value in outer.operands]
            found = write_instruction(code.builder, outer, operands)
        return found

    def _write_address(self, address: ClampedAddress, index: ir.Value) -> ir.Value:
        """The address of the element with *index*, which is clamped or does not need to be."""
        code, builder = self._code, self._code.builder
        total = builder.add(builder.mul(index, I64(address.scale)), I64(address.offset))
        for value, scale in address.terms:
            total = builder.add(total, builder.mul(code.scalar(value), I64(scale)))
        return builder.gep(code.scalar(address.base), [total], source_etype=I8)

    def _load_one(self, load: Instruction, address: ClampedAddress, part: _Part) -> ir.Value:
        """The element that the lanes of *part*, which are at a limit, load: something, if there are none."""
        builder = self._code.builder
        nothing = allocate(self._code.entry, load.type, "nothing")
        place = builder.select(part.runs, self._write_address(address, part.index), nothing)
        return builder.load(place, typ=load.type, align=load.align or 1)
