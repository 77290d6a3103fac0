"""Which lines of the source machine code comes from: what ``lineinfo`` and ``debug`` add to a kernel, as DWARF.

Numba makes LLVM's metadata. Here it is made independent of the running numbers in Numba's symbols, so that code is the
same whatever was compiled before, and is cut down to line tables, which change no instruction. Variables are
`numba_hip.targets.variable_info`'s.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from numba_hip._numba.contexts import DebugInfoBuilder


class LineTableBuilder(DebugInfoBuilder):
    """Numba's builder of debug information, for line tables. Variables are left out."""

    emission = "LineTablesOnly"

    def initialize(self) -> None:
        """Describe the compile unit, and the file again for what is in it: with the unit's directory beside its name,
        line tables would leave that out, and lines of functions that are not inlined would be of no known place."""
        self.emission_kind = self.emission
        super().initialize()
        self.difile = self.module.add_debug_info("DIFile", {"directory": "", "filename": self.filepath})

    def mark_variable(self, builder: ir.IRBuilder, *args: Any, **kws: Any) -> None:
        """Leave out a variable."""


def locate_entry(context: Any, builder: ir.IRBuilder, function: Any, *, variables: bool = False) -> None:
    """Say that the kernel that *builder* is in is *function*, a compile result, at its first line.

    LLVM drops the lines of what is inlined into a function that has none itself, and *variables*, too.
    """
    source = function.type_annotation.func_id
    tables = context.DIBuilder(builder.module, source.filename, context, not variables)
    tables.mark_subprogram(builder.function, source.func_qualname, (), (), source.firstlineno)
    tables.mark_location(builder, source.firstlineno)
    tables.finalize()
