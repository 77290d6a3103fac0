"""Checks of a statement's LLVM instructions before LLVM processes them: an intrinsic can write anything.

LLVM's compile time grows with the square of the size of an integer, or of a vector or an array that is a single value,
or faster; many that are rejected here would take minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba.core import ir as numba_ir

from hip_devicelib.backend_limits import WIDEST_INTEGER, vector_limit

WIDEST_ARRAY = 16384
"""Elements of an array that is a value, rather than memory."""


def name_of_called(function: Any, statement: Any) -> str:
    """The function that *statement* of *function* (Numba's IR) calls, as named in the source; otherwise the
    statement."""
    value = getattr(statement, "value", None)
    if not isinstance(value, numba_ir.Expr) or value.op != "call":
        return f"the statement {statement}"
    try:
        defined = function.get_definition(value.func)
    except KeyError:  # it comes from several places
        return f"the call {value}"
    name = getattr(defined, "attr", None) or getattr(defined, "name", None) or value.func.name
    return f"{name}()"


def goes_past_end(block: ir.Block) -> bool:
    """Whether instructions of *block* follow its terminator."""
    return block.is_terminated and block.instructions[-1] is not block.terminator


def find_oversized(written: Iterable[ir.Instruction]) -> str | None:
    """A description of the first value in the instructions *written* that is too large for LLVM; ``None`` if there is
    none."""
    for instruction in written:
        for value in (instruction, *instruction.operands):
            kind = getattr(value, "type", None)
            if type(kind) not in _SMALL:
                found = _judge(kind)
                if found:
                    return found
    return None


_SMALL = frozenset({ir.PointerType, ir.VoidType, ir.HalfType, ir.FloatType, ir.DoubleType, ir.MetaDataType, type(None)})


def _judge(kind: Any) -> str | None:
    """Why a value of the type *kind* is too large, if it is."""
    if isinstance(kind, ir.IntType):
        return (
            f"an integer of {kind.width} bits; LLVM is given {WIDEST_INTEGER}" if kind.width > WIDEST_INTEGER else None
        )
    if isinstance(kind, ir.VectorType):
        most = vector_limit(getattr(kind.element, "width", 64))
        if kind.count > most:
            return f"a vector of {kind.count} elements ({kind.element}); LLVM is given {most}"
        return _judge(kind.element)
    if isinstance(kind, ir.ArrayType):
        if kind.count > WIDEST_ARRAY:
            return f"an array of {kind.count} elements as a value; LLVM is given {WIDEST_ARRAY}"
        return _judge(kind.element)
    if isinstance(kind, ir.LiteralStructType):
        return next(filter(None, map(_judge, kind.elements)), None)
    return None
