"""What ``@hip.jit`` makes of a function: compiled when it is launched or called with types that are new to it."""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from hip_devicelib.codeobject import CPU_TARGET, CodeObject
from hip_devicelib.forking import compiling
from hip_runtime import Device, DeviceArray, Function, Stream, current_device
from hip_runtime.errors import LaunchError
from numba_hip import config
from numba_hip._numba.typing import normalize_signature, type_code
from numba_hip.advice import advise_on_grid
from numba_hip.arguments.argument_types import argument_type, check_arguments, describe, type_of
from numba_hip.arguments.packing import NOT_PACKED, Packer, leaf_count, packers
from numba_hip.compilation.kernel_code import KernelCode, compile_kernel
from numba_hip.compilation.options import CompileOptions
from numba_hip.compilation.resources import is_cooperative
from numba_hip.compilation.rest_parameter import argument_names, rest_of
from numba_hip.dispatch import pickling
from numba_hip.dispatch.extensions import Extension, StandIn, prepare
from numba_hip.dispatch.faults import exception_describer
from numba_hip.dispatch.forall import ForAll
from numba_hip.dispatch.function_checks import check_function
from numba_hip.dispatch.index_faults import IndexRecord, RecordedLaunch
from numba_hip.dispatch.inspection import Inspection
from numba_hip.dispatch.launch import ConfiguredKernel, Dim3, LaunchConfig, LaunchFunction, ReadyLaunch, is_plain
from numba_hip.dispatch.launch_context import compiling_for, ensure_current_launch_config, note_compilation
from numba_hip.dispatch.mismatch import explain_writing
from numba_hip.dispatch.output import with_output
from numba_hip.dispatch.overload_resolution import choose_overload
from numba_hip.dispatch.transfer import Transfer, check_capture
from numba_hip.errors import DeviceFunctionError, KernelArgumentError, KernelSignatureError
from numba_hip.language.captured import check_captured
from numba_hip.language.kernel_callable import KernelCallable
from numba_hip.linked_code import set_up

if TYPE_CHECKING:
    from numba_hip.caching.code_cache import CodeCache
    from numba_hip.compilation.device_function import DeviceFunction

Types = tuple[types.Type, ...]
Extents = tuple[Dim3, Dim3, int]
"""Grid, block and bytes of dynamic shared memory."""

