"""A function that kernels call, compiled for one target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from numba.core import types, typing
from numba.core.errors import TypingError
from numba.extending import typeof_impl

from numba_hip._numba.compiler import compiling_for, pysignature
from numba_hip._numba.typing import fold_argument_types, normalize_signature
from numba_hip._numba.ufuncs import host_ufunc
from numba_hip.compilation.compiler import HipCompiler, compile_function
from numba_hip.compilation.options import CompileOptions

if TYPE_CHECKING:
    from numba_hip.targets.compile_target import CompileTarget

Types = tuple[types.Type, ...]


class FrontEnd:
    """The parts of a function's compiler that Numba's inliner uses."""

    pipeline_class = HipCompiler

    def __init__(self, target: CompileTarget) -> None:
        self.targetdescr = target
        self.locals: dict[str, Any] = {}


class DeviceFunction:
    """A Python function that is compiled for one target whenever a kernel calls it with new types.

    Numba treats it as one of its dispatchers: the methods here are those that typing, inlining and lowering call.
    """

    def __init__(
        self,
        py_func: Callable[..., Any],
        options: CompileOptions,
        target: CompileTarget,
        explicit: Mapping[Types, types.Type | None] | None = None,
    ) -> None:
        self.py_func = py_func
        self.options = options
        self.target = target
        self.explicit = {} if explicit is None else explicit
        """Result types by argument types, where the function was given signatures: calls use one of them. None stands
        for the type that comes out."""
        self.overloads: dict[tuple[Any, ...], Any] = {}
        self.targetoptions = {"inline": options.inlining}
        self._compiler = FrontEnd(target)
        self._signature = pysignature(py_func)
        self._compiling: list[Types] = []

    def __repr__(self) -> str:
        return f"<device function {self.py_func.__qualname__} for {self.target.name}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceFunction:
        """Itself: Numba copies the loops that it writes out for each element of a tuple, with what these name."""
        return self

    @property
    def is_compiling(self) -> bool:
        """Whether a call of this function now would be a recursive one."""
        return bool(self._compiling)

    @property
    def nopython_signatures(self) -> list[Any]:
        """Signatures compiled so far."""
        return [result.signature for result in self.overloads.values()]

    def __call__(self, *args: Any, **kws: Any) -> NoReturn:
        """Raise an error: it only runs on the device."""
        raise TypeError(f"{self.py_func.__name__} is a device function: it can be called from a kernel only")

    def compile(self, args: Types) -> Any:
        """Compile for argument types *args*; returns Numba's compile result."""
        with compiling_for(self.target.numba_name):
            result = self.overloads.get(args)
            if result is None:
                said = self.explicit.get(args)
                self._compiling.append(args)
                try:
                    with self.target.typing_context.callstack.recursive(self, args, said):
                        result = compile_function(self.py_func, args, said, self.options, self.target)
                finally:
                    self._compiling.remove(args)
                self.target.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
                self.overloads[args] = result
            return result

    def fold_argument_types(self, args: Sequence[Any], kws: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        """The Python signature, and the argument types in its order; for a recursive call those of the call."""
        folded = fold_argument_types(self._signature, args, kws)
        if not self.explicit or folded in self.explicit:
            return self._signature, folded
        known = [typing.signature(types.none, *types_of_one) for types_of_one in self.explicit]
        chosen = self.target.typing_context.resolve_overload(self, known, folded, {})
        return self._signature, folded if chosen is None else chosen.args

    def get_call_template(self, args: Sequence[Any], kws: dict[str, Any]) -> tuple[Any, Any, tuple[Any, ...], Any]:
        """What Numba needs to type a call: a template, the Python signature and the folded argument types."""
        folded = fold_argument_types(self._signature, args, kws)
        for known in self.explicit or (folded,):
            if known not in self._compiling:
                self.compile(known)
        name = self.py_func.__name__
        template = typing.make_concrete_template(f"CallTemplate({name})", name, self.nopython_signatures)
        return template, self._signature, folded, {}

    def get_overload(self, signature: Any) -> int:
        """The key under which the target context knows the function compiled for *signature*."""
        args, _ = normalize_signature(signature)
        return int(self.overloads[tuple(args)].entry_point)

    def get_compile_result(self, signature: Any) -> Any:
        """Numba's compile result for *signature*."""
        args, _ = normalize_signature(signature)
        return self.compile(tuple(args))

    def get_function_type(self) -> None:
        """Numba's question for the type of a pointer to the function: there is none, as a kernel calls by name."""
        return None


class ElementFunction(DeviceFunction):
    """A function that ``vectorize`` decorated: in kernels it is one of numbers."""

    def get_call_template(self, args: Sequence[Any], kws: dict[str, Any]) -> tuple[Any, Any, tuple[Any, ...], Any]:
        """Numba's hook: see `DeviceFunction`. Raises `TypingError` for arrays."""
        arrays = [kind for kind in (*args, *kws.values()) if isinstance(kind, types.Array)]
        if arrays:
            name = self.py_func.__name__
            raise TypingError(
                f"{name} was made by vectorize, and is called with {arrays[0]}: kernels call it for numbers; write a "
                f"loop over the elements, or call {name} from the host"
            )
        return super().get_call_template(args, kws)


@typeof_impl.register(DeviceFunction)
def _typeof_device_function(value: DeviceFunction, context: Any) -> types.Dispatcher:
    del context
    return types.Dispatcher(value)


def make_device_function(target: CompileTarget, dispatcher: Any) -> DeviceFunction:
    """The device function that kernels of *target* call for *dispatcher* (of ``njit``, ``jit`` or ``vectorize``)."""
    source = host_ufunc(dispatcher) or dispatcher
    kind = ElementFunction if getattr(source, "of_elements", False) else DeviceFunction
    explicit = getattr(source, "device_signatures", None)
    return kind(source.py_func, CompileOptions.of_dispatcher(source), target, explicit)


def device_jit(target: CompileTarget, *args: Any, **options: Any) -> Callable[[Callable[..., Any]], DeviceFunction]:
    """The decorator with which Numba compiles overloads for *target*; Numba also passes options that `jit` does not
    have."""
    del args
    known = {name: options[name] for name in ("fastmath", "inline", "forceinline") if options.get(name)}

    def decorate(py_func: Callable[..., Any]) -> DeviceFunction:
        return DeviceFunction(py_func, CompileOptions(**known), target)

    return decorate
