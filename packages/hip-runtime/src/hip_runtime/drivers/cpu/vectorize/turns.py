"""Loops over the blocks of a chunk in which suspended gangs take turns, see `suspension`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.worker import Blocks
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, allocate_at_entry

MOST_BYTES = 64 << 10
"""Of the records of the gangs that take turns, on the stack of a thread of the processor: more would take the place of
what they read in the caches of a core."""

EachGang = Callable[[], AbstractContextManager[ir.Value]]
"""Loops over the gangs of a block; gives the number of threads from a gang's first one to the end of the row."""

CallGang = Callable[[ir.Value, ir.Value, ir.Value], None]
"""Calls a gang: the number of its threads, the address of its record, whether it was suspended."""


class Turns:
    """Writes the loops for gangs whose records have *nbytes*, of which a block has *gangs*, at most *most*."""

    def __init__(self, builder: ir.IRBuilder, nbytes: int, gangs: ir.Value, most: int) -> None:
        self._builder = builder
        self._nbytes = nbytes
        count = max(MOST_BYTES // nbytes, most)
        self._blocks = builder.zext(builder.udiv(I32(count), gangs), I64)
        self._records = allocate_at_entry(builder, ir.ArrayType(I8, count * nbytes), "records")
        self._records.align = 64
        self._number = allocate_at_entry(builder, I32, "gang.number")
        self._waits = allocate_at_entry(builder, I1, "some.wait")

    def write(self, blocks: Blocks, each_gang: EachGang, call: CallGang) -> None:
        """Run *blocks*, as many at a time as there are records for."""
        builder = self._builder
        before = builder.block
        some, again, after = (builder.append_basic_block(name) for name in ("some", "again", "turns.end"))
        done = builder.append_basic_block("turns.done")
        builder.branch(some)
        builder.position_at_end(some)
        begin = builder.phi(I64, name="begin")
        begin.add_incoming(blocks.first, before)
        rest = builder.sub(blocks.limit, begin)
        count = self._blocks
        end = builder.add(begin, builder.select(builder.icmp_unsigned("<", rest, count), rest, count))
        with self._pass(blocks, begin, end, each_gang) as (threads, record):
            call(threads, record, I1(0))
            self._note(record)
        builder.cbranch(builder.load(self._waits, typ=I1), again, done)
        builder.position_at_end(again)
        with self._pass(blocks, begin, end, each_gang) as (threads, record):
            suspended = builder.icmp_unsigned("!=", builder.load(record, typ=I8), I8(0))
            with builder.if_then(suspended):
                call(threads, record, I1(1))
                self._note(record)
        builder.cbranch(builder.load(self._waits, typ=I1), again, done)
        builder.position_at_end(done)
        begin.add_incoming(end, done)
        builder.cbranch(builder.icmp_unsigned("<", end, blocks.limit), some, after)
        builder.position_at_end(after)

    @contextmanager
    def _pass(
        self, blocks: Blocks, begin: ir.Value, end: ir.Value, each_gang: EachGang
    ) -> Iterator[tuple[ir.Value, ir.Value]]:
        """A loop over all gangs, with the record of each."""
        builder = self._builder
        builder.store(I32(0), self._number)
        builder.store(I1(0), self._waits)
        with blocks.between(begin, end), each_gang() as threads:
            number = builder.load(self._number, typ=I32)
            builder.store(builder.add(number, I32(1), flags=("nuw", "nsw")), self._number)
            offset = builder.mul(builder.zext(number, I64), I64(self._nbytes), flags=("nuw", "nsw"))
            yield threads, builder.gep(self._records, [offset], inbounds=True, source_etype=I8)

    def _note(self, record: ir.Value) -> None:
        """Note whether the gang with *record* is suspended now."""
        builder = self._builder
        suspended = builder.icmp_unsigned("!=", builder.load(record, typ=I8), I8(0))
        builder.store(builder.or_(builder.load(self._waits, typ=I1), suspended), self._waits)
