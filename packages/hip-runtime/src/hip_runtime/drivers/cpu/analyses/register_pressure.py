"""What a function needs of vector registers: the bytes of the values that its gangs hold at the same time.

Where they fit into the registers even for twice as many lanes, what a gang does once - indices, checks, branches of
loops - is done half as often at no cost, and there is twice as much to execute while the processor waits for memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes, vector_registers

_LEAST_GATHERED = 4
"""Bytes of the smallest elements that processors load from anywhere by one instruction."""

_MOST_INSTRUCTIONS = 100
"""Of longer functions, what a gang does once is a small part."""


def has_registers_left(shapes: VectorShapes, size_of: SizeOf, width: int, rows: int) -> bool:
    """Whether the function with *shapes* is short, its values fit the registers for twice *width* lanes of as many
    *rows* as run at once and leave one for what is the same in all lanes, and no access to memory takes longer for more
    lanes."""
    if len(shapes.homes) > _MOST_INSTRUCTIONS or any(map(_is_of_block, shapes.homes)):
        return False
    if any(_takes_lanes_apart(value, block, shapes, size_of) for value, block in shapes.homes.items()):
        return False
    if any(_is_often_left_out(block, shapes) for block in shapes.order.blocks):
        return False
    nbytes = most_live_bytes(shapes, size_of)
    if rows > 1:
        nbytes += (rows - 1) * _most_bytes_between_iterations(shapes, size_of)
    room = vector_registers() * vector_bytes()
    if any(_updates_anywhere(value, block, shapes) for value, block in shapes.homes.items()):
        room *= 2
    return 2 * width * nbytes < room


def _is_of_block(value: Instruction) -> bool:
    """Whether *value* is memory of a block or a thread, in which lanes are further apart in wider gangs."""
    return value.opcode == "alloca" or value.callee.startswith((spmd.SHARED, spmd.DYNAMIC_SHARED))


def _takes_lanes_apart(value: Instruction, block: Block, shapes: VectorShapes, size_of: SizeOf) -> bool:
    """Whether *value* accesses memory in steps, which takes shuffles of more registers for more lanes, or lane by lane,
    often or for some lanes only."""
    if value.opcode not in ("load", "store"):
        return False
    step = shapes.of(value.address, block)
    accessed = size_of(value.accessed)
    if step is VARYING:
        return block in shapes.masked or bool(shapes.order.loops[block]) or accessed < _LEAST_GATHERED
    return step not in (0, accessed)


def _updates_anywhere(value: Instruction, block: Block, shapes: VectorShapes) -> bool:
    """Whether *value* updates memory lane by lane: next to that it is little to store a register and load it again."""
    return value.opcode == "atomicrmw" and shapes.of(value.operands[0], block) is VARYING


def _is_often_left_out(block: Block, shapes: VectorShapes) -> bool:
    """Whether *block* runs for some lanes only in a loop that is run for all: of more lanes, more often one of them
    needs it."""
    loops = shapes.order.loops[block]
    return block in shapes.masked and bool(loops) and any(other not in shapes.masked for other in loops[-1])


def fills_registers_in_loops(shapes: VectorShapes, size_of: SizeOf, width: int) -> bool:
    """Whether what lives from one iteration of a loop to the next takes all registers in gangs of *width*: then each
    iteration stores some of it to memory and loads it again, and with half as many lanes all may stay."""
    return width * _most_bytes_between_iterations(shapes, size_of) >= vector_registers() * vector_bytes()


def most_live_bytes(shapes: VectorShapes, size_of: SizeOf) -> int:
    """The most bytes of a lane's values that differ between lanes and live at the same time. Conditions are bits of
    other registers."""
    sizes = _sizes_in_registers(shapes, size_of)
    entering = _live_at_starts(shapes)
    most = 0
    for block in shapes.order.blocks:
        live = _live_at_end(block, shapes, entering)
        for value in reversed(block.instructions):
            most = max(most, _bytes_of(live, sizes))
            _go_before(value, live)
    return most


def _most_bytes_between_iterations(shapes: VectorShapes, size_of: SizeOf) -> int:
    sizes = _sizes_in_registers(shapes, size_of)
    entering = _live_at_starts(shapes)
    headers = shapes.order.headers().values()
    return max((_bytes_of(entering[header] | set(header.phis), sizes) for header in headers), default=0)


def _sizes_in_registers(shapes: VectorShapes, size_of: SizeOf) -> dict[Instruction, int]:
    """Bytes of each value of a lane that differs between lanes."""
    return {
        value: size_of(value.type)
        for value in shapes.homes
        if not value.is_terminator and _is_held(value.type) and shapes.at_definition(value) is VARYING
    }


def _live_at_starts(shapes: VectorShapes) -> dict[Block, set[Value]]:
    """The values that each block is entered with and that it, or one behind it, uses; without its phis."""
    entering: dict[Block, set[Value]] = {block: set() for block in shapes.order.blocks}
    grows = True
    while grows:
        grows = False
        for block in reversed(shapes.order.blocks):
            live = _live_at_end(block, shapes, entering)
            for value in reversed(block.instructions):
                _go_before(value, live)
            grows |= not live <= entering[block]
            entering[block] |= live
    return entering


def _go_before(value: Instruction, live: set[Value]) -> None:
    """Make what is *live* behind *value* what is live before it."""
    live.discard(value)
    if value.opcode != "phi":
        live.update(value.operands)


def _is_held(kind: ir.Type) -> bool:
    return not isinstance(kind, ir.VoidType) and kind != ir.IntType(1)


def _live_at_end(block: Block, shapes: VectorShapes, entering: dict[Block, set[Value]]) -> set[Value]:
    live: set[Value] = set()
    for target in shapes.successors(block):
        live |= entering.get(target, set())
        for phi in target.phis:
            live.update(value for value, source in zip(phi.operands, phi.targets, strict=True) if source is block)
    return live


def _bytes_of(values: Iterable[Value], sizes: dict[Instruction, int]) -> int:
    return sum(sizes.get(value, 0) for value in values if isinstance(value, Instruction))
