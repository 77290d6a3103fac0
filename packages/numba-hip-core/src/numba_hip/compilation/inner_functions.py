"""Functions inside a kernel that take the rest of their arguments, ``def f(*rest)``.

Where one is called by its name Numba puts its statements in place of the call, and gives *rest* the first argument
alone: ``len(rest)`` is its length. Where it is passed to another function, it is compiled as one, which is right.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass

from hip_runtime.said_names import our
from numba_hip._numba.compiler import only_definition_of
from numba_hip.errors import UnsupportedSyntaxError

_TAKES_REST = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@register_pass(mutates_CFG=False, analysis_only=True)
class RefuseInnerRest(FunctionPass):
    """The pass that rejects calls of such functions, before they are inlined."""

    _name = "hip_refuse_inner_rest"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Raise `UnsupportedSyntaxError` at the line of the function."""
        if not any(isinstance(one, CodeType) and _takes_rest(one) for one in state.func_id.code.co_consts):
            return False
        for block in state.func_ir.blocks.values():
            for call in block.find_exprs("call"):
                called = only_definition_of(state.func_ir, call.func)
                if isinstance(called, ir.Expr) and called.op == "make_function" and _takes_rest(_code_of(called)):
                    raise UnsupportedSyntaxError(
                        "a function inside a kernel that is called takes neither *args nor **kwargs: name its "
                        f"parameters, or write it outside, with @{our('jit')}(device=True)",
                        loc=called.loc,
                    )
        return False


def _code_of(made: ir.Expr) -> CodeType:
    code: CodeType = getattr(made.code, "value", made.code)
    return code


def _takes_rest(code: CodeType) -> bool:
    return bool(code.co_flags & _TAKES_REST)
