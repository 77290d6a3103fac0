"""The options of `jit`, as one value that determines the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from hip_runtime import config as runtime_config
from hip_runtime.said_names import our
from numba_hip import config
from numba_hip._numba.fastmath import ULP4
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
        """The source that was compiled, by the types of the arguments."""

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...], /) -> Callable[..., Any]:
        """The function to compile for arguments of the types *args*."""


@dataclass(frozen=True)
class CompileOptions:
    """The options of `numba_hip.jit` for the generated code; its docstring explains them."""

    fastmath: Any = False
    fma: bool | None = None
    opt: bool = True
    debug: bool = False
    error_model: str | None = None
    inline: Any = "never"
    forceinline: bool = False
    launch_bounds: int | tuple[int, ...] | None = None
    max_registers: int | None = None
    waves_per_eu: int | tuple[int, int] | None = None
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
        """The options given to `jit`. Raises `OptionError` for an unknown option, or an impossible value."""
        known = {field.name for field in fields(cls)}
        for name, default in (("debug", config.debug), ("opt", config.opt)):
            if given.get(name) is None:
                given = {**given, name: default()}
        unknown = given.keys() - known
        if unknown:
            raise OptionError(_describe_unknown(sorted(unknown), sorted(known)))
        if isinstance(inline := given.get("inline"), bool):
            given = {**given, "inline": "never", "forceinline": inline or given.get("forceinline", False)}
        given = {**given, "link": as_items(given.get("link"))}
        if isinstance(given["debug"], str):
            if given["debug"] != "race":
                raise OptionError(f"debug is {given['debug']!r}; it can be a bool, or 'race'")
            given = {**given, "debug": False, "races": True}
        for name in SWITCHES & given.keys():
            check_switch(name, given[name])
        given["shared_memory_carveout"] = _named_carveout(given.get("shared_memory_carveout"))
        given["fastmath"] = _with_fusion(_checked_fastmath(given.get("fastmath", False)), given.get("fma"))
        options = cls(**given)
        if options.inline not in ("never", "always") and not callable(options.inline):
            raise OptionError(f"inline is {options.inline!r}; it can be 'never', 'always', a bool or a cost model")
        registers = options.max_registers
        if registers is not None and (type(registers) is not int or registers < 1):
            raise OptionError(f"max_registers is {registers!r}; it has to be a whole number, 1 or more")
        _check_waves(options)
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
        """The options that a dispatcher of ``njit`` or ``hip.jit`` keeps when a kernel calls it."""
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
        """The options that apply to the kernel and everything that it calls."""
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
    def waves_of_unit(self) -> tuple[int, int | None] | None:
        """The fewest and the most waves of ``waves_per_eu``; None if unspecified."""
        waves = self.waves_per_eu
        return (waves, None) if isinstance(waves, int) else waves

    @property
    def max_block_threads(self) -> int:
        """The largest number of threads of a block under ``launch_bounds``; without it 1024, the hardware's limit."""
        bounds = self.launch_bounds
        if bounds is None:
            return 1024
        most = bounds[0] if isinstance(bounds, tuple) else bounds
        if type(most) is not int or not 1 <= most <= 1024:
            raise OptionError(f"launch_bounds gives {most!r} threads a block; possible are 1 to 1024")
        return most

    @property
    def inlining(self) -> Any:
        """``inline`` as Numba's inliner takes it."""
        return inlined_if_possible if self.inline == "always" else self.inline

    @property
    def min_unit_blocks(self) -> int | None:
        """How many blocks should share a compute unit, under ``launch_bounds``; None if unspecified."""
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


def inlined_if_possible(call: Any, caller: Any, callee: Any) -> bool:
    """Numba's cost model for ``inline="always"``: all calls but those that pass the elements of a tuple, which it
    cannot inline. Python itself makes such a call of one with more than 30 arguments."""
    return call.vararg is None


NEEDLESS = {
    "parallel": "a kernel runs in parallel over its grid",
    "nopython": "kernels are always compiled so",
    "nogil": "kernels run without Python's lock",
}
"""Options of Numba's other decorators that say what holds for every kernel, and what that is."""

NOT_OURS = {
    **NEEDLESS,
    "target": "the device is chosen when a kernel is launched, see select_device",
    "argtypes": "a signature goes first",
    "restype": "a signature goes first",
    "bind": "a kernel is loaded when it is launched",
    "locals": "variables have the types that they are assigned: np.float32(x)",
}
"""Options of Numba's other decorators, and why there is no need for them."""

