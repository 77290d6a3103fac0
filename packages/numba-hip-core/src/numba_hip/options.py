"""The options of `jit`, as one value that decides what code comes out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from numba_hip import config
from numba_hip.errors import OptionError
from numba_hip.linked_code import as_items, read_all
from numba_hip.targets.variant import Variant

NOT_YET = frozenset({"max_registers", "extensions"})
"""Options of Numba CUDA that are refused: to accept one and do nothing would be worse."""


@dataclass(frozen=True)
class CompileOptions:
    """What `jit` was told about the code to make.

    fastmath
        Allow transformations that ignore NaN, infinities and the order of operations: a bool, or the set of LLVM's
        fast-math flags.
    opt
        Optimise. Without it the code is as it was lowered, for looking at.
    debug
        ``error_model="python"``, ``exceptions`` and ``lineinfo``.
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
        ``"never"`` or ``"always"``: whether Numba inlines a device function before typing.
    forceinline
        Make LLVM inline a device function.
    launch_bounds
        Most threads that a block of this kernel will have, or a pair of that and the number of blocks that shall share
        one compute unit.
    cache
        Keep compiled kernels in a directory (``NUMBA_HIP_CACHE_DIR``), where later processes find them. A device
        function is kept as part of the kernels that call it.
    boundscheck
        Whether an index out of range raises `IndexError`, in this kernel and in all that it calls; the setting
        ``NUMBA_HIP_BOUNDSCHECK`` decides where it is None.
    link
        LLVM bitcode and LLVM IR that define functions of `declare_device`: paths of files, or `LinkedCode`.
    wave_size
        Lanes of a wave of this kernel, 32 or 64; what the device prefers where it is None. RDNA GPUs (gfx10 to gfx12)
        and the CPU device have both, CDNA GPUs (gfx9) have 64. A device function has the waves of the kernel that calls
        it.
    """

    fastmath: Any = False
    opt: bool = True
    debug: bool = False
    error_model: str | None = None
    inline: str = "never"
    forceinline: bool = False
    launch_bounds: int | tuple[int, int] | None = None
    cache: bool = False
    link: tuple[Any, ...] = ()
    boundscheck: bool | None = None
    host_atomics
        Whether atomic operations of this kernel may reach memory of the host or of another GPU: mapped and managed
        arrays, peers. AMD GPUs have fewer instructions for that, and do the others by comparing and swapping. Without
        it such an operation on such memory may be lost.
    unsafe_fp_atomics
        Whether atomic operations on floats may take denormal numbers for zero, as some instructions of AMD GPUs do.
    exceptions: bool = False
    lineinfo: bool = False
    wave_size: int | None = None

    @classmethod
    def of_jit(cls, given: dict[str, Any]) -> CompileOptions:
        """The options given to `jit`; `OptionError` where one is unknown or cannot be honoured."""
        known = {field.name for field in fields(cls)}
        refused = {name for name, value in given.items() if name in NOT_YET and value not in (None, False, [], ())}
        unknown = given.keys() - known - NOT_YET
        if unknown:
            raise OptionError(f"hip.jit has no option {sorted(unknown)}; it knows {sorted(known)}")
        if refused:
            raise OptionError(f"hip.jit cannot honour {sorted(refused)} in this version; leave it out")
        chosen = {name: value for name, value in given.items() if name in known}
        options = cls(**{**chosen, "link": as_items(chosen.get("link"))})
        if options.inline not in ("never", "always"):
    host_atomics: bool = False
    unsafe_fp_atomics: bool = False
            raise OptionError(f"inline is {options.inline!r}; it can be 'never' or 'always'")
        if options.error_model not in (None, "python", "numpy"):
            raise OptionError(f"error_model is {options.error_model!r}; it can be 'python' or 'numpy'")
        if options.wave_size is not None and (type(options.wave_size) is not int or options.wave_size not in (32, 64)):
            raise OptionError(f"wave_size is {options.wave_size!r}; a wave can have 32 or 64 lanes")
        options.max_block_threads  # noqa: B018 - refuses impossible launch bounds here, not at the first launch
        return options

    @classmethod
    def of_dispatcher(cls, dispatcher: Any) -> CompileOptions:
        """The options that a dispatcher of ``njit`` or ``hip.jit`` brings along when a kernel calls it."""
        known = {"fastmath", "inline", "forceinline", "link", "lineinfo", "error_model"}
        return cls(**{name: value for name, value in dispatcher.targetoptions.items() if name in known and value})

    def stamp(self) -> str:
        """Text that differs where the options make different code."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "cache"}
        chosen["boundscheck"] = self.checked
        chosen["link"] = [code.digest for code in read_all(self.link)]
        return repr({name: sorted(value) if isinstance(value, set) else value for name, value in chosen.items()})

    @property
    def checked(self) -> bool:
        """Whether indices are checked."""
        return config.boundscheck() if self.boundscheck is None else bool(self.boundscheck)

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
    def variant(self) -> Variant:
        """What these options say about the kernel with all that it calls."""
        return Variant(self.checked, self.wave_size, bool(self.host_atomics), bool(self.unsafe_fp_atomics))

