"""Sets that a kernel only looks for members in, as ``if mark in {1, 2}``: tuples, which kernels have.

Such a set is written where it is needed, or captured: a captured one is a constant, as other captured values are.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass


@register_pass(mutates_CFG=False, analysis_only=False)
class TakeSetsAsTuples(FunctionPass):
    """The pass that makes tuples of them."""

    _name = "hip_take_sets_as_tuples"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change ``state.func_ir``; returns whether there was anything to change."""
        statements = [statement for block in state.func_ir.blocks.values() for statement in block.body]
        assigned = [statement for statement in statements if isinstance(statement, ir.Assign)]
        searched = {statement.value.lhs.name for statement in assigned if _looks_for_member(statement.value)}
        if not searched:
            return False
        mentions = Counter(variable.name for statement in statements for variable in statement.list_vars())
        changed = False
        for statement in assigned:
            name = statement.target.name
            if name in searched and mentions[name] == 2:  # where it is made, and where it is looked into
                changed |= _make_tuple(statement.value)
        return changed


def _looks_for_member(value: Any) -> bool:
    return isinstance(value, ir.Expr) and value.op == "binop" and value.fn is operator.contains


def _make_tuple(value: Any) -> bool:
    """Make *value* a tuple if it is a set; returns whether it is."""
    if isinstance(value, ir.Expr) and value.op == "build_set":
        value.op = "build_tuple"
        return True
    if isinstance(value, (ir.Global, ir.FreeVar)) and isinstance(value.value, (set, frozenset)):
        value.value = tuple(sorted(value.value, key=lambda member: (type(member).__name__, repr(member))))
        return True
    return False
