"""How values get from one region to another: they are rematerialized, or saved once for the block or for each
thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum

from llvmlite import ir

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.alignments import Alignments, splits_gangs
from hip_runtime.drivers.cpu.analyses.cfg import live_values
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.sources import operands_first
from hip_runtime.drivers.cpu.ir.keywords import CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph, block_uses


class Transfer(Enum):
    """How a value gets from one region to another."""

    REMATERIALIZE = "computed again where it is needed"
    CONTEXT_SCALAR = "saved once for the block"
    CONTEXT_ARRAY = "saved for each thread"


_REMATERIALIZABLE = CASTS | frozenset("add sub mul shl lshr ashr and or xor icmp select getelementptr alloca".split())
_REMATERIALIZABLE_CALLS = ("llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.", "llvm.abs.")
_MAX_COST = 12
"""The most instructions that a value is rematerialized by. Loads from a context array cost a few each, and LLVM knows
how a computed address depends on the thread, but not how a loaded one does."""

_MAX_DIVIDED = 64
"""The most different instructions that a value is rematerialized by if a row division is among them. In nearly all
gangs these are computed once for all lanes, and what they address is contiguous, see `vectorize.coherent_values`."""


def _computed_from(value: Instruction) -> Sequence[Value] | None:
    """The operands that *value* is rematerialized from; ``None`` if it cannot be."""
    if value.opcode == "call":
        if intrinsics.is_pure(value.callee):
            return ()
        return value.operands if value.callee.startswith(_REMATERIALIZABLE_CALLS) else None
    return value.operands if value.opcode in _REMATERIALIZABLE else None


class Rematerialization:
    """Which values can be rematerialized from the arguments, constants and intrinsics that every region has, and from
    values that are *kept* for the block."""

    def __init__(self, kept: Collection[Instruction] = ()) -> None:
        self._kept = kept
        self._costs: dict[Instruction, int] = {}

    def cost(self, value: Value) -> int:
        """The number of instructions that rematerializing takes; more than `_MAX_COST` if it cannot be done."""
        for part in operands_first(value, self._costs, self._computed_from):
            self._costs[part] = self._compute(part)
        return self._costs[value] if isinstance(value, Instruction) else 0

    def _computed_from(self, value: Instruction) -> Sequence[Value]:
        return () if value in self._kept else _computed_from(value) or ()

    def _compute(self, value: Instruction) -> int:
        if value in self._kept or value.opcode == "alloca":
            return int(value in self._kept)
        operands = _computed_from(value)
        if operands is None:
            return _MAX_COST + 1
        return min(1 + sum(map(self.cost, operands)), _MAX_COST + 1)

    def is_cheap(self, value: Instruction) -> bool:
        """Whether *value* is rematerialized instead of being saved."""
        return self.cost(value) <= _MAX_COST

    def sources(self, value: Instruction) -> set[Instruction]:
        """The kept values that *value* is rematerialized from."""
        found: set[Instruction] = set()
        waiting, seen = [value], {value}
        while waiting:
            part = waiting.pop()
            if part in self._kept:
                found.add(part)
                continue
            operands = {operand for operand in part.operands if isinstance(operand, Instruction)} - seen
            waiting += operands
            seen |= operands
        return found


class RowDivisions:
    """Which values of *graph* are derived from divisions of a number that varies by one that is uniform.

    With *any_value*, the others are rematerialized by as many instructions as these, too: there is no place to keep
    them for each thread."""

    def __init__(self, graph: RegionGraph, any_value: bool = False) -> None:
        self._varying = graph.uniformity.varying
        self._any_value = any_value
        self._made: dict[Instruction, frozenset[Instruction] | None] = {}

    def divide(self, value: Instruction) -> bool:
        """Whether *value* is a quotient or a remainder of such numbers."""
        if value.opcode not in DIVISIONS:
            return False
        dividend, divisor = (operand in self._varying for operand in value.operands)
        return dividend and not divisor

    def rematerialize(self, value: Instruction) -> bool:
        """Whether *value* is computed again by not too many instructions, with a row division among them."""
        made = self._find(value)
        return made is not None and (self._any_value or any(map(self.divide, made)))

    def _find(self, value: Value) -> frozenset[Instruction] | None:
        """The instructions that *value* is rematerialized by, ``None`` if it cannot be or they are too many."""
        for part in operands_first(value, self._made, lambda part: self._computed_from(part) or ()):
            self._made[part] = self._collect(part)
        return self._made[value] if isinstance(value, Instruction) else frozenset()

    def _computed_from(self, value: Instruction) -> Sequence[Value] | None:
        return value.operands if self.divide(value) else _computed_from(value)

    def _collect(self, value: Instruction) -> frozenset[Instruction] | None:
        operands = self._computed_from(value)
        if operands is None:
            return None
        found = {value}
        for operand in operands:
            made = self._find(operand)
            if made is None:
                return None
            found |= made
        return frozenset(found) if len(found) <= _MAX_DIVIDED else None


def divides_rows(region: Region, divisions: RowDivisions, transfers: Mapping[Instruction, Transfer]) -> bool:
    """Whether *region* has row divisions, of its own or to rematerialize values that it uses."""
    if any(divisions.divide(value) for block in region.blocks for value in block.instructions):
        return True
    used = {value for block in region.blocks for value in block_uses(block)}
    return any(
        transfers[value] is Transfer.REMATERIALIZE and divisions.rematerialize(value) for value in region.live & used
    )


def splits_gangs_in(region: Region, alignments: Alignments, transfers: Mapping[Instruction, Transfer]) -> bool:
    """Whether *region* takes indices apart between the lanes of a gang and what these have in common, of its own or to
    rematerialize values that it uses. LLVM gathers what a loop over threads addresses with that."""
    own = {value for block in region.blocks for value in block.instructions}
    waiting: list[Value] = [*own, *(region.live & {value for block in region.blocks for value in block_uses(block)})]
    seen: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Instruction) or value in seen:
            continue
        seen.add(value)
        if value not in own and transfers.get(value, Transfer.REMATERIALIZE) is not Transfer.REMATERIALIZE:
            continue
        if splits_gangs(value, alignments):
            return True
        if value not in own:
            waiting += value.operands
    return False


def plan_transfers(graph: RegionGraph, divisions: RowDivisions | None = None) -> dict[Instruction, Transfer]:
    """The decision for each value that is live into a region. With *divisions*, which regions have to run in gangs for,
    values are rematerialized by these, too."""
    rematerialization = Rematerialization()
    scheduled = graph.wave_scheduled
    varying = _used_varying(graph)
    decide: Callable[[Instruction], Transfer] = lambda value: (  # noqa: E731
        Transfer.REMATERIALIZE if rematerialization.is_cheap(value) or (divisions and divisions.rematerialize(value))
        else Transfer.CONTEXT_ARRAY if scheduled or value in varying
        else Transfer.CONTEXT_SCALAR
    )  # fmt: skip
    plan = {value: decide(value) for region in graph.regions for value in region.live_in_order}
    if not scheduled:
        _derive_from_uniform(graph, plan, varying)
    return plan


def _derive_from_uniform(graph: RegionGraph, plan: dict[Instruction, Transfer], varying: set[Instruction]) -> None:
    """Rematerialize those of the values that are saved for each thread that are cheaply computed from such that are the
    same for the whole block, as a comparison with the counter of a loop around a barrier is. These are saved once for
    the block then, where they are not yet."""
    uniform = {value for value in graph.homes if value not in varying and _is_number(value)}
    rematerialization = Rematerialization(uniform)
    needed: dict[Block, set[Instruction]] = {}
    for value, how in list(plan.items()):
        if how is not Transfer.CONTEXT_ARRAY or not rematerialization.is_cheap(value):
            continue
        sources = rematerialization.sources(value)
        plan[value] = Transfer.REMATERIALIZE
        for source in sorted(sources, key=lambda source: source.name):
            plan.setdefault(source, Transfer.CONTEXT_SCALAR)
        for region in graph.regions:
            if value in region.live:
                needed.setdefault(region.entry, set()).update(sources)
    if needed:
        _keep_alive(graph, needed)


def _keep_alive(graph: RegionGraph, needed: Mapping[Block, set[Instruction]]) -> None:
    """Make the values that are *needed* where regions begin live in these, and in all regions between their definition
    and there."""
    graph.crossing |= frozenset().union(*needed.values())
    definitions: dict[Block, list[Instruction]] = {block: [] for block in graph.order.blocks}
    for value, home in graph.homes.items():
        if home in definitions:
            definitions[home].append(value)
    uses = {block: needed.get(block, ()) for block in graph.order.blocks}
    live = live_values(graph.order.blocks, lambda block: block.successors, uses, definitions)
    for region in graph.regions:
        region.live |= live[region.entry] - ({region.start.call} if region.start is not None else set())


def _is_number(value: Instruction) -> bool:
    return isinstance(value.type, ir.IntType | ir.FloatType | ir.DoubleType | ir.PointerType)


def _used_varying(graph: RegionGraph) -> set[Instruction]:
    """The values that vary as seen from a block that uses them."""
    varying = set(graph.uniformity.varying)
    for block in graph.order.blocks:
        varying.update(value for value in block_uses(block) if graph.uniformity.varies(value, block))
    return varying
