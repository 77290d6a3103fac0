"""Scalarizes instructions without a vector form: they are executed for one active lane after another."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Argument, Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, VOID, allocate
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import write_demoted
from hip_runtime.drivers.cpu.vectorize.active_lanes import each_active_lane
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.lane_operands import element_address, prepare_operands, stored_type


class Scalarizer:
    """Writes *instruction* for each active lane. Operands and results that vary go through the stack.

    If all lanes are active at run time, the loop over them is a plain one, so that LLVM can unroll it. Otherwise the
    loop visits the set bits of the mask only, as a branch for each lane would often be mispredicted.
    """

    def __init__(self, code: GangValues, instruction: Instruction) -> None:
        self._code = code
        self._builder = code.builder
        self._lanes = code.lanes
        self._instruction = instruction
        self._kinds = self._result_kinds(instruction.type)
        self._reads_thread = any(isinstance(value, Argument) and value.index == 0 for value in instruction.operands)

    def write(self) -> ir.Value | None:
        """Write all of it; the result's lanes as a vector."""
        code, builder, lanes = self._code, self._builder, self._lanes
        self._operands = prepare_operands(code, self._instruction)
        self._results = [
            allocate(code.entry, ir.ArrayType(stored_type(kind), lanes.width), "results") for kind in self._kinds
        ]
        if self._reads_thread:
            self._first = code.item.layout.load(builder, code.arguments[0], "thread", code.item.order.lane_axis)
        self._run_lanes()
        if self._reads_thread:
            code.item.layout.store(builder, self._first, code.arguments[0], "thread", code.item.order.lane_axis)
        return self._collect()

    def _result_kinds(self, kind: ir.Type) -> list[ir.Type]:
        if kind == VOID:
            return []
        self._lanes.type_of(kind)
        return list(kind.elements) if isinstance(kind, ir.LiteralStructType) else [kind]

    # loops

    def _run_lanes(self) -> None:
        code, builder, lanes = self._code, self._builder, self._lanes
        if code.mask is None:
            self._run_all()
        elif code.lane is not None:
            self._run_lane(I32(code.lane))
        else:
            bits = builder.bitcast(code.mask, ir.IntType(lanes.width))
            all_active = builder.icmp_unsigned("==", bits, bits.type((1 << lanes.width) - 1))
            with builder.if_else(all_active) as (all_lanes, active_lanes):
                with all_lanes:
                    self._run_all()
                with active_lanes:
                    self._run_active(bits)

    def _run_all(self) -> None:
        builder = self._builder
        before = builder.block
        body, after = (builder.append_basic_block(f"lane{part}") for part in ("", ".end"))
        builder.branch(body)
        builder.position_at_end(body)
        lane = builder.phi(I32, "lane")
        lane.add_incoming(I32(0), before)
        self._run_lane(lane)
        following = builder.add(lane, I32(1))
        lane.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", following, I32(self._lanes.width)), body, after)
        builder.position_at_end(after)

    def _run_active(self, bits: ir.Value) -> None:
        after = self._builder.append_basic_block("active.end")
        with each_active_lane(self._lanes, bits, after) as (lane, _):
            self._run_lane(lane)
        self._builder.position_at_end(after)

    def _run_lane(self, lane: ir.Value) -> None:
        """Execute the instruction for *lane*."""
        code, builder, instruction = self._code, self._builder, self._instruction
        if self._reads_thread:
            code.item.store_lane(builder, code.arguments[0], builder.add(self._first, lane))
        operands = [operand(lane) for operand in self._operands]
        write_one = write_demoted if instruction in code.demotable else write_checked
        found = write_one(builder, instruction, operands)
        for number, (place, kind) in enumerate(zip(self._results, self._kinds, strict=True)):
            part = builder.extract_value(found, number) if isinstance(instruction.type, ir.LiteralStructType) else found
            part = builder.zext(part, I8) if kind == I1 else part
            builder.store(part, element_address(builder, place, stored_type(kind), lane))

    def _collect(self) -> ir.Value | None:
        builder, kind = self._builder, self._instruction.type
        parts = []
        for place, part in zip(self._results, self._kinds, strict=True):
            loaded = builder.load(place, typ=self._lanes.type_of(stored_type(part)), align=1)
            parts.append(builder.trunc(loaded, self._lanes.type_of(I1)) if part == I1 else loaded)
        if not isinstance(kind, ir.LiteralStructType):
            return parts[0] if parts else None
        whole = ir.Constant(self._lanes.type_of(kind), ir.Undefined)
        for number, loaded in enumerate(parts):
            whole = builder.insert_value(whole, loaded, number)
        return whole
