"""Reports: two accesses that race, or a read of uninitialised memory, as objects and as text."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hip_runtime.driver import Dim3

MOST_KEPT = 1000
"""How many findings `races` remembers."""


@dataclass(frozen=True)
class Access:
    """One access: ``kind`` is ``"read"``, ``"write"`` or ``"atomic"``; block and thread are (x, y, z) indices."""

    kind: str
    file: str
    line: int
    function: str
    block: Dim3
    thread: Dim3

    @property
    def place(self) -> str:
        """File, line and function."""
        return f"{self.file}:{self.line} in {self.function}" if self.line else "a place that is not known"

    def __str__(self) -> str:
        did = {"read": "read", "write": "written", "atomic": "changed by an atomic operation"}[self.kind]
        return f"{did} at {self.place}, by thread {self.thread} of block {self.block}"


@dataclass(frozen=True)
class Finding:
    """Two unordered accesses of the same memory, or a read of uninitialised memory.

    ``first`` and ``second`` are in the order of their lines if both are in one function, otherwise in the order in
    which they were made; ``first`` is None for a read of uninitialised memory. ``space`` is ``"shared"`` or
    ``"device"``. ``array`` is its name in the source, or the kernel parameter that it was passed as, and ``index`` the
    element, if these are known. ``offset`` counts bytes from the start of the array; ``nbytes`` is the size of the
    access at ``address``. ``relations`` are those of the threads that raced, the example's first: ``"grid"``,
    ``"block"``, or ``"wave"`` for the closest group that contains both. ``same_value`` is True if both wrote the same
    number. ``count`` is how often the two lines raced.
    """

    kernel: str
    first: Access | None
    second: Access
    space: str
    array: str | None
    index: tuple[int, ...] | None
    offset: int
    address: int
    nbytes: int
    relations: tuple[str, ...]
    same_value: bool
    count: int

    @property
    def kind(self) -> str:
        """``"race"`` or ``"uninitialised"``."""
        return "uninitialised" if self.first is None else "race"

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of the accesses, first and second."""
        return tuple(access.line for access in (self.first, self.second) if access is not None)

    @property
    def where(self) -> str:
        """The memory, in words."""
        name = f"{self.space} memory" if self.array is None else f"{self.array!r} ({self.space} memory)"
        element = "" if self.index is None else f", element {list(self.index)}"
        return f"{name}{element}, {self.nbytes} bytes at byte {self.offset}"

    @property
    def what(self) -> str:
        """What happened, in words."""
        if self.first is None:
            of = "this block" if self.space == "shared" else "the program"
            return f"read before anybody in {of} wrote it"
        return f"{self._verbs} {self._by}{', with the same value' if self.same_value else ''}"

    @property
    def _verbs(self) -> str:
        assert self.first is not None
        kinds = self.first.kind, self.second.kind
        if "atomic" in kinds:
            plain = kinds[0] if kinds[1] == "atomic" else kinds[1]
            return f"changed by an atomic operation, and {'read' if plain == 'read' else 'written'} without one"
        return {
            ("read", "write"): "read and overwritten", ("write", "read"): "written and read",
            ("write", "write"): "written and overwritten",
        }[kinds]  # fmt: skip

    @property
    def _by(self) -> str:
        within = any(relation in self.relations for relation in ("wave", "block"))
        across = "grid" in self.relations
        parts = ["by another thread between two barriers"] if within else []
        parts += ["by a thread of another block, which nothing orders"] if across else []
        return " and ".join(parts)

    def __str__(self) -> str:
        lines = [f"{self.what}: {self.where}"]
        lines += [f"    {access}" for access in (self.first, self.second) if access is not None]
        if self.relations == ("wave",) and self.first is not None:
            lines.append("    within one wave: lock step hides it on AMD hardware, where the compiler lets it")
        if self.count > 1:
            lines.append(f"    {self.count} times")
        return "\n".join(lines)


def merge(findings: list[Finding]) -> list[Finding]:
    """Merge findings of the same kind on the same lines, with their counts added, in the order of lines.

    Reads of uninitialised memory are dropped if they race with the write that comes too late for them.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in sorted(map(_in_order, findings), key=lambda one: _RELATIONS.index(one.relations[0])):
        groups.setdefault(_key(one), []).append(one)
    merged = [_together(group) for _, group in sorted(groups.items(), key=lambda entry: str(entry[0]))]
    raced = {access.place for one in merged if one.first is not None for access in (one.first, one.second)}
    return [one for one in merged if one.first is not None or one.second.place not in raced]


_RELATIONS = ("grid", "block", "wave")


def _in_order(finding: Finding) -> Finding:
    """*finding* with its accesses ordered by line, and reads before writes."""
    first, second = finding.first, finding.second
    if first is None or (first.file, first.function) != (second.file, second.function):
        return finding
    if (first.line, first.kind != "read") <= (second.line, second.kind != "read"):
        return finding
    return replace(finding, first=second, second=first)


def _key(one: Finding) -> tuple[object, ...]:
    first = ("", 0, "") if one.first is None else (one.first.file, one.first.line, one.first.kind)
    second = one.second.file, one.second.line, one.second.kind
    return one.first is None, *first, *second, one.same_value, one.space, one.array or ""


def _together(group: list[Finding]) -> Finding:
    relations = tuple(name for name in _RELATIONS if any(name in one.relations for one in group))
    return replace(group[0], count=sum(one.count for one in group), relations=relations)


_found: dict[tuple[object, ...], Finding] = {}
_lock = threading.Lock()


def remember(findings: Iterable[Finding]) -> None:
    """Add *findings* to those of `races`; equal ones on the same lines are counted together."""
    with _lock:
        for one in findings:
            key = one.kernel, *_key(one)
            known = _found.get(key)
            if known is not None:
                _found[key] = _together([known, one])
            elif len(_found) < MOST_KEPT:
                _found[key] = one


def races(*, clear: bool = False) -> list[Finding]:
    """The findings so far in this process, of kernels with ``debug="race"`` or under ``NUMBA_HIP_CPU_RACES``.

    Equal findings of several launches are merged: the first one with the sum of counts. At most 1000 are kept; *clear*
    discards them.
    """
    with _lock:
        found = list(_found.values())
        if clear:
            _found.clear()
    return found
