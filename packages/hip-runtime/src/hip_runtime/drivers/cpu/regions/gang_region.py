"""Regions whose threads run in gangs, as lanes of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.thread_order import AXES
from hip_runtime.drivers.cpu.abi.work_item import NumberedWorkItem, WorkItem
from hip_runtime.drivers.cpu.abi.worker import Blocks
from hip_runtime.drivers.cpu.analyses.cost_model import UnprofitableError
from hip_runtime.drivers.cpu.analyses.stack_usage import private_type
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph, region_successors
from hip_runtime.drivers.cpu.regions.outline import OutlinedRegion, RegionOutliner, StatePlaces
from hip_runtime.drivers.cpu.regions.private_layout import scatters_privately
from hip_runtime.drivers.cpu.regions.scalar_region import RegionContext
from hip_runtime.drivers.cpu.regions.storage import STACK_LIMIT
from hip_runtime.drivers.cpu.regions.stretched_threads import stretch_threads
from hip_runtime.drivers.cpu.vectorize.gang_function import GangFunction
from hip_runtime.drivers.cpu.vectorize.gang_loops import count_gangs, each_gang, most_gangs, run_gangs
from hip_runtime.drivers.cpu.vectorize.gang_options import GANG_FUNCTION, GangOptions
from hip_runtime.drivers.cpu.vectorize.gang_widths import make_gang
from hip_runtime.drivers.cpu.vectorize.shared_cells import CellGangs
from hip_runtime.drivers.cpu.vectorize.suspension import BEHIND_LOOP, NOT_SUSPENDED
from hip_runtime.drivers.cpu.vectorize.turns import Turns, take_record
from hip_runtime.errors import UnsupportedError


@dataclass
class GangPlan:
    """Which regions of a kernel run in gangs of *width* threads: those that LLVM cannot vectorise itself or, with
    *everywhere*, all that can. Once the kernel is written, also which did, and why others could not.

    *waves*: gangs are waves, so that wave operations become vector operations. *numbered*: gangs are formed by the
    linear index of threads, not along x. *exact*: the width is not adapted. *lockstep*: the lanes of a wave make each
    memory access together, in all regions, or the kernel is refused. *has_masks*: the processor has vector instructions
    with masks, which LLVM needs to vectorise a loop over threads that diverge.
    """

    width: int
    everywhere: bool = False
    waves: bool = False
    numbered: bool = False
    exact: bool = True
    lockstep: bool = False
    has_masks: bool = True
    widths: list[int] = field(default_factory=list)
    regions: int = 0
    refused: list[str] = field(default_factory=list)
    takes_turns: bool = False

    def selects(self, region: Region, graph: RegionGraph, independent: bool) -> bool:
        """Whether *region* is to run in gangs; *independent* is whether LLVM can be told that the iterations of a loop
        over its threads are independent."""
        self.regions += 1
        return self.suits(region, graph) or (not independent and self._may_choose(region))

    def suits(self, region: Region, graph: RegionGraph) -> bool:
        """Whether *region* is to run in gangs even if the iterations of a loop over its threads are independent."""
        if self.width > 1 and (self.everywhere or self.requires_gangs(region)):
            return True
        unvectorizable = region.masked or region.diverges or region.ordered or has_loop(region)
        unvectorizable = unvectorizable or _calls_elementwise(region)
        return self._may_choose(region) and (unvectorizable or self._diverges(region, graph))

    def _may_choose(self, region: Region) -> bool:
        """Whether *region* may run in gangs and need not. In spin loops usually only one lane at a time makes
        progress."""
        return self.width > 1 and not (region.is_spin_scheduled or self.numbered)

    def _diverges(self, region: Region, graph: RegionGraph) -> bool:
        """Whether LLVM cannot vectorise *region* for its divergent branches."""
        if not self.has_masks and not graph.uniformity.divergent_branches.isdisjoint(region.blocks):
            return True
        return _diverges_on_data(region, graph)

    def requires_gangs(self, region: Region) -> bool:
        """Whether *region* can only run in gangs: it has wave operations, or waves run in lock step."""
        return self.lockstep or (
            self.waves
            and any(
                instruction.callee in spmd.WAVE_WIDE for block in region.blocks for instruction in block.instructions
            )
        )

    def may_narrow(self, region: Region) -> bool:
        """Whether *region* may run in gangs of fewer lanes than *width*."""
        keeps_width = self.exact and not self.waves
        return self._may_choose(region) and not (keeps_width or self.requires_gangs(region))

    def refuse(self, error: UnsupportedError) -> None:
        """Remember that *error* keeps a region from running in gangs."""
        would = "would be slower" if isinstance(error, UnprofitableError) else "cannot"
        self.refused.append(f"one {would}: {error}")

    def describe(self) -> str:
        """What was done, for the reason of a kernel's form; empty if nothing was tried."""
        if not self.widths and not self.refused:
            return ""
        widths = " or ".join(map(str, sorted({*self.widths} or {self.width})))
        words = [f"{len(self.widths)} of {self.regions} regions run {widths} threads at a time"]
        if self.takes_turns:
            words.append("gangs take turns in a loop before the first barrier")
        return "; ".join([*words, *dict.fromkeys(self.refused)])


