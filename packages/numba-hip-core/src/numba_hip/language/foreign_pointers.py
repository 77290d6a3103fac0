"""``ffi.from_buffer(array)`` of cffi: a pointer to the first element of an array, for a function that is linked."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature

from numba_hip.language.registry import lowering, typing


class _FromBuffer(AbstractTemplate):
    key = "hip.ffi.from_buffer"

    def generic(self, args: Any, kws: Any) -> Any:
        """A pointer to elements of the type of the array's."""
        if kws or len(args) != 1:
            return None
        (kind,) = args
        if not isinstance(kind, types.Array):
            raise TypingError(f"ffi.from_buffer takes an array; got {kind}")
        if kind.layout not in "CF" or (kind.layout == "F" and kind.ndim > 1):
            raise TypingError(f"ffi.from_buffer takes an array whose elements lie side by side, in C order; got {kind}")
        return signature(types.CPointer(kind.dtype), kind)


@typing.register_attr
class _FfiAttributes(AttributeTemplate):
    key = types.ffi

    def resolve_from_buffer(self, ffi: Any) -> types.BoundFunction:
        """The method of an ``FFI`` object."""
        return types.BoundFunction(_FromBuffer, ffi)


@lowering.lower(_FromBuffer.key, types.Array)
def _lower_from_buffer(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return context.make_array(sig.args[0])(context, builder, args[0]).data
