"""Assembly of AMD GPUs in kernels, with a body in Python for all else: ``hip.asm``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import Signature

from numba_hip import config
from numba_hip._numba.typing import normalize_signature
from numba_hip.dispatch.function_checks import check_function
from numba_hip.errors import AssemblyError, without_own_frames
from numba_hip.extending import intrinsic

Text = str | Mapping[str, str]

_OPERANDS = (types.Integer, types.Float)
_LEAST_BITS = 16


@without_own_frames
def asm(
    signature: str | Signature, text: Text, constraints: str, *, side_effects: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """A function of kernels that is assembly on AMD GPUs, and the decorated Python function everywhere else: on the CPU
    device, and in the simulator.

    *signature* has the types of the parameters and of the result: integers and floats of 16, 32 and 64 bits, as result
    also ``void`` or a tuple of them. *text* is one instruction or more, a line each; ``$0``, ``$1``, ... are the
    results and then the parameters, and *constraints* says where each is, in LLVM's words: ``"=v,v,s"`` for a result
    and a parameter in vector registers and one in scalar registers; ``~{memory}`` and the like for what else changes.
    A mapping has texts by the beginning of the target's name, the longest of which counts:
    ``{"gfx9": ..., "gfx11": ...}``; a target that it lacks gets the Python function. With *side_effects* calls are kept
    whose result is not used, and those with the same arguments are not merged.

    Raises `AssemblyError` for arguments that do not fit. What the assembler or LLVM refuses is an error when a kernel
    is compiled. Machine code needs an assembler: that of ROCm, or ``pip install ziglang``.
    """
    parameters, result = _types_of(signature)
    _check_text(text, constraints)

    def decorate(function: Callable[..., Any]) -> Any:
        check_function(function, device=True, launched=False)
        declared = list(inspect.signature(function).parameters.values())
        if len(declared) != len(parameters):
            raise AssemblyError(
                f"signature has {len(parameters)} parameters, {function.__name__} {len(declared)}: they are the same"
            )
        if config.simulator():
            return function
        return _define(function, declared, parameters, result, (text, constraints, side_effects))

    return decorate


def _types_of(signature: Any) -> tuple[tuple[types.Type, ...], types.Type]:
    parameters, result = normalize_signature(signature)
    if result is None:
        raise AssemblyError(f"signature is {signature!r}; it has a result, too: 'int32(int32, int32)' or 'void(int32)'")
    results = tuple(result) if isinstance(result, types.BaseTuple) else () if result is types.void else (result,)
    for kind in (*parameters, *results):
        if not isinstance(kind, _OPERANDS) or kind.bitwidth < _LEAST_BITS:
            raise AssemblyError(
                f"signature has {kind}; assembly takes and gives integers and floats of 16, 32 and 64 bits"
            )
    return parameters, result


def _check_text(text: Any, constraints: Any) -> None:
    texts = text.values() if isinstance(text, Mapping) else [text]
    if not all(isinstance(one, str) for one in texts):
        raise AssemblyError(f"text is {text!r}; pass assembly, or a mapping from beginnings of targets to assembly")
    if not isinstance(constraints, str):
        raise AssemblyError(f"constraints is {constraints!r}; pass LLVM's constraints, such as '=v,v'")


def _define(
    function: Callable[..., Any],
    declared: list[inspect.Parameter],
    parameters: tuple[types.Type, ...],
    result: types.Type,
    written: tuple[Text, str, bool],
) -> Any:
    """The function of kernels that is called as *function* is."""
    text, constraints, side_effects = written
    known = result(*parameters)
    name = function.__name__

    called = inspect.Signature(declared)

    def define(typing_context: Any, *given: types.Type, **named: types.Type) -> tuple[Signature, Any]:
        try:
            kinds = called.bind(*given, **named).args
        except TypeError as error:
            raise TypingError(f"{name}: {error}") from None
        if len(kinds) != len(parameters):
            raise TypingError(f"{name} takes {len(parameters)} arguments; this call passes {len(kinds)}")
        for parameter, kind, wanted in zip(declared, kinds, parameters, strict=True):
            if typing_context.can_convert(types.unliteral(kind), wanted) is None:
                raise TypingError(f"{name}: {parameter.name} is {kind}; this assembly takes {wanted}")

        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            chosen = context.choose_assembly(text)
            if chosen is None:
                return context.compile_internal(builder, function, known, args)
            return _lower(context, builder, known, args, (chosen, constraints, side_effects))

        return known, lower

    define.__name__, define.__doc__, define.__module__ = name, function.__doc__, function.__module__
    define.__qualname__ = function.__qualname__
    define.made_from = function, known, text, constraints, side_effects  # type: ignore[attr-defined]  # for the cache
    first = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    define.__signature__ = called.replace(parameters=[first, *declared])  # type: ignore[attr-defined]  # for Numba
    return intrinsic(define)


def _lower(context: Any, builder: ir.IRBuilder, known: Any, args: Any, written: tuple[str, str, bool]) -> ir.Value:
    text, constraints, side_effects = written
    result = known.return_type
    several = isinstance(result, types.BaseTuple)
    if several:
        returned = ir.LiteralStructType([context.get_value_type(kind) for kind in result])
    else:
        returned = ir.VoidType() if result is types.void else context.get_value_type(result)
    kind = ir.FunctionType(returned, [context.get_value_type(one) for one in known.args])
    call = builder.asm(kind, text, constraints, args, side_effects)
    call.attributes.add("convergent")  # it may exchange values between lanes
    if several:
        return context.make_tuple(builder, result, [builder.extract_value(call, place) for place in range(len(result))])
    return context.get_dummy_value() if result is types.void else call
