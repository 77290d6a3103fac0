"""Arrays in records, and fields of arrays of records, that lie at any offset.

Numba takes the elements of such an array to be aligned, and its kernels refuse those that are not. Here an array whose
elements may not be aligned has a type that says so: its elements are read and written byte by byte.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from llvmlite import ir
from numba.core import types
from numba.core.errors import NumbaNotImplementedError, TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, Signature, signature

from numba_hip._numba.lowering import set_record_field
from numba_hip._numba.typing import as_dtype
from numba_hip.language.registry import lowering, typing

TARGET: dict[str, str] = {"target": "hip"}
"""What lets a declaration come before those of Numba."""


def _field(record: types.Record, index: Any) -> str | None:
    """The name of the field that *index*, a name or a number that is known when the kernel is compiled, selects."""
    found = getattr(index, "literal_value", index)
    if isinstance(found, int) and 0 <= found < len(record.fields):
        found = list(record.fields)[found]
    return found if isinstance(found, str) and found in record.fields else None


def _is_aligned(record: types.Record, name: str) -> bool:
    """Whether the elements of field *name* are aligned in every one of several records, if the first record is."""
    kind = record.typeof(name)
    try:
        natural = as_dtype(kind.dtype if isinstance(kind, types.NestedArray) else kind).alignment
    except NumbaNotImplementedError:
        return False
    return bool(record.offset(name) % natural == 0 and record.size % natural == 0)


def _array_of(record: types.Record, index: Any) -> types.Array | None:
    """The type of the array in a *record* that *index* selects; None for what is no array, or is aligned."""
    name = _field(record, index)
    if name is None or not isinstance(record.typeof(name), types.NestedArray) or _is_aligned(record, name):
        return None
    inner = record.typeof(name)
    return types.Array(inner.dtype, inner.ndim, "C", aligned=False)


def _fields_of(records: types.Array, index: Any) -> types.Array | None:
    """The type of the array of all fields *index*; None where these are aligned, and where *index* is no name."""
    name = getattr(index, "literal_value", index)
    if not isinstance(records.dtype, types.Record) or not isinstance(name, str) or name not in records.dtype.fields:
        return None
    if _is_aligned(records.dtype, name):
        return None
    kind, ndim = records.dtype.typeof(name), records.ndim
    if isinstance(kind, types.NestedArray):
        kind, ndim = kind.dtype, ndim + kind.ndim
    return types.Array(kind, ndim, "A", readonly=not records.mutable, aligned=False)


def _selected(of: types.Type, index: Any) -> types.Array | None:
    if isinstance(of, types.Record):
        return _array_of(of, index)
    return _fields_of(of, index) if isinstance(of, types.Array) else None


class _Attribute(AttributeTemplate):
    metadata: ClassVar = TARGET

    def generic_resolve(self, of: types.Type, attribute: str) -> types.Type | None:
        return _selected(of, attribute)


@typing.register_attr
class _OfRecord(_Attribute):
    key = types.Record

    def generic_resolve(self, of: types.Type, attribute: str) -> types.Type | None:
        found: types.Type | None = _selected(of, attribute)
        return of.typeof(attribute) if found is None and attribute in of.fields else found


@typing.register_attr
class _OfRecords(_Attribute):
    key = types.Array


class _Get(AbstractTemplate):
    metadata: ClassVar = TARGET

    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Signature | None:
        found = _selected(*args)
        return None if found is None else signature(found, *args)


class _Set(AbstractTemplate):
    metadata: ClassVar = TARGET

    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Signature | None:
        record, index, value = args
        expected = self.expected(record, index) if isinstance(record, types.Record) else None
        if expected is None or self.context.can_convert(value, expected) is None:
            return None
        # What lowers a number, and what a name, expects the constant to be one.
        chosen = _field(record, index) if isinstance(index, types.Type) else index
        return signature(types.void, record, types.literal(chosen), value)

    def expected(self, record: types.Record, index: Any) -> types.Type | None:
        """The type of what *index* selects in *record*, if it can be assigned here."""
        return _array_of(record, index)


@typing.register
class _StaticGet(_Get):
    key = "static_getitem"


@typing.register
class _StaticSet(_Set):
    key = "static_setitem"

    def expected(self, record: types.Record, index: Any) -> types.Type | None:
        """The type of the field: here Numba's own declaration is left out."""
        name = _field(record, index)
        if name is None and isinstance(index, (str, int)):
            raise TypingError(f"Field {index!r} was not found in record with fields {tuple(record.fields)}")
        return None if name is None else super().expected(record, index) or record.typeof(name)


@typing.register_global(operator.getitem)
class _GetByLiteral(_Get):
    key = operator.getitem


@typing.register_global(operator.setitem)
class _SetByLiteral(_Set):
    key = operator.setitem


@lowering.lower_setattr_generic(types.Record)
def _set(context: Any, builder: ir.IRBuilder, sig: Any, args: Any, name: str) -> None:
    """Assign a field. Where it is an array, as to a part of an array: a value of another shape is an error."""
    record, kind = sig.args
    inner = record.typeof(name)
    if not isinstance(inner, types.NestedArray):
        set_record_field(context, builder, sig, args, name)
        return
    target = types.Array(inner.dtype, inner.ndim, "C", aligned=_is_aligned(record, name))
    array = context.get_getattr(record, name)(context, builder, record, args[0], name)
    assign_sig = signature(types.none, target, types.ellipsis, kind)
    context.get_function(operator.setitem, assign_sig)(builder, (array, context.get_dummy_value(), args[1]))


@lowering.lower_cast(types.Array, types.Array)
def _as_unaligned(context: Any, builder: ir.IRBuilder, kind: types.Array, to: types.Array, value: ir.Value) -> ir.Value:
    """Numba's own cast does not expect that an aligned array is taken for one that may not be."""
    return value
