"""Settings of this package: one object per environment variable, typed and documented, read when it is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hip_runtime import config as runtime_config
from hip_runtime.config import Setting
from hip_runtime.setting_values import switch


def user_cache() -> Path:
    """The directory for kernels in the user's cache directory."""
    from hip_devicelib.cache import user_directory

    return user_directory("numba-hip", cache_dir.variable)


cache_dir: Setting[Path] = Setting(
    "NUMBA_HIP_CACHE_DIR",
    "Directory in which kernels with cache=True are kept from one process to the next; by default numba-hip in the "
    "user's cache directory (XDG_CACHE_HOME, or ~/.cache). Nobody else may be able to write to it.",
    Path,
    user_cache,
)


def _debug_switch(text: str) -> bool:
    if text == "race":  # a value of the option
        raise ValueError(f"must be 0 or 1; {runtime_config.cpu_races.variable}=1 finds races")
    return switch(text)


boundscheck: Setting[bool] = Setting(
    "NUMBA_HIP_BOUNDSCHECK",
    "1 makes an index out of range raise IndexError in every kernel whose boundscheck option is not given; the default "
    "is 0. Read when a kernel is compiled.",
    switch,
    lambda: False,
)

simulator: Setting[bool] = Setting(
    "NUMBA_HIP_SIMULATOR",
    "1 makes hip.jit leave kernels to Python, one thread at a time, for debuggers; the default is 0. Read when a "
    "function is decorated.",
    switch,
    lambda: False,
)

low_occupancy_warnings: Setting[bool | None] = Setting(
    "NUMBA_HIP_LOW_OCCUPANCY_WARNINGS",
    "1 warns of launches with fewer blocks than the device has compute units, 0 does not; by default on AMD GPUs, and "
    "not on the CPU device. Read when a launch is configured.",
    switch,
    lambda: None,
)

early_warnings: Setting[bool] = Setting(
    "NUMBA_HIP_EARLY_WARNINGS",
    "1 warns of too few blocks where a launch is configured, as Numba CUDA does; the default is 0: with the first "
    "launch that takes place. Read when a launch is configured.",
    switch,
    lambda: False,
)

implicit_copy_warnings: Setting[bool | None] = Setting(
    "NUMBA_HIP_IMPLICIT_COPY_WARNINGS",
    "1 warns where a NumPy array is passed to a kernel without In, Out or InOut, and so is copied both ways, 0 does "
    "not; by default on AMD GPUs, and not on the CPU device. Read at each launch with such an array.",
    switch,
    lambda: None,
)

option_warnings: Setting[bool] = Setting(
    "NUMBA_HIP_OPTION_WARNINGS",
    "1 warns of options of jit that make little sense together: debug with opt, debug with lineinfo, and of nopython, "
    "nogil and parallel, which are errors otherwise; the default is 0. Read when a function is decorated.",
    switch,
    lambda: False,
)

debug: Setting[bool] = Setting(
    "NUMBA_HIP_DEBUG",
    "1 makes debug=True the default of jit; the default is 0. Read when a function is decorated.",
    _debug_switch,
    lambda: False,
)

opt: Setting[bool] = Setting(
    "NUMBA_HIP_OPT",
    "0 makes opt=False the default of jit; the default is 1. Read when a function is decorated.",
    switch,
    lambda: True,
)

truncate_arguments: Setting[bool] = Setting(
    "NUMBA_HIP_TRUNCATE_ARGUMENTS",
    "1 passes a number that the type of a signature does not have all the same, with a warning: the low bits of an "
    "integer, infinity for a float that is too large. An array of wider integers is taken by the only signature of a "
    "kernel then, where that has any strides; a gufunc converts host arrays to narrower types that it was compiled "
    "for, and a ufunc numbers. The default is 0: an error. Read at launches with such a number or array, for kernels "
    "at the first with such an array.",
    switch,
    lambda: False,
)

performance_warnings: Setting[bool] = Setting(
    "NUMBA_HIP_PERFORMANCE_WARNINGS",
    "1 warns of what is slow in a kernel, the worst first, at the line of the kernel: see kernel.explain. The kernel "
    "is compiled once more for that. The default is 0. Read at the first launch with new types or a new shape of "
    "blocks.",
    switch,
    lambda: False,
)

full_tracebacks: Setting[bool] = Setting(
    "NUMBA_HIP_FULL_TRACEBACKS",
    "1 shows of an error in a kernel's code all that Numba says, and the frames of this package in tracebacks; the "
    "default is 0: the line of the program, what is wrong and what to do. NUMBA_FULL_TRACEBACKS of Numba's says the "
    "same. Read when a kernel does not compile.",
    switch,
    lambda: False,
)

print_six_digits: Setting[bool] = Setting(
    "NUMBA_HIP_PRINT_SIX_DIGITS",
    "1 lets print in kernels write floats with six digits behind the point, as C's printf and so Numba CUDA does; the "
    "default is 0: as Python writes them. Read when what a kernel printed is written out.",
    switch,
    lambda: False,
)

inspect_launched: Setting[bool] = Setting(
    "NUMBA_HIP_INSPECT_LAUNCHED",
    "0 makes inspect_llvm and inspect_asm show the code of one thread where no block is given, whatever was launched; "
    "the default is 1: what the CPU device runs for the newest shape of blocks. Read when they are called.",
    switch,
    lambda: True,
)


def _folders(text: str) -> tuple[Path, ...]:
    return tuple(Path(part) for part in text.split(os.pathsep) if part)


include_paths: Setting[tuple[Path, ...]] = Setting(
    "NUMBA_HIP_INCLUDE_PATHS",
    "Folders in which linked source in C, C++ and HIP C++ finds the files that it includes, after its own folders, "
    "with a colon between them; by default none. Read when a kernel with such source is compiled.",
    _folders,
    lambda: (),
)

SETTINGS: tuple[Setting[Any], ...] = (
    cache_dir, boundscheck, simulator, low_occupancy_warnings, early_warnings, implicit_copy_warnings, option_warnings,
    debug, opt, truncate_arguments, performance_warnings, full_tracebacks, print_six_digits, inspect_launched,
    include_paths,
)  # fmt: skip
"""All settings, for tools that list them."""
