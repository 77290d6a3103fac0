"""``@hip.jit``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, overload

from hip_runtime import config as runtime_config
from numba_hip import config
from numba_hip._numba.typing import is_signature
from numba_hip.advice import advise_on_options
from numba_hip.compilation.options import CompileOptions
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.dispatch.eligibility import python_function
from numba_hip.dispatch.extensions import Extension
from numba_hip.dispatch.function_checks import check_function
from numba_hip.errors import OptionError
from numba_hip.tracebacks import without_own_frames

PyFunc = Callable[..., Any]


@overload
def jit(
    function_or_signature: PyFunc, *, device: bool = False, extensions: Iterable[Extension] | None = (), **options: Any
) -> Dispatcher: ...
@overload
def jit(
    function_or_signature: Any = None,
    *,
    device: bool = False,
    extensions: Iterable[Extension] | None = (),
    **options: Any,
) -> Callable[[PyFunc], Dispatcher]: ...
@without_own_frames
def jit(
    function_or_signature: Any = None,
    *,
    device: bool = False,
    extensions: Iterable[Extension] | None = (),
    **options: Any,
) -> Any:
    """Compile a Python function for the device: as a kernel, or with ``device=True`` as a function that kernels call.

    ``@hip.jit`` compiles when a kernel is launched with argument types that are new to it. With a signature
    (``"void(float32[:], int32)"``, a tuple of types, or a list of either) it compiles at once, for those types alone.

    A kernel is launched as ``kernel[grid, block, stream, dynamic_shared](...)``. Its arguments can be numbers, tuples
    of them, records, NumPy arrays (copied to the device, and back after the launch; `In`, `Out` and `InOut` say which
    way), device arrays, and arrays of other libraries that have a ``__cuda_array_interface__`` or DLPack. *extensions*
    see them first, and may pass something else: see `numba_hip.dispatch.extensions`.

    A kernel with ``*args`` is compiled for as many arguments as a launch passes, or a signature names. A coroutine, and
    a function with ``**kwargs`` or keyword-only parameters is a `KernelSignatureError` here already, and what is no
    Python function a `NotAFunctionError`. A generator is one where it is launched or given a signature: without that
    it may be there for kernels to call.

    The other options are those of `numba_hip.compilation.options.CompileOptions`; an unknown one is an `OptionError`.
    """
    chosen = CompileOptions.of_jit(options)
    advise_on_options(chosen)
    make = partial(_dispatcher, options=chosen, device=device, extensions=_checked(extensions, device))
    signatures: list[Any]
    if function_or_signature is None:
        signatures = []
    elif is_signature(function_or_signature):
        signatures = [function_or_signature]
    elif isinstance(function_or_signature, list):
        signatures = function_or_signature
    else:
        return make(function_or_signature, signatures=[])
    return partial(make, signatures=signatures)


def _checked(extensions: Iterable[Extension] | None, device: bool) -> list[Extension]:
    found = list(extensions or ())
    for extension in found:
        if not callable(getattr(extension, "prepare_args", None)):
            raise OptionError(f"extensions have a method prepare_args; a {type(extension).__name__} has none")
    if found and device:
        raise OptionError("extensions see the arguments of a launch; a device function has none")
    return found


@without_own_frames
def _dispatcher(
    function: Any, *, options: CompileOptions, device: bool, extensions: list[Extension], signatures: list[Any]
) -> Dispatcher:
    function = python_function(function)
    if device and options.wave_size is not None:
        raise OptionError(
            f"wave_size={options.wave_size} of a device function: it has the waves of the kernel that calls it; give "
            "that kernel the option"
        )
    check_function(function, device=device, launched=bool(signatures) and not device)
    dispatcher = _dispatcher_class(options)(function, options, device=device, extensions=extensions)
    dispatcher.compile_explicit(signatures)
    return dispatcher


def _dispatcher_class(options: CompileOptions) -> type[Dispatcher]:
    if not config.simulator():
        return Dispatcher
    if options.observed:
        raise OptionError(
            f"{config.simulator.variable} leaves kernels to Python, and races are found by the CPU device: leave out "
            f"either that, or debug='race' and {runtime_config.cpu_races.variable}"
        )
    from numba_hip.simulator.dispatcher import SimulatedDispatcher

    return SimulatedDispatcher
