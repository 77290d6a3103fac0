"""Stand-ins for Numba CUDA's classes, under their names: `isinstance` accepts our objects as their instances."""

from __future__ import annotations

from typing import ClassVar


class Standin(type):
    """The metaclass of stand-ins: objects of the classes in ``stands_for`` count as instances, but it cannot be
    instantiated.

    Subclasses of the classes in ``stands_for`` count as subclasses. Attributes that the stand-in does not define come
    from the first of them.
    """

    stands_for: ClassVar[tuple[type, ...]]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.stands_for)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return any(issubclass(subclass, kind) for kind in cls.stands_for)

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(cls.stands_for[0], name)
