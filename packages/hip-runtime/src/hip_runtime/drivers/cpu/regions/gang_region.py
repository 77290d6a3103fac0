"""Regions whose threads run several at a time, as lanes of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.work_item import NumberedWorkItem, WorkItem
from hip_runtime.drivers.cpu.analyses.cost_model import UnprofitableError, check_profitable
from hip_runtime.drivers.cpu.analyses.stack_usage import private_type
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.regions.form import Region, RegionGraph, within
from hip_runtime.drivers.cpu.regions.outline import Notes, RegionOutliner
from hip_runtime.drivers.cpu.regions.scalar_region import RegionContext
from hip_runtime.drivers.cpu.regions.storage import STACK_LIMIT
from hip_runtime.drivers.cpu.vectorize.gangs import GANG_FUNCTION, GangFunction, each_gang, make_gang
from hip_runtime.errors import UnsupportedError


@dataclass
class GangPlan:
    """Which regions of a kernel run *width* threads at a time: those of which LLVM cannot make vectors itself, or all
    that can be where they are wanted *everywhere*; and, once the kernel was written, how many did, and why others could
    not.

    *waves* tells that a group is a wave, so that operations of waves are operations of vectors, *numbered* that groups
    are made by the numbers of threads, not along x, *exact* that no other width will do, and *lockstep* that the lanes
    of a wave do each access to memory together, in all regions or not at all."""

    width: int
    everywhere: bool = False
    waves: bool = False
    numbered: bool = False
    exact: bool = True
    lockstep: bool = False
    taken: list[int] = field(default_factory=list)
    regions: int = 0
    refused: list[str] = field(default_factory=list)

    def suits(self, region: Region, program: RegionGraph, independent: bool) -> bool:
        """Whether *region* is to be run so; *independent* is whether the turns of a loop over its threads are known to
        be, which LLVM asks for."""
        self.regions += 1
        if self.width == 1:
            return False
        if self.everywhere or self.must(region):
            return True
        if region.takes_turns:  # mostly one lane at a time has something to do
            return False
        foreign = not independent or region.masked or region.diverges or has_loop(region) or _calls_elementwise(region)
        return not self.numbered and (foreign or _diverges_on_data(region, program))

    def must(self, region: Region) -> bool:
        """Whether *region* can be run only so: it has operations of waves, or waves are in step."""
        return self.lockstep or (
            self.waves
            and any(
                instruction.callee in spmd.WAVE_WIDE for block in region.blocks for instruction in block.instructions
            )
        )

    def describe(self) -> str:
        """What was done, as a part of the reason for a kernel's form; empty where nothing was tried."""
        if not self.taken and not self.refused:
            return ""
        widths = " or ".join(map(str, sorted({*self.taken} or {self.width})))
        words = [f"{len(self.taken)} of {self.regions} regions run {widths} threads at a time"]
        return "; ".join([*words, *dict.fromkeys(self.refused)])


def has_loop(region: Region) -> bool:
    """Whether a thread can come to the same block of *region* again before it waits."""
    position = {block: number for number, block in enumerate(region.blocks)}
    return any(position[target] <= position[block] for block in region.blocks for target in within(block))


def _calls_elementwise(region: Region) -> bool:
    """Whether threads call what has a variant for lanes, which LLVM's vectors of a loop over threads would not call."""
    return any(value.elementwise is not None for block in region.blocks for value in block.instructions)


def _diverges_on_data(region: Region, program: RegionGraph) -> bool:
    """Whether threads part at a branch on what they read. One on where they are is a range of threads, which LLVM
    makes vectors of well."""
    waiting: list[Value] = [
        block.terminator.operands[0] for block in region.blocks if block in program.uniformity.divergent_branches
    ]
    seen: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if value in seen or not isinstance(value, Instruction) or value not in program.uniformity.varying:
            continue
        seen.add(value)
        if value.opcode in _DATA or (value.opcode == "call" and not intrinsics.is_pure(value.callee)):
            return True
        waiting += value.operands
    return False


_DATA = frozenset({"load", "atomicrmw", "cmpxchg", "phi"})


class GangRegionWriter:
    """Writes one region as a function for a group of threads, and the loop that calls it."""

    def __init__(self, ctx: RegionContext, item: WorkItem, size_of: SizeOf, gang_plan: GangPlan) -> None:
        self._ctx = ctx
        self._item = item
        self._size_of = size_of
        self._gang_plan = gang_plan

    def write(
        self, builder: ir.IRBuilder, region: Region, notes: Notes, once: Mapping[Instruction, ir.Value],
        kernel_arguments: Sequence[ir.Value],
    ) -> bool:  # fmt: skip
        """Run all threads through *region*; ``False``, with nothing written, where vectors cannot do that.

        Raises `UnsupportedError` where nothing else can do it, either.
        """
        gang_plan = self._gang_plan
        item = NumberedWorkItem(self._item) if gang_plan.numbered else self._item
        made = RegionOutliner(self._ctx, region, notes, self._item.block, once, gang_plan.numbered).build()
        kinds = [argument.type for argument in made.function.arguments]
        name = f"{GANG_FUNCTION}.{'start' if region.start is None else region.start.number}"
        record(f"outline {name}", made.function)
        try:
            self._check_private(made.function)
            make = partial(
                GangFunction, made.function, item, kinds, self._ctx.symbols, self._size_of,
                demotable=made.demotable, name=name, lockstep=gang_plan.lockstep,
            )  # fmt: skip
            code = make_gang(make, gang_plan.width, not gang_plan.exact)
            if has_loop(region) and not gang_plan.everywhere:
                check_profitable(code.shapes, self._size_of, code.width)
            group = code.build()
        except UnsupportedError as error:
            item.module.globals.pop(name, None)
            if gang_plan.must(region):
                raise
            slower = isinstance(error, UnprofitableError)
            gang_plan.refused.append(f"one {'would be slower so' if slower else 'cannot'}: {error}")
            return False
        with each_gang(builder, item, kernel_arguments[0], code.width) as count:
            builder.call(group, [*kernel_arguments, *made.passed, count])
        gang_plan.taken.append(code.width)
        return True

    def _check_private(self, function: Function) -> None:
        """The arrays of all lanes of a group have to fit onto the stack."""
        arrays = [private_type(value) for value in function.instructions() if value.opcode == "alloca"]
        nbytes = self._gang_plan.width * sum(map(self._size_of, arrays))
        if nbytes > STACK_LIMIT:
            raise UnsupportedError(f"the private arrays of {self._gang_plan.width} threads have {nbytes} bytes")
