"""What is in a table of a worker is done to the array, see `update_tables`.

Workers often end at the same time. So each begins elsewhere in the array: two that go through it together wait for
each other's cache lines.

Several neighbouring elements are replaced by one compare-and-swap, which takes little longer than for one element: the
elements that nothing was done to are replaced by what they are. That is so for any operation, and no other thread
loses what it does to them meanwhile, as the swap fails then. It never leaves the cache line of an element, and so may
touch what is beside the array.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import LINE
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.ir.debug_locations import stand_at
from hip_runtime.drivers.cpu.ir.loop_metadata import rolled
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I64, PTR, VOID
from hip_runtime.drivers.cpu.object_code.host_machine import swapped_bytes
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import combine

WHOLE = 1 << 16
"""What parts of a table are given of."""

_IMPROVING = ("min", "max", "umin", "umax", "fmin", "fmax", "omin", "omax")
"""Operations that often change nothing."""


@dataclass(frozen=True)
class TableContents:
    """Writes a function that does what is in a table: operands of *update*, *identity* where there is none. Elements
    have as many bits as that."""

    update: Instruction
    identity: ir.Constant
    name: str

    def define(self, module: ir.Module) -> ir.Function:
        """``void (table, elements, array, start)``: does to the array what is in the table, which it leaves as it is;
        *start* of `WHOLE` parts of it at last."""
        if self.name in module.globals:
            return module.globals[self.name]
        function = ir.Function(module, ir.FunctionType(VOID, [PTR, I64, PTR, I64]), self.name)
        function.linkage = "internal"
        for attribute in ("noinline", "nounwind"):
            function.attributes.add(attribute)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        stand_at(builder, self.update.location)
        memory, elements, base, start = function.args
        is_aligned = builder.icmp_unsigned(
            "==", builder.and_(builder.ptrtoint(base, I64), I64(swapped_bytes() - 1)), I64(0)
        )
        lanes = LINE // self._size
        with builder.if_then(builder.icmp_unsigned("!=", elements, I64(0))):
            lines = builder.udiv(builder.add(elements, I64(lanes - 1)), I64(lanes))
            skipped = builder.udiv(builder.mul(lines, start), I64(WHOLE))
            with counted(builder, "line", skipped, builder.add(lines, skipped)) as line:
                behind = builder.icmp_unsigned(">=", line, lines)
                line = builder.select(behind, builder.sub(line, lines), line)
                first = builder.mul(line, I64(lanes), flags=("nuw", "nsw"))
                with builder.if_then(self._any(builder, self._find_done(builder, memory, first, lanes)[1])):
                    if self._together == 1:
                        self._do_each(builder, memory, first, base)
                    else:
                        with builder.if_else(is_aligned) as (aligned, anywhere):
                            with aligned:
                                self._do_together(builder, memory, first, base)
                            with anywhere:
                                self._do_each(builder, memory, first, base)
        builder.ret_void()
        return function

    @property
    def _bits(self) -> ir.IntType:
        kind = self.identity.type
        assert isinstance(kind, ir.IntType)
        return kind

    @property
    def _size(self) -> int:
        nbytes: int = self._bits.width // 8
        return nbytes

    @property
    def _together(self) -> int:
        """How many elements are replaced at once."""
        return swapped_bytes() // self._size

    def _find_done(
        self, builder: ir.IRBuilder, memory: ir.Value, first: ir.Value, count: int
    ) -> tuple[ir.Value, ir.Value]:  # fmt: skip
        """The vector of *count* elements of the table *memory* from the *first* on, and which something was done to."""
        kind = ir.VectorType(self._bits, count)
        place = builder.gep(memory, [first], inbounds=True, source_etype=self._bits)
        whole = builder.load(place, align=count * self._size, typ=kind)
        return whole, builder.icmp_unsigned("!=", whole, ir.Constant(kind, [self.identity] * count))

    def _any(self, builder: ir.IRBuilder, mask: ir.Value) -> ir.Value:
        kind = ir.IntType(mask.type.count)
        return builder.icmp_unsigned("!=", builder.bitcast(mask, kind), kind(0))

    def _do_each(self, builder: ir.IRBuilder, memory: ir.Value, first: ir.Value, base: ir.Value) -> None:
        """Do what is in a line of the table, from the element *first* on, one after another."""
        with counted(builder, "element", I64(0), I64(LINE // self._size), [rolled(builder.module)]) as lane:
            index = builder.add(first, lane, flags=("nuw", "nsw"))
            bits = builder.load(builder.gep(memory, [index], inbounds=True, source_etype=self._bits), typ=self._bits)
            with builder.if_then(builder.icmp_unsigned("!=", bits, self.identity)):
                address = builder.gep(base, [index], source_etype=self._bits)
                write_checked(builder, self.update, [address, builder.bitcast(bits, self.update.type)])

    def _do_together(self, builder: ir.IRBuilder, memory: ir.Value, first: ir.Value, base: ir.Value) -> None:
        """The same, as many at once as can be replaced."""
        with counted(builder, "group", I64(0), I64(LINE // swapped_bytes())) as group:
            index = builder.add(first, builder.mul(group, I64(self._together), flags=("nuw", "nsw")))
            values, done = self._find_done(builder, memory, index, self._together)
            with builder.if_then(self._any(builder, done)):
                address = builder.gep(base, [index], source_etype=self._bits)
                self._replace(builder, address, values, done)

    def _replace(self, builder: ir.IRBuilder, address: ir.Value, values: ir.Value, done: ir.Value) -> None:
        """Replace the elements at *address* that something was *done* to, unless that changes nothing."""
        whole = ir.IntType(8 * swapped_bytes())
        held = self._load(builder, address)
        before = builder.block
        again, swap, after = (builder.append_basic_block(name) for name in ("again", "swap", "swapped"))
        builder.branch(again)
        builder.position_at_end(again)
        old = builder.phi(whole, "old")
        old.add_incoming(held, before)
        new = builder.bitcast(self._combine(builder, builder.bitcast(old, values.type), values, done), whole)
        differs = builder.icmp_unsigned("!=", new, old) if self.update.operation in _IMPROVING else I1(1)
        builder.cbranch(differs, swap, after)
        builder.position_at_end(swap)
        pair = builder.cmpxchg(address, old, new, "monotonic")
        old.add_incoming(builder.extract_value(pair, 0), swap)
        builder.cbranch(builder.extract_value(pair, 1), after, again)
        builder.position_at_end(after)

    def _load(self, builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
        """What is in memory, word by word: the swap tells if that was never there as a whole."""
        words = swapped_bytes() // 8
        whole = ir.Constant(ir.VectorType(I64, words), ir.Undefined)
        for number in range(words):
            place = builder.gep(address, [I64(number)], source_etype=I64)
            whole = builder.insert_element(whole, builder.load_atomic(place, "monotonic", 8, typ=I64), I64(number))
        return builder.bitcast(whole, ir.IntType(64 * words))

    def _combine(self, builder: ir.IRBuilder, held: ir.Value, values: ir.Value, done: ir.Value) -> ir.Value:
        """The bits of elements *held*, and of those that something was *done* to with *values*."""
        kind = ir.VectorType(self.update.type, values.type.count)
        one, other = (builder.bitcast(bits, kind) for bits in (held, values))
        made = combine(builder, self.update.operation, one, other)
        return builder.select(done, builder.bitcast(made, held.type), held)
