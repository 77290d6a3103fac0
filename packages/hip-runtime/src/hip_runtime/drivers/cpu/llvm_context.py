"""LLVM contexts that live for one compilation."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import llvmlite.binding as llvm


class LlvmContext:
    """A context, and modules in it, for a ``with`` statement: on exit the modules are freed first, then the context.

    Without that, an exception that refers to both would leave the order to the garbage collector, and LLVM reads freed
    memory when a module outlives its context.
    """

    def __init__(self) -> None:
        self._context = llvm.create_context()
        self._modules: list[Any] = []

    def read_bitcode(self, image: bytes) -> Any:
        """The module that *image* holds."""
        return self._keep(llvm.parse_bitcode(image, self._context))

    def read_text(self, text: str) -> Any:
        """The module that *text* is."""
        return self._keep(llvm.parse_assembly(text, self._context))

    def _keep(self, module: Any) -> Any:
        self._modules.append(module)
        return module

    def __enter__(self) -> LlvmContext:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for module in reversed(self._modules):
            module.close()
        self._context.close()
