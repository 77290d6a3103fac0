"""Atomic operations of the lanes on memory."""

from __future__ import annotations

import re

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Operand, UnknownInstruction
from tools.amd_executor.instruction_frame import POINTER, WORD, long, word
from tools.amd_executor.memory_access import MemoryAccess
from tools.amd_executor.pseudocode.values import Value

_ATOMIC = re.compile(r"(?:FLAT|GLOBAL)_ATOMIC_([A-Z_]+?)(?:_(B32|B64|U32|U64|I32|I64|F32|F64|F16|BF16|X2))?$")
_SHARED_ATOMIC = re.compile(r"DS_([A-Z_]+?)(_RTN)?_(B32|B64|U32|U64|I32|I64|F32|F64|F16|BF16)$")


class MemoryAtomic(MemoryAccess):
    """Writes an atomic operation."""

    def write(self) -> None:
        name = self.instruction.name
        fields = self.instruction.fields
        if self.instruction.format == "DS":
            match = _SHARED_ATOMIC.match(name)
            operation, returns, kind = (match[1], bool(match[2]), match[3]) if match else ("", False, "")
        else:
            match = _ATOMIC.match(name)
            operation, kind = (match[1], match[2] or "B32") if match else ("", "")
            returns = bool(fields.get("th", 0) & 1 or fields.get("glc", 0) or fields.get("sc0", 0))
        if not match:
            raise UnknownInstruction(name)
        bits = 64 if kind in ("B64", "U64", "I64", "F64", "X2") else 32
        with self.frame.lanes(self.enabled) as lane:
            pointer = self.builder.inttoptr(self.address(lane, 0, bits // 8), POINTER)
            old = self.builder.load(pointer, typ=ir.IntType(bits), align=4)
            new = self.updated(operation, kind, bits, old, lane)
            self.builder.store(new, pointer, align=4)
            if returns:
                self.frame.put_vector(old, self.places["d"], lane)

    def updated(self, operation: str, kind: str, bits: int, old: ir.Value, lane: ir.Value) -> ir.Value:
        data = self.register("data", lane, bits)
        if operation in ("SWAP", "STOREXCHG", "WRXCHG"):
            return data
        if operation in ("CMPSWAP", "CMPSTORE", "CMPST"):
            return self.exchanged(operation, kind, bits, old, data, lane)
        if operation == "MSKOR":
            kept = self.builder.and_(old, self.builder.not_(data))
            return self.builder.or_(kept, self.register("second", lane, bits))
        if operation == "PK_ADD":
            return self.packed_sum(kind, old, data)
        if kind.startswith("F"):
            return self.real(operation, bits, old, data)
        return self.whole(operation, kind, old, data)

    def exchanged(
        self, operation: str, kind: str, bits: int, old: ir.Value, data: ir.Value, lane: ir.Value
    ) -> ir.Value:
        if self.instruction.format == "DS":
            other = self.register("second", lane, bits)
        else:
            place = self.builder.gep(self.places["data"], [long(layout.LANES * bits // 32)], source_etype=WORD)
            other = self.frame.vector(Operand("v", 0, bits, ""), place, lane).llvm
        if operation == "CMPST":  # on earlier processors, the operand to compare with comes first
            other, data = data, other
        if kind.startswith("F"):
            pair = [self.values.view(Value(item, "u", bits), "f", bits) for item in (old, other)]
            same = self.values.compare("==", *pair).llvm
        else:
            same = self.builder.icmp_unsigned("==", old, other)
        return self.builder.select(same, data, old)

    def packed_sum(self, kind: str, old: ir.Value, data: ir.Value) -> ir.Value:
        builder, values = self.builder, self.values
        total = word(0)
        for part in range(2):
            pair = [
                values.view(Value(builder.lshr(item, word(16 * part)), "u", 32), "f" if kind == "F16" else "bf", 16)
                for item in (old, data)
            ]
            found = values.operate("+", *pair)
            found = found if kind == "F16" else values.bfloat(found)
            raw = values.resize(values.pattern(found), 32, "u").llvm
            total = builder.or_(total, builder.shl(raw, word(16 * part)))
        return total

    def real(self, operation: str, bits: int, old: ir.Value, data: ir.Value) -> ir.Value:
        left, right = (self.values.view(Value(item, "u", bits), "f", bits) for item in (old, data))
        match operation.removesuffix("_NUM"):
            case "ADD":
                result = self.values.operate("+", left, right)
            case "MIN":
                result = self.values.named("minimumnum", left, right)
            case "MAX":
                result = self.values.named("maximumnum", left, right)
            case _:
                raise UnknownInstruction(self.instruction.name)
        return self.values.pattern(result).llvm

    def whole(self, operation: str, kind: str, old: ir.Value, data: ir.Value) -> ir.Value:
        builder = self.builder
        zero, one = ir.Constant(old.type, 0), ir.Constant(old.type, 1)
        simple = {"ADD": builder.add, "SUB": builder.sub, "AND": builder.and_, "OR": builder.or_, "XOR": builder.xor}
        if operation in simple:
            return simple[operation](old, data)
        below = builder.icmp_unsigned("<", old, data)
        match operation:
            case "RSUB":
                return builder.sub(data, old)
            case "MIN" | "MAX" | "SMIN" | "SMAX" | "UMIN" | "UMAX":
                has_sign = operation[0] == "S" or (operation[0] == "M" and kind[0] == "I")
                compare = builder.icmp_signed if has_sign else builder.icmp_unsigned
                return builder.select(compare("<" if operation.endswith("MIN") else ">", data, old), data, old)
            case "INC":
                return builder.select(below, builder.add(old, one), zero)
            case "DEC":
                over = builder.or_(builder.icmp_unsigned("==", old, zero), builder.icmp_unsigned(">", old, data))
                return builder.select(over, data, builder.sub(old, one))
            case "CSUB" | "SUB_CLAMP":
                return builder.select(below, zero, builder.sub(old, data))
            case "COND_SUB":
                return builder.select(below, old, builder.sub(old, data))
        raise UnknownInstruction(self.instruction.name)
