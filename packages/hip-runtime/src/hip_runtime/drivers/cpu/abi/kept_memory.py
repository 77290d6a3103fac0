"""Memory that a CPU thread keeps from one worker to the next, so that it is not cleared by the system each time.

A worker takes it for as long as it runs. Another one may begin on the same thread meanwhile, in a signal handler, and
allocates memory of its own; one of both is kept in the end. If a worker is abandoned, its memory is freed.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import WORKER_RECORD
from hip_runtime.drivers.cpu.llvmir import I64, PTR, VOID, declare, store_atomic

KEPT_BYTES = 1 << 20
"""How much it is. What nobody writes to takes no memory of the system's."""

ALIGNMENT = 64


def take_memory(builder: ir.IRBuilder, notes: ir.Value) -> ir.Value:
    """The memory, for a worker with the record *notes*; null if there is none."""
    kept = _exchange(builder, notes, PTR(None))
    before = builder.block
    with builder.if_then(builder.icmp_unsigned("==", kept, PTR(None)), likely=False):
        make = declare(builder, "aligned_alloc", PTR, I64, I64)
        made, behind = builder.call(make, [I64(ALIGNMENT), I64(KEPT_BYTES)]), builder.block
    memory = builder.phi(PTR, "memory")
    memory.add_incoming(kept, before)
    memory.add_incoming(made, behind)
    store_atomic(builder, memory, WORKER_RECORD.field(builder, notes, "memory"))
    return memory


def keep_memory(builder: ir.IRBuilder, notes: ir.Value) -> None:
    """Keep what a worker with the record *notes* has taken."""
    memory = WORKER_RECORD.load_atomic(builder, notes, "memory")
    store_atomic(builder, PTR(None), WORKER_RECORD.field(builder, notes, "memory"))
    other = _exchange(builder, notes, memory)
    with builder.if_then(builder.icmp_unsigned("!=", other, PTR(None)), likely=False):
        builder.call(declare(builder, "free", VOID, PTR), [other])


def _exchange(builder: ir.IRBuilder, notes: ir.Value, memory: ir.Value) -> ir.Value:
    """Have the thread keep *memory*, or nothing; what it has kept."""
    return builder.atomic_rmw("xchg", WORKER_RECORD.load(builder, notes, "kept"), memory, "monotonic")
