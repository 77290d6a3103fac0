"""Attributes of dtypes in kernels, all constants: ``dtype.itemsize``, ``dtype.name``, ``dtype.names``, ..."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate

from numba_hip._numba.typing import as_dtype, from_dtype
from numba_hip.language.registry import lowering, typing

CONSTANT = frozenset(
    "alignment base byteorder char hasobject isalignedstruct isbuiltin isnative itemsize name names ndim num shape str"
    .split()
)  # fmt: skip
"""The attributes of NumPy's dtypes that are numbers, text, tuples of them, None or dtypes."""


def _type_of(value: Any) -> types.Type:
    """The type in kernels of the value of an attribute."""
    if isinstance(value, tuple):
        return types.BaseTuple.from_types(tuple(map(_type_of, value)))
    if isinstance(value, np.dtype):
        return types.DType(from_dtype(value))
    if isinstance(value, str):
        return types.literal(value)
    if value is None:
        return types.none
    return types.boolean if isinstance(value, bool) else types.intp


def _read(kind: types.DType, attribute: str) -> Any:
    return getattr(as_dtype(kind.dtype), attribute)


@typing.register_attr
class _DTypeAttributes(AttributeTemplate):
    key = types.DType

    def generic_resolve(self, kind: types.DType, attribute: str) -> types.Type | None:
        try:
            return _type_of(_read(kind, attribute)) if attribute in CONSTANT else None
        except NotImplementedError:  # NumPy has no such type: vectors
            return None


@lowering.lower_getattr_generic(types.DType)
def _attribute(context: Any, builder: ir.IRBuilder, kind: types.DType, value: ir.Value, attribute: str) -> ir.Value:
    return _constant(context, builder, _read(kind, attribute))


def _constant(context: Any, builder: ir.IRBuilder, value: Any) -> ir.Value:
    of = _type_of(value)
    if isinstance(value, tuple):
        return context.make_tuple(builder, of, [_constant(context, builder, member) for member in value])
    if value is None or isinstance(value, (str, np.dtype)):
        return context.get_dummy_value()
    return context.get_constant(of, value)
