"""Operands of the graph as operands of llvmlite's builder, in a module that is linked with the kernel's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Argument, Constant, Symbol, Value
from hip_runtime.drivers.cpu.ir.types import TypeTable
from hip_runtime.drivers.cpu.llvmir import PTR


class Spelled(ir.FormattedConstant):
    """A constant as LLVM spells it. llvmlite's own class takes the text for an element where the type is a vector."""

    def __init__(self, kind: ir.Type, text: str) -> None:
        super().__init__(PTR, text)
        self.type = kind


class SymbolDeclarations:
    """Declares in *module* the symbols that code refers to and that *source*, a module of the binding layer, declares
    or defines."""

    def __init__(self, module: ir.Module, source: Any) -> None:
        self._module = module
        self._types = TypeTable(module.context)
        self._functions = {function.name: function for function in source.functions}
        self._variables = {variable.name: variable for variable in source.global_variables}

    def leaf(self, value: Value, arguments: Sequence[ir.Value]) -> ir.Value:
        """The value of an operand that is not an instruction: a constant, the address of a global, or one of the
        function's *arguments*."""
        if isinstance(value, Constant):
            return self.constant(value)
        if isinstance(value, Symbol):
            return self.address(value)
        assert isinstance(value, Argument)
        return arguments[value.index]

    def constant(self, constant: Constant) -> ir.Value:
        """A constant; the globals in it are declared."""
        for name in constant.globals:
            self._declare(name)
        return Spelled(constant.type, constant.text)

    def address(self, symbol: Symbol) -> ir.Value:
        """The address of a global, which is declared."""
        reference = self._declare(symbol.name).get_reference()
        return Spelled(PTR, reference)

    def _declare(self, name: str) -> ir.Value:
        known = self._module.globals.get(name)
        if known is not None:
            return known
        if name in self._functions:
            kind = self._types.parse(str(self._functions[name].global_value_type))
            return ir.Function(self._module, kind, name)
        variable = self._variables[name]
        declared = ir.GlobalVariable(self._module, self._types.parse(str(variable.global_value_type)), name)
        declared.linkage = "external"
        return declared
