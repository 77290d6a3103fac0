"""Bounds checks on AMD GPUs: a thread stores the index that is out of range, and its kernel reports it.

Every function has one more hidden parameter, the address of a slot in the thread's private memory, which inlining turns
into registers. The thread that reports the fault of the launch writes them into its record.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from hip_devicelib.cached_property import cached_property
from numba_hip.targets.amd.context import AmdContext
from numba_hip.targets.bounds_checks import I64, Checked, CheckingCallConv
from numba_hip.targets.callconv import ITEM

SLOT = "index_slot"
NUMBERS = ir.ArrayType(I64, 4)
"""What a slot holds: dimension, index and extent, and 1 once it holds them."""


class CheckedAmdCallConv(CheckingCallConv):
    """The calling convention of AMD GPUs, with the slot for an index as a hidden parameter."""

    hidden: tuple[tuple[str, ir.Type], ...] = ((SLOT, ITEM),)

    def note_index(self, builder: ir.IRBuilder, code: ir.Value, numbers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        """Store *numbers* in the slot."""
        del code
        (parameter,) = self.hidden_values(builder)
        slot = builder.bitcast(parameter, NUMBERS.as_pointer())
        for position, number in enumerate((*numbers, I64(1))):
            builder.store(number, cgutils.gep_inbounds(builder, slot, 0, position))


class CheckedAmdContext(Checked, AmdContext):
    """Lowering for one AMD GPU, with bounds checks."""

    @cached_property
    def call_conv(self) -> CheckedAmdCallConv:
        """The calling convention with the slot."""
        return CheckedAmdCallConv(self)

    def fault_details(self, builder: ir.IRBuilder) -> ir.Value:
        """A new, empty slot."""
        slot = cgutils.alloca_once(builder, NUMBERS, name=SLOT)
        builder.store(ir.Constant(NUMBERS, None), slot)
        return slot
