"""How the table of a worker grows, see `update_tables`.

Nothing is known before of how many elements a kernel updates how often. So a table has no elements at first, and gets
some once enough operations have been on these in memory: then clearing them, and looking through them in the end,
takes less time than what has been lost by doing without.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import LINE
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.llvmir import I1, I64, PTR, Struct

TABLE = Struct(memory=PTR, most=I64, misses=I64)
"""Where the elements of a table are; how many it may have, 0 once what is in it is done; and how many operations were
in memory, on elements that it may have, since it has grown."""

_ELEMENTS_PER_MISS, _OF_LARGE = 128, 4
"""By how many elements a table grows for each operation in memory. That takes a locked instruction, and often a cache
line from another core; an element is cleared and looked at in a part of a cycle. A large table leaves less of a
second-level cache to all else, and where operations are far apart, few are on the same element of it."""

SPARING = "preserve_mostcc"
"""The calling convention: there are few calls, which leave the registers to the loops that they are in."""

_PARTS = 8
"""In how many parts of itself a table grows: a larger one takes longer to look through, smaller parts are no better."""

_LARGE = 256 << 10
"""Bytes of a table from which on it is large."""


@dataclass(frozen=True)
class TableGrowth:
    """Writes a function that makes a table larger. Elements have as many bits as *identity*, which they are then."""

    identity: ir.Constant
    name: str

    def define(self, module: ir.Module) -> ir.Function:
        """``i64 (table, elements, index)``: how many elements the *table* has now, of which there were
        *elements*, where there is an operation on that with the number *index*, which it may have but did not."""
        if self.name in module.globals:
            return module.globals[self.name]
        function = ir.Function(module, ir.FunctionType(I64, [PTR, I64, I64]), self.name)
        function.linkage, function.calling_convention = "internal", SPARING
        for attribute in ("noinline", "nounwind"):
            function.attributes.add(attribute)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        table, elements, index = function.args
        most = TABLE.load(builder, table, "most")
        misses = builder.add(TABLE.load(builder, table, "misses"), I64(1))
        wanted = self._round_up(builder, index)
        wanted = builder.select(builder.icmp_unsigned("<", wanted, most), wanted, most)
        is_large = builder.icmp_unsigned(">", wanted, I64(_LARGE // LINE * self._lanes))
        enough = builder.mul(misses, builder.select(is_large, I64(_OF_LARGE), I64(_ELEMENTS_PER_MISS)))
        with builder.if_then(builder.icmp_unsigned("<", enough, builder.sub(wanted, elements))):
            TABLE.store(builder, misses, table, "misses")
            builder.ret(elements)
        TABLE.store(builder, I64(0), table, "misses")
        self._clear(builder, TABLE.load(builder, table, "memory"), elements, wanted)
        builder.ret(wanted)
        return function

    def grow(self, builder: ir.IRBuilder, table: ir.Value, elements: ir.Value, index: ir.Value) -> ir.Value:
        """Write what has *table*, which has so many *elements*, grow where it does not have that with the number
        *index*; how many it has then."""
        is_missed = builder.icmp_unsigned(">=", index, elements)
        may_have = builder.icmp_unsigned("<", index, TABLE.load(builder, table, "most"))
        before = builder.block
        with builder.if_then(builder.and_(is_missed, may_have), likely=False):
            function = self.define(builder.module)
            grown, behind = builder.call(function, [table, elements, index], cconv=SPARING), builder.block
        known = builder.phi(I64, "known")
        known.add_incoming(elements, before)
        known.add_incoming(grown, behind)
        return known

    @property
    def size(self) -> int:
        """Bytes of an element."""
        bits: int = self.identity.type.width
        return bits // 8

    @property
    def _lanes(self) -> int:
        """The elements of a cache line."""
        return LINE // self.size

    def _round_up(self, builder: ir.IRBuilder, index: ir.Value) -> ir.Value:
        """A number above *index* that is a little larger: of eighths of the power of two below it, or of cache
        lines."""
        last = builder.or_(index, I64(max(self._lanes, _PARTS) - 1))
        part = builder.lshr(I64(1 << 63), builder.add(builder.ctlz(last, I1(1)), I64(_PARTS.bit_length() - 1)))
        unit = builder.select(builder.icmp_unsigned("<", part, I64(self._lanes)), I64(self._lanes), part)
        return builder.add(builder.or_(last, builder.sub(unit, I64(1))), I64(1))

    def _clear(self, builder: ir.IRBuilder, memory: ir.Value, elements: ir.Value, wanted: ir.Value) -> None:
        """Have nothing done to the elements from those that there are to those that are *wanted*, in whole lines."""
        lanes = self._lanes
        nothing = ir.Constant(ir.VectorType(self.identity.type, lanes), [self.identity] * lanes)
        first, end = (builder.udiv(builder.add(number, I64(lanes - 1)), I64(lanes)) for number in (elements, wanted))
        with counted(builder, "clear", first, end) as line:
            place = builder.gep(memory, [line], inbounds=True, source_etype=nothing.type)
            builder.store(nothing, place, align=LINE)
