"""Numba's lowering, with debug information that is useful on a GPU: see `numba_hip.targets.variable_info`."""

from __future__ import annotations

from typing import Any

from numba_hip._numba.compiler import Flags, Option, SourceLower
from numba_hip._numba.fastmath import MathOptions


class HipFlags(Flags):
    """Numba's flags, and what its lowering need not know."""

    fastmath = Option(type=MathOptions, default=MathOptions(False), doc="LLVM's fast-math flags, and which functions.")
    optimised = Option(type=bool, default=True, doc="Whether LLVM optimises.")


class DebugLower(SourceLower):
    """Lowering that differs from Numba's if variables are described."""

    def __init__(self, *args: Any, **kws: Any) -> None:
        super().__init__(*args, **kws)
        if self._describes_variables:
            self.debuginfo.merges_versions = self.flags.optimised

    @property
    def _describes_variables(self) -> bool:
        return bool(self.flags.debuginfo and not self.flags.dbg_directives_only)

    def pre_lower(self) -> None:
        """Allow inlining: Numba forbids it for functions whose variables are described, but calls are expensive on a
        GPU, and LLVM keeps track of the variables."""
        inlined = "noinline" not in self.builder.function.attributes
        super().pre_lower()
        if inlined:
            self.builder.function.attributes.discard("noinline")

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Numba fills slots with zeros; a parameter's would be shown where LLVM loses sight of what comes next."""
        if not self._describes_variables or name not in self.func_ir.arg_names:
            return super().alloca_lltype(name, lltype, datamodel)
        with self.builder.goto_entry_block():
            return self.builder.alloca(lltype, name=name)

    def delvar(self, name: str) -> None:
        """Numba's slots of variables that are not used any more get zeros, which a debugger would show."""
        if not self._describes_variables:
            super().delvar(name)
