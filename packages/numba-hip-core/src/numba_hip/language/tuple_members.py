"""``in`` for tuples, whose members may have several types: each is compared, and no thread branches.

Numba loops over a tuple whose members have one type, and so chooses one of its members in each step, by a ``switch``.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, Signature, signature

from numba_hip.language.registry import lowering, typing


def _compare(context: Any, equals: types.Callable, member: types.Type, value: types.Type) -> Signature | None:
    """The signature of ``member == value``, of the type of *equals*, if that has one truth value; ``None`` can be
    compared with ``is`` alone."""
    if isinstance(member, types.NoneType):
        return None
    try:
        found: Signature = equals.get_call_type(context, (member, value), {})
    except TypingError:
        return None
    return found if isinstance(found.return_type, types.Boolean) else None


@typing.register_global(operator.contains)
class _In(AbstractTemplate):
    key = operator.contains
    metadata = {"target": "hip"}  # Numba asks what is for a target before what is for all

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        members, value = args
        if kws or not isinstance(members, types.BaseTuple) or not len(members):
            return None
        equals = self.context.resolve_value_type(operator.eq)
        if not all(_compare(self.context, equals, member, value) for member in members):
            return None
        return signature(types.boolean, members, value)


@lowering.lower(operator.contains, types.UniTuple, types.Any)
@lowering.lower(operator.contains, types.NamedUniTuple, types.Any)
@lowering.lower(operator.contains, types.Tuple, types.Any)
@lowering.lower(operator.contains, types.NamedTuple, types.Any)
def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    members, value = sig.args
    equals = context.typing_context.resolve_value_type(operator.eq)
    found = []
    for place, member in enumerate(members):
        compared = _compare(context.typing_context, equals, member, value)
        assert compared is not None  # or it would have no type
        operands = builder.extract_value(args[0], place), args[1]
        converted = (
            context.cast(builder, operand, given, wanted)
            for operand, given, wanted in zip(operands, (member, value), compared.args, strict=True)
        )
        found.append(context.get_function(equals, compared)(builder, tuple(converted)))
    return reduce(builder.or_, found)
