"""Reports to the driver of AMD GPUs which thread of a kernel failed first: ``docs/design/hip-driver.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from numba_hip.abi.fault_record import BLOCK_WORD, CODE_WORD, DETAILS_WORD, MOST_DETAILS, THREAD_WORD, variable_name

if TYPE_CHECKING:
    from numba_hip.targets.context import HipContext

I32, I64 = ir.IntType(32), ir.IntType(64)


def report_fault(
    context: HipContext, builder: ir.IRBuilder, kernel: str, code: ir.Value, details: Sequence[ir.Value]
) -> None:
    """Write *code* (i32), block, thread and *details* (up to four i64) to the record, unless another thread was first.

    The variable of *kernel* becomes part of the module: the address of the record, which the driver fills in, and a
    word that the first thread changes.
    """
    space = context.global_address_space
    kind = ir.LiteralStructType([ir.PointerType(I32, space), I32, I32])
    variable = ir.GlobalVariable(builder.module, kind, variable_name(kernel), space)
    variable.initializer, variable.align = ir.Constant(kind, None), 8
    claimed = builder.gep(variable, [I32(0), I32(1)], inbounds=True)
    ordering = context.atomic_ordering
    # LLVM writes the ordering where the exchange succeeds, then that where it does not; only the first has a scope.
    exchange = builder.cmpxchg(claimed, I32(0), I32(1), ordering, "monotonic")
    with builder.if_then(builder.extract_value(exchange, 1)):
        record = builder.load(builder.gep(variable, [I32(0), I32(0)], inbounds=True))
        words = {CODE_WORD: code}
        for number, axis in enumerate("xyz"):
            words[BLOCK_WORD + number] = context.block_index(builder, axis)
            words[THREAD_WORD + number] = context.thread_index(builder, axis)
        for number, word in words.items():
            builder.store(word, builder.gep(record, [I32(number)]))
        wide = builder.bitcast(builder.gep(record, [I32(DETAILS_WORD)]), ir.PointerType(I64, space))
        for number, detail in enumerate(details[:MOST_DETAILS]):
            builder.store(detail, builder.gep(wide, [I32(number)]))
        builder.store_atomic(I32(1), record, "release", 4)  # in the system scope, as the host reads it
