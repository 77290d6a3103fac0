"""The code of a kernel for one gang: without a mask, for gangs that are full, or predicated by one."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction
from hip_runtime.drivers.cpu.llvmir import allocate
from hip_runtime.drivers.cpu.vectorize.crossing_values import find_crossing, incoming_value
from hip_runtime.drivers.cpu.vectorize.few_lanes import FewLanes
from hip_runtime.drivers.cpu.vectorize.linearize import LinearizedRegion, linearize
from hip_runtime.drivers.cpu.vectorize.mask_places import MaskPlace
from hip_runtime.drivers.cpu.vectorize.masked_loops import MaskedLoops
from hip_runtime.drivers.cpu.vectorize.suspended_branches import SuspendedBranches
from hip_runtime.drivers.cpu.vectorize.uniform_condition import write_uniform_condition
from hip_runtime.drivers.cpu.vectorize.widen import Widener


class PredicatedFunction:
    """Writes one version, which ends at *done* when all lanes have returned.

    *early_exits* are branches that all lanes are assumed to take, with their target; if one is not taken by all,
    control goes to *otherwise*. *mask* is that of the active lanes, ``None`` for all. *few* tells what runs the lanes
    that pass a check where these are few. *left_late* are headers of masked loops, with how many lanes that remain in
    each are few."""

    def __init__(
        self, widener: Widener, mask: ir.Value | None, done: ir.Block, early_exits: dict[Block, Block],
        otherwise: ir.Block | None, few: FewLanes | None = None, left_late: Mapping[Block, int] | None = None,
    ) -> None:  # fmt: skip
        self._few = few
        self.widener = widener
        self.builder = widener.builder
        self.shapes: VectorShapes = widener.shapes
        self.lanes = widener.lanes
        self.mask = mask
        self.done = done
        self.early_exits = early_exits
        self.otherwise = otherwise
        self.linearized = linearize(self.shapes)
        self._masks: dict[Block, MaskPlace] = {}
        self._incoming: dict[Instruction, ir.Value] = {}
        self._crossing, self.live_outs = find_crossing(self.shapes, widener.needs)
        self._blocks: dict[Block, ir.Block] = {}
        self._suspended: SuspendedBranches | None = None
        self.loops = MaskedLoops(widener, self._blocks, self._masks, left_late or {})
        """The masked loops."""

    def write(self) -> None:
        """Write all blocks; the builder is positioned where the version begins."""
        builder, order = self.builder, self.shapes.order
        for block in order.blocks:
            self._blocks[block] = builder.append_basic_block(block.name)
            if block in self.shapes.masked:
                place = self._masks[block] = MaskPlace(self.widener.entry, self.lanes.width)
                place.store(builder, self.lanes.no_lanes())
        self._begin(order.blocks[0])
        for block in order.blocks:
            if block not in self.shapes.masked:
                self._write_unmasked(block)
        for region in dict.fromkeys(self.linearized.values()):
            self._write_linearized(region)
        if self._suspended is not None:
            self._suspended.write_stops()
        self.widener.check_bases()

    def _begin(self, first: Block) -> None:
        """Go on with the *first* block or, if the gang was suspended, where that was."""
        suspension = self.widener.suspension
        if suspension is None:
            self.builder.branch(self._blocks[first])
            return
        self._suspended = SuspendedBranches(suspension, self.builder, self.widener.entry, self._blocks, self.done)
        self._suspended.begin(first)

    # blocks

    def _write_body(self, block: Block, mask: ir.Value | None) -> None:
        widener, builder = self.widener, self.builder
        widener.begin(block, mask)
        for phi in block.phis:
            varying = self.shapes.at_definition(phi) is VARYING
            kind = self.lanes.type_of(phi.type) if varying else phi.type
            widener.values[phi] = builder.load(self.incoming_place(phi), typ=kind)
        for instruction in block.instructions:
            if instruction.is_terminator:
                return
            if instruction.opcode == "alloca":
                continue
            if instruction.opcode != "phi":
                widener.write(instruction)
            varying = self.shapes.at_definition(instruction) is VARYING
            if instruction in self._crossing:
                widener.keep(instruction, only_base=varying and instruction in self.live_outs)
            if instruction in self.live_outs:
                self._save_live_out(instruction, mask)

    def _save_live_out(self, value: Instruction, mask: ir.Value | None) -> None:
        """Save *value* for lanes that leave a loop, as of their last iteration."""
        widener = self.widener
        shape = self.shapes.at_definition(value)
        whole = widener.values[value] if shape is VARYING else self.lanes.spread(widener.values[value], shape)
        self.blend(widener.variable(value, True), whole, mask)

    def blend(self, slot: ir.Value, value: ir.Value, mask: ir.Value | None) -> None:
        """Store *value* to *slot*, for the lanes of *mask*."""
        builder = self.builder
        if mask is not None:
            value = self.lanes.blend(mask, value, builder.load(slot, typ=value.type))
        builder.store(value, slot)

    def incoming_place(self, phi: Instruction) -> ir.Value:
        """Memory for what *phi* is going to be."""
        found = self._incoming.get(phi)
        if found is None:
            kind = phi.type if self.shapes.at_definition(phi) is not VARYING else self.lanes.type_of(phi.type)
            found = self._incoming[phi] = self._place_incoming(phi, kind)
        return found

    def _place_incoming(self, phi: Instruction, kind: ir.Type) -> ir.Value:
        suspension = self.widener.suspension
        if suspension is not None:
            return suspension.place_incoming(self.widener.entry, self.shapes.homes[phi], kind, f"{phi.name}.incoming")
        return allocate(self.widener.entry, kind, f"{phi.name}.incoming")

    def _write_incoming(self, block: Block, edges: list[tuple[Block, ir.Value | None]]) -> None:
        """Store the values of the successors' phis, for the lanes that take each edge. All are read before any is
        written."""
        values = [self._read_phis(block, target) for target, _ in edges]
        for (_, mask), found in zip(edges, values, strict=True):
            for phi, value in found:
                self.blend(self.incoming_place(phi), value, mask if self.shapes.at_definition(phi) is VARYING else None)

    def _read_phis(self, block: Block, target: Block) -> list[tuple[Instruction, ir.Value]]:
        """The phis of *target*, with their values for lanes that come from *block*."""
        widener = self.widener
        return [
            (
                phi,
                (widener.vector if self.shapes.at_definition(phi) is VARYING else widener.scalar)(
                    incoming_value(phi, block)
                ),
            )
            for phi in target.phis
        ]

    def _write_unmasked(self, block: Block) -> None:
        """Write a block that all lanes run."""
        builder = self.builder
        builder.position_at_end(self._blocks[block])
        self._write_body(block, self.mask)
        end = block.terminator
        if block in self.early_exits:
            self._write_early_exit(block)
        elif end.opcode == "ret":
            builder.branch(self.done)
        elif end.opcode == "unreachable":
            builder.unreachable()
        elif block in self.shapes.divergent:
            self._diverge(block, self.mask or self.lanes.all_lanes())
        else:
            self._write_incoming(block, [(target, None) for target in self.shapes.successors(block)])
            self._branch(block, end)

    def _branch(self, block: Block, end: Instruction) -> None:
        builder = self.builder
        slots = {target: self._enter(target) for target in self.shapes.successors(block)}
        if self._suspended is not None:
            slots = {target: self._suspended.redirect(block, target, slot) for target, slot in slots.items()}
        if len(slots) == 1:
            builder.branch(next(iter(slots.values())))
        elif end.opcode == "switch":
            kind = end.operands[0].type
            switch = builder.switch(self.widener.scalar(end.operands[0]), slots[end.targets[0]])
            for number, target in zip(end.cases, end.targets[1:], strict=True):
                switch.add_case(ir.Constant(kind, number), slots[target])
        else:
            builder.cbranch(self.widener.scalar(end.operands[0]), *(slots[target] for target in end.targets))

    def _enter(self, target: Block) -> ir.Block:
        """The block to branch to if all lanes go to *target*, which may be masked."""
        if target not in self.shapes.masked:
            return self._blocks[target]
        step = self.builder.append_basic_block("enter")
        builder = ir.IRBuilder(step)
        self._masks[target].store(builder, self.mask or self.lanes.all_lanes())
        builder.branch(self._blocks[self.linearized[target].blocks[0]])
        return step

    def _write_early_exit(self, block: Block) -> None:
        """Continue if all lanes take the assumed branch, else leave this version."""
        builder, end = self.builder, block.terminator
        target = self.early_exits[block]
        all_lanes = write_uniform_condition(self.widener, end.operands[0], target is end.targets[0])
        self._write_incoming(block, [(target, None)])
        assert self.otherwise is not None
        builder.cbranch(all_lanes, self._enter(target), self.otherwise)

    # masked blocks

    def _diverge(self, block: Block, mask: ir.Value) -> None:
        """End a block that all lanes run in a divergent branch: continue with the first masked block."""
        edges = self._edges(block, mask)
        if self._few is not None and self._few.check.block is block:
            self._few.branch(self.builder, self.lanes, dict(edges)[self._few.check.target])
        self._write_edges(block, edges)
        target = next((target for target, _ in edges if target in self.shapes.masked), None)
        slot = self._blocks[edges[0][0]] if target is None else self._blocks[self.linearized[target].blocks[0]]
        self.builder.branch(slot)

    def _write_edges(self, block: Block, edges: list[tuple[Block, ir.Value]]) -> None:
        """Add lanes to the masks of the targets, and store their values of the phis there."""
        builder = self.builder
        values = [self._read_phis(block, target) for target, _ in edges]
        for (target, edge), incoming in zip(edges, values, strict=True):
            if incoming and self.loops.is_left(block, target):
                place = MaskPlace(self.widener.entry, self.lanes.width)
                place.store(builder, edge)
                with builder.if_then(self.lanes.any(edge)):  # in most iterations no lane leaves
                    self._add_edge(block, target, place.load(builder), incoming)
            else:
                self._add_edge(block, target, edge, incoming)

    def _add_edge(
        self, block: Block, target: Block, edge: ir.Value, values: list[tuple[Instruction, ir.Value]]
    ) -> None:
        all_come_from_here = self.loops.is_only_latch(block, target)
        for phi, found in values:
            varying = self.shapes.at_definition(phi) is VARYING
            self.blend(self.incoming_place(phi), found, edge if varying and not all_come_from_here else None)
        self.add_lanes(target, edge)

    def add_lanes(self, target: Block, mask: ir.Value) -> None:
        """Have the lanes of *mask* run *target*, if it is masked."""
        if target in self.shapes.masked:
            place = self._masks[target]
            place.store(self.builder, self.builder.or_(place.load(self.builder), mask))

    def _edges(self, block: Block, mask: ir.Value) -> list[tuple[Block, ir.Value]]:
        """The targets of *block*, each once, with the lanes of *mask* that go there."""
        builder, end = self.builder, block.terminator
        targets = self.shapes.successors(block)
        if len(targets) == 1:
            return [(targets[0], mask)]
        self.widener.remark_branch(end)
        if end.opcode == "br":
            taken = self.widener.vector(end.operands[0])
            if end.targets[0] is end.targets[1]:
                return [(end.targets[0], mask)]
            not_taken = builder.not_(taken)
            return [(end.targets[0], self._restrict(mask, taken)), (end.targets[1], self._restrict(mask, not_taken))]
        number = self.widener.vector(end.operands[0])
        found: dict[Block, ir.Value] = {}
        rest = mask
        for case, target in zip(end.cases, end.targets[1:], strict=True):
            same = builder.icmp_unsigned("==", number, self.lanes.splat(ir.Constant(end.operands[0].type, case)))
            edge = self._restrict(mask, same)
            rest = self._restrict(rest, builder.not_(same))
            found[target] = builder.or_(found[target], edge) if target in found else edge
        default = end.targets[0]
        found[default] = builder.or_(found[default], rest) if default in found else rest
        return list(found.items())

    def _restrict(self, mask: ir.Value, condition: ir.Value) -> ir.Value:
        """The lanes of *mask* for which *condition* holds. It is a select, not an ``and``: *condition* may be poison in
        other lanes, which an ``and`` would propagate."""
        return self.builder.select(mask, condition, self.lanes.no_lanes())

    def _write_linearized(self, region: LinearizedRegion) -> None:
        """Write masked blocks one after another. A block clears its mask when it runs, for the next iteration."""
        builder = self.builder
        exit_block = self.done if region.exit is None else self._blocks[region.exit]
        latches = self.loops.latches(region)
        headers = {header for steps in latches.values() for _, header in steps if self.loops.leave_apart(header)}
        following: dict[Block, ir.Block] = {}
        after = exit_block
        for block in reversed(region.blocks):
            following[block] = latches[block][0][0] if block in latches else after
            after = self._blocks[block]
        for number, block in enumerate(region.blocks):
            self._write_masked(block, following[block], is_header=block in headers)
            if block in latches:
                behind = self._blocks[region.blocks[number + 1]] if number + 1 < len(region.blocks) else exit_block
                steps = latches[block]
                for step, (latch, header) in enumerate(steps):
                    builder.position_at_end(latch)
                    rest = steps[step + 1][0] if step + 1 < len(steps) else behind
                    self.loops.write_iteration(header, rest)

    def _write_masked(self, block: Block, following: ir.Block, *, is_header: bool) -> None:
        builder = self.builder
        builder.position_at_end(self._blocks[block])
        place = self._masks[block]
        mask = place.load(builder)
        if not place.stays_in_memory:
            place.store(builder, self.lanes.no_lanes())
        if (
            any(self.widener.needs_active_lane(instruction) for instruction in block.instructions)
            or len(block.instructions) > _CHEAP
            or self._branches_uniformly(block)
        ):
            run = builder.append_basic_block(f"{block.name}.run")
            runs = self.widener.runs(block, mask)
            source = builder.block
            builder.cbranch(runs, run, following)
            builder.position_at_end(run)
            if place.stays_in_memory:
                mask = place.load(builder)
            elif is_header:
                mask = self.loops.begin_running(block, run, mask, source)
        if place.stays_in_memory:
            place.store(builder, self.lanes.no_lanes())
        self._write_body(block, mask)
        if self._branches_uniformly(block):
            targets = block.terminator.targets
            values = [self._read_phis(block, target) for target in targets]
            with builder.if_else(self.widener.scalar(block.terminator.operands[0])) as paths:
                for path, target, incoming in zip(paths, targets, values, strict=True):
                    with path:
                        self._add_edge(block, target, mask, incoming)
        elif block.terminator.opcode in ("br", "switch"):
            self._write_edges(block, self._edges(block, mask))
        builder.branch(following)

    def _branches_uniformly(self, block: Block) -> bool:
        """Whether a masked block ends in a branch with a uniform condition."""
        end = block.terminator
        two = end.opcode == "br" and len(self.shapes.successors(block)) == 2
        return two and self.shapes.of(end.operands[0], block) == 0


_CHEAP = 6
"""The most instructions of a block that is executed under an empty mask rather than skipped."""
