"""What is slow in a kernel, by an estimate of what it costs each thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hip_runtime.drivers.cpu.explanation import CpuExplanation, WrittenInstruction
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.said_names import our
from numba_hip.explanation.model import PrivateArray, Promotion, Resources, Slowdown
from numba_hip.explanation.source_lines import by_line, element_name

LANES = "a {}"
ALONE = "as lanes this would be a {}, so threads run one after another"
WAVES = "a {} that is not coalesced"
"""What comes of accesses that are not contiguous."""

_TRIPS = 8
"""Iterations that a loop is assumed to have, as the cost model of the CPU device does."""

_DEEPEST = 5
_GATHER, _SCALARIZED, _TABLED, _PROMOTION, _ALONE, _MEMORY, _SPILL, _STRIDED = 2.0, 5.5, 3.0, 1.0, 1.5, 1.0, 10.0, 0.2
"""Cycles of a lane."""


def rank(findings: Iterable[Slowdown]) -> tuple[Slowdown, ...]:
    """*findings*, the worst first."""
    return tuple(sorted(findings, key=lambda one: (-one.weight, one.file, one.line, one.message)))


def of_instructions(instructions: Sequence[WrittenInstruction], along: str, effect: str) -> Iterator[Slowdown]:
    """What is slow in how *instructions* are executed, for threads that are neighbours *along* an axis; *effect* is
    what comes of accesses that are not contiguous, with a place for ``gather`` or ``scatter``."""
    for (file, line), found in by_line(instructions).items():
        weights: dict[str, float] = {}
        for one in found:
            message, weight = _judge(one, along, effect)
            if message:
                weights[message] = max(weights.get(message, 0.0), weight * _TRIPS ** min(one.depth, _DEEPEST))
        for message, weight in weights.items():
            yield Slowdown(file, line, message, weight)


def _judge(one: WrittenInstruction, along: str, effect: str) -> tuple[str, float]:
    """What is slow about an instruction, and how slow; empty if nothing is."""
    kind = element_name(one.element)
    if one.form == remarks.GATHERED and one.memory != "private":
        name, kept = ("gather", "load") if one.operation == "load" else ("scatter", "store")
        return (
            f"{effect.format(name)}: threads that are neighbours along {along} {kept} {kind} elements that are not "
            f"neighbours in {'shared ' if one.memory == 'shared' else ''}memory; let the last index of the array be "
            f"that along {along}",
            _GATHER,
        )
    if one.form == remarks.GATHERED:
        return f"each thread indexes its private array of {kind} by itself: a gather or scatter", _GATHER
    if one.form == remarks.STRIDED and one.memory == "global":
        return (
            f"neighbours along {along} {one.operation} every {one.stride}. {kind} element: {one.stride - 1} of "
            f"{one.stride} bytes that are moved are not used; keep the parts in arrays of their own",
            _STRIDED * one.stride,
        )
    if one.form == remarks.TABLED:
        return f"{_name(one)}: one thread after another, in a table of each CPU thread; {_advise(one)}", _TABLED
    if one.form == remarks.SCALARIZED:
        return _judge_scalarized(one)
    return "", 0.0


def _judge_scalarized(one: WrittenInstruction) -> tuple[str, float]:
    if one.operation.startswith("atomic"):
        return f"{_name(one)}: one thread after another; {_advise(one)}", _SCALARIZED
    if one.element:
        return f"a {_name(one)} is made for one thread after another", _SCALARIZED
    function, _, number = one.operation.rpartition(".")
    if number.isdigit():
        return (
            f"the device function {function} is called for one thread after another; with forceinline=True in its "
            "decorator it is a part of the kernel, which takes longer to compile",
            _SCALARIZED,
        )
    return f"{one.operation} has no form for vectors: it is called for one thread after another", _SCALARIZED


def _name(one: WrittenInstruction) -> str:
    return f"{one.operation} of {element_name(one.element)}"


def _advise(one: WrittenInstruction) -> str:
    """What to do about an atomic operation."""
    if one.operation in ("atomic add", "atomic fadd", "atomic sub", "atomic fsub"):
        return f"sum up in a variable, or with {our('reduce')}, and add once"
    return "make as few of them as possible"


def of_types(promotions: Sequence[Promotion], depths: dict[tuple[str, int], int]) -> Iterator[Slowdown]:
    """Conversions to float64: vectors have half as many of these."""
    for one in promotions:
        depth = depths.get((one.file, one.line), 0)
        message = f"float32 is computed as float64: {one.what}; {one.instead}"
        yield Slowdown(one.file, one.line, message, _PROMOTION * _TRIPS**depth)


def of_form(made: CpuExplanation, file: str, line: int) -> Iterator[Slowdown]:
    """A kernel that does not run as lanes."""
    if made.form == "loop" and not made.vectorized:
        message = f"threads run one after another, without vectors: {made.reason}"
        yield Slowdown(file, line, message, _ALONE * _TRIPS)
    if made.heap_bytes:
        message = f"{made.heap_bytes} bytes of a block's private memory are on the heap, as the stack has no room"
        yield Slowdown(file, line, message, _ALONE)


def of_arrays(arrays: Sequence[PrivateArray]) -> Iterator[Slowdown]:
    """Private arrays that are in memory."""
    for one in arrays:
        if not one.where.startswith("registers"):
            message = (
                f"the private array {one.name} is in memory, {one.where}: it is indexed by numbers that are known "
                "only at run time; registers hold arrays whose indices are constants once loops are unrolled"
            )
            yield Slowdown(one.file, one.line, message, _MEMORY)


def of_resources(needs: Resources, file: str, line: int) -> Iterator[Slowdown]:
    """What an AMD GPU has not enough of."""
    if needs.vector_spills or needs.scalar_spills:
        message = (
            f"{needs.vector_spills} vector and {needs.scalar_spills} scalar registers are spilled to memory: use fewer "
            "variables at a time, or set max_registers higher"
        )
        yield Slowdown(file, line, message, _SPILL * _TRIPS)
    if needs.occupancy is not None and needs.occupancy * 2 < needs.most_waves:
        message = (
            f"{needs.occupancy} of {needs.most_waves} waves fit on a SIMD unit, limited by {needs.limited_by}: little "
            "hides the time that memory takes"
        )
        yield Slowdown(file, line, message, _ALONE)
