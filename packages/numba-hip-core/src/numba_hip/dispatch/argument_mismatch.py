"""Messages about arrays that a kernel cannot take, and what to pass instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numba.core import types
from numba.core.errors import TypingError

from numba_hip import config
from numba_hip.dispatch.narrowing import is_narrowed
from numba_hip.plain_messages import plain_text

Types = tuple[types.Type, ...]

WRITES = ("Cannot modify readonly array", "the array is read-only")
"""What Numba and our own functions say of code that writes to an array which is read-only."""


def explain_mismatch(names: Sequence[str], given: Types, overloads: Sequence[Types]) -> str:
    """The end of a message about arguments of types *given*, which none of *overloads* accepts: what to do, if that is
    known."""
    fixed = _read_only(names, given)
    if fixed:
        return f". A signature takes no read-only arrays, as the kernel may write to them: {_remedy(fixed)}"
    if len(overloads) > 1 or len(given) != len(overloads[0]):
        return ""
    for name, actual, formal in zip(names, given, overloads[0], strict=True):
        if _differ(actual, formal) and not (config.truncate_arguments() and is_narrowed(actual, formal)):
            return f". Argument {name!r} has elements of type {actual.dtype}: convert it to {formal.dtype} first"
    return ""


def explain_arguments(error: TypingError, kernel: str, names: Sequence[str], given: Types) -> None:
    """If *kernel*, compiled for types *given*, writes to a read-only array, or does with None what nothing does, say so
    at the start of *error*."""
    fixed = _read_only(names, given)
    text = plain_text(error)
    if fixed and any(said in text for said in WRITES):
        error.patch_message(f"kernel {kernel} writes to an array that is read-only: {_remedy(fixed)}\n{text}")
        return
    absent = [part for name, kind in zip(names, given, strict=False) for part in _absent(name, kind)]
    if absent and "none" in text:
        shown = " and ".join(map(repr, absent))
        error.patch_message(
            f"argument {shown} of kernel {kernel} {'is' if len(absent) == 1 else 'are'} None: ask whether "
            f"'{absent[0]} is not None' before it is used, or pass a number or an array\n{text}"
        )


def _absent(name: str, kind: types.Type) -> Iterator[str]:
    """What is None of an argument with this *name*: itself, or members of a tuple."""
    if isinstance(kind, types.BaseTuple):
        for place, member in enumerate(kind):
            yield from _absent(f"{name}[{place}]", member)
    elif kind == types.none:
        yield name


def _differ(actual: types.Type, formal: types.Type) -> bool:
    """Whether both are arrays whose elements have different types."""
    arrays = isinstance(actual, types.Array) and isinstance(formal, types.Array)
    return arrays and actual.ndim == formal.ndim and actual.dtype != formal.dtype


def _read_only(names: Sequence[str], given: Types) -> list[str]:
    """The names of arguments that are read-only arrays."""
    return [
        name for name, kind in zip(names, given, strict=False) if isinstance(kind, types.Array) and not kind.mutable
    ]


def _remedy(fixed: Sequence[str]) -> str:
    shown = " and ".join(map(repr, fixed))
    are, those = ("is one", fixed[0]) if len(fixed) == 1 else ("are such", "array")
    return (
        f"{shown} {are}, as columns of pandas and arrays of Arrow and JAX are; pass {those}.copy(), which the kernel "
        f"can write to (of JAX as_device_array({those}).copy()), or In({those}), for a copy whose changes are dropped"
    )
