"""The device functions of HIP's header in kernels, under HIP's names: ``hip.__popc``, ``hip.sinf``.

Overloads are resolved as for Numba's own functions. For a pointer, pass an array with elements of that type, to whose
first element it then points (``counts[i:]`` for another one), or Numba's ``CPointer``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, Signature, signature
from numba.extending import typeof_impl

from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.declarations import CType, FunctionDeclaration, ParameterDeclaration
from hip_devicelib.manifest import load_reference
from hip_runtime.said_names import our
from numba_hip.language.registry import lowering
from numba_hip.language.stub import Stub, interpreter
from numba_hip.language.vector_types import VectorType

BYTE, WORD = ir.IntType(8), ir.IntType(32)


class HipFunction(Stub):
    """A function of HIP's header, with all of its overloads; kernels call it by this object.

    With *returns_outputs*, what it would write through pointers is returned as further results: a single one directly,
    several as a tuple.
    """

    def __init__(
        self,
        name: str,
        overloads: tuple[FunctionDeclaration, ...],
        module: str = "numba_hip",
        *,
        returns_outputs: bool = False,
    ) -> None:
        super().__init__(name, "\n".join(map(str, overloads)), module)
        self.overloads = overloads
        self.returns_outputs = returns_outputs
        self.numba_type = _make_type(self)
        _define_lowering(self)

    def __call__(self, *args: Any, **kws: Any) -> NoReturn:
        """Refuse: it is code of the device."""
        if interpreter() is not None:
            raise NotImplementedError(
                f"the simulator does not have HIP's function {our(self.__name__)}; turn it off for this kernel"
            )
        raise TypeError(f"{our(self.__name__)} is a device function of HIP; it can be called from a kernel only")

    def match(self, args: tuple[types.Type, ...]) -> dict[Signature, FunctionDeclaration]:
        """The overloads that take this number and these types of arguments, by the signature of each call."""
        found: dict[Signature, FunctionDeclaration] = {}
        for function in self.overloads:
            kinds = _argument_types(self.inputs(function), args)
            results = [numba_type(kind) for kind in (function.result, *self.outputs(function))]
            if kinds is not None and None not in results:
                found.setdefault(signature(_join(results), *kinds), function)
        return found

    def provide(self, context: Any) -> None:
        """Record what the kernel being lowered has to link for this function; HIP's own library is linked anyway."""

    def inputs(self, function: FunctionDeclaration) -> list[ParameterDeclaration]:
        """The parameters of overload *function* for which a call passes arguments."""
        return [one for one in function.parameters if not (self.returns_outputs and one.intent == "out")]

    def outputs(self, function: FunctionDeclaration) -> list[CType]:
        """The types of the values written through pointers that a call returns."""
        if not self.returns_outputs:
            return []
        return [one.type.element for one in function.parameters if one.intent == "out" and one.type.element is not None]


@cache
def find(name: str) -> HipFunction | None:
    """The function of HIP's header called *name*, if there is one."""
    overloads = load_reference().by_name.get(name)
    if overloads is None:
        return None
    return HipFunction(name, overloads)


def numba_type(kind: CType) -> types.Type | None:
    """The type of HIP's *kind* in kernels; `None` if it has no counterpart there."""
    if kind.kind == "void":
        return types.none
    if kind.kind == "bool":
        return types.boolean
    if kind.kind == "integer":
        return types.Integer.from_bitwidth(kind.bits, kind.signed)
    if kind.kind == "float":
        return {32: types.float32, 64: types.float64}[kind.bits]
    if kind.kind == "half":
        return types.float16
    if kind.kind == "vector" and kind.element is not None:
        element = numba_type(kind.element)
        return None if element is None or element == types.float16 else VectorType(element, kind.count)
    return None


def _join(results: Sequence[types.Type | None]) -> types.Type:
    """One type for *results*, of which the first is that of the function itself."""
    found = [kind for kind in results if kind is not None and kind != types.none]
    return types.Tuple(found) if len(found) > 1 else found[0] if found else types.none


def _argument_types(
    parameters: Sequence[ParameterDeclaration], args: tuple[types.Type, ...]
) -> tuple[types.Type, ...] | None:
    if len(args) != len(parameters):
        return None
    kinds = [_parameter_type(parameter, arg) for parameter, arg in zip(parameters, args, strict=True)]
    return None if None in kinds else tuple(kind for kind in kinds if kind is not None)


def _parameter_type(parameter: ParameterDeclaration, arg: types.Type) -> types.Type | None:
    """The type that *arg* has to be converted to; for a pointer its own type, if it points to elements of that type."""
    if parameter.type.kind not in ("pointer", "reference") or parameter.type.element is None:
        return numba_type(parameter.type)
    element = numba_type(parameter.type.element)
    if isinstance(arg, types.Array) and (arg.mutable or parameter.intent == "in"):
        return arg if element in (arg.dtype, types.none) else None
    return arg if isinstance(arg, types.CPointer) and element in (arg.dtype, types.none) else None


