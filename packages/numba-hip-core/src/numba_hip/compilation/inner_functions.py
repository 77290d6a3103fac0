"""Calls of functions inside a kernel, in whose place Numba puts the statements of the function.

It takes arguments by their places alone: it ignores keywords and arguments that are too many, takes a default for the
first parameter that has one, and gives ``*rest`` the first argument. So calls are written out for it here, or refused.
Where such a function is passed to another one, it is compiled as a function, which is right.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import CodeType
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip._numba.compiler import only_definition_of
from numba_hip._numba.inlining import InlineClosureLikes, inline_inner_functions, inner_calls
from numba_hip.errors import UnsupportedSyntaxError

_TAKES_REST = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineInnerFunctions(FunctionPass):
    """Numba's pass that inlines them, with calls as Python has them."""

    _name = "hip_inline_inner_functions"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Raise `UnsupportedSyntaxError` at the line of a function that cannot be inlined, `TypingError` at that of a
        call that it does not take."""
        inline_inner_functions(state, _write_out)
        return True


def inlines(made: Any) -> bool:
    """Whether the pass *made* is the one of Numba's that `InlineInnerFunctions` stands for."""
    return made is InlineClosureLikes


def _write_out(function: Any, call: ir.Expr, made: ir.Expr) -> None:
    """Give *call*, in *function*, of what is *made* there, an argument for each parameter, in their order."""
    code = _code_of(made)
    if code.co_flags & _TAKES_REST:
        raise UnsupportedSyntaxError(
            "a function inside a kernel that is called takes neither *args nor **kwargs: name its parameters, or write "
            f"it outside, with @{our('jit')}(device=True)",
            loc=made.loc,
        )
    if call.op != "call" or getattr(call, "vararg", None) is not None:
        return  # which has an error of Numba's
    call.args = _arguments(function, call, code, _defaults(function, made))
    call.kws = ()
    _check_within(function, code)


def _check_within(outermost: Any, code: CodeType) -> None:
    """Raise `UnsupportedSyntaxError` for a call in the function with this *code*, of one that is defined there, which
    Numba would give other arguments than Python."""
    if not any(isinstance(constant, CodeType) for constant in code.co_consts):
        return
    for function, call, made in inner_calls(outermost, code):
        inner, defaults = _code_of(made), _defaults(function, made)
        taken = [one.name for one in (*call.args, *defaults)]
        wanted = [one.name for one in _arguments(function, call, inner, defaults)]
        if call.kws or inner.co_flags & _TAKES_REST or taken[: len(wanted)] != wanted:
            raise UnsupportedSyntaxError(
                f"{inner.co_name}, a function inside of {code.co_name}, which is inside a kernel itself, is called "
                "with keywords or without some of several defaults: pass all arguments by position, or write it "
                f"outside, with @{our('jit')}(device=True)",
                loc=call.loc,
            )
        _check_within(outermost, inner)


def _arguments(function: Any, call: ir.Expr, code: CodeType, defaults: Sequence[ir.Var]) -> list[ir.Var]:
    """The arguments of *call* for the parameters in *code*; the last that are passed by position may have
    *defaults*."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    problem = ""
    given = dict(zip(names, call.args[: code.co_argcount], strict=False))
    if len(call.args) > code.co_argcount:
        problem = f"takes {code.co_argcount} by position, and gets {len(call.args)}"
    for name, value in call.kws:
        if name not in names[code.co_posonlyargcount :]:
            problem = problem or f"has no parameter {name!r} to name"
        elif name in given:
            problem = problem or f"gets {name!r} twice"
        given[name] = value
    by_position = names[: code.co_argcount]
    usual = dict(zip(by_position[len(by_position) - len(defaults) :], defaults, strict=True))
    missing = [name for name in names if name not in given and name not in usual]
    if missing and not problem:
        problem = f"gets nothing for {', '.join(map(repr, missing))}"
    if problem:
        raise TypingError(f"the function {code.co_name}({', '.join(names)}) inside {problem}", loc=call.loc)
    for name in set(names) - set(given):
        if only_definition_of(function, usual[name]) is None:
            raise UnsupportedSyntaxError(
                f"the default of {name!r} in {code.co_name} inside is a variable that is assigned several times: pass "
                "the argument in each call",
                loc=call.loc,
            )
    return [given[name] if name in given else usual[name] for name in names]


def _code_of(made: ir.Expr) -> CodeType:
    code: CodeType = getattr(made.code, "value", made.code)
    return code


def _defaults(function: Any, made: ir.Expr) -> Sequence[ir.Var]:
    """The variables with the defaults of what is *made*."""
    if not made.defaults:
        return ()
    if isinstance(made.defaults, tuple):
        return made.defaults
    values: Sequence[ir.Var] = function.get_definition(made.defaults).items
    return values
