"""Builds the body of one HIP function.

An operation is a function ``(body, *operands)``. The operands have the declared types: numbers are `Real` (``__half``
as float32), integers are `Word`, pointers are LLVM values. The result is converted to the declared type: a `Real` is
rounded, a `Flag` becomes 0 or 1, a `Word` is truncated or zero-extended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from hip_devicelib.cpu.catalog import FUNCTIONS, PREFIX
from hip_devicelib.cpu.expressions import FLOAT32, FLOAT64, Code, Flag, Format, Real, Word
from hip_devicelib.cpu.library import define
from hip_devicelib.declarations import CType, FunctionDeclaration

Operation = Callable[..., Any]

HALF = ir.HalfType()
_NUMBERS = ("float", "half")


class FunctionBuilder(Code):
    """The place where the body of one declaration is written, in the format of its widest number."""

    def __init__(
        self, builder: ir.IRBuilder, form: Format, declaration: FunctionDeclaration, fused: bool = True
    ) -> None:
        super().__init__(builder, form, fused)
        self.declaration = declaration

    @property
    def arguments(self) -> list[Any]:
        """The arguments as LLVM values of the declared types."""
        return list(self.builder.function.args)

    @property
    def result_type(self) -> Any:
        """The LLVM type of the result."""
        return self.builder.function.function_type.return_type

    def call_intrinsic(self, name: str, result: Any, *arguments: Any) -> Any:
        """A call of LLVM's intrinsic *name*, overloaded on the type of the first argument."""
        signature = ir.FunctionType(result, [argument.type for argument in arguments])
        function = self.builder.module.declare_intrinsic(name, (arguments[0].type,), signature)
        return self.builder.call(function, arguments)

    def call_c(self, name: str, result: Any, *arguments: Any) -> Any:
        """A call of the C library's function *name*."""
        module = self.builder.module
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(result, [argument.type for argument in arguments]), name)
            function.attributes.add("nounwind")
        return self.builder.call(function, arguments)


def call_math(name: str, *operands: Real) -> Real:
    """The CPU device's own math function *name*, which is added to the module."""
    code = operands[0].code
    module = code.builder.module
    entry = FUNCTIONS[f"{PREFIX}{name}_f{code.format.bits}"]
    function = module.globals.get(entry.symbol) or define(module, entry, code.fused)
    return Real(code, code.builder.call(function, [operand.value for operand in operands]))


def number_of(code: Code, integer: Word) -> Real:
    """*integer*, read as signed, as a number of the format of *code*."""
    return Real(code, code.builder.sitofp(integer.value, code.format.real))


def llvm_type(kind: CType) -> Any:
    """The type of *kind* in llvmlite. Vectors are not among them."""
    if kind.kind in ("pointer", "reference"):
        return ir.IntType(8).as_pointer()
    if kind.kind == "integer":
        return ir.IntType(kind.bits)
    if kind.kind == "float":
        return ir.FloatType() if kind.bits == 32 else ir.DoubleType()
    return {"void": ir.VoidType(), "bool": ir.IntType(1), "half": HALF, "bfloat16": ir.IntType(16)}[kind.kind]


def define_body(
    module: ir.Module, declaration: FunctionDeclaration, operation: Operation, fused: bool = True
) -> ir.Function:
    """Add to *module* the wrapper of *declaration*, with *operation* as its body; *fused* as for `Code`."""
    kinds = [parameter.type for parameter in declaration.parameters]
    signature = ir.FunctionType(llvm_type(declaration.result), [llvm_type(kind) for kind in kinds])
    function = ir.Function(module, signature, declaration.symbol)
    function.linkage = "linkonce_odr"
    for attribute in ("alwaysinline", "nounwind"):
        function.attributes.add(attribute)
    body = FunctionBuilder(ir.IRBuilder(function.append_basic_block("entry")), _format(declaration), declaration, fused)
    operands = [_operand(body, kind, value) for kind, value in zip(kinds, function.args, strict=True)]
    _return(body, operation(body, *operands))
    return function


def _format(declaration: FunctionDeclaration) -> Format:
    kinds = [declaration.result, *(parameter.type for parameter in declaration.parameters)]
    return FLOAT64 if any(kind.kind == "float" and kind.bits == 64 for kind in kinds) else FLOAT32


def _operand(body: FunctionBuilder, kind: CType, value: Any) -> Any:
    if kind.kind in _NUMBERS:
        widened = value if value.type == body.format.real else body.builder.fpext(value, body.format.real)
        return Real(body, widened)
    return Word(body, value) if kind.kind in ("integer", "bool", "bfloat16") else value


def _return(body: FunctionBuilder, result: Any) -> None:
    builder, kind = body.builder, body.result_type
    if isinstance(kind, ir.VoidType):
        builder.ret_void()
        return
    value = result.value if isinstance(result, (Real, Word, Flag)) else result
    if value.type != kind and isinstance(result, Real):
        if kind == HALF and value.type != ir.FloatType():
            value = builder.fptrunc(value, ir.FloatType())  # no processor converts float64 to half in one step
        value = builder.fptrunc(value, kind)
    elif value.type != kind:
        value = builder.zext(value, kind) if value.type.width < kind.width else builder.trunc(value, kind)
    builder.ret(value)
