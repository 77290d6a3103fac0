"""Explains a kernel: compiles it once more, with line information, and reads what came of it."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm

from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.target import Target
from hip_runtime.compile_notice import StageClock, timed
from hip_runtime.drivers.cpu.explanation import (
    GLOBAL,
    PRIVATE,
    PROMOTION,
    CpuExplanation,
    PrivateMemory,
    WrittenInstruction,
    explain_kernel,
    find_private_memory,
)
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.errors import HipRuntimeError, LaunchError
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.errors import SHORTENED, PerformanceWarning
from numba_hip.explanation import findings
from numba_hip.explanation.model import Dim3, Explanation, PrivateArray
from numba_hip.explanation.source_lines import by_line, describe_lines, executed_as, locate
from numba_hip.explanation.text import MOST_FINDINGS
from numba_hip.explanation.typed_code import bytes_of, declared_arrays, find_promotions, typed_functions

Compile = Callable[[str], KernelCode]
"""Compiles the kernel for a target, with line information."""

_ALONE = "Threads run one after another, or as vectors that LLVM makes; lines are told as they would be as lanes."
_PARTLY = "What runs one thread after another is told as it would be as lanes."
_OF_CPU = "Accesses are told as those of threads that are neighbours along x, as the lanes of a wave are."


def explain(compile_for: Compile, target: str, block: Dim3) -> Explanation:
    """What becomes of a kernel on *target*, in blocks of the shape *block*."""
    clock = StageClock()
    with timed(clock):
        code = compile_for(target)
    if math.prod(block) > code.max_threads_per_block:
        raise LaunchError(f"block {block} has {math.prod(block)} threads; at most {code.max_threads_per_block}")
    stages = _summarise(clock.seconds)
    if code.target.machine is None:
        return _explain_for_cpu(code, block, stages)
    with timed(clock := StageClock()):
        clock.switch("emitting machine code")
        code.object()
    return _explain_for_amd(code, code.target.machine, compile_for, block, stages | clock.seconds)


def _summarise(stages: dict[str, float]) -> dict[str, float]:
    """*stages* with what was spent on each function's lowering together."""
    found: dict[str, float] = {}
    for name, seconds in stages.items():
        title = "lowering" if name.startswith("lowering ") else name
        found[title] = found.get(title, 0.0) + seconds
    return found


def _explain_for_cpu(code: KernelCode, block: Dim3, stages: dict[str, float]) -> Explanation:
    made = explain_kernel(code.code_object, code.kernel, block)
    single = made.form == "loop" or any(one.form == remarks.THREADS for one in made.instructions)
    as_lanes = _explain_as_lanes(code, block, "") if single else None
    instructions = executed_as(made, as_lanes)
    file, line = _place(code)
    promotions = _promotions(code, instructions)
    arrays = _arrays(code, made.private, lambda nbytes: _place_in_memory(made, nbytes))
    remark = "" if as_lanes is None else _ALONE if made.lanes == 1 else _PARTLY
    effect = findings.ALONE if made.form == "loop" else findings.LANES
    told = [
        *findings.of_instructions(instructions, made.along, effect),
        *findings.of_types(promotions, _depths(instructions)), *findings.of_form(made, file, line),
        *findings.of_arrays(arrays),
    ]  # fmt: skip
    return Explanation(
        code.name, ", ".join(map(str, code.argument_types)), "the CPU device", block, made.form, made.reason,
        made.lanes, describe_lines(made, as_lanes), remark, promotions, arrays, None,
        stages | made.stages, findings.rank(told),
    )  # fmt: skip


def _place_in_memory(made: CpuExplanation, nbytes: int) -> str:
    """Where a private array of *nbytes* for each thread is."""
    if made.heap_bytes:
        return "on the heap"
    return f"on the stack, {nbytes * made.lanes} bytes for all lanes" if made.lanes > 1 else "on the stack"


def _explain_as_lanes(code: KernelCode, block: Dim3, lanes: str) -> CpuExplanation | None:
    """The kernel with its lines vectorised; None if that is not possible."""
    try:
        found = explain_kernel(code.code_object, code.kernel, block, "vectors", lanes)
    except HipRuntimeError:
        return None
    return found if found.lanes > 1 else None


