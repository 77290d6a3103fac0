"""Numba's inliner of functions that are defined inside of another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from numba.core import compiler, ir, postproc, types
from numba.core.inline_closurecall import InlineClosureCallPass
from numba.core.ir_utils import _create_function_from_code_obj, get_definition, guard
from numba.core.untyped_passes import InlineClosureLikes, fixup_var_define_in_scope

__all__ = ["InlineClosureLikes", "inline_inner_functions", "inner_calls"]

Arrange = Callable[[Any, ir.Expr, ir.Expr], None]
"""What changes a call, of the representation of the outer function, the call, and what makes the function."""


class _Inliner(InlineClosureCallPass):
    """Numba's, which gives *arrange* each call before the statements of the function take its place."""

    def __init__(self, state: Any, arrange: Arrange) -> None:
        typed = not isinstance(state.return_type, types.PyObject)
        swapped = state.parfor_diagnostics.replaced_fns
        super().__init__(state.func_ir, state.flags.auto_parallel, swapped, typed)
        self._arrange = arrange

    def _inline_closure(self, work_list: Any, block: Any, i: int, func_def: Any) -> Any:
        if isinstance(func_def, ir.Expr) and func_def.op == "make_function":
            self._arrange(self.func_ir, block.body[i].value, func_def)
        return super()._inline_closure(work_list, block, i, func_def)


def inner_calls(outermost: Any, code: CodeType) -> Iterator[tuple[Any, ir.Expr, ir.Expr]]:
    """The calls, in the function with this *code* inside of *outermost*, of functions that are defined in it: Numba
    inlines those before anything else sees them. With each come the representation that it is in and what makes the
    function."""
    free = range(len(code.co_freevars))
    variables, cells = "\n".join(f"\tc_{place} = None" for place in free), ",".join(f"c_{place}" for place in free)
    parameters = ",".join(f"x_{place}" for place in range(code.co_argcount))
    namespace = outermost.func_id.func.__globals__
    function = compiler.run_frontend(_create_function_from_code_obj(code, variables, parameters, cells, namespace))
    for block in function.blocks.values():
        for call in block.find_exprs("call"):
            made = guard(get_definition, function, call.func)
            if isinstance(made, ir.Expr) and made.op == "make_function":
                yield function, call, made


def inline_inner_functions(state: Any, arrange: Arrange) -> None:
    """What Numba's pass `InlineClosureLikes` does; calls are changed by *arrange* first."""
    _Inliner(state, arrange).run()
    postproc.PostProcessor(state.func_ir).run()
    fixup_var_define_in_scope(state.func_ir.blocks)
