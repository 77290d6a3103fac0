"""Line tables (DWARF), which ``lineinfo`` and ``debug`` add to a kernel's machine code.

Numba creates LLVM's metadata. This module makes it independent of the running numbers in Numba's symbols, so that code
does not depend on what was compiled before, and reduces it to line tables, which change no instruction.
`numba_hip.targets.variable_info` describes variables.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from numba_hip._numba.contexts import DebugInfoBuilder


class LineTableBuilder(DebugInfoBuilder):
    """Numba's builder of debug information, for line tables. Variables are left out."""

    emission = "LineTablesOnly"

    def initialize(self) -> None:
        """Describe the compile unit. Its file is described again for the code in it, as line tables would leave out a
        directory that the unit has, and functions that are not inlined would have no known file."""
        self.emission_kind = self.emission
        super().initialize()
        self.difile = self.module.add_debug_info("DIFile", {"directory": "", "filename": self.filepath})

    def mark_variable(self, builder: ir.IRBuilder, *args: Any, **kws: Any) -> None:
        """Leave out a variable."""


def locate_entry(context: Any, builder: ir.IRBuilder, function: Any, *, variables: bool = False) -> None:
    """Describe the kernel that *builder* writes as *function*, a compile result, at its first line.

    LLVM drops the lines, and with *variables* the variables, of code that is inlined into a function without lines.
    """
    source = function.type_annotation.func_id
    tables = context.DIBuilder(builder.module, source.filename, context, not variables)
    tables.mark_subprogram(builder.function, source.func_qualname, (), (), source.firstlineno)
    tables.mark_location(builder, source.firstlineno)
    tables.finalize()
