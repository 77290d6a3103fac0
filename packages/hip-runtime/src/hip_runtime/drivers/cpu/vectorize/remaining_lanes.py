"""Where only few lanes of a gang are still in a loop, these go on one after another, in scalar code.

A loop takes a gang as many iterations as the lane that has the most. Where lanes divide, or gather, an iteration takes
as long for the last three lanes as for all: one that looks for a divisor finds it at once for most numbers, and for
primes late. So behind each iteration of such a loop it is asked how many lanes go on; if these are few, a thread's own
code runs the rest of the loop for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.cost_model import count_replaced
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.monotonic_conditions import is_decided_by_ends
from hip_runtime.drivers.cpu.analyses.private_arrays import private_array_of
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, allocate
from hip_runtime.drivers.cpu.vectorize.crossing_values import incoming_value
from hip_runtime.drivers.cpu.vectorize.few_lanes import each_lane
from hip_runtime.drivers.cpu.vectorize.lane_loops import LaneLoop, extract_loop, find_exits
from hip_runtime.drivers.cpu.vectorize.lane_operands import OfLane, element_address, take_lanes
from hip_runtime.drivers.cpu.vectorize.predicated_function import FewRemain, PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.widen import Widener

_FEWEST = 2
"""Lanes that have to be few at least: the loop is compiled twice for them."""

_MOST_INSTRUCTIONS = 100
"""The most instructions of a loop that is written once more for single threads."""

_PLACED = spmd.WAVE_WIDE | {spmd.LANE}

MakeWidener = Callable[[Function, list[ir.Value], VectorBuilder, frozenset[Instruction]], Widener]
"""Makes what writes a function with arguments for a single thread, in which some atomic operations are demoted."""


def find_loops_left_late(shapes: VectorShapes, size_of: SizeOf, width: int) -> dict[Block, int]:
    """The headers of the loops that lanes leave one after another, and of which few lanes take less time one after
    another than an iteration takes the gang; with how many are few."""
    if any(value.callee in _PLACED for value in shapes.homes):
        return {}
    found: dict[frozenset[Block], int] = {}
    for loop in shapes.order.headers():
        is_inside = any(loop < outer for outer in found)
        if not is_inside and loop <= shapes.masked and _may_run_apart(loop, shapes):
            few = count_replaced(loop, shapes, size_of, width)
            if few >= _FEWEST:
                found[loop] = few
    return {shapes.order.headers()[loop]: few for loop, few in found.items()}


def _may_run_apart(loop: frozenset[Block], shapes: VectorShapes) -> bool:
    """Whether lanes leave *loop* in different iterations, and what it does for one does not depend on others."""
    values = [value for block in loop for value in block.instructions]
    if len(values) > _MOST_INSTRUCTIONS or not any(
        _leave_apart(*leaving, shapes) for leaving in find_exits(loop, shapes)
    ):
        return False
    if any(isinstance(value.type, ir.LiteralStructType | ir.ArrayType) for value in values):
        return False
    if not _find_private(values) <= _find_indexed(loop, shapes):
        return False
    return not any(
        has_effect(value) and (value.opcode != "store" or value.volatile or value.atomic) for value in values
    )


def _leave_apart(block: Block, target: Block, shapes: VectorShapes) -> bool:
    """Whether lanes go from *block* to *target*, out of a loop, in different iterations, and not only within a gang
    that reaches over the end of what all of them go through."""
    end = block.terminator
    if block not in shapes.divergent or end.opcode != "br":
        return block in shapes.divergent
    return not is_decided_by_ends(shapes, end.operands[0], block, target is not end.targets[0])


def _find_private(values: Iterable[Instruction]) -> set[Instruction]:
    """The private arrays that *values* are computed from."""
    found = (private_array_of(operand) for value in values for operand in value.operands)
    return {array for array in found if array is not None}


def _find_indexed(loop: frozenset[Block], shapes: VectorShapes) -> set[Instruction]:
    """The private arrays that *loop* accesses at places which data tells, so that LLVM cannot keep them in registers:
    it could not if one lane's address were known at run time only, either."""
    found: set[Instruction] = set()
    for block in loop:
        for address in block.instructions:
            array = private_array_of(address) if address.opcode == "getelementptr" else None
            if array is not None and any(_depends_on_data(index, loop, shapes) for index in address.operands[1:]):
                found.add(array)
    return found


def _depends_on_data(index: Value, loop: frozenset[Block], shapes: VectorShapes) -> bool:
    """Whether *index* is more than a constant, and than what counts the iterations of a loop in *loop* that has
    constant bounds."""
    header = next(block for block in shapes.order.blocks if block in loop)
    waiting, seen = [index], {index}
    while waiting:
        value = waiting.pop()
        if isinstance(value, Constant):
            continue
        home = shapes.homes.get(value) if isinstance(value, Instruction) else None
        if not isinstance(value, Instruction) or home not in loop or value.opcode == "load":
            return True
        if value.opcode == "phi" and home is header:
            return True
        waiting += set(value.operands) - seen
        seen.update(value.operands)
    return False