CLASS_TYPED = frozenset(
    {float, bool, complex, np.bool_, np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8,
     np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
)  # fmt: skip
"""Classes of scalars whose Numba type does not depend on the value."""

MOST_CONFIGURED = 256
"""How many launch configurations of one kernel are kept, so that they are checked once."""

INT64 = range(-(2**63), 2**63)

NO_STAND_INS: Mapping[int, StandIn] = {}


class LoadedKernel(NamedTuple):
    """A kernel on a device, and what packs its arguments."""

    function: Function
    packing: Sequence[Packer]
    code: KernelCode
    record: IndexRecord | None
    """Where a kernel with bounds checks notes indices on the CPU device."""
    kinds: Types
    """The types that its arguments are packed as."""
    names: Sequence[str]

    def pack_exactly(self, args: Sequence[Any]) -> bytes:
        """The packed arguments; `KernelArgumentError` where one is a number that its type does not have."""
        packing = packers(self.kinds, self.code.parameters, self.names, exact=True)
        return b"".join([pack(value) for pack, value in zip(packing, args, strict=True)])


class CompileStats(NamedTuple):
    """How often compiled code was found, by argument types: in the cache, or only by compiling."""

    cache_path: str | None
    cache_hits: Counter[Types]
    cache_misses: Counter[Types]


class Dispatcher(Inspection, KernelCallable):
    """A function of ``hip.jit``: launched as ``kernel[grid, block](...)``, or called from other kernels.

    Each new tuple of argument types is compiled once for each kind of device. Made by `numba_hip.jit`.
    """

    def __init__(
        self,
        py_func: Callable[..., Any],
        options: CompileOptions,
        *,
        device: bool = False,
        extensions: Iterable[Extension] = (),
    ) -> None:
        self.py_func = py_func
        self.options = options
        self.extensions = list(extensions)
        """What sees the arguments of each launch first; see `numba_hip.dispatch.extensions`."""
        self.is_device_function = device
        self.specialized = False
        """Whether this kernel was made by `specialize`, and is for one tuple of argument types."""
        self.identity = ""
        self.launch_config_sensitive = False
        """Whether its code is for one grid, block and size of dynamic shared memory; see `launch_context`."""
        self._cache: CodeCache | None = None
        self._kept: set[tuple[str, Types]] = set()  # targets and types of the code that has a place in the cache
        self._hits: Counter[Types] = Counter()
        self._misses: Counter[Types] = Counter()
        self.targetoptions = {
            "inline": options.inline,
            "fastmath": options.fastmath,
            "forceinline": options.forceinline,
            "link": options.link,
            "lineinfo": options.keeps_lines,
            "debug": options.debug,
            "error_model": options.error_model,
            "rewrite": options.rewrite,
        }
        self.overloads: dict[Types, KernelCode] = {}
        self._by_target: dict[tuple[str, Types, Extents | None], KernelCode] = {}
        self._loaded: dict[tuple[Any, ...], LoadedKernel] = {}
        self._configured: dict[Any, ConfiguredKernel] = {}
        self._explicit: list[Types] = []
        self._given: set[types.Type] = set()  # of arguments so far: their codes are the same as long as they live
        self.device_signatures: dict[Types, types.Type | None] = {}
        """The only signatures of a device function that was given some: result types, where they say one."""
        self._specialisations: dict[tuple[str, Types], Dispatcher] = {}
        self._compiling = threading.RLock()
        self._signature = inspect.signature(py_func)
        self._rest = rest_of(py_func)
        self._names = tuple(name for name in self._signature.parameters if name != self._rest)
        self.__name__ = py_func.__name__
        self.__qualname__ = py_func.__qualname__
        self.__module__ = py_func.__module__
        self.__doc__ = py_func.__doc__
        self.__wrapped__ = py_func

    def __repr__(self) -> str:
        kind = "device function" if self.is_device_function else "kernel"
        return f"<hip {kind} {self.__qualname__}>"

    def __getitem__(self, config: Any) -> ConfiguredKernel:
        """Configure a launch: ``kernel[grid, block, stream, dynamic_shared, cluster]``, the last three optional.

        Grid and block are integers or tuples of one to three; raises `hip_runtime.errors.LaunchError`, and
        `KernelSignatureError` for what only other kernels can call.
        """
        if self.is_device_function:
            raise DeviceFunctionError(
                f"Cannot compile a device function as a kernel: kernels call {self.__name__}, only they are launched"
            )
        plain = is_plain(config)
        configured = self._configured.get(config) if plain else None
        if configured is None:
            check_function(self.py_func, device=False, launched=True)
            configured = self._configure(LaunchConfig.of(config))
            if plain and len(self._configured) < MOST_CONFIGURED:
                self._configured[config] = configured
        return configured

    def _configure(self, config: LaunchConfig) -> ConfiguredKernel:
        advise_on_grid(config.grid)
        return ConfiguredKernel(self, config)

    def configure(
        self,
        griddim: Any,
        blockdim: Any,
        stream: Stream | int | None = 0,
        sharedmem: int | None = 0,
        cluster: Any = None,
    ) -> ConfiguredKernel:
        """``kernel[griddim, blockdim, stream, sharedmem, cluster]``."""
        config = griddim, blockdim, stream, 0 if sharedmem is None else sharedmem
        return self[config if cluster is None else (*config, cluster)]

    def forall(self, ntasks: int, tpb: int = 0, stream: Stream | int | None = 0, sharedmem: int = 0) -> ForAll:
        """A launch with at least *ntasks* threads along x, in blocks of *tpb*, which is chosen where it is 0.

        The kernel has to leave out the threads beyond *ntasks*. *sharedmem* is in bytes. `LaunchError`.
        """
        return ForAll(self, ntasks, tpb, stream, sharedmem)

    def __call__(self, *args: Any, **kws: Any) -> None:
        """Refuse: a kernel needs a grid, a device function a kernel."""
        if self.is_device_function:
            raise DeviceFunctionError(f"{self.__name__} is a device function: it can be called from a kernel only")
        raise LaunchError(
            f"kernel {self.__name__}: launch configuration was not specified; write {self.__name__}[grid, block](...)"
        )

    # Compiling.

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

    def specialize(self, *args: Any) -> Dispatcher:
        """This kernel for the types of *args* alone, compiled for the current device; nothing is copied or launched.

        *args* are values, or Numba types. Refused with a `RuntimeError` where there is one signature already.
        """
        if self.specialized or len(self._explicit) == 1:
            raise RuntimeError(
                f"Dispatcher already specialized: kernel {self.__name__} is for ({self._shown_signatures()})"
            )
        given = self._with_defaults(args)
        names = self._names_of(given)
        for value, name in zip(given, names, strict=True):
            if not isinstance(value, (types.Type, type)):
                check_arguments([value], [name])
        found = tuple(argument_type(value, name) for value, name in zip(given, names, strict=True))
        target = current_device().target
        kinds = self._choose(found, target)
        made = self._specialisations.get((target, kinds))
        if made is None:
            made = Dispatcher(self.py_func, self.options, extensions=self.extensions)
            made.compile_explicit([kinds])
            made.specialized = True
            self._specialisations[target, kinds] = made
        return made

    def recompile(self) -> None:
        """Compile anew for all signatures so far: what the function refers to may have changed.

        Launches configured before go on with the old code; functions that it calls are compiled anew by a
        `recompile` of their own.
        """
        from numba_hip.compilation.target_registry import known_targets

        with compiling, self._compiling:
            known = list(self._by_target)
            for cache in (self._by_target, self.overloads, self._loaded, self._configured, self._specialisations):
                cache.clear()
        for target in known_targets():
            target.typing_context.forget_device_function(self)
        for target_name, args, extents in known:
            if extents is None:  # else it is compiled with the next such launch
                self._compile(args, target_name)

    def mark_launch_config_sensitive(self) -> None:
        """Called while it is compiled for a launch: the code is for such launches alone, and not kept on disk."""
        ensure_current_launch_config()
        self.launch_config_sensitive = True

    @property
    def specializations(self) -> dict[tuple[str, Types], Dispatcher]:
        """The kernels that `specialize` made, by target and argument types."""
        return dict(self._specialisations)

    def _choose(self, given: Types, target: str) -> Types:
        """The types that this kernel is compiled for where arguments of types *given* are passed."""
        if not self._explicit:
            return given
        self._given.update(given)
        return choose_overload(self.py_func, self._names_of(given), self._explicit, given, target)

    def _shown_signatures(self) -> str:
        return "; ".join(", ".join(map(str, args)) for args in self.overloads)

    def compile(self, signature: Any, target: str | None = None) -> KernelCode:
        """Compile for *signature* (a string, a tuple of types or a Numba signature) and for *target*, which is the
        current device's when left out."""
        check_function(self.py_func, device=False, launched=True)
        args, return_type = normalize_signature(signature)
        if return_type not in (None, types.none, types.void):
            raise KernelSignatureError(
                f"kernel {self.__name__} was given return type {return_type}; it can be void only"
            )
        return self._compile(tuple(args), current_device().target if target is None else target)

    def compile_explicit(self, signatures: Iterable[Any]) -> None:
        """Compile for each of *signatures* now, and for no other types later."""
        if not self.is_device_function:
            self._explicit += [self.compile(signature).argument_types for signature in signatures]
            return
        self.device_signatures = {
            tuple(args): result for args, result in map(normalize_signature, signatures)
        }  # all of them before the first is compiled, which may call another
        for args in self.device_signatures:
            self.device_form().compile(args)

    def compile_device(self, args: Sequence[types.Type], return_type: types.Type | None = None) -> Any:
        """Compile a device function for *args*, for the current device; returns Numba's compile result.

        `KernelSignatureError` where it gives another type than *return_type*, if that is named.
        """
        result = self.device_form().compile(tuple(args))
        if return_type is not None and result.signature.return_type != return_type:
            raise KernelSignatureError(
                f"device function {self.__name__} returns {result.signature.return_type}, not {return_type}"
            )
        return result

    def device_form(self, target: str | None = None) -> DeviceFunction:
        """The form of this function that kernels for *target*, the current device's when left out, call."""
        from numba_hip.compilation.target_registry import compile_target

        context = compile_target(current_device().target if target is None else target).typing_context
        return context.device_function(self)

    def _compile(self, args: Types, target: str, config: LaunchConfig | None = None) -> KernelCode:
        code = self._by_target.get((target, args, self._extents(config)))
        if code is None:
            with compiling, self._compiling:
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
        observed = (
            target == CPU_TARGET and self.options.observed
        )  # whose places in the source are numbers of this process
        if self.options.cache and not observed and self.options.rewrite is None:
            from numba_hip.caching.code_cache import CodeCache

            self._cache = self._cache or CodeCache()
            place = self._cache.place(self.py_func, args, self.options, target)
        if self._cache is not None and place is not None:
            self._kept.add((target, args))
            code = self._cache.load(place)
            if code is not None:
                self._hits[args] += 1
                return code
        note_compilation(self)
        code = compile_kernel(self.py_func, args, self.options, target)
        self._misses[args] += 1
        if self.launch_config_sensitive:
            self._kept.discard((target, args))
        elif self._cache is not None and place is not None:
            self._cache.save(place, code)
        return code

    def _compile_with_lines(self, args: Types, target: str) -> CodeObject:
        """The code for *args*, and which lines it comes from. What it refers to may have changed since."""
        with compiling, self._compiling:
            return compile_kernel(self.py_func, args, replace(self.options, lineinfo=True), target).code_object

    # Launching.

    def launch(self, configured: ConfiguredKernel, args: Sequence[Any]) -> None:
        """Run this kernel as *configured*; see `numba_hip.jit` for what *args* can be.

        Host arrays are copied to the device and, once the kernel is done, back.
        """
        device = current_device()
        if self.extensions:
            return self._launch_converted(configured, args, device)
        key: list[Any] = [device]
        for value in args:
            kind = value.__class__
            if kind is DeviceArray:
                key.append((value.upper or describe(value)).code)
            elif kind in CLASS_TYPED or (kind is int and value in INT64):
                key.append(kind)
            else:
                return self._launch_converted(configured, args, device)
        ready = configured.ready.get(tuple(key))
        if ready is None:
            if len(args) != len(self._names_of(args)):
                return self._launch_converted(configured, args, device)
            ready = self._prepare(configured, tuple(key), args, device)
        launch, packing, code, pack_exactly = ready
        for callback in configured.pre_launch_callbacks:
            callback(code, configured)
        try:
            packed = b"".join([pack(value) for pack, value in zip(packing, args)])  # noqa: B905 - as long, by the key
        except NOT_PACKED:
            packed = pack_exactly(args)
        return launch(packed, args)

    def _launch_converted(self, configured: ConfiguredKernel, args: Sequence[Any], device: Device) -> None:
        """Launch with arguments that first have to be brought onto the device, or whose type depends on their value."""
        args = self._with_defaults(args)
        names = self._names_of(args)
        args, stand_ins, finishers = prepare(self.extensions, args, names, configured.config.stream)
        check_arguments(args, names)
        check_capture(args, names, configured.config.stream)
        transfer = Transfer(configured.config.stream)
        passed = [transfer.onto_device(value) for value in args]
        codes: list[Any] = [
            describe(value).code if isinstance(value, DeviceArray) else type_code(type_of(value, name))
            for value, name in zip(passed, names, strict=True)
        ]
        for place, stand_in in stand_ins.items():
            codes[place] = tuple(map(type_code, stand_in))
        key = (device, *codes)
        ready = configured.ready.get(key) or self._prepare(configured, key, passed, device, stand_ins)
        launch, packing, code, pack_exactly = ready
        for callback in configured.pre_launch_callbacks:
            callback(code, configured)
        try:
            packed = b"".join([pack(value) for pack, value in zip(packing, passed, strict=True)])
        except NOT_PACKED:
            packed = pack_exactly(passed)
        launch(packed, passed)
        transfer.back_to_host()
        for finish in finishers:
            finish()

    def _prepare(
        self,
        configured: ConfiguredKernel,
        key: tuple[Any, ...],
        args: Sequence[Any],
        device: Device,
        stand_ins: Mapping[int, StandIn] = NO_STAND_INS,
    ) -> ReadyLaunch:
        """Compile for the types of *args*, load, and check the configuration; the result is kept under *key*."""
        config = configured.config
        loaded = self._loaded.get((*key, self._extents(config)))
        if loaded is None:
            # Before Python 3.12 a `cached_property` has a lock, for all of its objects.
            with compiling, compiling_for(self, config, args):
                loaded = self._load(key, args, device, config, stand_ins)
        launch = loaded.function.configure(
            config.grid, config.block, stream=config.stream, dynamic_shared=config.dynamic_shared,
            cooperative=is_cooperative(loaded.code.bitcode),
        )  # fmt: skip
        started: LaunchFunction = with_output(launch, config.stream)
        if loaded.record is not None:
            started = RecordedLaunch(started, loaded.record, loaded.code.parameters)
        if loaded.code.granule:
            from numba_hip.races.launch import ObservedLaunch

            started = ObservedLaunch(started, launch, loaded.code, loaded.names, config.stream)
        ready = configured.ready[key] = ReadyLaunch(started, loaded.packing, loaded.code, loaded.pack_exactly)
        return ready

    def _load(
        self,
        key: tuple[Any, ...],
        args: Sequence[Any],
        device: Device,
        chosen: LaunchConfig,
        stand_ins: Mapping[int, StandIn],
    ) -> LoadedKernel:
        names = self._names_of(args)
        given = tuple(
            stand_ins[place].compiled_for if place in stand_ins else type_of(value, name)
            for place, (value, name) in enumerate(zip(args, names, strict=True))
        )
        kinds = self._choose(given, device.target)
        by_kinds = (device, *kinds)
        known = None if stand_ins else self._loaded.get((*by_kinds, self._extents(chosen)))
        if known is not None:  # for arguments of other Python types: numbers of NumPy's after Python's
            self._loaded.update({(*key, self._extents(chosen)): known})
            return known
        try:
            code = self._compile(kinds, device.target, chosen)
        except TypingError as error:
            explain_writing(error, self.__name__, names, kinds)
            raise
        if code.granule:
            device.driver.watch_writes()  # type: ignore[attr-defined]
        check_captured(self.__name__, code.captured, device)
        module = device.load(code.code_object)
        set_up(module, code.linked)
        function = module.function(code.name)
        record = IndexRecord() if code.target.checked and device.is_cpu else None
        function.describe_fault = exception_describer(
            code.faults, record, self.py_func, partial(self._compile_with_lines, kinds, device.target)
        )
        if (device.target, kinds) in self._kept:
            function.keep_code(config.cache_dir().absolute() / "machine-code", config.cache_dir.variable)
        packed = [stand_ins[place].packed_as if place in stand_ins else kind for place, kind in enumerate(kinds)]
        if stand_ins and sum(map(leaf_count, packed)) != len(code.parameters):
            shown = ", ".join(f"{names[place]} as {stand_in.packed_as}" for place, stand_in in stand_ins.items())
            raise KernelArgumentError(
                f"kernel {self.__name__} takes {len(code.parameters)} numbers for ({', '.join(map(str, kinds))}); "
                f"its extensions passed {shown}, which makes {sum(map(leaf_count, packed))}"
            )
        packing = packers(packed, code.parameters, names)
        loaded = LoadedKernel(function, packing, code, record, tuple(packed), names)
        places = [key] if stand_ins else [key, by_kinds]
        self._loaded.update({(*place, self._extents(chosen)): loaded for place in places})
        return loaded

    def launched_shape(self, code: KernelCode) -> Dim3 | None:
        """The last new shape of blocks that *code* was launched with on the CPU device; ``None`` where it was not."""
        functions = {loaded.function for loaded in self._loaded.values() if loaded.code is code}
        shapes = [shape for function in functions for shape in getattr(function.handle, "workers", ())]
        return shapes[-1] if shapes else None

    def _with_defaults(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """*args*, and the defaults of the parameters that are left out; `KernelArgumentError` for another number."""
        defaults = [self._signature.parameters[name].default for name in self._names[len(args) :]]
        if (len(args) > len(self._names) and self._rest is None) or inspect.Parameter.empty in defaults:
            least = "" if self._rest is None else "at least "
            raise KernelArgumentError(
                f"kernel {self.__name__} takes {least}{len(self._names)} arguments ({', '.join(self._names)}); "
                f"the launch passes {len(args)}"
            )
        return (*args, *defaults)

    def _names_of(self, args: Sequence[Any]) -> tuple[str, ...]:
        """What messages call each of *args*: the names of the parameters, as many as there are at least."""
        return argument_names(self._names, self._rest, len(args))

    # Pickling.

    def __reduce__(self) -> tuple[Any, ...]:
        state = {
            "py_func": self.py_func,
            "options": self.options,
            "device": self.is_device_function,
            "explicit": self._explicit,
            "device_signatures": self.device_signatures,
            "specialized": self.specialized,
            "extensions": self.extensions,
        }
        return pickling.reduce_dispatcher(self, state)

    def restore(
        self,
        py_func: Callable[..., Any],
        options: CompileOptions,
        device: bool,
        explicit: list[Types],
        device_signatures: dict[Types, types.Type | None],
        specialized: bool,
        extensions: list[Extension],
    ) -> None:
        """Become what was pickled; nothing is compiled before it is needed."""
        self.__init__(py_func, options, device=device, extensions=extensions)  # type: ignore[misc]
        self._explicit = explicit
        self.device_signatures = device_signatures
        self.specialized = specialized
