"""A request for machine code of one kernel, for one block shape, under the current settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llvmlite import ir

from hip_devicelib import spmd
from hip_devicelib.codeobject import CodeObject, Kernel
from hip_runtime import config
from hip_runtime.driver import Dim3, block_threads
from hip_runtime.drivers.cpu.abi.block_lengths import is_row, lengths_like
from hip_runtime.drivers.cpu.abi.declarations import build_declarations
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.callgraph import name_functions, survey
from hip_runtime.drivers.cpu.analyses.last_barriers import waits_at_end_only
from hip_runtime.drivers.cpu.analyses.stack_usage import stack_bytes
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.passes.define_dots import define_dots
from hip_runtime.drivers.cpu.passes.float_extremes import define_extremes
from hip_runtime.drivers.cpu.passes.lower_overloads import define_overloads
from hip_runtime.drivers.cpu.passes.missing_instructions import define_missing
from hip_runtime.drivers.cpu.strategies.form_choice import LOOP, MIN_LANES, REGIONS, choose_width, default_lanes
from hip_runtime.drivers.cpu.validation import read_bitcode
from hip_runtime.errors import ModuleLoadError, UnsupportedError


class KernelRequest:
    """A kernel, the block shape, and what is known about the kernel before it is read as a graph."""

    def __init__(self, code: CodeObject, kernel: Kernel, block: Dim3, context: LlvmContext, machine: Any) -> None:
        self.code = code
        self.kernel = kernel
        self.block = block
        self.context = context
        self.machine = machine
        self._module: Any = self._read()
        self.reach = survey(self._module, kernel.name)
        self._waits_in_vain = self._drop_last_barrier()
        self._check_shared()
        self.private_bytes = stack_bytes(self._module, self.machine.target_data)
        """Bytes of stack that a thread needs."""
        self.chosen_width = config.cpu_width()
        """Lanes of a gang, if the setting says how many."""
        self.width = choose_width(block[0], self.chosen_width)
        """Lanes of a gang along x."""
        self.requested_lanes = config.cpu_lanes()
        self.requested_form = config.cpu_form()
        if self.reach.observed and self.requested_form != LOOP:
            self.requested_form = REGIONS  # one thread at a time, so that their events have an order
        self.inlined: dict[bool, list[str]] = {}
        """Functions that become part of the kernel, by whether loops were unrolled; see `kernel_graph`."""

    def _drop_last_barrier(self) -> bool:
        """Forget a barrier that nothing follows, so that no thread waits for another; whether there was one."""
        reach = self.reach
        if reach.waiting != [spmd.BARRIER] or reach.synchronising != {self.kernel.name} or reach.observed:
            return False
        try:
            function = read_function(self.printed(), self.kernel.name, ir.Context())
        except UnsupportedError:
            return False
        if not waits_at_end_only(function):
            return False
        self.reach = replace(reach, functions=reach.functions - {spmd.BARRIER}, synchronising=set())
        return True

    @property
    def is_single_thread(self) -> bool:
        """Whether a block has one thread."""
        return block_threads(self.block) == 1

    @property
    def has_wave_operations(self) -> bool:
        """Whether lanes of a wave exchange values."""
        return not spmd.WAVE_WIDE.isdisjoint(self.reach.functions)

    @property
    def is_turnable(self) -> bool:
        """Whether gangs may be neighbours along another axis than x: nothing tells the order in which threads run."""
        return not self.has_wave_operations and not self.reach.observed

    @property
    def widest(self) -> int:
        """Lanes of a gang along the axis of the block that allows for most."""
        return choose_width(max(self.block) if self.is_turnable else self.block[0], self.chosen_width)

    @property
    def most_lanes(self) -> int:
        """Lanes of the widest gang, which reaches over several blocks if it can."""
        return choose_width(default_lanes(), self.chosen_width) if self.is_tileable else self.widest

    @property
    def is_tileable(self) -> bool:
        """Whether threads of different blocks may be lanes of a gang: nothing belongs to a block as a whole, and who
        waits for others waits for the whole grid."""
        reach = self.reach
        waits_for_block = not {spmd.GRID_BARRIER}.issuperset(reach.waiting)
        return self.is_turnable and not (waits_for_block or reach.shared_arrays or reach.uses_dynamic_shared)

    def width_in(self, item: WorkItem) -> int:
        """Lanes of a gang along the first of the axes of *item*, of blocks that are joined to a tile of that."""
        return choose_width(item.order.extents[0], self.chosen_width)

    def text(self) -> str:
        """LLVM IR of the module with the kernel."""
        return str(self._peek())

    def printed(self) -> PrintedModule:
        """The module with the kernel, to read functions from."""
        return PrintedModule(self._peek())

    def _peek(self) -> Any:
        self._module = self._module or self._read()
        return self._module

    def take_module(self) -> Any:
        """The kernel's module as it was handed in, for a strategy to modify."""
        module, self._module = self._module or self._read(), None
        return module

    @property
    def lengths(self) -> tuple[int, int] | None:
        """The least and the greatest length of blocks like this one, if one program could run them all: they are rows
        of threads, which wait for their whole block at most."""
        reach = self.reach
        is_simple = self.is_turnable and spmd.GRID_BARRIER not in reach.functions
        return lengths_like(self.block[0], MIN_LANES) if is_row(self.block) and is_simple else None

    def make_item(self, module: Any, any_length: bool = False) -> WorkItem:
        """The work item of the kernel in *module*, with a new module for the worker. With *any_length*, the length of
        blocks is not a constant of the worker, if that is possible."""
        limit = max(spmd.SHARED_BYTES - self.kernel.shared_bytes, 0) if self.reach.uses_dynamic_shared else None
        watched = stack_bytes(module, self.machine.target_data) if self.reach.watches_stack else None
        return WorkItem(
            ir.Module("spmd.worker", context=ir.Context()), self.block, self.kernel.wave_size,
            self.reach.shared_arrays, limit, spmd.GRID_BARRIER in self.reach.functions, watched, self.reach.observed,
            self.lengths if any_length else None,
        )  # fmt: skip

    def declare_intrinsics(self, module: Any, item: WorkItem) -> Any:
        """*module* linked into one that declares its intrinsics with their attributes, or defines those that give a
        constant or do nothing."""
        names = (
            name for name in self.reach.functions if name.startswith("spmd.") and name not in (spmd.FAULT, spmd.OBSERVE)
        )
        return self._link_declarations(module, sorted(names), item.known)

    def without_last_barrier(self, module: Any) -> Any:
        """*module*, in which the barrier does nothing if that was dropped."""
        return self._link_declarations(module, [], {}) if self._waits_in_vain else module

    def _link_declarations(self, module: Any, names: list[str], known: Mapping[str, int]) -> Any:
        idle = [spmd.BARRIER] if self._waits_in_vain else []
        declarations = self.context.read_text(str(build_declarations(names, known, idle)))
        declarations.triple, declarations.data_layout = module.triple, module.data_layout
        declarations.link_in(module)
        return declarations

    def _read(self) -> Any:
        module = read_bitcode(self.code, self.context)
        module.triple, module.data_layout = self.machine.triple, str(self.machine.target_data)
        define_overloads(module, self.context.read_text)
        define_dots(module, self.context.read_text)
        define_extremes(module, self.context.read_text)
        define_missing(module, self.context.read_text)
        name_functions(module)
        return module

    def _check_shared(self) -> None:
        kernel = self.kernel
        nbytes = spmd.lay_out_shared(array.symbol for array in self.reach.shared_arrays)
        if nbytes > kernel.shared_bytes:
            raise ModuleLoadError(
                f"the shared arrays of kernel {kernel.name!r} take {nbytes} bytes; the code object says "
                f"{kernel.shared_bytes}"
            )
