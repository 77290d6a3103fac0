"""Target contexts: Numba's base classes of the parts of a target, and its registry of targets."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import itanium_mangler, types
from numba.core.base import BaseContext
from numba.core.callconv import MinimalCallConv
from numba.core.debuginfo import DIBuilder
from numba.core.errors import UnsupportedError
from numba.core.runtime.context import NRTContext
from numba.core.target_extension import GPU, dispatcher_registry, jit_registry, target_registry

__all__ = ["GPU", "BaseContext", "CallConv", "DebugInfoBuilder", "NoAllocation", "count_declarations",
           "dispatcher_registry", "function_at", "jit_registry", "mangle", "target_registry"]  # fmt: skip


def count_declarations(context: Any) -> int:
    """How many declarations there are in the registries that were installed into *context*, which is for typing or for
    lowering. They get more and never fewer, so *context* lacks none where the number is what it was."""
    return sum(
        len(getattr(registry, kind))
        for registry, loader in context._registries.items()
        for kind in loader.registry_items
    )


def mangle(name: str, argument_types: Any, uid: Any) -> str:
    """The symbol of function *name* for *argument_types*; *uid* distinguishes it from others with this name."""
    return str(itanium_mangler.mangle(name, argument_types, uid=uid))


def function_at(location: Any) -> str | None:
    """The name of the function that contains *location*, if Numba knows it."""
    found = location._raw_function_name()
    return None if found is None else str(found)


class CallConv(MinimalCallConv):
    """Numba's calling convention with a numeric status, under names without underscores."""

    def packer(self, argument_types: Any) -> Any:
        """What makes the parameters of a function of *argument_types*."""
        return self._get_arg_packer(argument_types)

    def status_of(self, builder: ir.IRBuilder, code: ir.Value) -> Any:
        """Numba's status for what a call returned."""
        return self._get_return_status(builder, code)

    def return_code(self, builder: ir.IRBuilder, code: ir.Value) -> None:
        """Return *code*, a status."""
        self._return_errcode_raw(builder, code)


class DebugInfoBuilder(DIBuilder):
    """Numba's builder of debug information, under names without underscores."""

    def describe_subroutine_type(self) -> Any:
        """The type of functions, without details."""
        return self.module.add_debug_info("DISubroutineType", {"types": self.module.add_metadata([])})

    def _di_subroutine_type(self, line: int, function: ir.Function, argmap: dict[str, Any]) -> Any:
        return self.describe_subroutine_type()

    def _di_subprogram(self, name: str, linkagename: str, line: int, function: ir.Function, argmap: Any) -> Any:
        """As Numba's, with the function's own name as that of its symbol."""
        return super()._di_subprogram(name, name, line, function, argmap)


class NoAllocation(NRTContext):
    """Numba's memory manager. A kernel cannot allocate memory, which *refusal* reports."""

    def __init__(self, context: BaseContext, refusal: str) -> None:
        super().__init__(context, False)
        self._refusal = refusal

    def incref(self, builder: Any, typ: types.Type, value: Any) -> None:
        """Nothing: arrays in kernels own no memory."""

    def decref(self, builder: Any, typ: types.Type, value: Any) -> None:
        """Nothing, as `incref`."""

    def _require_nrt(self) -> None:
        raise UnsupportedError(self._refusal)
