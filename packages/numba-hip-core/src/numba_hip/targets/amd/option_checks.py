"""Rejects options of `jit` that an AMD GPU, or LLVM's code for it, does not support."""

from __future__ import annotations

from typing import Any

from llvmlite import binding as llvm

from hip_devicelib.target import parse_target

HOST_ATOMICS_SINCE = 22
"""The first LLVM that was seen to know which atomic operations on integers do not work on memory of the host."""


def find_problem(options: Any, target: str) -> str | None:
    """What of *options* the AMD GPU *target* lacks, or LLVM for it; None where there is nothing."""
    if options.races:
        return (
            f"debug='race': only the CPU device reports races, not {target}; leave it out, or set NUMBA_HIP_DEVICE=cpu"
        )
    machine = parse_target(target)
    possible = machine.wave_sizes
    if options.wave_size is not None and options.wave_size not in possible:
        return (
            f"wave_size={options.wave_size}: {target} has waves of {' or '.join(map(str, possible))} lanes; leave the "
            "option out for what a GPU prefers"
        )
    blocks, threads = options.min_unit_blocks, options.max_block_threads
    if blocks is not None:
        sized = machine.with_wave_size(options.wave_size or machine.wave_size)
        waves, most = sized.waves_per_simd(blocks, threads), sized.max_waves_per_simd
        if waves > most:
            return (
                f"launch_bounds={options.launch_bounds!r}: {blocks} blocks of {threads} threads on a compute unit are "
                f"{waves} waves on each SIMD unit; {target} has room for {most}"
            )
    if options.waves_of_unit is not None:
        sized = machine.with_wave_size(options.wave_size or machine.wave_size)
        if options.waves_of_unit[0] > sized.max_waves_per_simd:
            return (
                f"waves_per_eu={options.waves_per_eu!r}: a SIMD unit of {target} has room for "
                f"{sized.max_waves_per_simd} waves"
            )
    major = llvm.llvm_version_info[0]
    if options.host_atomics and major < HOST_ATOMICS_SINCE:
        return (
            f"host_atomics=True: needs LLVM {HOST_ATOMICS_SINCE}; llvmlite has LLVM {major}: install a newer one, "
            f"or keep what atomic operations change in memory of {target}"
        )
    return None
