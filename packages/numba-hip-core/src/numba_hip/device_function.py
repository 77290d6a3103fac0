"""A function that kernels call, compiled for one target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numba.core import sigutils, types, typing, utils
from numba.extending import typeof_impl

from numba_hip._numba import fold_argument_types
from numba_hip.compiler import HipCompiler, compile_function
from numba_hip.options import CompileOptions

if TYPE_CHECKING:
    from numba_hip.targets.registry import CompileTarget


class FrontEnd:
    """What Numba's inliner asks of the compiler behind a function."""

    pipeline_class = HipCompiler

    def __init__(self, target: CompileTarget) -> None:
        self.targetdescr = target
        self.locals: dict[str, Any] = {}


class DeviceFunction:
    """A Python function that is compiled for one target whenever a kernel calls it with new types.

    Numba sees it as one of its dispatchers: the methods here are those that typing, inlining and lowering ask for.
    """

    def __init__(self, py_func: Callable[..., Any], options: CompileOptions, target: CompileTarget) -> None:
        self.py_func = py_func
        self.options = options
        self.target = target
        self.overloads: dict[tuple[Any, ...], Any] = {}
        self.targetoptions = {"inline": options.inline}
        self._compiler = FrontEnd(target)
        self._signature = utils.pysignature(py_func)
        self._compiling = 0

    def __repr__(self) -> str:
        return f"<device function {self.py_func.__qualname__} for {self.target.name}>"

    @property
    def is_compiling(self) -> bool:
        """Whether a call of this function now would be a recursive one."""
        return self._compiling > 0

    @property
    def nopython_signatures(self) -> list[Any]:
        """Signatures compiled so far."""
        return [result.signature for result in self.overloads.values()]

    def compile(self, args: tuple[Any, ...]) -> Any:
        """Compile for argument types *args*; returns Numba's compile result."""
        result = self.overloads.get(args)
        if result is None:
            self._compiling += 1
            try:
                result = compile_function(self.py_func, args, None, self.options, self.target)
            finally:
                self._compiling -= 1
            self.target.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
            self.overloads[args] = result
        return result

    def fold_argument_types(self, args: Sequence[Any], kws: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        """The Python signature, and argument types in its order."""
        return self._signature, fold_argument_types(self._signature, args, kws)

    def get_call_template(self, args: Sequence[Any], kws: dict[str, Any]) -> tuple[Any, Any, tuple[Any, ...], Any]:
        """What Numba types a call with: a template, the Python signature and the folded argument types."""
        folded = fold_argument_types(self._signature, args, kws)
        self.compile(folded)
        name = self.py_func.__name__
        template = typing.make_concrete_template(f"CallTemplate({name})", name, self.nopython_signatures)
        return template, self._signature, folded, {}

    def get_overload(self, signature: Any) -> int:
        """The key under which the target context knows the function compiled for *signature*."""
        args, _ = sigutils.normalize_signature(signature)
        return int(self.overloads[tuple(args)].entry_point)

    def get_compile_result(self, signature: Any) -> Any:
        """Numba's compile result for *signature*."""
        args, _ = sigutils.normalize_signature(signature)
        return self.compile(tuple(args))


@typeof_impl.register(DeviceFunction)
def _typeof_device_function(value: DeviceFunction, context: Any) -> types.Dispatcher:
    del context
    return types.Dispatcher(value)


def device_jit(target: CompileTarget, *args: Any, **options: Any) -> Callable[[Callable[..., Any]], DeviceFunction]:
    """The decorator with which Numba compiles overloads for *target*; it passes options that are not ours, too."""
    del args
    known = {name: options[name] for name in ("fastmath", "inline", "forceinline") if options.get(name)}

    def decorate(py_func: Callable[..., Any]) -> DeviceFunction:
        return DeviceFunction(py_func, CompileOptions(**known), target)

    return decorate
