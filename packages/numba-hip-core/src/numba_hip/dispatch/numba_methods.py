"""Methods of Numba's dispatchers that programs and libraries call: which types may be compiled, and what was."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numba.core import types

from hip_runtime.errors import UnsupportedError
from numba_hip._numba.codegen import control_flow, find_defined
from numba_hip._numba.typing import fold_argument_types, normalize_signature
from numba_hip.arguments.argument_types import argument_type
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.compilation.options import CompileOptions
from numba_hip.errors import NotCompiledError
from numba_hip.targets.code_library import symbol_of

if TYPE_CHECKING:
    from numba_hip.compilation.device_function import DeviceFunction

Types = tuple[types.Type, ...]


class NumbaMethods:
    """The part of a dispatcher that has the methods of Numba's."""

    __name__: str
    is_device_function: bool
    overloads: dict[Types, KernelCode]
    py_func: Callable[..., Any]
    options: CompileOptions
    device_signatures: dict[Types, types.Type | None]
    _closed: list[Types]
    _explicit: list[Types]

    def device_form(self, target: str | None = None) -> DeviceFunction:
        """The form that kernels for *target* call."""
        raise NotImplementedError

    def _forget_launches(self) -> None:
        raise NotImplementedError

    def disable_compile(self, val: bool = True) -> None:
        """Compile for no new types at a launch or a call: what was compiled so far serves those that convert to it, and
        others are a `KernelArgumentError`. With *val* false, all types are compiled for again.

        Before anything was compiled this is a `NotCompiledError`.
        """
        known = list(self._compiled())
        if val and not known:
            raise NotCompiledError(
                f"{self.__name__} has not been compiled for any types yet: call it, or compile(signature), before "
                "disable_compile()"
            )
        if self.is_device_function:
            self.device_signatures.clear()
            self.device_signatures.update(dict.fromkeys(known) if val else {})
            return
        self._closed = known if val else []
        self._explicit = self._explicit if val else []
        self._forget_launches()

    def enable_caching(self) -> None:
        """Keep what is compiled from now on in the cache on disk, as the option ``cache`` of `jit` does."""
        self.options = replace(self.options, cache=True)

    def get_overload(self, sig: Any) -> Any:
        """What was compiled for the signature *sig*: the `KernelCode` of a kernel, Numba's compile result of a device
        function. `NotCompiledError` where nothing was."""
        args, _ = normalize_signature(sig)
        return self._compiled_for(tuple(args))

    def get_metadata(self, signature: Any = None) -> Any:
        """The metadata of what was compiled for *signature*, or a dictionary of them for all signatures."""
        if signature is None:
            return {args: code.metadata for args, code in self._compiled().items()}
        return self.get_overload(signature).metadata

    def fold_argument_types(self, args: Sequence[types.Type], kws: Mapping[str, types.Type]) -> tuple[Any, Types]:
        """The Python signature, and the types *args* and *kws* in the order of its parameters: those left out are
        ``Omitted``, those of ``*args`` a tuple."""
        signature = inspect.signature(self.py_func)
        return signature, fold_argument_types(signature, args, dict(kws))

    def typeof_pyval(self, val: Any) -> types.Type:
        """The type that a launch compiles for when an argument is *val*; `KernelArgumentError` for one that cannot
        be."""
        return argument_type(val, "val")

    def inspect_cfg(self, signature: Any = None, show_wrapper: str | None = None, **kwargs: Any) -> Any:
        """The control flow graph of the optimised LLVM IR, which prints as DOT and shows itself in notebooks.

        *kwargs* are those of Numba's ``inspect_cfg``, for drawing. *show_wrapper* is refused: a kernel has no wrapper.
        Of a device function, which has no code of its own, the graph is that of the function as it was lowered.
        """
        if show_wrapper is not None:
            raise UnsupportedError(
                f"show_wrapper={show_wrapper!r}: what is compiled for a device has no wrapper of the host; leave it out"
            )
        if signature is None:
            return {args: self._flow(code, kwargs) for args, code in self._compiled().items()}
        return self._flow(self.get_overload(signature), kwargs)

    def _flow(self, code: Any, drawing: dict[str, Any]) -> Any:
        if not self.is_device_function:
            return control_flow(code.llvm(), code.name, self.py_func, drawing)
        text = code.library.get_llvm_str()  # with all that it calls behind it
        return control_flow(text, find_defined(text, f"{symbol_of(self.__name__)}."), self.py_func, drawing)

    def _compiled(self) -> dict[Types, Any]:
        """What was compiled, by argument types; of a device function for the current device."""
        return dict(self.device_form().overloads if self.is_device_function else self.overloads)

    def _compiled_for(self, args: Types) -> Any:
        compiled = self._compiled()
        if args not in compiled:
            known = "; ".join(", ".join(map(str, one)) for one in compiled) or "none yet"
            raise NotCompiledError(
                f"{self.__name__} was not compiled for ({', '.join(map(str, args))}); its signatures: {known}"
            )
        return compiled[args]
