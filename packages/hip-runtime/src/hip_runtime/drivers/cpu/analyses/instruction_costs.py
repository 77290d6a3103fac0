"""What single instructions cost a thread that runs alone, and a lane: cycles per thread, see `cost_model`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.analyses.divided_addresses import find_divided_address
from hip_runtime.drivers.cpu.analyses.effects import needs_active_lane
from hip_runtime.drivers.cpu.analyses.integer_division import divides_as_floats, divides_steps
from hip_runtime.drivers.cpu.analyses.neighbours import Neighbours, find_neighbours
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.recurrences import innermost_loops
from hip_runtime.drivers.cpu.analyses.row_loops import ROW, find_row_loops
from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE, VARYING
from hip_runtime.drivers.cpu.analyses.small_tables import find_small_table
from hip_runtime.drivers.cpu.analyses.stride_speculation import (
    SpeculatedStride,
    speculate_strides,
)
from hip_runtime.drivers.cpu.analyses.trip_counts import count_iterations
from hip_runtime.drivers.cpu.analyses.uniform_atomics import is_combinable, is_uniform_load
from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers

SCALAR, LANE = 0.27, 0.06
"""An instruction of a thread that runs alone, and of a lane."""

_STRIDED_ACCESS = 1.0
"""A load or store of a thread in a loop whose stride is not that of a contiguous array."""

_GATHER, _SCATTER = 1.5, 2.0
"""A load or a store whose lanes are not contiguous; of neighbours in memory that a lane accesses at once, for all of
them together."""

_LOOKED_UP = 0.2
"""A load from a table that is in registers, or of elements that lanes share."""

_STEPS = 2
"""Operations of a lane that a quotient of numbers in steps takes, most of which are of 16 bits."""

_MASKED_GATHER = 4.0
"""A load under a mask whose lanes are not contiguous, for processors without registers for masks: what chooses each
lane's address, and the mask, which has as many bits as the addresses then, count with it."""

_NARROW_SCATTER = 4.0
"""A store of less than 32 bits whose lanes are not contiguous: no processor has an instruction for it, so lanes store
one after another, each behind a branch where some may be inactive."""

_LEAST_SCATTERED = 4
"""Bytes of the smallest elements that an instruction scatters."""

_ROWS_PER_BYTE = 0.75
"""What it costs more, for each byte of an element, where each lane accesses a row of its own, with unit stride or in
neighbouring gangs: that keeps as many cache lines in use as there are lanes, and needs the next ones the sooner, the
larger elements are. Not so rows that an outer loop accesses again and again: these are short, or few."""

_LEAST_OF_ROWS = 2
"""Bytes that the smallest elements count as then, as they are gathered with what is around them: where threads search
rows of bytes for the first of some, lanes take five times as long as one thread after another."""

_SHORT = 16
"""Iterations of a loop that LLVM writes out for a thread, and that goes through short rows, whose lines stay in the
cache for all lanes."""

_ROW_ELEMENT, _ROW_BYTE = 0.2, 0.05
"""An element, and each of its bytes, of a row that a lane loads several elements of at once, see `row_loops`; where
LLVM makes vectors of the loop of a single thread, that is quicker nevertheless."""

_DIVISION, _FLOAT_DIVISION = 2.0, 0.6
"""An integer division of a thread; and of a lane, if all lanes divide as floats."""

_ROOT, _LANE_ROOT = 3.0, 0.7
"""A division or a square root of floats: of a thread that runs alone, and of a lane."""

_OPAQUE, _SCALARIZED = 5.0, 5.5
"""What is scalarized: for a thread that runs alone, and for a lane."""

_LOCKED, _REPLACED, _TABLED = 18.0, 30.0, 3.0
"""An atomic operation on memory of all blocks: a locked instruction; a loop that replaces what it has read, as for
floats; and one in a worker's table, which only lanes have."""

_COMBINED = 8
"""Instructions that combine the operands that all lanes have for one atomic operation."""


