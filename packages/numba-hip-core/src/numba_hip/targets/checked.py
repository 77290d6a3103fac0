"""The CPU device with bounds checks: an index out of range raises `IndexError` on the host, and says which.

What no status can carry, the index itself, is written to a record in memory of the host (`index_faults.py`). Each
function gets its address as one more hidden parameter; kernels have it behind their arguments.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from numba_hip._numba import bounds_check_in_progress
from numba_hip.dispatch.index_faults import MESSAGE, RECORD, SLOT_BYTES, SLOTS, VALUE_OFFSETS
from numba_hip.targets.attributes import add_attribute
from numba_hip.targets.callconv import ITEM, Fault, HipCallConv, SpmdCallConv
from numba_hip.targets.context import I32, HipContext
from numba_hip.targets.cpu import CpuContext

I64 = ir.IntType(64)
NOTE = "numba_hip.note_index"
AXES = "xyz"


class CheckingCallConv(HipCallConv):
    """A calling convention with something to note an index in."""

    @abstractmethod
    def note_index(self, builder: ir.IRBuilder, code: ir.Value, numbers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        """Note for the fault *code* (i32) what was out of range: dimension (-1: unknown), index and extent (i64)."""

    def return_user_exc(
        self, builder: ir.IRBuilder, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        """As always; what a bounds check compares is noted before."""
        check = bounds_check_in_progress()
        if check is None:
            super().return_user_exc(builder, exc, exc_args, loc, func_name)
            return
        index, extent, axis = check
        library = self.context.active_code_library
        message = MESSAGE if library.accessed is None else f"{MESSAGE} of array {library.accessed!r}"
        fault = Fault(IndexError, (message,), library.location)
        library.faults[fault.code] = fault
        code = ir.Constant(I32, fault.code)
        dimension = axis if isinstance(axis, ir.Value) else ir.Constant(I64, -1 if axis is None else axis)
        self.note_index(builder, code, (_widen(builder, dimension), _widen(builder, index), _widen(builder, extent)))
        self._return_errcode_raw(builder, code)


class CheckedCallConv(CheckingCallConv, SpmdCallConv):
    """The calling convention of the CPU device, with the record of indices beside the work item."""

    hidden: tuple[tuple[str, ir.Type], ...] = (("item", ITEM), (RECORD, ITEM))

    def note_index(self, builder: ir.IRBuilder, code: ir.Value, numbers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        """In the record, with block and thread."""
        _, record = self.hidden_values(builder)
        where = [self.context.block_index(builder, letter) for letter in AXES]
        where += [self.context.thread_index(builder, letter) for letter in AXES]
        builder.call(_note_function(builder.module), [record, code, *where, *numbers])


def _widen(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return value if value.type == I64 else builder.sext(value, I64)


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


class Checked(HipContext):
    """The part of a target context that has bounds checks in every function."""

    @property
    def enable_boundscheck(self) -> bool:
        """Yes."""
        return True

    @enable_boundscheck.setter
    def enable_boundscheck(self, value: bool) -> None:
        """Numba sets this for every function; this context checks in all of them."""


class CheckedCpuContext(Checked, CpuContext):
    """Lowering for the CPU device, with bounds checks."""

    @cached_property
    def call_conv(self) -> CheckedCallConv:
        """How functions call one another: with the work item and the record as hidden parameters."""
        return CheckedCallConv(self)

    def hidden_parameters(self) -> Sequence[tuple[str, ir.Type]]:
        """The record."""
        return self.call_conv.hidden[1:]