def _explain_for_amd(
    code: KernelCode, machine: Target, compile_for: Compile, block: Dim3, stages: dict[str, float]
) -> Explanation:
    from numba_hip.explanation.amd_resources import read_resources

    needs = read_resources(code, machine, block)
    made = _accesses_along_x(compile_for, block)
    made = None if made is None else replace(made, instructions=tuple(_as_waves(made.instructions)))
    instructions = list(made.instructions) if made is not None else []
    file, line = _place(code)
    promotions = _promotions(code, instructions)
    private = find_private_memory(llvm.parse_bitcode(code.bitcode)) if needs.scratch_bytes else ()
    arrays = _arrays(code, private, lambda nbytes: "in scratch, which is device memory")
    told = [
        *findings.of_instructions([one for one in instructions if one.memory == GLOBAL], "x", findings.WAVES),
        *findings.of_types(promotions, _depths(instructions)), *findings.of_arrays(arrays),
        *findings.of_resources(needs, file, line),
    ]  # fmt: skip
    lines = () if made is None else describe_lines(made, None)
    return Explanation(
        code.name, ", ".join(map(str, code.argument_types)), machine.id, block, "waves",
        f"an AMD GPU runs waves of {needs.wave_size} threads in lock step", needs.wave_size, lines,
        _OF_CPU if lines else "", promotions, arrays, needs, stages, findings.rank(told),
    )  # fmt: skip


def _accesses_along_x(compile_for: Compile, block: Dim3) -> CpuExplanation | None:
    """How neighbours along x access memory, found by the vectoriser of the CPU device; None if it cannot run this."""
    try:
        return _explain_as_lanes(compile_for(CPU_TARGET), block, "x")
    except (HipRuntimeError, *SHORTENED):  # of a function that only AMD GPUs have
        return None


def _as_waves(instructions: Sequence[WrittenInstruction]) -> Iterator[WrittenInstruction]:
    """What holds for waves of *instructions* that were written for the CPU device: where private arrays are differs,
    and nothing is scalarised."""
    for one in instructions:
        if one.form in (remarks.SCALARIZED, remarks.TABLED, remarks.COMBINED):
            yield replace(one, form="")
        elif one.memory != PRIVATE:
            yield one


def _place(code: KernelCode) -> tuple[str, int]:
    return str(code.annotation.filename), int(code.annotation.linenum)


def _promotions(code: KernelCode, instructions: list[Any]) -> tuple[Any, ...]:
    converted = frozenset(one.location for one in instructions if one.operation == PROMOTION) if instructions else None
    functions = typed_functions(code.annotation)
    found = [one for function in functions for one in find_promotions(function, converted)]
    return tuple(sorted(found, key=lambda one: (one.file, one.line)))


def _arrays(
    code: KernelCode, in_memory: Sequence[PrivateMemory], describe: Callable[[int], str]
) -> tuple[PrivateArray, ...]:
    """The private arrays, of which some are *in_memory*; LLVM does not tell the lines of those of other functions."""
    found = []
    places = {one.location for one in in_memory}
    elsewhere = {one.nbytes for one in in_memory if locate(one.location) is None}
    for function in typed_functions(code.annotation):
        for one in declared_arrays(function):
            nbytes = bytes_of(one, code.target.target_context)
            kept = not one.places.isdisjoint(places) or (bool(function.called_from) and nbytes in elsewhere)
            where = describe(nbytes) if kept else "registers"
            found.append(
                PrivateArray(one.loc.filename, one.loc.line, one.name, one.shape, str(one.dtype), nbytes, where)
            )
    return tuple(sorted(found, key=lambda one: (one.file, one.line)))


def _depths(instructions: list[Any]) -> dict[tuple[str, int], int]:
    return {place: max(one.depth for one in found) for place, found in by_line(instructions).items()}


def warn_of(told: Explanation) -> None:
    """Warn of the worst findings, at their lines."""
    for one in told.findings[:MOST_FINDINGS]:
        message = f"kernel {told.kernel}, {told.target}: {one.message}"
        warning = PerformanceWarning(message, highlighting=False)
        warnings.warn_explicit(warning, None, one.file, one.line, os.path.basename(one.file), {})