class InstructionCosts:
    """The costs of single instructions of a kernel with *shapes*, in gangs of *width*. *rows* are accesses that are
    contiguous along another axis."""

    def __init__(
        self, shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int, rows: Collection[Instruction] = ()
    ) -> None:
        self._shapes = shapes
        self._size_of = size_of
        self._width = width
        self._rows = rows
        self._neighbours: dict[Block, dict[Instruction, Neighbours]] = {}
        self._speculated: dict[Instruction, SpeculatedStride] = speculate_strides(shapes)
        self.steps = UnitStrideLoops(shapes, size_of)
        self._short_loops = {
            loop for loop, header in shapes.order.headers().items() if count_iterations(loop, header, _SHORT)
        }
        self.unit_stride_loops = {
            loop
            for loop in innermost_loops(shapes)
            if loop not in self._short_loops and self.steps.has_unit_stride(loop) and not self._is_in_record(loop)
        }
        """Innermost loops of which LLVM makes vectors for a thread that runs alone."""
        self._row_loads = {
            load
            for loop in find_row_loops(shapes, size_of)
            for load in loop.loads
            if frozenset({loop.block}) not in self.unit_stride_loops
        }

    def of(self, value: Instruction, block: Block) -> tuple[float, float]:
        """What *value*, in *block*, costs a thread that runs alone, and a lane."""
        if value.opcode in ("phi", "alloca"):
            return 0.0, 0.0
        if value.opcode in ("load", "store") and not value.volatile and value.atomic is None:
            return self._access(value, block)
        if self._shapes.at_definition(value) is not VARYING:
            return SCALAR, SCALAR / self._width
        if divides_steps(value, block, self._shapes, self._width):
            return _DIVISION, _STEPS * LANE
        if value.opcode in ("sdiv", "udiv", "srem", "urem"):
            return _DIVISION, _FLOAT_DIVISION if divides_as_floats(value, self._width) else _DIVISION
        if value.opcode == "fdiv" or value.callee.startswith("llvm.sqrt."):
            return _ROOT, _LANE_ROOT
        if value.callee in spmd.WAVE_WIDE:  # threads that run alone exchange values through memory
            return _OPAQUE, LANE
        if value.elementwise is not None:
            count = sum(1 for _ in value.elementwise.instructions())
            return SCALAR * count, LANE * count
        if is_uniform_load(value, block, self._shapes):
            return SCALAR, SCALAR / self._width
        if value.opcode == "atomicrmw":
            return self._update(value, block)
        if needs_active_lane(value):
            return _OPAQUE, _SCALARIZED
        return SCALAR, LANE

    def _update(self, value: Instruction, block: Block) -> tuple[float, float]:
        address = value.operands[0]
        alone = _OPAQUE if is_in_block_memory(address) else _LOCKED if _is_locked(value) else _REPLACED
        if is_combinable(value, block, self._shapes):
            return alone, _COMBINED * LANE + alone / self._width
        if value.table is not None and self._shapes.of(address, block) is VARYING:
            return alone, _TABLED
        return alone, alone + _SCALARIZED - _OPAQUE

    def _access(self, value: Instruction, block: Block) -> tuple[float, float]:
        accessed = value.accessed
        address = value.operands[-1]
        loops = self._shapes.order.loops[block]
        step = self.steps.step(address, loops[-1]) if loops else 0
        unit_stride = step == self._size_of(accessed)
        scalar = SCALAR if step == 0 or unit_stride or is_private_address(address) else _STRIDED_ACCESS
        shape = self._shapes.of(address, block)
        if shape is VARYING and isinstance(address, Instruction) and address in self._speculated:
            shape = self._speculated[address].shape
        if accessed == I1:
            return scalar, _SCALARIZED
        if shape is not VARYING and 0 <= shape <= MAX_STRIDE * self._size_of(accessed):
            return scalar, LANE
        if shape == -self._size_of(accessed):  # and a shuffle
            return scalar, 2 * LANE
        if value.opcode == "load" and self._is_permuted(value, block):
            return scalar, _LOOKED_UP
        if value in self._row_loads and value not in self._rows and self._width >= ROW:
            return scalar, _ROW_ELEMENT + _ROW_BYTE * self._size_of(accessed)
        is_narrow_store = value.opcode == "store" and self._size_of(accessed) < _LEAST_SCATTERED
        if (unit_stride and not self._is_near(address, loops)) or value in self._rows:
            apart = _NARROW_SCATTER if is_narrow_store else _GATHER
            return scalar, apart + _ROWS_PER_BYTE * max(self._size_of(accessed), _LEAST_OF_ROWS)
        if value.opcode == "load":
            is_chosen = block in self._shapes.masked and not has_mask_registers()
            return scalar, (_MASKED_GATHER if is_chosen else _GATHER) / self._count_neighbours(value, block)
        return scalar, _NARROW_SCATTER if is_narrow_store else _SCATTER / self._count_neighbours(value, block)

    def _is_permuted(self, load: Instruction, block: Block) -> bool:
        """Whether lanes get what they *load* out of registers."""
        return any(find(load, block, self._shapes) is not None for find in (find_small_table, find_divided_address))

    def _count_neighbours(self, access: Instruction, block: Block) -> int:
        """How many neighbours in memory are accessed together with *access* and by it."""
        if block not in self._neighbours:
            self._neighbours[block] = find_neighbours(
                block, partial(self._is_apart, block), partial(self._most_at_once, block), self._size_of, _guess_nothing
            )
        group = self._neighbours[block].get(access)
        return 1 if group is None else len(group.members)

    def _is_apart(self, block: Block, access: Instruction) -> bool:
        if access.opcode not in ("load", "store") or access.volatile or access.atomic is not None:
            return False
        address = access.operands[-1]
        return self._shapes.of(address, block) is VARYING and not is_private_address(address)

    def _most_at_once(self, block: Block, access: Instruction) -> int:
        return 4 if access.opcode == "load" and block not in self._shapes.masked else 2

    def _is_near(self, address: Value, loops: tuple[frozenset[Block], ...]) -> bool:
        """Whether the row that the innermost of *loops* goes through by *address* is short, or again the same."""
        return loops[-1] in self._short_loops or self._is_repeated(address, loops)

    def _is_repeated(self, address: Value, loops: tuple[frozenset[Block], ...]) -> bool:
        """Whether the second innermost of *loops* does not change which row the innermost goes through by *address*."""
        if len(loops) < 2:
            return False
        waiting, seen = [address], {address}
        while waiting:
            value = waiting.pop()
            home = self._shapes.homes.get(value) if isinstance(value, Instruction) else None
            if not isinstance(value, Instruction) or home not in loops[-2]:
                continue
            if value.opcode == "load" or (value.opcode == "phi" and home not in loops[-1]):
                return False
            waiting += set(value.operands) - seen
            seen.update(value.operands)
        return True

    def _is_in_record(self, loop: frozenset[Block]) -> bool:
        """Whether *loop* goes through neighbours in memory of which other lanes' are few elements behind, as through
        the colours of a pixel: it is short."""
        for block in loop:
            for value in block.instructions:
                if value.opcode in ("load", "store"):
                    nbytes = self._size_of(value.accessed)
                    shape = self._shapes.of(value.operands[-1], block)
                    is_near = shape is not VARYING and nbytes < abs(shape) <= MAX_STRIDE * nbytes
                    if is_near and self.steps.step(value.operands[-1], loop) == nbytes:
                        return True
        return False


def _guess_nothing(_: Instruction) -> None:
    """What an index probably is: of those that are held within a limit, nothing is known before gangs are written."""


def _is_locked(update: Instruction) -> bool:
    """Whether processors have an instruction that does *update* and locks its cache line."""
    return update.operation in _WITH_LOCK and isinstance(update.type, ir.IntType)


_WITH_LOCK = ("add", "sub", "and", "or", "xor", "xchg")
