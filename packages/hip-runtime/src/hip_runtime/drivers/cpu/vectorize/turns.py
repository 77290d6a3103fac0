"""Loops over the blocks of a chunk in which suspended gangs take turns, see `suspension`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import Blocks
from hip_runtime.drivers.cpu.llvmir import I1, I8, I64, allocate_at_entry
from hip_runtime.drivers.cpu.vectorize.suspension import IN_LOOP

MOST_BYTES = 64 << 10
"""Of the records of the gangs that take turns, on the stack of a thread of the processor: more would take the place of
what they read in the caches of a core."""

EachGang = Callable[[], AbstractContextManager[ir.Value]]
"""Loops over the gangs of a block; gives the number of threads from a gang's first one to the end of the row."""

CallGang = Callable[[ir.Value, ir.Value, ir.Value], None]
"""Calls a gang: the number of its threads, the address of its record, whether it was suspended."""


class Turns:
    """Writes the loops for gangs of the work item *place* whose records have *nbytes*, of which a block has *gangs*, at
    most *most*."""

    def __init__(
        self, builder: ir.IRBuilder, item: WorkItem, place: ir.Value, nbytes: int, gangs: ir.Value, most: int
    ) -> None:  # fmt: skip
        self._builder = builder
        self._item = item
        self._place = place
        self._nbytes = nbytes
        count = max(MOST_BYTES // nbytes, most)
        self._blocks = builder.zext(builder.udiv(gangs.type(count), gangs), I64)
        self._records = allocate_at_entry(builder, ir.ArrayType(I8, count * nbytes), "records")
        self._records.align = 64
        self._waits = allocate_at_entry(builder, I1, "some.wait")

    def write(
        self, blocks: Blocks, each_gang: EachGang, call: CallGang, go_on: Callable[[], None] | None = None
    ) -> None:
        """Run *blocks*, as many at a time as there are records for. If gangs pause, *go_on* runs what is left of a
        block."""
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
        with (
            self._pass(blocks, begin, end, each_gang) as (threads, record),
            builder.if_then(self._is_in_loop(record)),
        ):
            call(threads, record, I1(1))
            self._note(record)
        builder.cbranch(builder.load(self._waits, typ=I1), again, done)
        builder.position_at_end(done)
        if go_on is not None:
            self._begin_pass()
            with blocks.between(begin, end):
                go_on()
        begin.add_incoming(end, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", end, blocks.limit), some, after)
        builder.position_at_end(after)

    def _begin_pass(self) -> None:
        self._item.layout.store(self._builder, self._records, self._place, "gang_record")

    @contextmanager
    def _pass(
        self, blocks: Blocks, begin: ir.Value, end: ir.Value, each_gang: EachGang
    ) -> Iterator[tuple[ir.Value, ir.Value]]:
        """A loop over all gangs, with the record of each."""
        self._begin_pass()
        self._builder.store(I1(0), self._waits)
        with blocks.between(begin, end), each_gang() as threads:
            yield threads, take_record(self._builder, self._item, self._place, self._nbytes)

    def _note(self, record: ir.Value) -> None:
        """Note whether the gang with *record* is going to make another iteration."""
        builder = self._builder
        waits = builder.or_(builder.load(self._waits, typ=I1), self._is_in_loop(record))
        builder.store(waits, self._waits)

    def _is_in_loop(self, record: ir.Value) -> ir.Value:
        builder = self._builder
        return builder.icmp_unsigned("==", builder.load(record, typ=I8), I8(IN_LOOP))


def take_record(builder: ir.IRBuilder, item: WorkItem, place: ir.Value, nbytes: int) -> ir.Value:
    """The address of the record, which has *nbytes*, of the gang that runs now; *place* points to the next one
    then."""
    record = item.layout.load(builder, place, "gang_record")
    following = builder.gep(record, [I64(nbytes)], inbounds=True, source_etype=I8)
    item.layout.store(builder, following, place, "gang_record")
    return record
