"""The options of `jit`, as one value that decides what code comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from hip_runtime import config as runtime_config
from numba_hip import config
from numba_hip.abi.variant import Variant
from numba_hip.errors import OptionError
from numba_hip.linked_code import as_items
from numba_hip.suggestions import hint

CARVEOUTS = ("default", "MaxL1", "MaxShared")
"""Names of values of ``shared_memory_carveout``."""


class Rewriting(Protocol):
    """The option ``rewrite``."""

    @property
    def sources(self) -> Mapping[tuple[Any, ...], str]:
        """The source of what was compiled, by the types of the arguments."""

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...], /) -> Callable[..., Any]:
        """The function to compile for arguments of the types *args*."""


@dataclass(frozen=True)
class CompileOptions:
    """What `jit` was told about the code to make.

    fastmath
        Allow transformations that ignore NaN, infinities and the order of operations: a bool, or the set of LLVM's
        fast-math flags.
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
        Whether Numba inlines a device function before typing: ``"never"`` or False, ``"always"`` or True, or a cost
        model, a function that is asked for each call, as in Numba.
    forceinline
        Make LLVM inline a device function.
    launch_bounds
        Most threads that a block of this kernel will have, or a pair of that and the number of blocks that shall share
        one compute unit: an AMD GPU's threads get no more registers than that leaves. A third number, the blocks of a
        cluster, changes nothing: AMD GPUs have no clusters.
    max_registers
        Most vector registers that a thread has on an AMD GPU; the rest of its values lie in memory. With fewer than it
        cannot do without, making code is a `hip_devicelib.errors.UnsupportedError`. The CPU device gives a thread all.
    shared_memory_carveout
        How much of a cache shall be shared memory, -1 to 100 or ``"default"``, ``"MaxL1"``, ``"MaxShared"``. It is
        checked, and changes nothing: shared memory of AMD GPUs is not part of a cache.
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

    fastmath: Any = False
    opt: bool = True
    debug: bool = False
    error_model: str | None = None
    inline: Any = "never"
    forceinline: bool = False
    launch_bounds: int | tuple[int, ...] | None = None
    max_registers: int | None = None
    shared_memory_carveout: int | str | None = None
    cache: bool = False
    link: tuple[Any, ...] = ()
    lto: bool | None = None
    boundscheck: bool | None = None
    exceptions: bool = False
    lineinfo: bool = False
    wave_size: int | None = None
    host_atomics: bool = False
    unsafe_fp_atomics: bool = False
    races: bool = False
    rewrite: Rewriting | None = None

    @classmethod
    def of_jit(cls, given: dict[str, Any]) -> CompileOptions:
        """The options given to `jit`; `OptionError` where one is unknown or cannot be honoured."""
        known = {field.name for field in fields(cls)}
        for name, default in (("debug", config.debug), ("opt", config.opt)):
            if given.get(name) is None:
                given = {**given, name: default()}
        unknown = given.keys() - known
        if unknown:
            raise OptionError(_describe_unknown(sorted(unknown), sorted(known)))
        inline = given.get("inline", "never")
        if isinstance(inline, bool):
            inline = "always" if inline else "never"
        given = {**given, "link": as_items(given.get("link")), "inline": inline}
        if isinstance(given["debug"], str):
            if given["debug"] != "race":
                raise OptionError(f"debug is {given['debug']!r}; it can be a bool, or 'race'")
            given = {**given, "debug": False, "races": True}
        options = cls(**given)
        if options.inline not in ("never", "always") and not callable(options.inline):
            raise OptionError(f"inline is {options.inline!r}; it can be 'never', 'always', a bool or a cost model")
        registers = options.max_registers
        if registers is not None and (type(registers) is not int or registers < 1):
            raise OptionError(f"max_registers is {registers!r}; it has to be a whole number, 1 or more")
        _check_carveout(options.shared_memory_carveout)
        if options.error_model not in (None, "python", "numpy"):
            raise OptionError(f"error_model is {options.error_model!r}; it can be 'python' or 'numpy'")
        if options.wave_size is not None and (type(options.wave_size) is not int or options.wave_size not in (32, 64)):
            raise OptionError(f"wave_size is {options.wave_size!r}; a wave can have 32 or 64 lanes")
        if options.rewrite is not None and not callable(options.rewrite):
            raise OptionError(f"rewrite is {options.rewrite!r}; it has to be callable")
        # Impossible launch bounds are refused here, not at the first launch.
        _ = options.max_block_threads, options.min_unit_blocks
        return options

    @classmethod
    def of_dispatcher(cls, dispatcher: Any) -> CompileOptions:
        """The options that a dispatcher of ``njit`` or ``hip.jit`` brings along when a kernel calls it."""
        known = {"fastmath", "inline", "forceinline", "link", "lineinfo", "error_model", "debug", "rewrite"}
        return cls(**{name: value for name, value in dispatcher.targetoptions.items() if name in known and value})

    @property
    def checked(self) -> bool:
        """Whether indices are checked."""
        return config.boundscheck() if self.boundscheck is None else bool(self.boundscheck)

    @property
    def observed(self) -> bool:
        """Whether the CPU device reports races."""
        return self.races or runtime_config.cpu_races() != "0"

    @property
    def variant(self) -> Variant:
        """What these options say about the kernel with all that it calls."""
        atomics = bool(self.host_atomics), bool(self.unsafe_fp_atomics)
        return Variant(self.checked, self.wave_size, *atomics, optimised=bool(self.opt), observed=self.observed)

    @property
    def keeps_lines(self) -> bool:
        """Whether the code has line tables."""
        return bool(self.lineinfo or self.debug)

    @property
    def raises_divisions(self) -> bool:
        """Whether a division by zero raises."""
        return bool(self.debug) if self.error_model is None else self.error_model == "python"

    @property
    def reports_faults(self) -> bool:
        """Whether exceptions reach the host on AMD GPUs, too."""
        return bool(self.exceptions or self.debug or self.checked or self.error_model == "python")

    @property
    def max_block_threads(self) -> int:
        """Most threads that a block may have under ``launch_bounds``; 1024, what the hardware can, without."""
        bounds = self.launch_bounds
        if bounds is None:
            return 1024
        most = bounds[0] if isinstance(bounds, tuple) else bounds
        if type(most) is not int or not 1 <= most <= 1024:
            raise OptionError(f"launch_bounds gives {most!r} threads a block; possible are 1 to 1024")
        return most

    @property
    def min_unit_blocks(self) -> int | None:
        """How many blocks shall share a compute unit, under ``launch_bounds``; None where nobody cares."""
        bounds = self.launch_bounds
        if not isinstance(bounds, tuple) or len(bounds) == 1:
            return None
        _, *numbers = bounds
        if len(numbers) > 2:
            raise OptionError(
                f"Got {len(bounds)} launch bounds: launch_bounds is {bounds!r}; it can be threads of a block, blocks "
                "of a compute unit and blocks of a cluster, in this order"
            )
        if any(type(number) is not int or number < 1 for number in numbers):
            raise OptionError(
                f"launch_bounds is {bounds!r}; it can be threads of a block, or a tuple of these, blocks of a compute "
                "unit and blocks of a cluster, each 1 or more"
            )
        return bounds[1]


NOT_OURS = {
    "parallel": "a kernel runs in parallel over its grid",
    "nopython": "kernels are always compiled so",
    "nogil": "kernels run without Python's lock",
    "target": "the device is chosen when a kernel is launched, see hip.select_device",
    "locals": "variables have the types that they are assigned: np.float32(x)",
}
"""Options of Numba's other decorators, and why there is no need for them."""


def _describe_unknown(unknown: list[str], known: list[str]) -> str:
    """What to say of options that do not exist."""
    described = [name + (f" ({NOT_OURS[name]})" if name in NOT_OURS else hint(name, known)) for name in unknown]
    return f"hip.jit has no option {', '.join(described)}; it knows {', '.join(known)}"


def _check_carveout(carveout: Any) -> None:
    """`OptionError` for a part of a cache that cannot be."""
    if isinstance(carveout, str):
        if carveout not in CARVEOUTS:
            raise OptionError(
                f"Invalid carveout value: shared_memory_carveout is {carveout!r}; the names are {', '.join(CARVEOUTS)}"
            )
    elif carveout is not None and (type(carveout) is not int or not -1 <= carveout <= 100):
        raise OptionError(f"shared_memory_carveout is {carveout!r}; it must be between -1 and 100, or a name")
