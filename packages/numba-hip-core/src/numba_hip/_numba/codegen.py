"""Code generators and libraries: Numba's interfaces under names without underscores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core.codegen import _CFG, Codegen, CodeLibrary

__all__ = ["CodeGenerator", "LoweringLibrary", "control_flow", "find_defined"]


class _Text:
    """LLVM IR as Numba's graphs want it: something with functions."""

    def __init__(self, code: str) -> None:
        self._module = llvm.parse_assembly(code)

    def get_function(self, name: str) -> Any:
        return self._module.get_function(name)


def control_flow(code: str, name: str, py_func: Any, drawing: dict[str, Any]) -> Any:
    """Numba's control flow graph of the function *name* in the LLVM IR *code*; *drawing* are its options."""
    return _CFG(_Text(code), name, py_func, **drawing)


def find_defined(code: str, start: str) -> str:
    """The name of the first function that the LLVM IR *code* defines whose name begins with *start*."""
    functions = llvm.parse_assembly(code).functions
    return str(next(one.name for one in functions if not one.is_declaration and one.name.startswith(start)))


class LoweringLibrary(CodeLibrary):
    """The library that functions are lowered into."""

    def finalize(self) -> None:
        """Nothing more can be added after this."""
        self._finalized = True

    def require_open(self) -> None:
        """Raise `RuntimeError` if nothing more can be added."""
        self._raise_if_finalized()


class CodeGenerator(Codegen):
    """The generator of modules and libraries."""

    library_class: ClassVar[type[LoweringLibrary]]

    @property
    def _library_class(self) -> type[LoweringLibrary]:
        return self.library_class

    @abstractmethod
    def empty_module(self, name: str) -> ir.Module:
        """An empty module with the triple and data layout of the target."""

    def _create_empty_module(self, name: str) -> ir.Module:
        return self.empty_module(name)

    def _add_module(self, module: llvm.ModuleRef) -> Any:
        """Numba's hook for execution engines; code of these targets runs on a device."""
