"""Launches on the CPU device: at once on the default stream, and queued on others."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from operator import itemgetter

from hip_runtime import config
from hip_runtime.driver import PER_THREAD_STREAM, Describe, Dim3
from hip_runtime.drivers.cpu.abi.grid_rules import ShortIndices
from hip_runtime.drivers.cpu.abi.narrow_grids import Choose, Gangs, NarrowGrids
from hip_runtime.drivers.cpu.diagnostics.kernel_faults import find_place, read_fault
from hip_runtime.drivers.cpu.execution import block_scheduler, stall_reports
from hip_runtime.drivers.cpu.execution.cooperative_launch import run_with_contexts
from hip_runtime.drivers.cpu.memory.heap import CpuHeap
from hip_runtime.drivers.cpu.memory.written_bytes import WrittenBytes
from hip_runtime.drivers.cpu.modules import CpuFunction
from hip_runtime.drivers.cpu.object_code import jit
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.drivers.cpu.stream_table import CpuStreamTable
from hip_runtime.drivers.cpu.streams import raise_fault
from hip_runtime.errors import LaunchError

Passed = bytes | tuple[bytes, ...]
"""What a launch passes for the likely arguments."""

Dispatch = Callable[..., "int | None"]
"""Runs a program over a grid: takes its entry, packed arguments, and the grid's extents; gives a fault's address."""

_WORD = struct.Struct("<q")

_code_scope = config.code_scope.get

_Found = tuple[dict[Dim3, Program], object, Program, int, bytes, "Choose | None"]
"""What launches need to know of a program, together with what it was found by: its function's programs, which has
others once its module was unloaded, and the scope of settings."""

_MOST_REMEMBERED = 64
"""Arguments that a launcher remembers the code for."""


class CpuLaunches:
    """What all launches of one driver have in common."""

    def __init__(self, heap: CpuHeap, streams: CpuStreamTable) -> None:
        self.heap = heap
        self.streams = streams
        self.dispatch: Dispatch | None = None
        """``None`` until the first launch, and again in a forked child."""
        self._written: WrittenBytes | None = None

    def start(self) -> Dispatch:
        """Start the threads that run blocks, unless they run; gives what dispatches blocks to them."""
        call: Dispatch = block_scheduler.block_scheduler().call
        self.dispatch = call if self._written is None else partial(self._dispatch_watched, call)
        return self.dispatch

    def watch(self, written: WrittenBytes) -> None:
        """From now on let *written* know what kernels may have written."""
        self._written = written
        self.dispatch = None

    def finalise(self, function: CpuFunction, block: Dim3, describe: Describe | None) -> Program:
        """The program of *function* for blocks of the shape *block*, compiled unless it exists."""
        program = function.find(block)
        if program is None:
            program = function.worker(block)
            if describe is not None:
                program.describe_place = partial(find_place, program, describe)
            stall_reports.programs[program.entry] = program
            block_scheduler.renew_handlers()
        return program

    def _dispatch_watched(self, call: Dispatch, entry: int, arguments: bytes, *grid: int) -> int | None:
        """A kernel that does not report its writes may have written anything."""
        if self._written is not None and not jit.is_observed(entry):
            self._written.forget_all()
        return call(entry, arguments, *grid)


class BlockLauncher:
    """Launches *function* in blocks of the shape *block*, each with so many bytes of dynamic shared memory.

    What holds for all of its launches is looked up once: a launch of a small grid takes the host longer than its
    threads.
    """

    __slots__ = (
        "_block",
        "_common",
        "_cooperative",
        "_dynamic_shared",
        "_found",
        "_function",
        "_narrowed",
        "_streams",
    )  # fmt: skip

    def __init__(
        self, common: CpuLaunches, function: CpuFunction, block: Dim3, dynamic_shared: int, cooperative: bool
    ) -> None:
        self._common = common
        self._streams = common.streams
        self._function = function
        self._block = block
        self._dynamic_shared = dynamic_shared
        self._cooperative = cooperative
        self._narrowed: dict[Gangs, BlockLauncher] = {}
        """Launch code with other gangs, over narrow grids."""
        self._found: _Found | None = None

    def launch(
        self, arguments: bytes, grid: Dim3, stream: int, owners: object = None, describe: Describe | None = None
    ) -> None:
        """Launch over *grid*; see `hip_runtime.driver.Driver.launch`."""
        found = self._found
        if found is None or found[0] is not self._function.workers or found[1] is not _code_scope():
            found = self._found = self._find_program(describe)
        _, _, program, entry, suffix, choose = found
        if choose is not None and (gangs := choose(grid, arguments)) is not None:
            self._with_gangs(gangs).launch(arguments, grid, stream, owners, describe)
            return
        if suffix:
            arguments += suffix
        common, streams = self._common, self._streams
        dispatch = common.dispatch or common.start()
        if self._cooperative and program.context_bytes:
            dispatch = partial(self._run_with_contexts, dispatch, program)
        if stream > PER_THREAD_STREAM or streams.asynchronous:
            run = partial(self._run_queued, dispatch, program, arguments, grid, owners, describe)
            if stream > PER_THREAD_STREAM and stream not in streams.by_handle:
                streams.check_own(stream, self._function.kernel.name)
            streams.queue(stream).submit(run)
            return
        if len(streams.by_handle) > 1 or streams.closing or streams.default.used:  # `has_only_default`, written out
            streams.wait_for_blocking()
        x, y, z = grid
        fault = dispatch(entry, arguments, x, y, z)
        if fault:
            raise_fault(read_fault(self._function.kernel.name, program, grid, fault, common.heap, describe))

    def _find_program(self, describe: Describe | None) -> _Found:
        program = self._common.finalise(self._function, self._block, describe)
        if program.context_bytes and not self._cooperative:
            raise LaunchError(
                f"kernel {self._function.kernel.name!r} waits for the whole grid; launch it as cooperative"
            )
        suffix = _WORD.pack(self._dynamic_shared) if program.takes_dynamic_shared else b""
        grids: NarrowGrids | ShortIndices | None = program.narrow
        if program.has_short_indices:
            grids = ShortIndices(self._function.kernel.name, program.narrow)
        choose = None if grids is None else grids.for_blocks(self._block)
        return self._function.workers, _code_scope(), program, program.entry, suffix, choose

    def _with_gangs(self, gangs: Gangs) -> BlockLauncher:
        """What launches with *gangs*."""
        made = self._narrowed.get(gangs)
        if made is None:
            function = self._function.with_gangs(gangs)
            made = BlockLauncher(self._common, function, self._block, self._dynamic_shared, self._cooperative)
            self._narrowed[gangs] = made
        return made

    def _run_queued(
        self,
        dispatch: Dispatch,
        program: Program,
        arguments: bytes,
        grid: Dim3,
        owners: object,
        describe: Describe | None,
    ) -> None:
        """Run a launch when its turn has come; *owners* and *program* live until then."""
        fault = dispatch(program.entry, arguments, *grid)
        if fault:
            raise read_fault(self._function.kernel.name, program, grid, fault, self._common.heap, describe)

    def _run_with_contexts(
        self, dispatch: Dispatch, program: Program, entry: int, arguments: bytes, *grid: int
    ) -> int | None:
        name, memory = self._function.kernel.name, self._common.heap.limit
        return run_with_contexts(dispatch, name, program, arguments, grid, memory)  # type: ignore[arg-type]


class LikelyLauncher:
    """Launches *function*, which has code for its likely arguments, and some for others: see
    `CpuFunction.for_arguments`. Each is compiled when it is first needed."""

    __slots__ = ("_launches", "_make", "_read")

    def __init__(
        self, common: CpuLaunches, function: CpuFunction, block: Dim3, dynamic_shared: int, cooperative: bool
    ) -> None:
        assert function.likely is not None
        kernel = function.likely.kernel
        parameters = [kernel.parameters[position] for position, _ in kernel.likely_arguments]
        self._read = itemgetter(*(slice(place.offset, place.offset + place.size) for place in parameters))
        """Gives the bytes of one parameter, or a tuple of those of several."""

        def make(passed: Passed) -> Callable[..., None]:
            parts = (passed,) if isinstance(passed, bytes) else passed
            chosen = function.for_arguments(tuple(int.from_bytes(part, "little", signed=True) for part in parts))
            return BlockLauncher(common, chosen, block, dynamic_shared, cooperative).launch

        self._make = make
        self._launches: dict[Passed, Callable[..., None]] = {}

    def launch(
        self, arguments: bytes, grid: Dim3, stream: int, owners: object = None, describe: Describe | None = None
    ) -> None:
        """Launch over *grid*; see `hip_runtime.driver.Driver.launch`."""
        passed = self._read(arguments)
        launch = self._launches.get(passed)
        if launch is None:
            if len(self._launches) >= _MOST_REMEMBERED:
                self._launches.clear()
            launch = self._launches[passed] = self._make(passed)
        launch(arguments, grid, stream, owners, describe)
