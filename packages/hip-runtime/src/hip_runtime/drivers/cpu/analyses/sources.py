"""What values are computed from.

Each is looked at once, though the ways that lead to it may be more than can ever be followed: of ``h = h * h + h``,
written forty times, there are three to the power of forty.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from hip_runtime.drivers.cpu.ir.model import Instruction, Value

Judge = Callable[[Value], "bool | Iterable[Value]"]
"""Tells of a value whether it is as asked, or what else decides: the values that it is computed from."""


def are_all(value: Value, judge: Judge) -> bool:
    """Whether all that decides about *value* is as *judge* asks."""
    return _find(value, judge, False) is None


def is_any(value: Value, judge: Judge) -> bool:
    """Whether any of what decides about *value* is."""
    return _find(value, judge, True) is not None


def _find(value: Value, judge: Judge, wanted: bool) -> Value | None:
    """The first value that decides about *value* of which *judge* says what is *wanted*."""
    waiting, seen = [value], {value}
    while waiting:
        found = waiting.pop()
        told = judge(found)
        if told is wanted:
            return found
        if not isinstance(told, bool):
            waiting += (others := [other for other in told if other not in seen])
            seen.update(others)
    return None


def operands_first(
    value: Value, known: Container[Value], follow: Callable[[Instruction], Iterable[Value]]
) -> list[Instruction]:  # fmt: skip
    """*value* and all that it is computed from, each behind those of its operands that *follow* names, but for what is
    *known*. Who goes through them in this order needs no recursion: a long kernel has more steps than Python allows."""
    found: list[Instruction] = []
    waiting: list[tuple[Value, bool]] = [(value, False)]
    seen: set[Value] = set()
    while waiting:
        part, is_behind = waiting.pop()
        if not isinstance(part, Instruction) or part in known:
            continue
        if is_behind:
            found.append(part)
        elif part not in seen:
            seen.add(part)
            waiting.append((part, True))
            waiting += [(operand, False) for operand in follow(part)]
    return found
