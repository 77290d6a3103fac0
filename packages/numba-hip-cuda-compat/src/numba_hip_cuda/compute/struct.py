"""Records as values: `cuda.compute.gpu_struct`."""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np
from numba.core import types
from numba.extending import typeof_impl

from numba_hip.cooperative.value_parts import record_class
from numba_hip.cooperative.values import kind_of
from numba_hip.errors import AlgorithmError


class StructType(type):
    """The class of the classes that `gpu_struct` makes. A kernel that calls one gets a named tuple, as which records
    are read."""

    fields: dict[str, np.dtype[Any]]
    records: dict[str, StructType]
    """The classes of those fields that are records."""
    dtype: np.dtype[Any]


@typeof_impl.register(StructType)
def _typeof_struct(value: StructType, _context: object) -> types.Type:
    return types.NamedTupleClass(record_class(tuple(value.fields)))


class Struct(metaclass=StructType):
    """A record on the host: a field for each argument, in order, by name, or in one dict. Fields that are records are
    given as one, or as what one is made of: a tuple, or a dict."""

    fields: dict[str, np.dtype[Any]] = {}  # each class has its own, and none changes it
    records: dict[str, StructType] = {}
    dtype: np.dtype[Any] = np.dtype(np.void)

    def __init__(self, *values: Any, **named: Any) -> None:
        first = values[0] if values else None
        in_order = () if isinstance(first, dict) and len(values) == 1 else values
        by_name = first if isinstance(first, dict) and not in_order else named
        given = dict(zip(self.fields, in_order, strict=False)) if in_order else by_name
        if len(in_order) > len(self.fields) or given.keys() != self.fields.keys():
            raise AlgorithmError(
                f"{type(self).__name__} got {list(in_order) or list(given)}; pass a value for each of its fields "
                f"{', '.join(self.fields)}"
            )
        for name in self.fields:
            setattr(self, name, self._field(name, given[name]))
        self._data = np.array(self.as_tuple(), dtype=self.dtype)
        self.__array_interface__ = self._data.__array_interface__

    def _field(self, name: str, value: Any) -> Any:
        """The *value* of field *name*, of its type."""
        record, dtype = self.records.get(name), self.fields[name]
        if record is not None:
            return _record_of(record, value, f"{type(self).__name__}.{name}")
        try:
            return (
                dtype.type(value)
                if dtype.subdtype is None
                else np.broadcast_to(np.array(value, dtype.base), dtype.shape)
            )
        except (TypeError, ValueError) as error:
            raise AlgorithmError(f"{type(self).__name__}.{name} is {value!r}; pass a {dtype}: {error}") from None

    def as_tuple(self) -> tuple[Any, ...]:
        """The values of the fields, by name; of those that are records, such tuples, of arrays tuples of numbers."""
        named: type[tuple[Any, ...]] = record_class(tuple(self.fields))
        return named(*(_as_tuple(getattr(self, name)) for name in self.fields))


def _as_tuple(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tuple(map(_as_tuple, value))
    return value.as_tuple() if isinstance(value, Struct) else value


def _record_of(record: StructType, value: Any, argument: str) -> Any:
    if isinstance(value, np.void):
        value = value.item()
    if isinstance(value, Struct):
        value = value.as_tuple()
    if isinstance(value, (tuple, list)):
        return record(*value)
    if isinstance(value, dict):
        return record(value)
    raise AlgorithmError(f"{argument} is {value!r}; pass a record, a tuple or a dict of {', '.join(record.fields)}")


def gpu_struct(field_dict: Any, name: str = "AnonymousStruct") -> StructType:
    """A class of records with the fields of *field_dict*: a dict of names and types, a record dtype, or a class with
    annotations. The types are those of numbers and of small arrays, or of records: what `gpu_struct` takes, or made.

    Its ``dtype`` is that of arrays of them, laid out as C does. Raises `AlgorithmError` for fields of other types.
    """
    if isinstance(field_dict, np.dtype):
        fields = {} if field_dict.names is None else {key: field_dict[key] for key in field_dict.names}
    elif isinstance(field_dict, type):
        name, fields = field_dict.__name__, get_type_hints(field_dict)
    elif isinstance(field_dict, dict):
        fields = field_dict
    else:
        raise AlgorithmError(f"field_dict is {field_dict!r}; pass a dict, a record dtype, or a class with annotations")
    for key in fields:
        if not str(key).isidentifier():
            raise ValueError(f"field_dict has the name {key!r}, which is not a valid Python identifier")
    if not fields:
        raise AlgorithmError(f"field_dict is {field_dict!r}, which has no fields")
    records = {key: _record_type(key, value) for key, value in fields.items() if _is_record(value)}
    dtypes = {key: records[key].dtype if key in records else _dtype(key, value) for key, value in fields.items()}
    dtype = np.dtype(list(dtypes.items()), align=True)
    return StructType(name, (Struct,), {"fields": dtypes, "records": records, "dtype": dtype})


def _is_record(value: Any) -> bool:
    return isinstance(value, (StructType, dict)) or (isinstance(value, np.dtype) and value.names is not None)


def _record_type(key: str, value: Any) -> StructType:
    return value if isinstance(value, StructType) else gpu_struct(value, key)


def _dtype(key: str, value: Any) -> np.dtype[Any]:
    kind_of(value, f"the field {key!r}")
    found: np.dtype[Any] = np.dtype(value)
    return found
