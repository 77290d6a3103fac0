"""The typing context: the meaning of names in a kernel."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from numba.core import types
from numba.extending import models, register_model

from numba_hip import language
from numba_hip._numba.contexts import count_declarations
from numba_hip._numba.identity import Dispatcher as NumbaDispatcher
from numba_hip._numba.typing import CallStack, Purpose, TypingContext, standard_declarations, type_code
from numba_hip._numba.ufuncs import is_host_ufunc
from numba_hip.bfloat import Bfloat16, unify
from numba_hip.language.kernel_callable import KernelCallable
from numba_hip.language.stub import Stub
from numba_hip.language.unsupported_calls import check_call
from numba_hip.typeof import own_type

if TYPE_CHECKING:
    from numba_hip.compilation.device_function import DeviceFunction
    from numba_hip.targets.compile_target import CompileTarget


_PLAIN = (types.Integer, types.Float, types.Boolean, types.Complex, types.Array)


class Operator(types.Function):
    """The type of an operator, with all declarations that there are of it. What it is for numbers and arrays is found
    out once.

    Numba asks all declarations of an operator, and NumPy's loops among them, for each place where it is used: when it
    infers types, and again when it lowers. In long kernels of arithmetic that is most of what compiling takes.
    """

    def __init__(self, function: types.Function) -> None:
        super().__init__(function.templates)
        self.name = function.name

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Numba's hook: the signature of an operation on *args*."""
        key = type_code(self), tuple(args)
        found = None if kws else context.operations.get(key)
        if found is None:
            found = super().get_call_type(context, args, kws)
            # What is an overload is compiled anew for other options; what is lowered by the operator itself never is.
            if self.get_impl_key(found) is self.typing_key and all(map(_is_plain, args)):
                context.operations[key] = found
        return found


register_model(Operator)(models.OpaqueModel)


def _insert(declarations: list[Any], one: Any) -> None:
    """Add *one* to *declarations*, of which Numba takes the first that fits: after the others of its kind, and those
    that are for our target alone before the rest."""
    ours = sum(map(_is_ours, declarations)) if _is_ours(one) else len(declarations)
    declarations.insert(ours, one)


def _is_ours(declaration: Any) -> bool:
    return bool(getattr(declaration, "metadata", {}).get("target") == "hip")


def _is_plain(kind: types.Type) -> bool:
    """Whether *kind* is that of numbers or of an array, or of tuples of these."""
    if isinstance(kind, types.BaseTuple):
        return all(map(_is_plain, kind))
    return isinstance(kind, _PLAIN)


