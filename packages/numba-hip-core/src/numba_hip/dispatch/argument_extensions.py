"""Argument extensions: objects that see each argument of a launch, and may replace it.

An extension has a method ``prepare_args(ty, val, stream, retr)``, as in Numba CUDA: *ty* is the Numba type of the
argument (``None`` where it has none), *val* the argument, *stream* that of the launch (0 is the default one), *retr* a
list of functions without arguments to call once the kernel was launched and host arrays were copied back. It returns
the type and the value to go on with. The last extension of a kernel comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from numba.core import types
from numba.core.errors import NumbaError

from numba_hip.bfloat import know_ml_dtypes
from numba_hip.errors import KernelArgumentError
from numba_hip.typeof import typeof


class ArgumentExtension(Protocol):
    """What stands in ``extensions`` of a kernel."""

    def prepare_args(
        self, ty: types.Type | None, val: Any, *, stream: Any, retr: list[Callable[[], object]]
    ) -> tuple[types.Type | None, Any]:
        """The type and the value to pass instead of *val* of type *ty*, or both as they are."""


class StandIn(NamedTuple):
    """An argument that is passed as another type than the kernel's parameter has; both consist of the same numbers."""

    compiled_for: types.Type
    packed_as: types.Type


class Prepared(NamedTuple):
    """The arguments of a launch as the extensions left them."""

    values: list[Any]
    stand_ins: dict[int, StandIn]
    """By their places among the arguments."""
    finishers: list[Callable[[], object]]
    """What the extensions want called when the launch was made."""


def prepare(
    extensions: Sequence[ArgumentExtension], args: Sequence[Any], names: Sequence[str], stream: Any
) -> Prepared:
    """Apply *extensions* to *args*. Raises `KernelArgumentError` if one returns something other than a type and a
    value."""
    prepared = Prepared([], {}, [])
    for place, (value, name) in enumerate(zip(args, names, strict=True)):
        given = kind = _type_of(value) if extensions else None
        for extension in reversed(extensions):
            answer = extension.prepare_args(kind, value, stream=stream or 0, retr=prepared.finishers)
            if not _is_answer(answer):
                raise KernelArgumentError(
                    f"argument {name!r}: prepare_args of {type(extension).__name__} has to return a Numba type and a "
                    f"value, got {answer!r}"
                )
            kind, value = answer
        prepared.values.append(value)
        if kind is not None and kind != given:
            prepared.stand_ins[place] = StandIn(kind if given is None else given, kind)
    return prepared


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], (types.Type, type(None)))


def _type_of(value: Any) -> types.Type | None:
    know_ml_dtypes()
    try:
        return typeof(value)
    except (ValueError, TypeError, NumbaError):
        return None