def has_loop(region: Region) -> bool:
    """Whether *region* has a loop without a sync point."""
    position = {block: number for number, block in enumerate(region.blocks)}
    return any(position[target] <= position[block] for block in region.blocks for target in region_successors(block))


def _calls_elementwise(region: Region) -> bool:
    """Whether threads call a function that has a vector variant, which vectors that LLVM makes would not call."""
    return any(value.elementwise is not None for block in region.blocks for value in block.instructions)


def _diverges_on_data(region: Region, graph: RegionGraph) -> bool:
    """Whether a divergent branch depends on data. One on thread indices only selects a range of threads, which LLVM
    vectorises well."""
    waiting: list[Value] = [
        block.terminator.operands[0] for block in region.blocks if block in graph.uniformity.divergent_branches
    ]
    seen: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if value in seen or not isinstance(value, Instruction) or value not in graph.uniformity.varying:
            continue
        seen.add(value)
        if value.opcode in _DATA or (value.opcode == "call" and not intrinsics.is_pure(value.callee)):
            return True
        waiting += value.operands
    return False


_DATA = frozenset({"load", "atomicrmw", "cmpxchg", "phi"})


@dataclass(frozen=True)
class LimitedThreads:
    """How many threads of a row run, and conditions that are known for these."""

    count: ir.Value
    known: Mapping[Value, bool]


@dataclass(frozen=True)
class SharedSteps:
    """What the first *threads* threads of a block, which are all that do anything in a region, access in shared memory:
    elements that are *step* apart from thread to thread, a power of two, the first thread the one numbered *phase* of
    each *step*. Their gangs have *width* lanes, of which one in *step* is a thread, and are written out, or run in
    loops if there is no width. See `shared_steps`."""

    threads: int
    width: int | None = None
    step: int = 1
    phase: int = 0

    @property
    def cells(self) -> CellGangs:
        """How gangs access shared memory."""
        return CellGangs(self.threads * self.step, self.step, self.phase)

    def each_gang(self, width: int) -> Iterator[tuple[int, int]]:
        """For each gang of *width* lanes in which there are threads, the number of the first lane, and of the lanes
        from there on."""
        lanes = self.cells.reach
        for first in range(0, lanes, width):
            if (first - self.phase - 1) // self.step < (first + width - self.phase - 1) // self.step:
                yield first, lanes - first