def _make_type(function: HipFunction) -> types.Function:
    class Template(AbstractTemplate):
        key = function

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
            if kws:
                raise TypingError(f"{our(function.__name__)} takes no arguments by name")
            matches = function.match(tuple(map(types.unliteral, args)))
            chosen = self.context.resolve_overload(function, list(matches), args, {}) if matches else None
            if chosen is None:
                raise TypingError(_explain_mismatch(function, args))
            _check_is_there(matches[chosen], self.context.compile_target.name)
            return chosen

    return types.Function(Template)


@typeof_impl.register(HipFunction)
def _typeof_hip_function(function: HipFunction, context: Any) -> types.Function:
    del context
    return function.numba_type


def _explain_mismatch(function: HipFunction, args: tuple[types.Type, ...]) -> str:
    known = "\n  ".join(map(str, function.overloads))
    passed = ", ".join(map(str, args))
    return (
        f"no overload of {our(function.__name__)} takes ({passed}); HIP declares\n  {known}\n"
        "A pointer is given as an array with elements of that type; bfloat16 and vectors of halves cannot be passed"
    )


def _check_is_there(function: FunctionDeclaration, target: str) -> None:
    if target != CPU_TARGET:
        return
    from hip_devicelib.cpu.functions import ABSENT  # loaded when a kernel first uses one

    if function.symbol in ABSENT:
        raise TypingError(f"the CPU device does not have {function}: {ABSENT[function.symbol]}")


def _define_lowering(function: HipFunction) -> None:
    @lowering.lower(function, types.VarArg(types.Any))
    def _lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        function.provide(context)
        chosen = next(one for matched, one in function.match(sig.args).items() if matched.args == sig.args)
        given = iter(zip(args, sig.args, strict=True))
        inputs, slots, passed = function.inputs(chosen), [], []
        for parameter in chosen.parameters:
            if parameter in inputs or parameter.type.element is None:
                passed.append(_pass(context, builder, *next(given), parameter.type))
            else:
                slots.append(cgutils.alloca_once(builder, _abi_type(context, parameter.type.element)))
                passed.append(slots[-1])
        callee_type = ir.FunctionType(_abi_type(context, chosen.result), [value.type for value in passed])
        callee = cgutils.get_or_insert_function(builder.module, callee_type, chosen.symbol)
        returned = builder.call(callee, passed)
        if not slots:
            return _receive(context, builder, returned, chosen.result)
        written = [builder.load(slot) for slot in slots]
        results = written if chosen.result.kind == "void" else [returned, *written]
        return context.make_tuple(builder, sig.return_type, results) if len(results) > 1 else results[0]


def _abi_type(context: Any, kind: CType) -> ir.Type:
    """The type by which the C ABI of HIP's functions passes a scalar or vector; see `CType.llvm`."""
    if kind.kind == "void":
        return ir.VoidType()
    if kind.kind == "bool":
        return ir.IntType(1)
    if kind.kind == "vector" and kind.element is not None:
        element = _abi_type(context, kind.element)
        return ir.VectorType(element, kind.count) if kind.count > 1 or kind.native else element
    return context.get_value_type(numba_type(kind))


def _pass(context: Any, builder: ir.IRBuilder, value: ir.Value, given: types.Type, kind: CType) -> ir.Value:
    """*value*, of Numba type *given*, in the form that the C ABI requires for a parameter of type *kind*."""
    if kind.kind in ("pointer", "reference"):
        pointer = context.make_array(given)(context, builder, value).data if isinstance(given, types.Array) else value
        return builder.addrspacecast(pointer, BYTE.as_pointer(kind.space)) if kind.space else pointer
    abi = _abi_type(context, kind)
    if not isinstance(given, VectorType):
        return value
    components = [builder.extract_value(value, index) for index in range(given.count)]
    if not isinstance(abi, ir.VectorType):
        return components[0]
    vector: ir.Value = ir.Constant(abi, ir.Undefined)
    for index, component in enumerate(components):
        vector = builder.insert_element(vector, component, ir.Constant(WORD, index))
    return vector


def _receive(context: Any, builder: ir.IRBuilder, value: ir.Value, kind: CType) -> ir.Value:
    """The result of a function as Numba wants it."""
    if kind.kind == "void":
        return context.get_dummy_value()
    if kind.kind != "vector":
        return value
    result: ir.Value = ir.Constant(context.get_value_type(numba_type(kind)), ir.Undefined)
    for index in range(kind.count):
        single = not isinstance(value.type, ir.VectorType)
        component = value if single else builder.extract_element(value, ir.Constant(WORD, index))
        result = builder.insert_value(result, component, index)
    return result
