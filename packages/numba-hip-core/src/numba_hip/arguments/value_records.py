"""Objects that are passed by value: instances of dataclasses and of jitclasses, as named tuples of their fields."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import fields
from typing import Any

from numba.core import types
from numba.extending import typeof_impl

from hip_runtime import is_device_array
from hip_runtime.interop import speaks_dlpack
from numba_hip._numba.typing import Purpose, as_dtype
from numba_hip.arguments.transfer_hints import ArgHint
from numba_hip.arguments.tuple_members import with_members
from numba_hip.typeof import own_type

_classes: dict[Any, type[Any]] = {}
"""The named tuples that stand for classes: by the class, or by Numba's type of its instances."""


def as_plain(value: Any) -> Any:
    """*value*, where an instance of a dataclass or jitclass is a named tuple of its fields, also within tuples and
    other such instances."""
    if isinstance(value, ArgHint):
        plain = as_plain(value.value)
        return value if plain is value.value else type(value)(plain)
    if isinstance(value, tuple):
        return with_members(value, as_plain)
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return _of_dataclass(value) if _is_ours(value) else value
    instance = getattr(kind, "_numba_type_", None)
    return _of_jitclass(value, instance) if isinstance(instance, types.ClassInstanceType) else value


def _is_ours(value: Any) -> bool:
    """Whether nobody else says what kernels take *value* as: a library that registered its type, or an array."""
    if typeof_impl.dispatch(type(value)) is not typeof_impl.dispatch(object):
        return False
    return own_type(value, Purpose.argument) is None and not is_device_array(value) and not speaks_dlpack(value)


def _of_dataclass(value: Any) -> Any:
    kind = type(value)
    names = [field.name for field in fields(kind)]
    return _class_for(kind, kind.__name__, names)(*(as_plain(getattr(value, name)) for name in names))


def _of_jitclass(value: Any, instance: types.ClassInstanceType) -> Any:
    struct = instance.struct
    made = _class_for(instance, instance.classname, list(struct))
    return made(*(_of_type(as_plain(getattr(value, name)), kind) for name, kind in struct.items()))


def _of_type(value: Any, kind: types.Type) -> Any:
    """A number with the type of its field, which reading it from the host loses."""
    return as_dtype(kind).type(value) if isinstance(kind, (types.Integer, types.Float, types.Complex)) else value


def _class_for(key: Any, name: str, names: list[str]) -> type[Any]:
    made = _classes.get(key)
    if made is None:
        # renamed, as it refuses names that begin with an underscore
        tuples = (namedtuple(name, names, rename=True),)
        made = _classes[key] = type(name, tuples, {"__slots__": (), "_fields": tuple(names)})
    return made
