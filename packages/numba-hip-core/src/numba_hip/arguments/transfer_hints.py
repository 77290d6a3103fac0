"""Hints on how a kernel uses a host array: `In`, `Out` and `InOut` around an argument of a launch."""

from __future__ import annotations

from typing import Any

from numba import typeof


class ArgHint:
    """An argument of a launch, and the direction in which its contents are copied. Use `In`, `Out` or `InOut`.

    ``value`` is a host array, a record, or a tuple of these; data on the device is passed as it is.
    """

    __slots__ = ("value",)

    copies_in = True
    copies_out = True

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    @property
    def _numba_type_(self) -> Any:
        return typeof(self.value)


class In(ArgHint):
    """The kernel reads the array: it is copied to the device, and not back."""

    __slots__ = ()
    copies_out = False


class Out(ArgHint):
    """The kernel writes the whole array: it is copied back, but its old contents are not copied to the device."""

    __slots__ = ()
    copies_in = False


class InOut(ArgHint):
    """The kernel reads and writes the array: it is copied to the device and back, as it is without a hint."""

    __slots__ = ()


def wrap_arg(value: Any, default: type[ArgHint] = InOut) -> ArgHint:
    """*value* with a hint: its own if it has one, otherwise *default*."""
    return value if isinstance(value, ArgHint) else default(value)
