"""The CPU device with bounds checks: the index out of range goes into a record in memory of the host.

Its layout is `numba_hip.abi.index_record`. Each function gets its address as one more hidden parameter; kernels have it
behind their arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from numba.core import cgutils

from hip_devicelib.cached_property import cached_property
from numba_hip.abi.index_record import RECORD, SLOT_BYTES, SLOTS, VALUE_OFFSETS
from numba_hip.targets.bounds_checks import I64, Checked, CheckingCallConv
from numba_hip.targets.callconv import ITEM, SpmdCallConv
from numba_hip.targets.context import I32
from numba_hip.targets.cpu.context import CpuContext
from numba_hip.targets.function_attributes import add_attribute

NOTE = "numba_hip.note_index"

AXES = "xyz"


class CheckedCallConv(CheckingCallConv, SpmdCallConv):
    """The calling convention of the CPU device, with the record of indices beside the work item."""

    hidden: tuple[tuple[str, ir.Type], ...] = (("item", ITEM), (RECORD, ITEM))

    def note_index(self, builder: ir.IRBuilder, code: ir.Value, numbers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        """In the record, with block and thread."""
        _, record = self.hidden_values(builder)
        where = [self.context.block_index(builder, letter) for letter in AXES]
        where += [self.context.thread_index(builder, letter) for letter in AXES]
        builder.call(_note_function(builder.module), [record, code, *where, *numbers])


def _note_function(module: ir.Module) -> ir.Function:
    """``note(record, code, block x, y, z, thread x, y, z, dimension, index, extent)``: fill a slot if one is left."""
    kind = ir.FunctionType(ir.VoidType(), [ITEM, *[I32] * 7, *[I64] * 3])
    function = cgutils.get_or_insert_function(module, kind, NOTE)
    if not function.is_declaration:
        return function
    function.linkage = "linkonce_odr"
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    add_attribute(function, "cold", "")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    record, *values = function.args
    count = builder.atomic_rmw("add", builder.bitcast(record, I64.as_pointer()), ir.Constant(I64, 1), "monotonic")
    with builder.if_then(builder.icmp_unsigned("<", count, ir.Constant(I64, SLOTS)), likely=False):
        slot = builder.mul(builder.add(count, ir.Constant(I64, 1)), ir.Constant(I64, SLOT_BYTES))
        for value, offset in zip(values, VALUE_OFFSETS, strict=True):
            place = builder.gep(record, [builder.add(slot, ir.Constant(I64, offset))])
            builder.store(value, builder.bitcast(place, value.type.as_pointer()))
    builder.ret_void()
    return function


class CheckedCpuContext(Checked, CpuContext):
    """Lowering for the CPU device, with bounds checks."""

    @cached_property
    def call_conv(self) -> CheckedCallConv:
        """How functions call one another: with the work item and the record as hidden parameters."""
        return CheckedCallConv(self)

    def hidden_parameters(self) -> Sequence[tuple[str, ir.Type]]:
        """The record."""
        return self.call_conv.hidden[1:]
