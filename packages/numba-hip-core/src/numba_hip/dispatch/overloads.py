"""The code of a function: compiled once for each tuple of argument types and each kind of device, and kept on disk."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from numba.core import types

from hip_devicelib.codeobject import CPU_TARGET, CodeObject
from hip_devicelib.forking import compiling
from hip_runtime import current_device
from numba_hip import config
from numba_hip._numba.typing import normalize_signature
from numba_hip.compilation.compiler import explained
from numba_hip.compilation.kernel_code import KernelCode, compile_kernel
from numba_hip.compilation.options import CompileOptions
from numba_hip.dispatch.function_checks import check_function, check_result
from numba_hip.dispatch.inspection import Inspection
from numba_hip.dispatch.launch import Dim3, LaunchConfig
from numba_hip.dispatch.launch_context import ensure_current_launch_config, note_compilation
from numba_hip.dispatch.overload_resolution import choose_overload
from numba_hip.dispatch.parameters import Parameters
from numba_hip.errors import KernelSignatureError, without_own_frames
from numba_hip.language.kernel_callable import KernelCallable

if TYPE_CHECKING:
    from numba_hip.caching.code_cache import CacheEntry, KernelCache
    from numba_hip.compilation.device_function import DeviceFunction

Types = tuple[types.Type, ...]
Extents = tuple[Dim3, Dim3, int]
"""Grid, block and bytes of dynamic shared memory."""


class CompileStats(NamedTuple):
    """How often compiled code was found, by argument types: in the cache, or only by compiling."""

    cache_path: str | None
    cache_hits: Counter[Types]
    cache_misses: Counter[Types]


class Overloads(Inspection, KernelCallable):
    """The part of a dispatcher that compiles its function for the types of arguments.

    Each new tuple of types is compiled once for each kind of device, or read from the cache on disk.
    """

    def __init__(self, py_func: Callable[..., Any], options: CompileOptions, *, device: bool = False) -> None:
        self.py_func = py_func
        self.options = options
        self.parameters = Parameters(py_func)
        self.is_device_function = device
        self.specialized = False
        """Whether this kernel was made by `specialize`, and is for one tuple of argument types."""
        self.launch_config_sensitive = False
        """Whether its code is for one grid, block and size of dynamic shared memory; see `launch_context`."""
        self.targetoptions = {
            "inline": options.inlining,
            "fastmath": options.fastmath,
            "forceinline": options.forceinline,
            "link": options.link,
            "lineinfo": options.keeps_lines,
            "debug": options.debug,
            "error_model": options.error_model,
            "rewrite": options.rewrite,
        }
        self.overloads: dict[Types, KernelCode] = {}
        self.device_signatures: dict[Types, types.Type | None] = {}
        """The only signatures of a device function that was given some: result types, where they say one."""
        self._by_target: dict[tuple[str, Types, Extents | None], KernelCode] = {}
        self._explicit: list[Types] = []
        self._closed: list[Types] = []
        """The types that there is code for, where no others may be compiled."""
        # of the arguments so far: the ids of their types stay the same as long as they live
        self._given: set[types.Type] = set()
        self._cache: KernelCache | None = None
        self._kept: set[tuple[str, Types]] = set()  # targets and types of the code that has a place in the cache
        self._hits: Counter[Types] = Counter()
        self._misses: Counter[Types] = Counter()
        self._compiling = threading.RLock()
        self.__name__ = py_func.__name__
        self.__qualname__ = py_func.__qualname__
        self.__module__ = py_func.__module__
        self.__doc__ = py_func.__doc__
        self.__wrapped__ = py_func

    @property
    def signatures(self) -> list[Types]:
        """Argument types that this kernel has been compiled for."""
        return list(self.overloads)

    @property
    def stats(self) -> CompileStats:
        """Where compiled code is kept, and for which types it was found there."""
        path = str(config.cache_dir().absolute()) if self.options.cache else None
        return CompileStats(path, self._hits, self._misses)

    @property
    def nopython_signatures(self) -> list[Any]:
        """Numba's signatures of what was compiled; of a device function, for the current device."""
        if self.is_device_function:
            return self.device_form().nopython_signatures
        return [code.signature for code in self.overloads.values()]

    def recompile(self) -> None:
        """Compile anew for all signatures so far: what the function refers to may have changed.

        Launches configured before go on with the old code; functions that it calls are compiled anew by a
        `recompile` of their own.
        """
        from numba_hip.compilation.target_registry import known_targets

        with compiling, self._compiling:
            known = list(self._by_target)
            self._forget_code()
        for target in known_targets():
            target.typing_context.forget_device_function(self)
        for target_name, args, extents in known:
            if extents is None:  # otherwise it is compiled at the next such launch
                self._compile(args, target_name)

    def mark_launch_config_sensitive(self) -> None:
        """Called while it is compiled for a launch: the code is for such launches alone, and not kept on disk."""
        ensure_current_launch_config()
        self.launch_config_sensitive = True

    def _forget_code(self) -> None:
        """Let go of all that was made of the compiled code."""
        self._by_target.clear()
        self.overloads.clear()

    def _choose(self, given: Types, target: str) -> Types:
        """The types that this kernel is compiled for where arguments of types *given* are passed."""
        known = self._explicit or self._closed
        if not known:
            return given
        self._given.update(given)
        return choose_overload(self.py_func, self.parameters.names_of(given), known, given, target)

    def _shown_signatures(self) -> str:
        return "; ".join(", ".join(map(str, args)) for args in self.overloads)

    @without_own_frames
    def compile(self, signature: Any, target: str | None = None) -> KernelCode:
        """Compile for *signature* (a string, a tuple of types or a Numba signature) and for *target*, which is the
        current device's when left out."""
        check_function(self.py_func, device=False, launched=True)
        args, return_type = normalize_signature(signature)
        check_result(self.__name__, return_type)
        self.parameters.check_count(args)
        self.parameters.check_types(args)
        return self._compile(tuple(args), current_device().target if target is None else target)

    def compile_explicit(self, signatures: Iterable[Any]) -> None:
        """Compile for each of *signatures* now, and for no other types later."""
        if not self.is_device_function:
            self._explicit += [self.compile(signature).argument_types for signature in signatures]
            return
        # All of them before the first is compiled, which may call another.
        self.device_signatures = {tuple(args): result for args, result in map(normalize_signature, signatures)}
        for args in self.device_signatures:
            self._compile_device_form(args)

    @without_own_frames
    def compile_device(self, args: Sequence[types.Type], return_type: types.Type | None = None) -> Any:
        """Compile a device function for *args*, for the current device; returns Numba's compile result.

        `KernelSignatureError` where it gives another type than *return_type*, if that is named.
        """
        result = self._compile_device_form(tuple(args))
        if return_type is not None and result.signature.return_type != return_type:
            raise KernelSignatureError(
                f"device function {self.__name__} returns {result.signature.return_type}, not {return_type}"
            )
        return result

    def _compile_device_form(self, args: Types) -> Any:
        form = self.device_form()
        with explained(self.py_func, args, form.target.name):
            return form.compile(args)

    def device_form(self, target: str | None = None) -> DeviceFunction:
        """The form of this function that kernels for *target*, the current device's when left out, call."""
        from numba_hip.compilation.target_registry import compile_target

        context = compile_target(current_device().target if target is None else target).typing_context
        return context.device_function(self)

    def _compile(self, args: Types, target: str, config: LaunchConfig | None = None) -> KernelCode:
        code = self._by_target.get((target, args, self._extents(config)))
        if code is None:
            from hip_devicelib.collector import collector_paused

            with compiling, self._compiling, collector_paused():
                code = self._by_target.get((target, args, self._extents(config))) or self._make(args, target)
                self._by_target[target, args, self._extents(config)] = self.overloads[args] = code
        return code

    def _extents(self, config: LaunchConfig | None) -> Extents | None:
        """What of *config* code is for; ``None`` where it is for any."""
        if config is None or not self.launch_config_sensitive:
            return None
        return config.grid, config.block, config.dynamic_shared

    def _make(self, args: Types, target: str) -> KernelCode:
        place = None
        # The places in the source that observed code reports are numbers of this process.
        observed = target == CPU_TARGET and self.options.observed
        if self.options.cache and not observed and self.options.rewrite is None:
            from numba_hip.caching.code_cache import KernelCache

            self._cache = self._cache or KernelCache()
            place = self._cache.place(self.py_func, args, self.options, target)
        if self._cache is not None and place is not None:
            self._kept.add((target, args))
            code = self._find_kept(self._cache, place)
            if code is not None:
                return code
            with self._cache.making(place) as waited:
                code = self._find_kept(self._cache, place) if waited else None
                if code is None:
                    code = self._compile_now(args, target)
                    if self.launch_config_sensitive:
                        self._kept.discard((target, args))
                    else:
                        self._cache.save(place, code)
            return code
        return self._compile_now(args, target)

    def _find_kept(self, cache: KernelCache, place: CacheEntry) -> KernelCode | None:
        """The code at *place*, if it is there."""
        code = cache.load(place)
        if code is not None:
            self._hits[place.args] += 1
        return code

    def _compile_now(self, args: Types, target: str) -> KernelCode:
        note_compilation(self)
        code = compile_kernel(self.py_func, args, self.options, target)
        self._misses[args] += 1
        return code

    def _compile_with_lines(self, args: Types, target: str) -> CodeObject:
        """The code for *args*, and which lines it comes from. What it refers to may have changed since."""
        with compiling, self._compiling:
            return compile_kernel(self.py_func, args, replace(self.options, lineinfo=True), target).code_object
