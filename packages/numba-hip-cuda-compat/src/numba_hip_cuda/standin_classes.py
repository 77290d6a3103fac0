"""Stand-ins for classes of Numba CUDA, under their names: for `isinstance`, objects of ours are instances of them."""

from __future__ import annotations

from typing import ClassVar


class Standin(type):
    """Makes a class of which all objects of the classes in its ``stands_for`` are instances, but none is made of it.

    A class below it is one in its ``stands_for``, too. Attributes that it does not define are those of the first.
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
