"""The calling convention between compiled functions, and how errors propagate.

A function is ``i32 f(result*, [hidden,] arguments...)``; the status says whether it returned a value, returned
``None``, or which exception it raised. On the CPU device every function takes one hidden parameter, the work item: see
``docs/design/spmd-bitcode.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from numba_hip._numba.contexts import CallConv, function_at
from numba_hip.abi.fault import Fault

ITEM = ir.PointerType(ir.IntType(8))
"""LLVM type of a pointer to the work item."""


class HipCallConv(CallConv):
    """The calling convention on AMD GPUs."""

    hidden: tuple[tuple[str, ir.Type], ...] = ()
    """Names and types of the parameters between the result and the arguments, handed on from caller to callee."""

    def get_function_type(self, restype: Any, argtypes: Any) -> ir.FunctionType:
        """The LLVM type of a function from *argtypes* to *restype*."""
        arguments = self.packer(argtypes).argument_types
        hidden = [kind for _, kind in self.hidden]
        return ir.FunctionType(ir.IntType(32), [self.get_return_type(restype), *hidden, *arguments])

    def get_arguments(self, func: ir.Function) -> list[ir.Argument]:
        """The parameters of *func* that the user's function declares."""
        return list(func.args[1 + len(self.hidden) :])

    def decorate_function(self, fn: ir.Function, args: Any, fe_argtypes: Any, noalias: bool = False) -> None:
        """Name the parameters of *fn*."""
        super().decorate_function(fn, args, fe_argtypes, noalias)
        for parameter, (name, _) in zip(fn.args[1:], self.hidden, strict=False):
            if parameter.name != name:  # a recursive function is declared once more inside itself
                parameter.name = name
                parameter.add_attribute("noalias")

    def call_function(
        self,
        builder: ir.IRBuilder,
        callee: Any,
        resty: Any,
        argtys: Any,
        args: Any,
        hidden: Sequence[ir.Value] | None = None,
    ) -> tuple[Any, Any]:
        """Call *callee*, with the hidden parameters of the function being built, unless *hidden* gives others."""
        slot_type = callee.args[0].type.pointee
        slot = cgutils.alloca_once(builder, slot_type)
        builder.store(cgutils.get_null_value(slot_type), slot)
        arguments = self.packer(argtys).as_arguments(builder, args)
        hidden = self.hidden_values(builder) if hidden is None else hidden
        status = self.status_of(builder, builder.call(callee, [slot, *hidden, *arguments]))
        return status, self.context.get_returned_value(builder, resty, builder.load(slot))

    def hidden_values(self, builder: ir.IRBuilder) -> list[ir.Argument]:
        """The hidden parameters of the function that *builder* writes, by name."""
        names = [name for name, _ in self.hidden]
        return [parameter for parameter in builder.function.args if parameter.name in names]

    def return_user_exc(
        self, builder: ir.IRBuilder, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        """Return the status for exception *exc*, and record in the library which exception it means."""
        library = self.context.active_code_library
        name = func_name if loc is None else function_at(loc) or func_name
        place = library.location if loc is None or name is None else f"{loc.filename}:{loc.line} in {name}"
        fault = Fault(exc or RuntimeError, tuple(exc_args or ()), place)
        library.faults[fault.code] = fault
        self.return_code(builder, ir.Constant(ir.IntType(32), fault.code))

    def return_dynamic_user_exc(
        self, builder: ir.IRBuilder, exc: Any, exc_args: Any, nb_types: Any, loc: Any = None, func_name: Any = None
    ) -> None:
        """As `return_user_exc`, for arguments known only on the device: the message has their types."""
        shown = tuple(
            argument if not isinstance(argument, ir.Value) else f"<{kind} of the device>"
            for argument, kind in zip(exc_args, nb_types, strict=True)
        )
        self.return_user_exc(builder, exc, shown, loc, func_name)


class SpmdCallConv(HipCallConv):
    """The calling convention on the CPU device, where every function takes the work item."""

    hidden: tuple[tuple[str, ir.Type], ...] = (("item", ITEM),)
