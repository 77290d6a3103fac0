"""Descriptions of variables, with locations and types (DWARF), which ``debug`` adds to line tables.

Numba gives each version of a variable, one for each assignment, its own stack slot and name, ``total.1``. LLVM turns
slots into registers and tracks them. In optimised code all versions are declared as the single variable of the source,
and each assignment starts a new location. If slots are kept, a variable has only one location, and versions have their
own names (``total$1``, as in Numba).
"""

from __future__ import annotations

import re
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip.targets.debug_types import TypeDescriber
from numba_hip.targets.line_tables import LineTableBuilder

VERSION = re.compile(r"\.\d+$")
DECLARE = "llvm.dbg.declare"


def debug_builder(module: ir.Module, filepath: str, cgctx: Any, directives_only: bool) -> LineTableBuilder:
    """What Numba's lowering describes of a function: only lines, or variables, too."""
    kind = LineTableBuilder if directives_only else VariableBuilder
    return kind(module, filepath, cgctx, directives_only)


class VariableBuilder(LineTableBuilder):
    """Numba's builder of debug information, with variables."""

    emission = "FullDebug"
    merges_versions = True
    """Whether all versions of a variable are declared as one."""

    def initialize(self) -> None:
        """Describe the compile unit."""
        super().initialize()
        self._types = TypeDescriber(self.module, self.cgctx)
        self._variables: dict[tuple[int, str, types.Type], ir.DIValue] = {}

    def mark_variable(
        self,
        builder: ir.IRBuilder,
        allocavalue: ir.Value,
        name: str,
        lltype: ir.Type,
        size: int,
        line: int,
        datamodel: Any = None,
        argidx: int | None = None,
    ) -> None:
        """Declare that variable *name* is in the slot *allocavalue*."""
        del lltype, size
        if datamodel is None:
            return
        shown = VERSION.sub("", name) if self.merges_versions else name.replace(".", "$")
        variable = self._variable(shown, datamodel.fe_type, line, argidx)
        kind = ir.FunctionType(ir.VoidType(), [ir.MetaDataType()] * 3)
        declare = cgutils.get_or_insert_function(self.module, kind, DECLARE)
        builder.call(declare, [allocavalue, variable, self.module.add_debug_info("DIExpression", {})])

    def finalize(self) -> None:
        """Keep the variables for which LLVM finds no location in their functions, by name and type."""
        for scope in self.subprograms:
            own = [variable for (number, *_), variable in self._variables.items() if number == id(scope)]
            scope.operands = (*scope.operands, ("retainedNodes", self.module.add_metadata(own)))
        super().finalize()

    def _variable(self, name: str, kind: types.Type, line: int, argument: int | None) -> ir.DIValue:
        """The variable *name* of the function, created with its first version; a parameter's variable is the
        parameter."""
        scope = self.subprograms[-1]
        key = id(scope), name, kind
        if key not in self._variables:
            number = {} if argument is None else {"arg": argument}
            self._variables[key] = self.module.add_debug_info(
                "DILocalVariable",
                {
                    "name": name,
                    **number,
                    "scope": scope,
                    "file": self.difile,
                    "line": line,
                    "type": self._types.describe(kind),
                },
            )
        return self._variables[key]