def write_remaining(
    function: PredicatedFunction, few: FewRemain, kernel: Function, demotable: frozenset[Instruction],
    make_widener: MakeWidener,
) -> None:  # fmt: skip
    """Write what runs the lanes that are still in a loop where *function* leaves it."""
    shapes = function.shapes
    loop = next(loop for loop, header in shapes.order.headers().items() if header is few.header)
    outputs = [value for value, home in shapes.homes.items() if home in loop and value in function.live_outs]
    extracted = extract_loop(kernel, loop, shapes, outputs)
    demoted = frozenset(copy for copy, original in extracted.copied.items() if original in demotable)
    _RemainingLanes(function, few, extracted, demoted, make_widener).write()


class _RemainingLanes:
    def __init__(
        self, function: PredicatedFunction, few: FewRemain, loop: LaneLoop, demotable: frozenset[Instruction],
        make_widener: MakeWidener,
    ) -> None:  # fmt: skip
        self._function = function
        self._few = few
        self._loop = loop
        self._demotable = demotable
        self._make_widener = make_widener
        self._widener = function.widener
        self._builder = function.builder
        self._lanes = function.lanes

    def write(self) -> None:
        builder, lanes, widener, loop = self._builder, self._lanes, self._widener, self._loop
        builder.position_at_end(self._few.start)
        widener.begin(loop.header, None)
        bits = builder.load(self._few.bits, typ=ir.IntType(lanes.width))
        values = [self._take_phi(phi) for phi in loop.phis]
        values += [take_lanes(widener, value) for value in loop.inputs]
        exit_place = allocate(widener.entry, I32, "exit")
        places = {value: self._place(value) for value in [*loop.joins, *loop.outputs]}
        left = [allocate(widener.entry, bits.type, "left") for _ in loop.exits]
        for place in left:
            builder.store(bits.type(0), place)
        item, kernel_arguments = widener.item, widener.arguments
        first = item.layout.load(builder, kernel_arguments[0], "thread", item.axes[0])
        behind = builder.append_basic_block("remaining.done")
        with each_lane(lanes, item, kernel_arguments[0], bits, behind) as (lane, bit):
            addresses = [element_address(builder, place, _stored(value.type), lane) for value, place in places.items()]
            arguments = [*kernel_arguments, *(value(lane) for value in values), exit_place, *addresses]
            self._run(arguments)
            number = builder.load(exit_place, typ=I32)
            for index, place in enumerate(left):
                taken = builder.select(builder.icmp_unsigned("==", number, I32(index)), bit, bits.type(0))
                builder.store(builder.or_(builder.load(place, typ=bits.type), taken), place)
        builder.position_at_end(behind)
        item.layout.store(builder, first, kernel_arguments[0], "thread", item.axes[0])
        self._leave(bits, left, places)
        builder.branch(self._few.rest)

    def _take_phi(self, phi: Instruction) -> OfLane:
        place, varying = self._function.incoming_place(phi), self._function.shapes.at_definition(phi) is VARYING
        kind = self._lanes.type_of(phi.type) if varying else phi.type
        return take_lanes(self._widener, phi, self._builder.load(place, typ=kind))

    def _place(self, value: Instruction) -> ir.Value:
        place = allocate(self._widener.entry, ir.ArrayType(_stored(value.type), self._lanes.width), "remaining")
        place.align = 64
        return place

    def _run(self, arguments: list[ir.Value]) -> None:
        """Write the loop for a single thread."""
        builder = self._builder
        after = builder.append_basic_block("remaining.left")
        lane = VectorBuilder(builder, 1, self._widener.entry)
        widener = self._make_widener(self._loop.function, arguments, lane, self._demotable)
        PredicatedFunction(widener, None, after, {}, None).write()
        builder.position_at_end(after)

    def _leave(self, bits: ir.Value, left: list[ir.Value], places: Mapping[Instruction, ir.Value]) -> None:
        """Have lanes go on where they have left the loop, with the values that they have there."""
        builder, lanes, function, loop = self._builder, self._lanes, self._function, self._loop
        kind = lanes.no_lanes().type
        for (source, target), place in zip(loop.exits, left, strict=True):
            mask = builder.bitcast(builder.load(place, typ=bits.type), kind)
            function.add_lanes(target, mask)
            for phi in target.phis:
                if function.shapes.at_definition(phi) is VARYING:
                    function.blend(function.incoming_place(phi), self._collect(phi, places), mask)
                else:
                    known = self._widener.scalar(incoming_value(phi, source))
                    function.blend(function.incoming_place(phi), known, None)
        for value in loop.outputs:
            slot = self._widener.variable(value, True)
            function.blend(slot, self._collect(value, places), builder.bitcast(bits, kind))

    def _collect(self, value: Instruction, places: Mapping[Instruction, ir.Value]) -> ir.Value:
        """What was stored for each lane."""
        builder, lanes = self._builder, self._lanes
        loaded = builder.load(places[value], typ=lanes.type_of(_stored(value.type)), align=64)
        return builder.trunc(loaded, lanes.type_of(I1)) if value.type == I1 else loaded


def _stored(kind: ir.Type) -> ir.Type:
    return I8 if kind == I1 else kind