class HipTypingContext(TypingContext):
    """Numba's own declarations and those of the kernel language, for one compile target."""

    compile_target: CompileTarget
    """The target that this context types for; set once, right after both contexts exist."""
    make_device_function: Callable[[Any], DeviceFunction]
    """Makes the form of a dispatcher that kernels of this target call; set with the target, by the compiler above."""

    def __init__(self) -> None:
        self._device_functions: WeakKeyDictionary[object, DeviceFunction] = WeakKeyDictionary()
        self._stubs: WeakSet[Stub] = WeakSet()
        self._operators: dict[object, types.Type] = {}
        self._operators_made: dict[types.Function, Operator] = {}
        self.operations: dict[tuple[int, tuple[types.Type, ...]], Any] = {}
        """Signatures, by the code of an `Operator` and the types of the arguments."""
        self._declarations = -1
        super().__init__()
        self.callstack = CallStack()

    def load_additional_registries(self) -> None:
        """Install the names that a kernel may use besides Numba's builtins."""
        for registry in standard_declarations():
            self.install_registry(registry)
        self.install_registry(language.typing_registry())

    def refresh(self) -> None:
        """Numba's hook: install what was declared meanwhile, which may be of operators."""
        count = count_declarations(self)
        if count != self._declarations:  # Numba asks this before it types a call of anything that it overloads
            self._operators.clear()
            super().refresh()
            self._declarations = count

    def insert_attributes(self, at: Any) -> None:
        """Numba's hook: declare the attributes of a type; ours come before those of Numba, also where they are set."""
        _insert(self._attributes[at.key], at)

    def insert_function(self, ft: Any) -> None:
        """Numba's hook: declare an operation that has no global name, such as ``static_getitem``."""
        _insert(self._functions[ft.key], ft)

    def resolve_value_type(self, value: Any) -> Any:
        """The type of global *value*; functions that are compiled for another target become device functions of this
        one."""
        if isinstance(value, BuiltinFunctionType) and value.__module__ == "_operator":
            return self._type_of_operator(value)
        own = own_type(value, Purpose.constant)
        if own is not None:
            return own
        if _holds_functions(value):
            return types.BaseTuple.from_types([self.resolve_value_type(part) for part in value], type(value))
        if _is_compiled_for_kernels(value):
            value = self.device_function(value)
        elif isinstance(value, Stub) and value not in self._stubs:
            self._stubs.add(value)
            self.refresh()  # some, such as those of `libdevice`, are created when a kernel names them
        return super().resolve_value_type(value)

    def resolve_module_constants(self, typ: types.Module, attr: str) -> Any:
        """Numba's hook: the type of the name *attr* of a module. Modules such as ``hip.texture`` are loaded, and
        declare their functions, when a kernel that is being compiled names them."""
        found = super().resolve_module_constants(typ, attr)
        if found is None:
            self.refresh()
            found = super().resolve_module_constants(typ, attr)
        return found

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Numba's hook: the signature of a call of *func*; calls that no kernel can make are rejected first."""
        if isinstance(func, Operator) and not kws:
            known = self.operations.get((type_code(func), tuple(args)))
            if known is not None:
                return known
        check_call(func, args, kws)
        return super().resolve_function_type(func, args, kws)

    def _type_of_operator(self, function: Any) -> types.Type:
        found = self._operators.get(function)
        if found is None:
            found = super().resolve_value_type(function)
            if isinstance(found, types.Function):  # which differs if more was declared
                found = self._operators_made.setdefault(found, Operator(found))
            self._operators[function] = found
        return found

    def unify_pairs(self, first: types.Type, second: types.Type) -> types.Type | None:
        """Numba's hook: the type of a variable that is *first* on one path and *second* on another. Numba asks NumPy
        for numbers."""
        if first != second and (isinstance(first, Bfloat16) or isinstance(second, Bfloat16)):
            return unify(types.unliteral(first), types.unliteral(second))
        if first != second and (_is_float8(first) or _is_float8(second)):
            one, other = (types.float32 if _is_float8(kind) else kind for kind in (first, second))
            return one if one == other else self.unify_pairs(one, other)
        if first != second and isinstance(first, types.Callable) and isinstance(second, types.Callable):
            from numba_hip.language.function_choice import unify_functions  # when it is needed

            if (chosen := unify_functions(first, second)) is not None:
                return chosen
        return super().unify_pairs(first, second)

    def device_function(self, dispatcher: Any) -> DeviceFunction:
        """The form of *dispatcher* (of ``njit``, ``jit`` or ``vectorize``) that kernels of this target call."""
        function = self._device_functions.get(dispatcher)
        if function is None:
            function = self._device_functions[dispatcher] = self.make_device_function(dispatcher)
        return function

    def forget_device_function(self, dispatcher: Any) -> None:
        """Have *dispatcher* compiled anew when a kernel calls it next."""
        self._device_functions.pop(dispatcher, None)


def _holds_functions(value: Any) -> bool:
    """Whether *value* is a tuple, or a named one, with a function that kernels can call, or with such a tuple."""
    return isinstance(value, tuple) and any(
        _is_compiled_for_kernels(part) or isinstance(part, (BuiltinFunctionType, Stub)) or _holds_functions(part)
        for part in value
    )


def _is_compiled_for_kernels(value: Any) -> bool:
    """Whether *value* is a function that Numba or ours compiles, which kernels call in their own form."""
    return isinstance(value, (NumbaDispatcher, KernelCallable)) or is_host_ufunc(value)


def _is_float8(kind: types.Type) -> bool:
    """Whether *kind* is a float of 8 bits; the module that has these is loaded with the first of them."""
    return isinstance(kind, types.Number) and kind.name.startswith("float8_")
