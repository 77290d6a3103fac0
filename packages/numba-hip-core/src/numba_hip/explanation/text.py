"""An explanation as text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numba_hip.explanation.model import Explanation, PrivateArray, Resources

MOST_FINDINGS = 5
"""How many findings are written out."""


def summary(told: Explanation) -> list[tuple[str, str]]:
    """Titles, with what there is to say of each in a line."""
    block = " x ".join(map(str, told.block[: 3 if told.block[2] > 1 else 2 if told.block[1] > 1 else 1]))
    lanes = "one thread at a time" if told.lanes == 1 else f"{told.lanes} threads at a time"
    found = [
        ("kernel", f"{told.kernel}({told.signature})"),
        ("target", f"{told.target}, blocks of {block} threads"),
        ("form", f"{told.form}, {lanes}"),
        ("reason", told.reason),
    ]
    if told.resources is not None:
        found += resource_rows(told.resources)
    found.append(("private arrays", "; ".join(map(describe_array, told.private_arrays)) or "none"))
    promoted = [f"line {one.line}: {one.what}; {one.instead}" for one in told.promotions]
    found.append(("float32 to float64", "; ".join(promoted) or "nowhere"))
    stages = ", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in told.stages.items())
    found.append(("compile time", f"{sum(told.stages.values()) * 1e3:.0f} ms: {stages}"))
    return found


def resource_rows(needs: Resources) -> list[tuple[str, str]]:
    """What the kernel needs of an AMD GPU."""
    accumulation = f" and {needs.accumulation_registers} for accumulation" if needs.accumulation_registers else ""
    limit = f", limited by {needs.limited_by}" if needs.limited_by else ""
    spilled = f"{needs.vector_spills} vector, {needs.scalar_spills} scalar"
    waves = f"{needs.occupancy} of {needs.most_waves}"
    if needs.occupancy is None:
        waves = "not known, as the kernel calls functions of ROCm's device library, which is not there"
    return [
        ("registers", f"{needs.vector_registers} vector{accumulation}, {needs.scalar_registers} scalar"),
        ("spilled registers", spilled if needs.vector_spills or needs.scalar_spills else "none"),
        ("scratch", f"{needs.scratch_bytes} bytes per thread"),
        ("LDS", f"{needs.lds_bytes} of {needs.lds_limit} bytes per block"),
        ("occupancy", f"{waves} waves on each SIMD unit{limit}" if needs.occupancy else waves),
    ]


def describe_array(array: PrivateArray) -> str:
    """A private array in a few words."""
    extents = " x ".join(map(str, array.shape))
    return f"{array.name} (line {array.line}): {extents} {array.dtype}, {array.nbytes} bytes per thread, {array.where}"


def write_text(told: Explanation) -> str:
    """All of *told*."""
    return "\n".join([*_write_summary(summary(told)), "", *_write_lines(told), "", *_write_findings(told)])


def _write_summary(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max(len(title) for title, _ in rows)
    for title, words in rows:
        yield f"{title:{width}}  {words}"


def _write_lines(told: Explanation) -> Iterator[str]:
    if told.remark:
        yield told.remark
    own = told.lines[0].file if told.lines else ""
    width = min(max((len(line.source) for line in told.lines), default=0), 60)
    for line in told.lines:
        if line.file != own:
            own = line.file
            yield f"{os.path.basename(own)}:"
        yield f"{line.number:5}  {line.source:{width}}  {'; '.join(line.notes)}".rstrip()


def _write_findings(told: Explanation) -> Iterator[str]:
    if not told.findings:
        yield "nothing was found that is slow"
        return
    yield "what is slow, the worst first:"
    for number, one in enumerate(told.findings[:MOST_FINDINGS], 1):
        yield f"  {number}. line {one.line}: {one.message}"
    if len(told.findings) > MOST_FINDINGS:
        yield f"  and {len(told.findings) - MOST_FINDINGS} more: see the findings of this object"
