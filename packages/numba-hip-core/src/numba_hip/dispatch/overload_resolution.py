"""Overload resolution: which of a kernel's signatures the arguments of a launch select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types

from numba_hip import config
from numba_hip._numba.typing import Conversion
from numba_hip.compilation.target_registry import compile_target
from numba_hip.dispatch.narrowing import is_narrowed, warn_of_narrowing
from numba_hip.errors import KernelArgumentError

Types = tuple[types.Type, ...]


def choose_overload(
    kernel: Callable[..., Any], names: Sequence[str], overloads: Sequence[Types], given: Types, target: str
) -> Types:
    """The one of *overloads* that the types *given*, of the arguments *names*, convert to with the least loss.

    Raises `KernelArgumentError` where there is none, or where two are equally good. Where numbers are truncated, the
    only signature takes arrays of wider integers, too, with a warning: see `is_narrowed`.
    """
    ratings = {overload: _rate(given, overload, target) for overload in overloads}
    possible = {overload: rating for overload, rating in ratings.items() if rating is not None}
    shown = "; ".join(", ".join(map(str, overload)) for overload in overloads)
    passed = ", ".join(map(str, given))
    if not possible:
        narrowed = _narrow(given, overloads[0], target) if len(overloads) == 1 and config.truncate_arguments() else None
        if narrowed is not None:
            warn_of_narrowing(kernel.__name__, names, given, narrowed)
            return narrowed
        from numba_hip.dispatch.argument_mismatch import explain_mismatch

        raise KernelArgumentError(
            f"No matching definition: kernel {kernel.__name__} was compiled for ({shown}) only; the launch passes "
            f"({passed})" + explain_mismatch(names, given, overloads)
        )
    best = min(possible.values())
    chosen = [overload for overload, rating in possible.items() if rating == best]
    if len(chosen) > 1:
        equal = "\n".join(f"{overload!r} -> none" for overload in chosen)
        raise KernelArgumentError(f"Ambiguous overloading for {kernel!r} {given!r}:\n{equal}")  # Numba's words
    return chosen[0]


def _narrow(given: Types, overload: Types, target: str) -> Types | None:
    """*overload* where each of the types *given* converts to its own, or is narrowed to it; ``None`` where one does
    neither."""
    if len(given) != len(overload):
        return None
    taken = tuple(
        formal if is_narrowed(actual, formal) else actual for actual, formal in zip(given, overload, strict=True)
    )
    return overload if _rate(taken, overload, target) is not None else None


def _rate(given: Types, overload: Types, target: str) -> tuple[int, int, int] | None:
    """How many arguments lose information, are converted without loss, or are promoted; ``None`` if one cannot be."""
    if len(given) != len(overload):
        return None
    context = compile_target(target).typing_context
    conversions = [_convert(context, actual, formal) for actual, formal in zip(given, overload, strict=True)]
    if None in conversions:
        return None
    return tuple(conversions.count(kind) for kind in (Conversion.unsafe, Conversion.safe, Conversion.promote))  # type: ignore[return-value]


def _convert(context: Any, actual: types.Type, formal: types.Type) -> Conversion | None:
    if _is_address(actual, formal):
        return Conversion.safe
    if isinstance(actual, types.Array) and isinstance(formal, types.Array) and actual.ndim == 1:
        dense = actual.layout in "CF" and formal.layout in "CF"  # which are the same along a single axis
        actual = actual.copy(layout=formal.layout) if dense else actual
    return context.can_convert(actual, formal)


def _is_address(actual: types.Type, formal: types.Type) -> bool:
    """Whether a number is passed for a pointer: the address of memory of the device."""
    return isinstance(formal, types.CPointer) and isinstance(actual, types.Integer)
