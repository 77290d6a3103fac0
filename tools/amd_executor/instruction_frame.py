"""The frame of the function for one instruction: it gets the wave and the decoded instruction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Instruction, Operand
from tools.amd_executor.pseudocode.values import Value

BYTE, WORD, LONG, POINTER, BIT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType(), ir.IntType(1)
SIGNATURE = ir.FunctionType(LONG, [POINTER, POINTER])
WITHIN = ir.FunctionType(BIT, [POINTER, LONG, LONG])


def word(number: int) -> ir.Constant:
    return ir.Constant(WORD, number & 0xFFFFFFFF)


def long(number: int) -> ir.Constant:
    return ir.Constant(LONG, number)


class Frame:
    """A function under construction. *roles* are the operands, in the order of the record."""

    def __init__(self, module: ir.Module, name: str, instruction: Instruction) -> None:
        self.instruction = instruction
        self.roles = list(instruction.operands)
        self.function = ir.Function(module, SIGNATURE, name)
        self.next_lane: ir.Block | None = None
        self.wave, self.record = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    # the record and the wave

    def number(self, place: int) -> ir.Value:
        """A word of the record."""
        where = self.builder.gep(self.record, [long(place)], source_etype=LONG)
        return self.builder.load(where, typ=LONG)

    def place(self, index: int) -> ir.Value:
        """The address of the word *index* of the wave."""
        return self.builder.gep(self.wave, [long(index)], source_etype=WORD)

    def load(self, place: ir.Value, bits: int = 32) -> ir.Value:
        return self.builder.load(place, typ=ir.IntType(bits), align=4)

    def store(self, value: ir.Value, place: ir.Value) -> None:
        self.builder.store(value, place, align=4)

    def operand_place(self, role: str) -> ir.Value:
        """The address of an operand; for a vector register, that of its first lane."""
        first = layout.OPERANDS + 2 * self.roles.index(role)
        offset, mask = self.number(first), self.number(first + 1)
        base = self.builder.and_(self.builder.ptrtoint(self.wave, LONG), mask)
        return self.builder.inttoptr(self.builder.add(base, offset), POINTER)

    def lane_place(self, place: ir.Value, lane: ir.Value, row: int = 0) -> ir.Value:
        """One lane of a vector register, or of one after it."""
        index = self.builder.add(self.builder.zext(lane, LONG), long(row * layout.LANES))
        return self.builder.gep(place, [index], source_etype=WORD)

    # masks

    def exec_mask(self) -> ir.Value:
        return self.mask(self.place(layout.EXEC))

    def mask(self, place: ir.Value) -> ir.Value:
        """A mask of lanes, as 64 bits."""
        if self.instruction.wave == 64:
            return self.load(place, 64)
        return self.builder.zext(self.load(place), LONG)

    def store_mask(self, mask: ir.Value, place: ir.Value) -> None:
        self.store(mask if self.instruction.wave == 64 else self.builder.trunc(mask, WORD), place)

    def lane_bit(self, mask: ir.Value, lane: ir.Value) -> ir.Value:
        return self.builder.trunc(self.builder.lshr(mask, self.builder.zext(lane, LONG)), BIT)

    # operands

    def uniform(self, operand: Operand, place: ir.Value) -> Value:
        """A scalar register or a constant."""
        bits = max(32, operand.bits)
        raw = self.load(place, bits)
        if operand.half:
            raw = self.builder.lshr(raw, word(16))
        return Value(raw, "u", bits)

    def vector(self, operand: Operand, place: ir.Value, lane: ir.Value) -> Value:
        """One lane of a vector register."""
        bits = max(32, operand.bits)
        total: ir.Value | None = None
        for row in range(bits // 32):
            part = self.load(self.lane_place(place, lane, row))
            if bits == 32:
                total = part
                break
            wide = self.builder.zext(part, ir.IntType(bits))
            if row:
                wide = self.builder.shl(wide, ir.Constant(ir.IntType(bits), 32 * row))
            total = wide if total is None else self.builder.or_(total, wide)
        assert total is not None
        if operand.half:
            total = self.builder.lshr(total, word(16))
        return Value(total, "u", bits)

    def put_vector(self, value: ir.Value, place: ir.Value, lane: ir.Value) -> None:
        """Set one lane of a vector register, and of the following ones if the value is wider."""
        bits = value.type.width
        for row in range(bits // 32):
            part = value
            if bits > 32:
                part = self.builder.lshr(value, ir.Constant(value.type, 32 * row)) if row else value
                part = self.builder.trunc(part, WORD)
            self.store(part, self.lane_place(place, lane, row))

    # control

    @contextmanager
    def lanes(self, enabled: ir.Value, *, all_lanes: bool = False) -> Iterator[ir.Value]:
        """A loop over the lanes whose bits are set in *enabled*; yields the number of the lane."""
        start = self.builder.block
        head = self.builder.append_basic_block("lane")
        body = self.builder.append_basic_block("body")
        step = self.builder.append_basic_block("step")
        end = self.builder.append_basic_block("end")
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.next_lane = step
        lane = self.builder.phi(WORD)
        lane.add_incoming(word(0), start)
        if all_lanes:
            self.builder.branch(body)
        else:
            self.builder.cbranch(self.lane_bit(enabled, lane), body, step)
        self.builder.position_at_end(body)
        yield lane
        if not self.builder.block.is_terminated:
            self.builder.branch(step)
        self.builder.position_at_end(step)
        following = self.builder.add(lane, word(1))
        lane.add_incoming(following, step)
        more = self.builder.icmp_unsigned("<", following, word(self.instruction.wave))
        self.builder.cbranch(more, head, end)
        self.builder.position_at_end(end)

    def finish(self, status: int = layout.NEXT) -> None:
        self.builder.ret(long(status))

    def require(self, address: ir.Value, size: int) -> None:
        """End the function with a fault unless *size* bytes at *address* may be accessed."""
        module = self.builder.module
        within = module.globals.get("within") or ir.Function(module, WITHIN, "within")
        fine = self.builder.call(within, [self.wave, address, long(size)])
        self.demand(fine, address)

    def demand(self, fine: ir.Value, address: ir.Value, fault: int = layout.FAULT) -> None:
        """End the function with *fault* at *address*, unless *fine*."""
        good = self.builder.append_basic_block("good")
        bad = self.builder.append_basic_block("bad")
        self.builder.cbranch(fine, good, bad)
        self.builder.position_at_end(bad)
        self.store(address, self.place(layout.FAULT_ADDRESS))
        self.finish(fault)
        self.builder.position_at_end(good)
