"""What a worker keeps in memory from one block of its launch to the next, besides the blocks' own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Instruction, Value

MOST_TOTALS = 4
"""The most totals of a chunk of blocks: more would not stay in registers."""

MOST_TABLES = 16
"""The most tables of a worker, see `vectorize.update_tables`."""


class CollectsTotals(Protocol):
    """What writes the totals of a chunk of blocks, see `vectorize.chunk_totals`."""

    def collect(
        self, builder: ir.IRBuilder, place: ir.Value, update: Instruction, address: ir.Value, value: ir.Value,
        active: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """Combine *value* with the total of *update*."""

    def write(self, builder: ir.IRBuilder, place: ir.Value, start: ir.Block) -> None:
        """Write what is around the blocks of a chunk."""


class KeepsResults(Protocol):
    """What writes the memory of a worker for results, see `vectorize.kept_results`."""

    def compute(self, code: Any, common: Any) -> None:
        """Have *code* know the results of *common*."""

    def write(self, builder: ir.IRBuilder, place: ir.Value, start: ir.Block) -> None:
        """Write what is before the blocks of a chunk."""


class KeepsTables(Protocol):
    """What writes the tables of a worker, see `vectorize.update_tables`."""

    def write_start(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], notes: ir.Value
    ) -> None:  # fmt: skip
        """Write what a worker with a record *notes* does before its blocks."""

    def write_end(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], notes: ir.Value
    ) -> None:  # fmt: skip
        """Write what it does behind them."""

    def serves(self, code: Any, update: Instruction) -> bool:
        """Whether lanes do *update* by `update` or `update_element`."""

    def needs(self, update: Instruction) -> tuple[Value, ...]:
        """What `find_elements` takes of *update* besides its operands."""

    def find_elements(self, code: Any, update: Instruction, addresses: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The numbers of the elements at *addresses*, and whether the table has those of all active lanes."""

    def find_memory(self, code: Any, update: Instruction) -> ir.Value:
        """Where the elements of the table for *update* are."""

    def update_element(
        self, code: Any, update: Instruction, memory: ir.Value, index: ir.Value, value: ir.Value
    ) -> None:  # fmt: skip
        """Do *update* with *value* on the element with the number *index* in *memory*."""

    def update(self, code: Any, update: Instruction, operands: Sequence[ir.Value]) -> None:
        """Do *update* with the *operands* of one lane."""

    def meet(self, code: Any, access: Instruction) -> None:
        """Do what is in tables for the memory of *access*."""


@dataclass
class WorkerMemory:
    """What writes such memory, as far as the kernel has a use for it."""

    totals: CollectsTotals | None = None
    """Collects atomic operations of a chunk of blocks."""
    results: KeepsResults | None = None
    """Keeps results that gangs have in common, if it is worth the while."""
    tables: KeepsTables | None = None
    """Keeps tables for atomic operations on elements of arrays."""
