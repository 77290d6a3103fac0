"""What is told of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Line:
    """A line of the source, and how its instructions are executed."""

    file: str
    number: int
    source: str
    notes: tuple[str, ...]
    """Such as ``2 loads of float32: contiguous``."""


@dataclass(frozen=True)
class Promotion:
    """A float32 that a line computes with as float64."""

    file: str
    line: int
    what: str
    """Which value is converted, and because of what."""
    instead: str
    """What to write."""


@dataclass(frozen=True)
class PrivateArray:
    """An array of ``hip.local.array``."""

    file: str
    line: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    """For each thread."""
    where: str
    """Registers or memory, and which."""


@dataclass(frozen=True)
class Resources:
    """What a kernel needs of a compute unit of an AMD GPU."""

    vector_registers: int
    accumulation_registers: int
    scalar_registers: int
    vector_spills: int
    scalar_spills: int
    lds_bytes: int
    lds_limit: int
    scratch_bytes: int
    """Private memory of a thread that registers do not hold."""
    wave_size: int
    occupancy: int | None
    """Waves on each SIMD unit at a time; None for a kernel that calls functions of ROCm's device library, where that is
    not there."""
    most_waves: int
    limited_by: str
    """What keeps the occupancy below `most_waves`; empty if nothing does."""


@dataclass(frozen=True)
class Slowdown:
    """Something that is slow."""

    file: str
    line: int
    message: str
    weight: float
    """An estimate of what it costs each thread, in cycles."""


@dataclass(frozen=True)
class Explanation:
    """What became of a kernel for argument types and a shape of blocks: see ``kernel.explain``.

    ``str()`` gives all of it as text, a notebook shows it as a table.
    """

    kernel: str
    signature: str
    target: str
    block: Dim3
    form: str
    """How threads run: ``vectors``, ``regions`` or ``loop`` on the CPU device, ``waves`` on AMD GPUs."""
    reason: str
    """Why in this form, and why in no other."""
    lanes: int
    """Threads that run at a time as lanes."""
    lines: tuple[Line, ...]
    remark: str
    """What has to be known of `lines`; empty if nothing."""
    promotions: tuple[Promotion, ...]
    private_arrays: tuple[PrivateArray, ...]
    resources: Resources | None
    """Of code for AMD GPUs."""
    stages: Mapping[str, float]
    """Seconds that each stage of compilation took."""
    findings: tuple[Slowdown, ...]
    """What is slow, the worst first."""

    def __str__(self) -> str:
        from numba_hip.explanation.text import write_text

        return write_text(self)

    def _repr_html_(self) -> str:
        from numba_hip.explanation.html import write_html

        return write_html(self)