@dataclass
class PausingGangs:
    """The gangs of a kernel's first region, which pause behind a loop in it until those of other blocks are there."""

    gang: ir.Function
    item: WorkItem
    nbytes: int
    """Of the record of each."""
    width: int
    active: int | None
    """The threads of a row that do anything, if it is known."""

    def write(
        self, builder: ir.IRBuilder, arguments: Sequence[ir.Value], blocks: Blocks, go_on: Callable[[], None]
    ) -> None:
        """Run *blocks*: the gangs of some till they pause, then the rest of each of these, which *go_on* writes."""
        place, item = arguments[0], self.item
        gangs_of_block = count_gangs(builder, item, self.width), most_gangs(item, self.width)
        turns = Turns(builder, item, place, self.nbytes, *gangs_of_block)
        # what follows the kernel's arguments is only used behind the loop
        passed = [ir.Constant(kind, ir.Undefined) for kind in self.gang.ftype.args[len(arguments) : -4]]

        def call(count: ir.Value, record: ir.Value, was_suspended: ir.Value) -> None:
            builder.call(self.gang, [*arguments, *passed, count, record, was_suspended, I1(1)])

        turns.write(blocks, partial(each_gang, builder, item, place, self.width, active=self.active), call, go_on)


class GangRegionWriter:
    """Writes one region as a function for a gang, and the loop over the gangs of a block."""

    def __init__(self, ctx: RegionContext, item: WorkItem, size_of: SizeOf, gang_plan: GangPlan) -> None:
        self._ctx = ctx
        self._item = item
        self._size_of = size_of
        self._gang_plan = gang_plan
        self.pausing: PausingGangs | None = None
        """The gangs that pause, once their region was written."""

    def write(
        self, builder: ir.IRBuilder, region: Region, state_places: StatePlaces, hoisted: Mapping[Instruction, ir.Value],
        kernel_arguments: Sequence[ir.Value], active: int | None = None, may_pause: bool = False,
        limited: LimitedThreads | None = None, only_gang: int | None = None,
        steps: SharedSteps | None = None,
    ) -> bool:  # fmt: skip
        """Write *region* for all threads, of which the first *active* of a row do anything, if it says how many;
        ``False``, with nothing written, if vectors cannot run it or would be slower. Its gangs pause if they
        *may_pause* and that is better. *limited*: only so many threads of a row run. *only_gang*: the lanes of the gang
        that runs it alone, see `only_gang`. *steps*: its accesses to shared memory, see `shared_steps`.

        Raises `UnsupportedError` if nothing else can run it, either.
        """
        gang_plan = self._gang_plan
        item = NumberedWorkItem(self._item) if gang_plan.numbered else self._item
        name = f"{GANG_FUNCTION}.{'start' if region.start is None else region.start.number}"
        made = self._outline(region, name, state_places, hoisted, limited)
        options = GangOptions(
            name, made.demotable, gang_plan.lockstep, may_suspend=may_pause, kernel_arguments=len(kernel_arguments),
            ends_anywhere=limited is not None or (steps is not None and steps.step > 1),
            cells=_find_cells(steps, only_gang),
        )  # fmt: skip
        written_out = None if limited is not None else steps
        width = None if written_out is None else written_out.width
        try:
            self._stretch(made.function, item, name, steps)
            self._check_private(made.function)
            code = self._find_gangs(made.function, item, options, width, only_gang)
            if self._may_lose(region) and not gang_plan.everywhere:
                code.check_profitable()
            gang = code.build()
        except UnsupportedError as error:
            _drop_functions(item.module, name)
            if gang_plan.requires_gangs(region):
                raise
            gang_plan.refuse(error)
            return False
        active = None if gang_plan.numbered else active
        if code.suspension is not None:
            self.pausing = PausingGangs(gang, item, code.suspension.nbytes, code.width, active)
        place = kernel_arguments[0]
        call = self._make_call(builder, gang, code, [*kernel_arguments, *made.passed], may_pause)
        if written_out is not None and width is not None:
            for first, count in written_out.each_gang(width):
                item.store_thread(builder, place, [I32(first), I32(0), I32(0)])
                call(I32(count))
        elif only_gang is None or code.follows_rows:
            run_gangs(builder, item, place, code, call, active=active, limit=limited.count if limited else None)
        else:
            item.store_thread(builder, place, [I32(0)] * len(AXES))
            call(I32(only_gang))
        gang_plan.widths.append(code.width)
        return True

    def _outline(
        self, region: Region, name: str, state_places: StatePlaces, hoisted: Mapping[Instruction, ir.Value],
        limited: LimitedThreads | None,
    ) -> OutlinedRegion:  # fmt: skip
        """*region* as a graph of its own, for the gang function *name*."""
        numbered, known = self._gang_plan.numbered, limited.known if limited is not None else {}
        made = RegionOutliner(self._ctx, region, state_places, self._item, hoisted, numbered, known).build()
        record(f"outline {name}", made.function)
        return made

    def _stretch(self, function: Function, item: WorkItem, name: str, steps: SharedSteps | None) -> None:
        """Put the lanes between the threads of *function* that access every so many elements of shared memory."""
        if steps is not None and steps.step > 1:
            stretch_threads(function, item, self._size_of, steps.step, steps.phase)
            record(f"stretch_threads {name}", function)

    def _find_gangs(
        self, function: Function, item: WorkItem, options: GangOptions, width: int | None, only_gang: int | None
    ) -> GangFunction:
        """The function for the gangs that run *function*: of *width*, if that is known; or of the lanes of the gang
        that runs it alone, if one does; or of those that suit it."""
        kinds = [argument.type for argument in function.arguments]
        make = partial(GangFunction, function, item, kinds, self._ctx.symbols, self._size_of, options=options)
        if width is not None:
            return make(width)
        return make_gang(make, only_gang or self._gang_plan.width, not (self._gang_plan.exact or only_gang))

    def _make_call(
        self, builder: ir.IRBuilder, gang: ir.Function, code: GangFunction, arguments: Sequence[ir.Value],
        may_pause: bool,
    ) -> Callable[[ir.Value], ir.Value]:  # fmt: skip
        """What calls *gang*, which *code* wrote, with *arguments* and the number of threads to the end of the row."""

        def call(count: ir.Value) -> ir.Value:
            rest: Sequence[ir.Value] = NOT_SUSPENDED if may_pause else ()
            if code.suspension is not None:
                rest = self._resume(builder, arguments[0], code.suspension.nbytes)
            return builder.call(gang, [*arguments, count, *rest])

        return call

    def _may_lose(self, region: Region) -> bool:
        """Whether gangs may be slower than one thread after another."""
        scatters = not self._gang_plan.requires_gangs(region) and scatters_privately(region, self._ctx.graph)
        return has_loop(region) or scatters

    def _resume(self, builder: ir.IRBuilder, place: ir.Value, nbytes: int) -> Sequence[ir.Value]:
        """What a gang that goes on is called with: its record, of *nbytes*, whether it paused, and that it does not
        pause."""
        record = take_record(builder, self._item, place, nbytes)
        paused = builder.icmp_unsigned("==", builder.load(record, typ=I8), I8(BEHIND_LOOP))
        return record, paused, I1(0)

    def _check_private(self, function: Function) -> None:
        """Check that the private arrays of all lanes of a gang fit onto the stack."""
        arrays = [private_type(value) for value in function.instructions() if value.opcode == "alloca"]
        nbytes = self._gang_plan.width * sum(map(self._size_of, arrays))
        if nbytes > STACK_LIMIT:
            raise UnsupportedError(f"the private arrays of {self._gang_plan.width} threads take {nbytes} bytes")


def _find_cells(steps: SharedSteps | None, only_gang: int | None) -> CellGangs | None:
    """How the gangs of *steps*, or the one that runs a region alone, access shared memory; ``None`` for others."""
    if steps is not None:
        return steps.cells
    return None if only_gang is None else CellGangs(only_gang)


def _drop_functions(module: ir.Module, name: str) -> None:
    """Remove what was written of the gang function *name*, and of those that it calls for half a gang or one lane. What
    else was declared for them stays: others may use it, and llvmlite declares no name twice."""
    for function in [found for found in module.globals if found == name or found.startswith(f"{name}.")]:
        del module.globals[function]