SIGNATURE_PARTS = frozenset({"argtypes", "restype"})
"""Options that the first releases of Numba CUDA had in the place of a signature."""


def _describe_unknown(unknown: list[str], known: list[str]) -> str:
    """The error message for unknown options."""
    if not set(unknown) - SIGNATURE_PARTS:
        return (
            f"{our('jit')} has no option {', '.join(unknown)}: the types of the arguments go first, as a signature, "
            f"{our('jit')}('void(float32[:], int32)'), or can be left out: each launch compiles for those it has"
        )
    described = [name + (f" ({NOT_OURS[name]})" if name in NOT_OURS else hint(name, known)) for name in unknown]
    return f"{our('jit')} has no option {', '.join(described)}; it knows {', '.join(known)}"


SWITCHES = frozenset(
    {"opt", "debug", "forceinline", "cache", "lto", "boundscheck", "exceptions", "lineinfo", "host_atomics",
     "unsafe_fp_atomics", "races"}
)  # fmt: skip
"""Options that are on or off."""


def check_switch(name: str, value: Any) -> None:
    """`OptionError` for what is neither on nor off. Whatever is not empty would pass for on: ``boundscheck="no"``."""
    if value is not None and not isinstance(value, (int, np.bool_)):  # a level, as of opt=3, is on
        raise OptionError(f"{name} is {value!r}; it can be True or False")


ALL_BUT_FUSION = frozenset({"nnan", "ninf", "nsz", "arcp", "afn", "reassoc"})
"""LLVM's fast-math flags, without the one that lets a product and a sum become one operation."""


def _checked_fastmath(fastmath: Any) -> Any:
    """*fastmath*, as a bool where it is a number. `OptionError` for a word or a flag that does not exist."""
    if isinstance(fastmath, (int, np.bool_)):
        return bool(fastmath)
    flags = {"fast", "contract", ULP4} | ALL_BUT_FUSION
    if isinstance(fastmath, str):
        known = fastmath == ULP4
    elif isinstance(fastmath, (set, frozenset, dict)):
        known = set(fastmath) <= flags
    else:
        known = fastmath is None
    if not known:
        raise OptionError(
            f"fastmath is {fastmath!r}; the only word is {ULP4!r}, otherwise it can be a bool, or a set of "
            f"{', '.join(map(repr, sorted(flags)))}"
        )
    return fastmath


def _with_fusion(fastmath: Any, fma: Any) -> Any:
    """The flags of *fastmath* with those that *fma* asks for."""
    if fma not in (None, True, False):
        raise OptionError(f"fma is {fma!r}; it can be a bool, or None for what fastmath says")
    if fma is None or (fma and fastmath in (True, ULP4)):
        return fastmath
    flags = {"fast"} if fastmath is True else {"fast", ULP4} if fastmath == ULP4 else set(fastmath or ())
    if fma:
        return flags | {"contract"}
    if "fast" in flags:
        flags = {*flags, *ALL_BUT_FUSION} - {"fast"}
    return flags - {"contract"} or False


def _check_waves(options: CompileOptions) -> None:
    """`OptionError` for numbers of waves that cannot be."""
    given = options.waves_per_eu
    if given is None:
        return
    numbers = given if isinstance(given, tuple) and len(given) == 2 else (given, given)
    if not all(type(number) is int and number >= 1 for number in numbers) or numbers[0] > numbers[1]:
        raise OptionError(
            f"waves_per_eu is {given!r}; it can be the fewest waves that a SIMD unit shall hold, 1 or more, or a pair "
            "of the fewest and the most"
        )
    if options.min_unit_blocks is not None:
        raise OptionError(
            f"waves_per_eu={given!r} and launch_bounds={options.launch_bounds!r} both say how many waves share a SIMD "
            "unit: give launch_bounds the threads of a block alone, or leave waves_per_eu out"
        )


def _named_carveout(carveout: Any) -> Any:
    """The *carveout*, by its name in `CARVEOUTS` where it is one in any case. `OptionError` for a part of a cache that
    cannot be."""
    if isinstance(carveout, str):
        named = {name.lower(): name for name in CARVEOUTS}.get(carveout.lower())
        if named is None:
            raise OptionError(
                f"Invalid carveout value: shared_memory_carveout is {carveout!r}; the names are {', '.join(CARVEOUTS)}"
            )
        return named
    if carveout is not None and (type(carveout) is not int or not -1 <= carveout <= 100):
        raise OptionError(f"shared_memory_carveout is {carveout!r}; it must be between -1 and 100, or a name")
    return carveout
