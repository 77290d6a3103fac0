"""Loops over the lanes of a mask, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I1, I32, I64
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder


@contextmanager
def each_active_lane(lanes: VectorBuilder, bits: ir.Value, after: ir.Block) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over the *bits* of a mask that are set, which goes on to *after*. Yields the number of the lane, an
    ``i32``, and an integer such as *bits* of which only the lane's bit is set."""
    builder, kind = lanes.builder, bits.type
    before = builder.block
    head, body = (builder.append_basic_block(f"active{part}") for part in ("", ".run"))
    builder.branch(head)
    builder.position_at_end(head)
    rest = builder.phi(kind, "rest")
    rest.add_incoming(bits, before)
    builder.cbranch(builder.icmp_unsigned("!=", rest, kind(0)), body, after)
    builder.position_at_end(body)
    lane = lanes.call(f"llvm.cttz.i{kind.width}", kind, [rest, I1(1)])
    others = builder.and_(rest, builder.sub(rest, kind(1)))
    number = lane if kind == I32 else builder.trunc(lane, I32) if kind == I64 else builder.zext(lane, I32)
    yield number, builder.xor(rest, others)
    rest.add_incoming(others, builder.block)
    builder.branch(head)
