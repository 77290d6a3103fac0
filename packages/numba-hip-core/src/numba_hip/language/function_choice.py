"""Functions that are chosen while a kernel runs: ``f = double if x > 0 else add_two``, and ``functions[number]``.

A GPU has no cheap calls by address, and the functions are known when the kernel is compiled: a variable that may be any
of several holds the number of one, and a call is a branch to a call of each.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import models, register_model

from numba_hip._numba.typing import type_code
from numba_hip.language.registry import lowering, typing

_CALL = "hip.function_choice"
_NUMBER = ir.IntType(32)


class FunctionChoice(types.Callable, types.Opaque):
    """The type of a variable that is one of the functions *members*, in the order of their types' codes."""

    def __init__(self, members: Iterable[types.Type]) -> None:
        self.members = tuple(sorted(set(members), key=type_code))
        super().__init__(f"one of ({', '.join(map(str, self.members))})")

    @property
    def key(self) -> tuple[types.Type, ...]:
        """Numba's hook: what makes two such types equal."""
        return self.members

    def get_call_type(self, context: Any, args: Sequence[types.Type], kws: dict[str, types.Type]) -> Any:
        """Numba's hook: the signature of a call, whose result is of a type that the results of all members become."""
        if kws:
            names = ", ".join(f"{name}=" for name in kws)
            raise TypingError(f"{self._said} is called with arguments by position, not with {names}")
        given = tuple(map(types.unliteral, args))
        results = [one.return_type for one in self.signatures(context, given)]
        result = context.unify_types(*results)
        if result is None or result == types.pyobject:
            pairs = zip(self.members, results, strict=True)
            said = ", ".join(f"{_name_of(member)} gives {kind}" for member, kind in pairs)
            raise TypingError(f"{self._said} is called, and {said}: let all give results of one type")
        return signature(result, *given, recvr=self)

    @property
    def _said(self) -> str:
        """What it is called in messages."""
        return f"one of {', '.join(map(_name_of, self.members))}"

    def signatures(self, context: Any, args: tuple[types.Type, ...]) -> list[Any]:
        """The signature with which each member is called with *args*."""
        found = []
        for member in self.members:
            one = member.get_call_type(context, args, {})
            if one is None:
                shown = ", ".join(map(str, args))
                raise TypingError(f"{self._said} is called, and {_name_of(member)} does not take ({shown})")
            if len(one.args) != len(args) or any(isinstance(kind, types.StarArgTuple) for kind in one.args):
                raise TypingError(
                    f"{self._said} is called with ({', '.join(map(str, args))}), and {_name_of(member)} has other "
                    "parameters: pass a value for each, also for one with a default, or call it in a branch of its own"
                )
            found.append(one)
        return found

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba's hook: there is no list of them."""
        return [], False

    def get_impl_key(self, sig: Any) -> str:
        """Numba's hook: under what the lowering of a call is entered."""
        del sig
        return _CALL


@register_model(FunctionChoice)
class _NumberModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: FunctionChoice) -> None:
        super().__init__(manager, kind, _NUMBER)


def unify_functions(first: types.Type, second: types.Type) -> FunctionChoice | None:
    """The type of a variable that is *first* on one path and *second* on another, if both are functions."""
    if not (_is_function(first) and _is_function(second)):
        return None
    return FunctionChoice((*_members(first), *_members(second)))


def _is_function(kind: types.Type) -> bool:
    return isinstance(kind, (types.Dispatcher, types.Function, FunctionChoice))


def _name_of(function: types.Type) -> str:
    """The name of a function of the type *function*, as the program has it."""
    if isinstance(function, types.Dispatcher):
        return str(function.dispatcher.py_func.__name__)
    return str(getattr(function.typing_key, "__name__", function))


def _members(kind: types.Type) -> tuple[types.Type, ...]:
    return kind.members if isinstance(kind, FunctionChoice) else (kind,)


@lowering.lower_cast(types.Dispatcher, FunctionChoice)
@lowering.lower_cast(types.Function, FunctionChoice)
def _choose(context: Any, builder: ir.IRBuilder, source: types.Type, target: FunctionChoice, value: Any) -> ir.Value:
    return ir.Constant(_NUMBER, target.members.index(source))


@lowering.lower_cast(FunctionChoice, FunctionChoice)
def _choose_from_more(
    context: Any, builder: ir.IRBuilder, source: FunctionChoice, target: FunctionChoice, value: ir.Value
) -> ir.Value:
    return _number_in(builder, value, source.members, target)


def _number_in(builder: ir.IRBuilder, place: ir.Value, members: Sequence[types.Type], target: FunctionChoice) -> Any:
    """The number in *target* of what is at *place* among *members*."""
    found: Any = ir.Constant(_NUMBER, target.members.index(members[-1]))
    for number, member in enumerate(members[:-1]):
        is_it = builder.icmp_unsigned("==", place, ir.Constant(place.type, number))
        found = builder.select(is_it, ir.Constant(_NUMBER, target.members.index(member)), found)
    return found


@lowering.lower(_CALL, FunctionChoice, types.VarArg(types.Any))
def _call(context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]) -> ir.Value:
    choice, *kinds = sig.args
    number, *values = args
    behind = builder.append_basic_block("chosen")
    blocks = [builder.append_basic_block(f"choice.{place}") for place in range(len(choice.members))]
    switch = builder.switch(number, blocks[-1])
    results = []
    signatures = choice.signatures(context.typing_context, tuple(kinds))
    for place, (member, one, block) in enumerate(zip(choice.members, signatures, blocks, strict=True)):
        if block is not blocks[-1]:
            switch.add_case(ir.Constant(_NUMBER, place), block)
        builder.position_at_end(block)
        passed = [
            context.cast(builder, value, kind, wanted)
            for value, kind, wanted in zip(values, kinds, one.args, strict=True)
        ]
        result = context.get_function(member, one)(builder, passed)
        results.append((context.cast(builder, result, one.return_type, sig.return_type), builder.block))
        builder.branch(behind)
    builder.position_at_end(behind)
    joined = builder.phi(results[0][0].type)
    for value, block in results:
        joined.add_incoming(value, block)
    return joined


@typing.register_global(operator.getitem)
class _FunctionOfTuple(AbstractTemplate):
    """``functions[number]`` of a tuple of several functions, with a number that is known at run time only."""

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        members, index = args
        if not isinstance(members, types.Tuple) or not isinstance(index, types.Integer) or len(members) < 2:
            return None
        if not all(map(_is_function, members)):
            return None
        return signature(FunctionChoice(one for kind in members for one in _members(kind)), members, types.intp)


@lowering.lower(operator.getitem, types.Tuple, types.Integer)
def _take_function(context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]) -> ir.Value:
    members, place = sig.args[0], args[1]
    count = ir.Constant(place.type, len(members))
    negative = builder.icmp_signed("<", place, ir.Constant(place.type, 0))
    place = builder.select(negative, builder.add(place, count), place)
    with builder.if_then(builder.icmp_unsigned(">=", place, count), likely=False):
        context.call_conv.return_user_exc(builder, IndexError, ("tuple index out of range",))
    return _number_in(builder, place, tuple(members), sig.return_type)
