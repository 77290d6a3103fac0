"""``np.datetime64(...)`` and ``np.timedelta64(...)`` in kernels, of what is known when a kernel is compiled.

Numba types both as constructors of numbers, which take no text, and so neither a date nor a unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature

from numba_hip._numba.typing import from_dtype
from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import given, number_type

_KINDS: dict[type[types.Type], type[np.generic]] = {
    types.NPDatetime: np.datetime64,
    types.NPTimedelta: np.timedelta64,
}


@typing.register_attr
class _Constructors(AttributeTemplate):
    key = types.NumberClass

    def resolve___call__(self, kind: Any) -> types.Type | None:
        """Numba's hook: what the class is called as."""
        made = _KINDS.get(type(kind.instance_type))
        return None if made is None else _FUNCTIONS[made]


def _constant(made: type[np.generic], args: Sequence[types.Type]) -> Any:
    """The value of a call of *made* with literals; ``None`` where it counts a number that is known at run time only.
    Raises `TypingError` for what neither is."""
    name, values = f"np.{made.__name__}", [given(kind) for kind in args]
    if args and isinstance(number_type(args[0]), types.Integer):
        if len(values) != 2 or not isinstance(values[1], str):
            raise TypingError(f"{name}(number, unit) takes a unit, as text in quotes: 's' are seconds")
        return _as_numpy(made, name, 0 if values[0] is None else values[0], values[1]), values[0] is not None
    if made is np.datetime64 and values and all(isinstance(value, str) for value in values):
        return _as_numpy(made, name, *values), True
    example = "np.datetime64('2020-01-01')" if made is np.datetime64 else "np.timedelta64(5, 's')"
    shown = ", ".join(map(str, args))
    raise TypingError(f"{name} takes text in quotes and whole numbers, as in {example}; this call passes ({shown})")


def _as_numpy(made: Any, name: str, *values: Any) -> Any:
    try:
        value = made(*values)
    except (TypeError, ValueError) as error:
        raise TypingError(f"{name}({', '.join(map(repr, values))}): {error}") from None
    if np.datetime_data(value.dtype)[1] != 1:
        raise TypingError(
            f"{name}({', '.join(map(repr, values))}) counts in steps of several units, and kernels in one"
        )
    return value


def _define(made: type[np.generic]) -> types.Function:
    class Template(AbstractTemplate):
        key = made
        prefer_literal = True

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            if kws:
                raise TypingError(f"np.{made.__name__} takes arguments by position, not {', '.join(kws)}=")
            value, _ = _constant(made, args)
            return signature(from_dtype(value.dtype), *args)

    return types.Function(Template)


@lowering.lower(types.NumberClass, types.StringLiteral)
@lowering.lower(types.NumberClass, types.StringLiteral, types.StringLiteral)
@lowering.lower(types.NumberClass, types.Integer, types.StringLiteral)
@lowering.lower(types.NumberClass, types.IntegerLiteral, types.StringLiteral)
def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]) -> ir.Value:
    value, is_known = _constant(_KINDS[type(sig.return_type)], sig.args)
    if is_known:
        return context.get_constant(types.int64, int(value.view(np.int64)))
    return context.cast(builder, args[0], sig.args[0], types.int64)


_FUNCTIONS = {made: _define(made) for made in _KINDS.values()}
