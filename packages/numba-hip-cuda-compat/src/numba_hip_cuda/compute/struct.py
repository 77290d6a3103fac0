"""Records as values: `cuda.compute.gpu_struct`."""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np
from numba.core import types
from numba.extending import typeof_impl

from numba_hip.cooperative.value_parts import record_class
from numba_hip.errors import AlgorithmError


class StructType(type):
    """The class of the classes that `gpu_struct` makes. A kernel that calls one gets a named tuple, as which records
    are read."""

    fields: dict[str, np.dtype[Any]]
    dtype: np.dtype[Any]


@typeof_impl.register(StructType)
def _typeof_struct(value: StructType, _context: object) -> types.Type:
    return types.NamedTupleClass(record_class(tuple(value.fields)))


class Struct(metaclass=StructType):
    """A record on the host: a field for each argument, in order, by name, or in one dict."""

    fields: dict[str, np.dtype[Any]] = {}  # each class has its own, and none changes it
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
        for name, dtype in self.fields.items():
            setattr(self, name, dtype.type(given[name]))
        self._data = np.array(self.as_tuple(), dtype=self.dtype)
        self.__array_interface__ = self._data.__array_interface__

    def as_tuple(self) -> tuple[Any, ...]:
        """The values of the fields."""
        return tuple(getattr(self, name) for name in self.fields)


def gpu_struct(field_dict: Any, name: str = "AnonymousStruct") -> StructType:
    """A class of records with the fields of *field_dict*: a dict of names and types, a record dtype, or a class with
    annotations.

    Its ``dtype`` is that of arrays of them. Raises `AlgorithmError` for fields that are no numbers: records in records
    are not taken.
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
    dtypes = {key: _number_dtype(key, value) for key, value in fields.items()}
    dtype = np.dtype(list(dtypes.items()), align=True)
    return StructType(name, (Struct,), {"fields": dtypes, "dtype": dtype})


def _number_dtype(name: str, value: Any) -> np.dtype[Any]:
    if isinstance(value, (StructType, dict)) or (isinstance(value, np.dtype) and value.names is not None):
        raise AlgorithmError(f"the field {name!r} is a record; give its fields to the outer one, as {name}_x and so on")
    found: np.dtype[Any] = np.dtype(value)
    return found
