"""Bounds checks: an index out of range raises an `IndexError` with the index on the host.

A status cannot carry the index itself; each target stores it in its own way.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from llvmlite import ir

from numba_hip._numba.lowering import bounds_check_in_progress
from numba_hip.abi.fault import Fault
from numba_hip.abi.index_record import MESSAGE
from numba_hip.targets.callconv import HipCallConv
from numba_hip.targets.context import I32, HipContext

I64 = ir.IntType(64)


class CheckingCallConv(HipCallConv):
    """A calling convention with a place to store an index in."""

    @abstractmethod
    def note_index(self, builder: ir.IRBuilder, code: ir.Value, numbers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        """Store what was out of range, for the fault *code* (i32): dimension (-1: unknown), index and extent (i64)."""

    def return_user_exc(
        self, builder: ir.IRBuilder, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        """As in the base class; the numbers that a bounds check compares are stored first."""
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
        self.return_code(builder, code)


def _widen(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return value if value.type == I64 else builder.sext(value, I64)


class Checked(HipContext):
    """The part of a target context that adds bounds checks to every function."""

    @property
    def enable_boundscheck(self) -> bool:
        """Always true."""
        return True

    @enable_boundscheck.setter
    def enable_boundscheck(self, value: bool) -> None:
        """Ignored: Numba sets this for every function, and this context always checks."""
