"""The lines of a kernel's source, with how their instructions are executed."""

from __future__ import annotations

import linecache
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from hip_runtime.drivers.cpu.explanation import ARITHMETIC, PROMOTION, CpuExplanation, WrittenInstruction
from hip_runtime.drivers.cpu.ir import remarks
from numba_hip.explanation.model import Line

_NAMES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat": "bfloat16",
    "i1": "bool",
    "ptr": "int64",
}

_QUIET = ("spmd.", "llvm.", "spmd_")
"""What the names of calls begin with that are no functions to the user: indices, and operations of the processor."""


def element_name(kind: str) -> str:
    """NumPy's name of an LLVM type of numbers."""
    return _NAMES.get(kind) or (f"int{kind[1:]}" if kind[1:].isdigit() and kind[0] == "i" else kind)


def locate(location: str) -> tuple[str, int] | None:
    """File and line of a location; none if it has no line."""
    file, _, line = location.rpartition(":")
    return (file, int(line)) if file and line.isdigit() else None


def by_line(instructions: Iterable[WrittenInstruction]) -> Mapping[tuple[str, int], list[WrittenInstruction]]:
    """*instructions* by file and line."""
    found: defaultdict[tuple[str, int], list[WrittenInstruction]] = defaultdict(list)
    for instruction in instructions:
        place = locate(instruction.location)
        if place is not None:
            found[place].append(instruction)
    return found


def executed_as(made: CpuExplanation, as_lanes: CpuExplanation | None) -> list[WrittenInstruction]:
    """The instructions of *made*; those that run one thread after another are told as they are in *as_lanes*, where
    all lines are vectorised."""
    chosen = [one for one in made.instructions if one.form != remarks.THREADS]
    if as_lanes is None:
        return [*made.instructions]
    known = {one.location for one in chosen}
    return chosen + [one for one in as_lanes.instructions if one.location not in known]


def describe_lines(made: CpuExplanation, as_lanes: CpuExplanation | None) -> tuple[Line, ...]:
    """The lines that are executed, in the order of the source."""
    told = by_line(executed_as(made, as_lanes))
    single = {locate(one.location) for one in made.instructions if one.form == remarks.THREADS}
    vectorized = {locate(place) for place in made.vectorized}
    lines = []
    for place, instructions in sorted(told.items()):
        notes = list(_describe(instructions))
        if (made.lanes == 1 or place in single) and place in vectorized:
            notes.append("vectors, made by LLVM")
        elif made.lanes > 1 and place in single:
            notes.append(remarks.THREADS)
        file, number = place
        if notes:
            lines.append(Line(file, number, linecache.getline(file, number).rstrip(), tuple(notes)))
    return tuple(lines)


def _describe(instructions: list[WrittenInstruction]) -> Iterable[str]:
    yield from _describe_accesses(one for one in instructions if one.element)
    calls = Counter(
        one.operation
        for one in instructions
        if not one.element and one.form == remarks.SCALARIZED and not one.operation.startswith(_QUIET)
    )
    for name, count in calls.items():
        yield f"{_times(count, f'call of {name}', f'calls of {name}')}: {remarks.SCALARIZED}"
    computing = [one for one in instructions if one.operation in (ARITHMETIC, PROMOTION)]
    if not any(one.element for one in instructions) and computing:
        yield _describe_values({one.form for one in computing})
    if any(one.operation == "branch" and one.form == remarks.DIVERGENT for one in instructions):
        yield "lanes diverge"
    if all(one.masked for one in instructions):
        yield "masked"
    elif any(one.masked for one in instructions):
        yield "masked where lanes diverge"


def _describe_values(forms: set[str]) -> str:
    for form in (remarks.AHEAD, remarks.UNIFORM):
        if forms <= {form, remarks.AHEAD}:
            return form
    return remarks.LINEAR if forms <= {remarks.UNIFORM, remarks.LINEAR} else "varying"


def _describe_accesses(instructions: Iterable[WrittenInstruction]) -> Iterable[str]:
    seen: set[tuple[str, ...]] = set()
    accesses: Counter[tuple[str, str, str, str]] = Counter()
    masks: dict[tuple[str, str, str, str], set[bool]] = defaultdict(set)
    for one in instructions:
        form = f"every {_ordinal(one.stride)} element" if one.form == remarks.STRIDED else one.form
        form = f"strided, {form}" if one.form == remarks.STRIDED else form
        key = one.operation, element_name(one.element), one.memory, form
        masks[key].add(one.masked)
        accesses[key] += 1
    for (operation, element, memory, form), count in accesses.items():
        both = masks[operation, element, memory, form] == {True, False}
        number = max(count // 2, 1) if both else count  # written with and without a mask
        where = "" if memory == "global" else f" {memory}"
        plural = f"{operation}s" if not operation.startswith("atomic") else operation
        text = f"{_times(number, operation, plural)} of{where} {element}{form and f': {form}'}"
        if (text,) not in seen:
            seen.add((text,))
            yield text


def _times(count: int, one: str, several: str) -> str:
    return one if count == 1 else f"{count} {several}"


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third", 4: "fourth"}.get(number, f"{number}th")
