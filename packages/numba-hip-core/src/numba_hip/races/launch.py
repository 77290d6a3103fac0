"""Launches of observed kernels: they are waited for, and findings are raised or warned about."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from hip_runtime import config
from hip_runtime.device import stack_level
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.diagnostics.observers import observed
from hip_runtime.errors import CaptureError
from hip_runtime.launches import BlockLaunches
from numba_hip.abi.race_records import EVENT_MASK, SITE_BITS, EventCode, FindingWord, Relation
from numba_hip.abi.source_sites import Site, site_of
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.errors import RaceError, RaceWarning
from numba_hip.races.address_lookup import ArrayPlace, find_arrays
from numba_hip.races.arena import Arena, LaunchShape, TrackedMemory
from numba_hip.races.findings import Access, Finding, merge, remember

_KINDS = {EventCode.READ: "read", EventCode.WRITE: "write", EventCode.ATOMIC: "atomic"}
_RELATIONS = {Relation.WAVE: "wave", Relation.BLOCK: "block", Relation.GRID: "grid", Relation.SELF: "wave"}


class ObservedLaunch:
    """A launch of a kernel whose threads tell what they do. It returns when the kernel is done.

    *start* launches, *launch* is the launch of the runtime that is at its end; *names* are those of the arguments.
    """

    def __init__(self, start: Any, launch: BlockLaunches, code: KernelCode, names: Sequence[str]) -> None:
        self._start = start
        self._code = code
        self._names = names
        self._driver = launch.function.device.driver
        self._block = launch.block
        self._wave_size = launch.function.kernel.wave_size

    def launch(self, arguments: bytes, grid: Dim3, stream: int, owners: object) -> None:
        """As `hip_runtime.launches.BlockLaunches`; raises `RaceError`, or warns."""
        from numba_hip.races.detector import compiled_note  # the very first launch loads it

        if self._driver.is_capturing(stream):
            raise CaptureError(
                f"kernel {self._code.name} is observed for races, and a graph does not tell when a launch has ended; "
                f"leave debug='race' out, or unset {config.cpu_races.variable}"
            )
        note = compiled_note().entry
        self._driver.synchronize_stream(stream)
        arrays = find_arrays(self._names, self._code.argument_types, self._code.parameters, arguments)
        shape = LaunchShape(grid, self._block, self._wave_size, self._code.cooperative, self._code.granule)
        arena = Arena(shape, self._memory(arrays))
        try:
            with observed(note, arena.address):
                self._start(arguments, grid, stream, owners)
                self._driver.synchronize_stream(stream)
        finally:
            findings = merge([self._finding(row, shape, arrays) for row in arena.findings()])
            remember(findings)
        self._report(findings, arena.lost)

    def _memory(self, arrays: Sequence[ArrayPlace]) -> list[TrackedMemory]:
        """All memory of the device, and what else was passed to the kernel."""
        known = [TrackedMemory(*one) for one in self._driver.allocations()]  # type: ignore[attr-defined]
        for low, high in sorted(array.bounds for array in arrays):
            inside = any(one.start <= low and high <= one.start + one.nbytes for one in known)
            if not inside and low < high:
                known.append(TrackedMemory(low, high - low))
        return _separate(known)

    def _report(self, findings: Sequence[Finding], lost: int) -> None:
        warns = config.cpu_races() == "warn" and not self._code.options.races
        serious = [one for one in findings if not one.same_value]
        if serious and not warns:
            raise RaceError(self._code.name, tuple(findings), lost)
        if findings:
            warnings.warn(RaceWarning(self._code.name, tuple(findings), lost), stacklevel=stack_level())

    def _finding(self, row: dict[FindingWord, int], shape: LaunchShape, arrays: Sequence[ArrayPlace]) -> Finding:
        numbers = (row[field] & ((1 << SITE_BITS) - 1) for field in (FindingWord.FIRST, FindingWord.SECOND))
        first_site, second_site = map(site_of, numbers)
        first = (
            self._access(row[FindingWord.FIRST_EVENT], row[FindingWord.FIRST], first_site, shape)
            if row[FindingWord.FIRST_EVENT]
            else None
        )
        second = self._access(row[FindingWord.SECOND_EVENT], row[FindingWord.SECOND], second_site, shape)
        shared = row[FindingWord.WHERE] < 0
        name, index, offset = second_site.array or first_site.array, None, row[FindingWord.OFFSET]
        if not shared:
            for array in arrays:
                found = array.find(row[FindingWord.ADDRESS])
                if found is not None:
                    name, index, offset = array.name, found, row[FindingWord.ADDRESS] - array.bounds[0]
                    break
        elif row[FindingWord.BYTES] and offset % row[FindingWord.BYTES] == 0:
            index = (offset // row[FindingWord.BYTES],)
        return Finding(
            self._code.name, first, second, "shared" if shared else "device", name, index, offset,
            row[FindingWord.ADDRESS], row[FindingWord.BYTES], (_RELATIONS[Relation(row[FindingWord.RELATION])],),
            bool(row[FindingWord.SAME_VALUE]), row[FindingWord.COUNT],
        )  # fmt: skip

    def _access(self, event: int, who: int, site: Site, shape: LaunchShape) -> Access:
        block, thread = divmod(who >> SITE_BITS, _count(shape.block))
        kind = _KINDS[EventCode(event & EVENT_MASK)]
        return Access(
            kind, site.file, site.line, site.function, _index(block, shape.grid),
            _index(thread, shape.block),
        )  # fmt: skip


def _separate(memory: list[TrackedMemory]) -> list[TrackedMemory]:
    """The same memory in pieces that do not overlap, in the order of addresses."""
    pieces: list[TrackedMemory] = []
    for one in sorted(memory, key=lambda one: one.start):
        end = pieces[-1].start + pieces[-1].nbytes if pieces else 0
        if one.start >= end:
            pieces.append(one)
        elif one.start + one.nbytes > end:
            pieces.append(TrackedMemory(end, one.start + one.nbytes - end))
    return pieces


def _count(extents: Dim3) -> int:
    return extents[0] * extents[1] * extents[2]


def _index(number: int, extents: Dim3) -> Dim3:
    return number % extents[0], number // extents[0] % extents[1], number // extents[0] // extents[1]
