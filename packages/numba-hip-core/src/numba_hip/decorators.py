"""``@hip.jit``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from hip_runtime import config as runtime_config
from numba_hip import config
from numba_hip._numba.typing import is_signature
from numba_hip.advisory_warnings import advise_on_needless, advise_on_options
from numba_hip.compilation.options import NEEDLESS, CompileOptions, check_switch
from numba_hip.dispatch.argument_extensions import ArgumentExtension
from numba_hip.dispatch.decorated_function import python_function
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.dispatch.function_checks import check_function
from numba_hip.errors import OptionError, without_own_frames

if TYPE_CHECKING:
    from numba.core.types import Type
    from numba.core.typing.templates import Signature
    from typing_extensions import TypedDict, Unpack

    from numba_hip.compilation.options import Rewriting

    SignatureLike: TypeAlias = str | tuple[Type, ...] | Signature

    class JitOptions(TypedDict, total=False):
        """The options of `jit` and their types, for editors and type checkers."""

        fastmath: bool | Literal["ulp4"] | set[str] | None
        fma: bool | None
        opt: bool | None
        debug: bool | Literal["race"] | None
        error_model: Literal["python", "numpy"] | None
        inline: bool | Literal["never", "always"] | Callable[..., bool]
        forceinline: bool
        launch_bounds: int | tuple[int, ...] | None
        max_registers: int | None
        waves_per_eu: int | tuple[int, int] | None
        shared_memory_carveout: int | str | None
        cache: bool
        link: Any
        lto: bool | None
        boundscheck: bool | None
        exceptions: bool
        lineinfo: bool
        wave_size: Literal[32, 64] | None
        host_atomics: bool
        unsafe_fp_atomics: bool
        races: bool
        rewrite: Rewriting | None


PyFunc = Callable[..., Any]


@overload
def jit(
    function_or_signature: PyFunc,
    device: bool = False,
    *,
    extensions: Iterable[ArgumentExtension] | None = (),
    **options: Unpack[JitOptions],
) -> Dispatcher: ...
@overload
def jit(
    function_or_signature: SignatureLike | list[SignatureLike] | None = None,
    device: bool = False,
    *,
    extensions: Iterable[ArgumentExtension] | None = (),
    **options: Unpack[JitOptions],
) -> Callable[[PyFunc], Dispatcher]: ...
@without_own_frames
def jit(
    function_or_signature: Any = None,
    device: bool = False,
    *,
    extensions: Iterable[ArgumentExtension] | None = (),
    **options: Any,
) -> Any:
    """Compile a Python function for the device: as a kernel, or with ``device=True`` as a function that kernels call.

    ``@hip.jit`` compiles when a kernel is launched with argument types that are new to it. With a signature
    (``"void(float32[:], int32)"``, a tuple of types, or a list of either) it compiles at once, for those types alone.

    A kernel is launched as ``kernel[grid, block, stream, dynamic_shared](...)``. Its arguments can be numbers, tuples
    of them, records, NumPy arrays (copied to the device, and back after the launch; `In`, `Out` and `InOut` say which
    way), device arrays, and arrays of other libraries that have a ``__cuda_array_interface__`` or DLPack. *extensions*
    see them first, and may pass something else: see `numba_hip.dispatch.argument_extensions`.

    A kernel with ``*args`` is compiled for as many arguments as a launch passes, or a signature names. A coroutine, and
    a function with ``**kwargs`` or keyword-only parameters is a `KernelSignatureError` here already, and what is no
    Python function a `NotAFunctionError`. A generator is one where it is launched or given a signature: without that
    it may be there for kernels to call.

    The other options, of which an unknown one is an `OptionError`:

    fastmath
        Allow transformations that ignore NaN, infinities and the order of operations: a bool, or the set of LLVM's
        fast-math flags. ``"ulp4"`` is all flags, and on the CPU device also functions of float64 that are faster, with
        errors of up to 4 units in the last place instead of 1 to 2.5; in a set it is these functions alone.
    fma
        Whether a product and a sum of this function may become one operation, which rounds once; None leaves that to
        ``fastmath``, and without either each is rounded, on every device. Numba CUDA's default is True.
    opt
        Optimise; the setting ``NUMBA_HIP_OPT`` decides where it is None. Without it the code is as it was lowered, for
        looking at.
    debug
        ``error_model="python"``, ``exceptions`` and ``lineinfo``; on AMD GPUs also names, types and places of variables
        in DWARF. With ``opt=False`` each variable has its place in memory at all times; optimised, some have none.
        ``"race"`` is none of that: the CPU device reports accesses that race and reads of what nobody wrote, see
        ``races``.
    error_model
        ``"python"``: a division by zero in this function raises `ZeroDivisionError`. ``"numpy"``: of floats it gives
        infinities and NaN, of integers 0 on the CPU device and any number on an AMD GPU. ``debug`` decides where it is
        None.
    lineinfo
        Keep in the code which line of the source each instruction comes from (line tables of DWARF). The instructions
        are the same. What a device function of its own is made of counts as the line that calls it, unless it has the
        option, too.
    exceptions
        Whether the host learns of exceptions that the kernel raises on an AMD GPU. Without it a thread that raises
        stops, and nobody is told; that costs nothing. The CPU device always tells.
    inline
        Whether Numba inlines a device function before typing: ``"never"``, ``"always"``, or a cost model, a function
        that is asked for each call, as in Numba. True is ``forceinline=True``: the function keeps the types of its
        signature, which Numba's inliner does not see, and large ones compile in half of the time.
    forceinline
        Make LLVM inline a device function.
    launch_bounds
        Most threads that a block of this kernel will have, or a pair of that and the number of blocks that shall share
        one compute unit: an AMD GPU's threads get no more registers than that leaves. A third number, the blocks of a
        cluster, changes nothing: AMD GPUs have no clusters.
    max_registers
        Most vector registers that a thread has on an AMD GPU; the rest of its values lie in memory. With fewer than it
        cannot do without, making code is a `hip_devicelib.errors.UnsupportedError`. The CPU device gives a thread all.
    waves_per_eu
        Fewest waves that each SIMD unit of an AMD GPU shall hold at a time, or a pair of the fewest and the most: the
        compiler gives a thread as many registers as that leaves (HIP's ``amdgpu_waves_per_eu``). The second number of
        ``launch_bounds`` says the same in blocks. The CPU device has no use for it.
    shared_memory_carveout
        How much of a cache shall be shared memory, -1 to 100 or ``"default"``, ``"MaxL1"``, ``"MaxShared"``, in any
        case. It is checked, and changes nothing: shared memory of AMD GPUs is not part of a cache.
    cache
        Keep compiled kernels in a directory (``NUMBA_HIP_CACHE_DIR``), where later processes find them. A device
        function is kept as part of the kernels that call it.
    boundscheck
        Whether an index out of range raises `IndexError`, in this kernel and in all that it calls; the setting
        ``NUMBA_HIP_BOUNDSCHECK`` decides where it is None.
    link
        LLVM bitcode and LLVM IR that define functions of `declare_device`: paths of files, or `LinkedCode`.
    lto
        Changes nothing: what is linked is always optimised together with the kernel.
    wave_size
        Lanes of a wave of this kernel, 32 or 64; what the device prefers where it is None. RDNA GPUs (gfx10 to gfx12)
        and the CPU device have both, CDNA GPUs (gfx9) have 64. A device function has the waves of the kernel that calls
        it.
    host_atomics
        Whether atomic operations of this kernel may reach memory of the host or of another GPU: mapped and managed
        arrays, peers. AMD GPUs have fewer instructions for that, and do the others by comparing and swapping. Without
        it such an operation on such memory may be lost.
    races
        Whether the CPU device reports races; ``debug="race"`` says the same. The setting ``NUMBA_HIP_CPU_RACES`` asks
        for it in all kernels. The code is slow then; on AMD GPUs it is refused.
    unsafe_fp_atomics
        Whether atomic operations on floats may take denormal numbers for zero, as some instructions of AMD GPUs do.
    rewrite
        Gives the function that is compiled in the place of the decorated one: called with that and the types of its
        arguments, for each new tuple of them. Such a function is not kept in the cache; see `Rewriting`.
    """
    if "func_or_sig" in options:  # Numba's name for the parameter
        function_or_signature = options.pop("func_or_sig")
    chosen = CompileOptions.of_jit(_without_needless(options))
    check_switch("device", device)
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


def _without_needless(options: dict[str, Any]) -> dict[str, Any]:
    """*options* as they are, or, if the setting asks for warnings about options, without those that say what holds for
    every kernel, with a warning: Numba CUDA ignores what it does not know."""
    needless = [name for name in NEEDLESS if name in options] if config.option_warnings() else []
    for name in needless:
        advise_on_needless(name, options[name], NEEDLESS[name])
    return {name: value for name, value in options.items() if name not in needless}


def _checked(extensions: Iterable[ArgumentExtension] | None, device: bool) -> list[ArgumentExtension]:
    try:
        found = list(extensions or ())
    except TypeError:
        raise OptionError(
            f"extensions is {extensions!r}; it can be a list of objects with a method prepare_args"
        ) from None
    for extension in found:
        if not callable(getattr(extension, "prepare_args", None)):
            raise OptionError(f"extensions have a method prepare_args; a {type(extension).__name__} has none")
    if found and device:
        raise OptionError("extensions see the arguments of a launch; a device function has none")
    return found


@without_own_frames
def _dispatcher(
    function: Any, *, options: CompileOptions, device: bool, extensions: list[ArgumentExtension], signatures: list[Any]
) -> Dispatcher:
    function = python_function(function)
    if device and options.wave_size is not None:
        raise OptionError(
            f"wave_size={options.wave_size} of a device function: its waves are those of the kernel that calls it; "
            "give that kernel the option"
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
            f"{config.simulator.variable} runs kernels in plain Python, and only the CPU device finds races: unset "
            f"it, or leave out debug='race' and {runtime_config.cpu_races.variable}"
        )
    from numba_hip.simulator.dispatcher import SimulatedDispatcher

    return SimulatedDispatcher
