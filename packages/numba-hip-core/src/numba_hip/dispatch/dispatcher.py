"""The object that ``@hip.jit`` makes of a function: it compiles the function at the first launch or call with new
argument types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from numba.core import types
from numba.core.errors import TypingError

from hip_devicelib.forking import compiling
from hip_runtime import Device, DeviceArray, Stream, current_device
from hip_runtime.errors import LaunchError
from numba_hip import config as settings
from numba_hip._numba.typing import type_code
from numba_hip.arguments.argument_types import argument_type, check_arguments, check_devices, describe, plain, type_of
from numba_hip.arguments.binding import argument_codes, binder
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.compilation.options import CompileOptions
from numba_hip.dispatch import pickling
from numba_hip.dispatch.argument_extensions import ArgumentExtension, StandIn, prepare
from numba_hip.dispatch.configuration_methods import Configurable
from numba_hip.dispatch.explanation_methods import Explained
from numba_hip.dispatch.forall import ForAll
from numba_hip.dispatch.launch import ConfiguredKernel, Dim3, LaunchConfig, ReadyLaunch
from numba_hip.dispatch.launch_context import compiling_for
from numba_hip.dispatch.loading import LoadedKernel, keep_machine_code, load_kernel
from numba_hip.dispatch.numba_methods import NumbaMethods
from numba_hip.dispatch.overloads import Overloads
from numba_hip.dispatch.transfer import ArgumentCopies, check_capture
from numba_hip.errors import DeviceFunctionError, without_own_frames
from numba_hip.language.stub import interpreter

Types = tuple[types.Type, ...]

NO_STAND_INS: Mapping[int, StandIn] = {}


class Dispatcher(Overloads, Configurable, Explained, NumbaMethods):
    """A function of ``hip.jit``: launched as ``kernel[grid, block](...)``, or called from other kernels.

    Each new tuple of argument types is compiled once for each kind of device. Made by `numba_hip.jit`.
    """

    def __init__(
        self,
        py_func: Callable[..., Any],
        options: CompileOptions,
        *,
        device: bool = False,
        extensions: Iterable[ArgumentExtension] = (),
    ) -> None:
        super().__init__(py_func, options, device=device)
        self.extensions = list(extensions)
        """What sees the arguments of each launch first; see `numba_hip.dispatch.argument_extensions`."""
        self.identity = ""
        self._loaded: dict[tuple[Any, ...], LoadedKernel] = {}
        self._start_configuring()
        self._specialisations: dict[tuple[str, Types], Dispatcher] = {}
        self._recent: ReadyLaunch | None = None
        """The last one that was prepared, if its code serves launches of all shapes."""

    def __repr__(self) -> str:
        kind = "device function" if self.is_device_function else "kernel"
        return f"<hip {kind} {self.__qualname__}>"

    __iter__ = None
    """Not by ``kernel[0]``, ``kernel[1]`` and so on, as of whatever has elements."""

    def forall(self, ntasks: int, tpb: int = 0, stream: Stream | int | None = 0, sharedmem: int = 0) -> ForAll:
        """A launch with at least *ntasks* threads along x, in blocks of *tpb*, which is chosen where it is 0.

        The kernel has to leave out the threads beyond *ntasks*. *sharedmem* is in bytes. `LaunchError`.
        """
        return ForAll(self, ntasks, tpb, stream, sharedmem)

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """Raises an error: a kernel needs a grid, and a device function is called from kernels. In the simulator a
        device function is its Python function, also if it was decorated to be compiled."""
        if self.is_device_function:
            thread = interpreter()
            if thread is not None:
                return thread.call(self.py_func, self.options.raises_divisions, *args, **kws)
            raise DeviceFunctionError(f"{self.__name__} is a device function: it can be called from a kernel only")
        raise LaunchError(
            f"kernel {self.__name__}: launch configuration was not specified; write {self.__name__}[grid, block](...)"
        )

    @without_own_frames
    def specialize(self, *args: Any) -> Dispatcher:
        """This kernel for the types of *args* alone, compiled for the current device; nothing is copied or launched.

        *args* are values, or Numba types. Refused with a `RuntimeError` where there is one signature already.
        """
        if self.specialized or len(self._explicit) == 1:
            raise RuntimeError(
                f"Dispatcher already specialized: kernel {self.__name__} is for ({self._shown_signatures()})"
            )
        given = self.parameters.complete(args)
        target = current_device().target
        kinds = self._choose(self._types_of(given), target)
        made = self._specialisations.get((target, kinds))
        if made is None:
            made = Dispatcher(self.py_func, self.options, extensions=self.extensions)
            made.compile_explicit([kinds])
            made.specialized = True
            self._specialisations[target, kinds] = made
        return made

    def _types_of(self, given: Sequence[Any]) -> Types:
        """The types of *given*, which are values or Numba types."""
        names = self.parameters.names_of(given)
        for value, name in zip(given, names, strict=True):
            if not isinstance(value, (types.Type, type)):
                check_arguments([value], [name])
        return tuple(argument_type(value, name) for value, name in zip(given, names, strict=True))

    def _forget_code(self) -> None:
        super()._forget_code()
        self._forget_launches()
        self._specialisations.clear()

    def _forget_launches(self) -> None:
        """Let go of what launches found out."""
        self._recent = None
        self._loaded.clear()
        self._start_configuring()

    @property
    def specializations(self) -> dict[tuple[str, Types], Dispatcher]:
        """The kernels that `specialize` made, by target and argument types."""
        return dict(self._specialisations)

    # Launching.

    def launch(self, configured: ConfiguredKernel, args: Sequence[Any]) -> None:
        """Run this kernel as *configured*; see `numba_hip.jit` for what *args* can be.

        Host arrays are copied to the device and, once the kernel is done, back.
        """
        device = current_device()
        if self.extensions:
            return self._launch_converted(configured, args, device)
        packed = self._bind_as_before(configured, args, device)
        recent = configured.ready.recent
        if packed is not None and recent is not None:
            configured.call_back(recent.loaded.code)
            return recent.launch(packed, configured.config.grid, configured.handle, args)
        return self._launch_unlike(configured, args, device)

    def _launch_unlike(self, configured: ConfiguredKernel, args: Sequence[Any], device: Device) -> None:
        """Launch with arguments of other types than the last time."""
        codes = argument_codes(args)
        if codes is None:
            return self._launch_converted(configured, args, device)
        key = (device, *codes)
        ready = configured.ready.get((*key, self._extents(configured.config)))
        if ready is None:
            if len(args) != len(self.parameters.names_of(args)):
                return self._launch_converted(configured, args, device)
            ready = self._prepare(configured, key, args, device)
        if ready.bind is not None and not self.launch_config_sensitive:
            configured.ready.recent = ready
        launch, loaded = ready[:2]
        configured.call_back(loaded.code)
        packed = loaded.pack(args)
        return launch(packed, configured.config.grid, configured.handle, args)

    def _launch_converted(self, configured: ConfiguredKernel, args: Sequence[Any], device: Device) -> None:
        """Launch with arguments that first have to be brought onto the device, or whose type depends on their value."""
        args = self.parameters.complete(args)
        names = self.parameters.names_of(args)
        args, stand_ins, finishers = prepare(self.extensions, args, names, configured.config.stream)
        args = [plain(value, name) for value, name in zip(args, names, strict=True)]
        check_arguments(args, names)
        check_capture(args, names, configured.config.stream)
        transfer = ArgumentCopies(configured.config.stream)
        passed = [transfer.onto_device(value) for value in args]
        check_devices(passed, names, device)
        codes: list[Any] = [
            describe(value).code if isinstance(value, DeviceArray) else type_code(type_of(value, name))
            for value, name in zip(passed, names, strict=True)
        ]
        for place, stand_in in stand_ins.items():
            codes[place] = tuple(map(type_code, stand_in))
        key = (device, *codes)
        known = configured.ready.get((*key, self._extents(configured.config)))
        ready = known or self._prepare(configured, key, passed, device, stand_ins)
        launch, loaded = ready[:2]
        configured.call_back(loaded.code)
        packed = loaded.pack(passed)
        transfer.advise()
        launch(packed, configured.config.grid, configured.handle, passed)
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
        check_devices(args, self.parameters.names_of(args), device)
        loaded = self._loaded.get((*key, self._extents(config)))
        if loaded is None:
            from hip_devicelib.collector import collector_paused

            # A process is not forked between the steps of this.
            with compiling, collector_paused(), compiling_for(self, config, args):
                loaded = self._load(key, args, device, config, stand_ins)
        started = loaded.configure(config.block, config.dynamic_shared)
        if warns := settings.performance_warnings():
            self._warn_if_slow(loaded.code.argument_types, config)
        bind = None if stand_ins else binder(key[1:], loaded.kinds, loaded.packing)
        place = (*key, self._extents(config))
        ready = configured.ready[place] = ReadyLaunch(started, loaded, device, bind)
        self._recent = None if warns or self.launch_config_sensitive else ready
        return ready

    def _bind_as_before(self, configured: ConfiguredKernel, args: Sequence[Any], device: Device) -> bytes | None:
        """The packed *args* of the first launch in blocks of a shape, if they are of the same types as those of the
        last launch in blocks of another, whose code serves these."""
        recent = self._recent
        if recent is None or recent.device is not device or recent.bind is None or configured.ready:
            return None
        packed = recent.bind(args)
        if packed is not None:
            launch = recent.loaded.configure(configured.config.block, configured.config.dynamic_shared)
            configured.ready.recent = ReadyLaunch(launch, *recent[1:])
        return packed

    def _load(
        self,
        key: tuple[Any, ...],
        args: Sequence[Any],
        device: Device,
        chosen: LaunchConfig,
        stand_ins: Mapping[int, StandIn],
    ) -> LoadedKernel:
        names = self.parameters.names_of(args)
        given = tuple(
            stand_ins[place].compiled_for if place in stand_ins else type_of(value, name)
            for place, (value, name) in enumerate(zip(args, names, strict=True))
        )
        kinds = self._choose(given, device.target)
        by_kinds = (device, *kinds)
        known = None if stand_ins else self._loaded.get((*by_kinds, self._extents(chosen)))
        if known is not None:  # for arguments of other Python types, such as NumPy's numbers after Python's
            self._loaded.update({(*key, self._extents(chosen)): known})
            return known
        try:
            code = self._compile(kinds, device.target, chosen)
        except TypingError as error:
            from numba_hip.dispatch.argument_mismatch import explain_arguments

            explain_arguments(error, self.__name__, names, kinds)
            raise
        lines = partial(self._compile_with_lines, kinds, device.target)
        loaded = load_kernel(code, device, self.py_func, names, stand_ins, lines)
        if (device.target, kinds) in self._kept:
            keep_machine_code(loaded.function)
        places = [key] if stand_ins else [key, by_kinds]
        self._loaded.update({(*place, self._extents(chosen)): loaded for place in places})
        return loaded

    def launched_shape(self, code: KernelCode) -> Dim3 | None:
        """The last new shape of blocks that *code* was launched with on the CPU device; ``None`` where it was not."""
        functions = {loaded.function for loaded in self._loaded.values() if loaded.code is code}
        shapes = [shape for function in functions for shape in getattr(function.handle, "workers", ())]
        return shapes[-1] if shapes else None

    # Pickling.

    def __reduce__(self) -> tuple[Any, ...]:
        state = {
            "py_func": self.py_func,
            "options": self.options,
            "device": self.is_device_function,
            "explicit": self._explicit,
            "closed": self._closed,
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
        closed: list[Types],
        device_signatures: dict[Types, types.Type | None],
        specialized: bool,
        extensions: list[ArgumentExtension],
    ) -> None:
        """Restore the pickled state; nothing is compiled before it is needed."""
        self.__init__(py_func, options, device=device, extensions=extensions)  # type: ignore[misc]
        self._explicit = explicit
        self._closed = closed
        self.device_signatures = device_signatures
        self.specialized = specialized
