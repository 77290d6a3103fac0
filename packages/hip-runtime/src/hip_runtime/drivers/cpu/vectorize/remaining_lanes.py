"""Where only few lanes of a gang are still in a loop, these go on one after another, in scalar code.

A loop takes a gang as many iterations as the lane that has the most. Where lanes divide, or gather, an iteration takes
as long for the last three lanes as for all: one that looks for a divisor finds it at once for most numbers, and for
primes late. So behind each iteration of such a loop it is asked how many lanes go on; if these are few, a thread's own
code runs the rest of the loop for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I32, allocate
from hip_runtime.drivers.cpu.vectorize.crossing_values import incoming_value
from hip_runtime.drivers.cpu.vectorize.few_lanes import each_lane
from hip_runtime.drivers.cpu.vectorize.lane_loops import LaneLoop, extract_loop
from hip_runtime.drivers.cpu.vectorize.lane_operands import OfLane, element_address, stored_type, take_lanes
from hip_runtime.drivers.cpu.vectorize.masked_loops import FewRemain
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.widen import Widener

MakeWidener = Callable[[Function, list[ir.Value], VectorBuilder], Widener]
"""Makes what writes a function with arguments for a single thread."""


def write_remaining(
    function: PredicatedFunction, few: FewRemain, kernel: Function, make_widener: MakeWidener
) -> None:  # fmt: skip
    """Write what runs the lanes that are still in a loop where *function* leaves it."""
    shapes = function.shapes
    loop = next(loop for loop, header in shapes.order.headers().items() if header is few.header)
    outputs = [value for value, home in shapes.homes.items() if home in loop and value in function.live_outs]
    _RemainingLanes(function, few, extract_loop(kernel, loop, shapes, outputs), make_widener).write()


class _RemainingLanes:
    def __init__(self, function: PredicatedFunction, few: FewRemain, loop: LaneLoop, make_widener: MakeWidener) -> None:
        self._function = function
        self._few = few
        self._loop = loop
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
        first = item.layout.load(builder, kernel_arguments[0], "thread", item.order.lane_axis)
        behind = builder.append_basic_block("remaining.done")
        with each_lane(lanes, item, kernel_arguments[0], bits, behind) as (lane, bit):
            addresses = [
                element_address(builder, place, stored_type(value.type), lane) for value, place in places.items()
            ]
            arguments = [*kernel_arguments, *(value(lane) for value in values), exit_place, *addresses]
            self._run(arguments)
            number = builder.load(exit_place, typ=I32)
            for index, place in enumerate(left):
                taken = builder.select(builder.icmp_unsigned("==", number, I32(index)), bit, bits.type(0))
                builder.store(builder.or_(builder.load(place, typ=bits.type), taken), place)
        builder.position_at_end(behind)
        item.layout.store(builder, first, kernel_arguments[0], "thread", item.order.lane_axis)
        self._leave(bits, left, places)
        builder.branch(self._few.rest)

    def _take_phi(self, phi: Instruction) -> OfLane:
        place, varying = self._function.incoming_place(phi), self._function.shapes.at_definition(phi) is VARYING
        kind = self._lanes.type_of(phi.type) if varying else phi.type
        return take_lanes(self._widener, phi, self._builder.load(place, typ=kind))

    def _place(self, value: Instruction) -> ir.Value:
        place = allocate(self._widener.entry, ir.ArrayType(stored_type(value.type), self._lanes.width), "remaining")
        place.align = 64
        return place

    def _run(self, arguments: list[ir.Value]) -> None:
        """Write the loop for a single thread."""
        builder = self._builder
        after = builder.append_basic_block("remaining.left")
        lane = VectorBuilder(builder, 1, self._widener.entry)
        widener = self._make_widener(self._loop.function, arguments, lane)
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
        loaded = builder.load(places[value], typ=lanes.type_of(stored_type(value.type)), align=64)
        return builder.trunc(loaded, lanes.type_of(I1)) if value.type == I1 else loaded
