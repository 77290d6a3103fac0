"""The code of a kernel for one group of lanes: with all of them from the start, or under a mask."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import needs_a_lane
from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import allocate
from hip_runtime.drivers.cpu.vectorize.linearize import LinearizedRegion, linearize
from hip_runtime.drivers.cpu.vectorize.uniform_condition import write_uniform_condition
from hip_runtime.drivers.cpu.vectorize.widen import Widener
from hip_runtime.errors import UnsupportedError


class PredicatedFunction:
    """Writes one version. It begins at ``start``, and goes to *done* when all lanes have returned.

    *early_exits* are branches that all lanes are taken to go one way at, with that way; where they do not, it goes to
    *otherwise*. ``mask`` is that of lanes which exist, ``None`` for all.
    """

    def __init__(
        self, code: Widener, mask: ir.Value | None, done: ir.Block, early_exits: dict[Block, Block],
        otherwise: ir.Block | None,
    ) -> None:  # fmt: skip
        self.code = code
        self.builder = code.builder
        self.shapes: VectorShapes = code.shapes
        self.lanes = code.lanes
        self.mask = mask
        self.done = done
        self.early_exits = early_exits
        self.otherwise = otherwise
        self.clusters = linearize(self.shapes)
        self._masks: dict[Block, ir.Value] = {}
        self._incoming: dict[Instruction, ir.Value] = {}
        self._crossing, self._escaping = self._find_crossing()
        self._blocks: dict[Block, ir.Block] = {}
        self._position = {block: number for number, block in enumerate(self.shapes.order.blocks)}

    def write(self) -> None:
        """Everything; the builder stands where the version begins."""
        builder, order = self.builder, self.shapes.order
        for block in order.blocks:
            self._blocks[block] = builder.append_basic_block(block.name)
            if block in self.shapes.masked:
                place = self._masks[block] = allocate(self.code.entry, self.lanes.no_lanes().type, "mask")
                builder.store(self.lanes.no_lanes(), place)
        builder.branch(self._blocks[order.blocks[0]])
        for block in order.blocks:
            if block not in self.shapes.masked:
                self._write_plain(block)
        for cluster in dict.fromkeys(self.clusters.values()):
            self._write_cluster(cluster)

    def _find_crossing(self) -> tuple[set[Instruction], set[Instruction]]:
        """Values used in other blocks than their own, and those used outside of a masked loop that they are in."""
        crossing: set[Instruction] = set()
        escaping: set[Instruction] = set()

        def note(value: Value, block: Block) -> None:
            if (
                isinstance(value, Instruction)
                and value.opcode != "alloca"
                and self.shapes.homes.get(value) is not block
            ):
                if self.shapes.leaves_masked_loop(value, block):
                    escaping.add(value)
                else:
                    crossing.add(value)

        for block in self.shapes.order.blocks:
            for instruction in block.instructions:
                if instruction.opcode != "phi":
                    for value in instruction.operands:
                        note(value, block)
            for target in self.shapes.successors(block):
                for phi in target.phis:
                    note(_given(phi, block), block)
        return crossing, escaping

    # blocks

    def _write_body(self, block: Block, mask: ir.Value | None) -> None:
        code, builder = self.code, self.builder
        code.begin(block, mask)
        for phi in block.phis:
            varying = self.shapes.own(phi) is VARYING
            kind = self.lanes.type_of(phi.type) if varying else phi.type
            code.values[phi] = builder.load(self._incoming_place(phi), typ=kind)
        for instruction in block.instructions:
            if instruction.is_terminator:
                return
            if instruction.opcode == "alloca":
                continue
            if instruction.opcode != "phi":
                code.write(instruction)
            varying = self.shapes.own(instruction) is VARYING
            if instruction in self._crossing and not (varying and instruction in self._escaping):
                code.keep(instruction)
            if instruction in self._escaping:
                self._escape(instruction, mask)

    def _escape(self, value: Instruction, mask: ir.Value | None) -> None:
        """Keep *value* for lanes that leave a loop, as it is in their last round."""
        code = self.code
        shape = self.shapes.own(value)
        whole = code.values[value] if shape is VARYING else self.lanes.spread(code.values[value], shape)
        self._blend(code.variable(value, True), whole, mask)

    def _blend(self, place: ir.Value, value: ir.Value, mask: ir.Value | None) -> None:
        builder = self.builder
        if mask is not None:
            value = self.lanes.choose(mask, value, builder.load(place, typ=value.type))
        builder.store(value, place)

    def _incoming_place(self, phi: Instruction) -> ir.Value:
        found = self._incoming.get(phi)
        if found is None:
            kind = phi.type if self.shapes.own(phi) is not VARYING else self.lanes.type_of(phi.type)
            found = self._incoming[phi] = allocate(self.code.entry, kind, f"{phi.name}.incoming")
        return found

    def _pass_on(self, block: Block, edges: list[tuple[Block, ir.Value | None]]) -> None:
        """Give the phis of the next blocks their values, for the lanes that go there: all are read before any is
        written."""
        values = [self._read_phis(block, target) for target, _ in edges]
        for (_, mask), found in zip(edges, values, strict=True):
            for phi, value in found:
                self._blend(self._incoming_place(phi), value, mask if self.shapes.own(phi) is VARYING else None)

    def _read_phis(self, block: Block, target: Block) -> list[tuple[Instruction, ir.Value]]:
        """The phis of *target*, with what they are for lanes that come from *block*."""
        code = self.code
        return [
            (phi, (code.vector if self.shapes.own(phi) is VARYING else code.scalar)(_given(phi, block)))
            for phi in target.phis
        ]

    def _write_plain(self, block: Block) -> None:
        """A block that all lanes run."""
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
            self._pass_on(block, [(target, None) for target in self.shapes.successors(block)])
            self._branch(block, end)

    def _branch(self, block: Block, end: Instruction) -> None:
        builder = self.builder
        places = {target: self._enter(target) for target in self.shapes.successors(block)}
        if len(places) == 1:
            builder.branch(next(iter(places.values())))
        elif end.opcode == "switch":
            kind = end.operands[0].type
            switch = builder.switch(self.code.scalar(end.operands[0]), places[end.targets[0]])
            for number, target in zip(end.cases, end.targets[1:], strict=True):
                switch.add_case(ir.Constant(kind, number), places[target])
        else:
            builder.cbranch(self.code.scalar(end.operands[0]), *(places[target] for target in end.targets))

    def _enter(self, target: Block) -> ir.Block:
        """Where to go for all lanes to go to *target*, which may be masked."""
        if target not in self.shapes.masked:
            return self._blocks[target]
        step = self.builder.append_basic_block("enter")
        builder = ir.IRBuilder(step)
        builder.store(self.mask or self.lanes.all_lanes(), self._masks[target])
        builder.branch(self._blocks[self.clusters[target].blocks[0]])
        return step

    def _write_early_exit(self, block: Block) -> None:
        """Go on where all lanes take the way that is assumed."""
        builder, end = self.builder, block.terminator
        target = self.early_exits[block]
        everyone = write_uniform_condition(self.code, end.operands[0], target is end.targets[0])
        self._pass_on(block, [(target, None)])
        assert self.otherwise is not None
        builder.cbranch(everyone, self._enter(target), self.otherwise)

    # masked blocks

    def _diverge(self, block: Block, mask: ir.Value) -> None:
        """Behind a block that all lanes run: go through the blocks that they may go to."""
        edges = self._edges(block, mask)
        self._send(block, edges)
        target = next((target for target, _ in edges if target in self.shapes.masked), None)
        place = self._blocks[edges[0][0]] if target is None else self._blocks[self.clusters[target].blocks[0]]
        self.builder.branch(place)

    def _send(self, block: Block, edges: list[tuple[Block, ir.Value]]) -> None:
        """Note which lanes go where, and what the phis there are for them."""
        builder = self.builder
        values = [self._read_phis(block, target) for target, _ in edges]
        for (target, edge), given in zip(edges, values, strict=True):
            if given and self._leaves_loop(block, target):
                with builder.if_then(self.lanes.any(edge)):  # in most rounds no lane leaves
                    self._arrive(block, target, edge, given)
            else:
                self._arrive(block, target, edge, given)

    def _arrive(self, block: Block, target: Block, edge: ir.Value, values: list[tuple[Instruction, ir.Value]]) -> None:
        builder = self.builder
        all_come_from_here = self._is_only_latch(block, target)
        for phi, found in values:
            varying = self.shapes.own(phi) is VARYING
            self._blend(self._incoming_place(phi), found, edge if varying and not all_come_from_here else None)
        if target in self.shapes.masked:
            place = self._masks[target]
            builder.store(builder.or_(builder.load(place, typ=edge.type), edge), place)

    def _leaves_loop(self, block: Block, target: Block) -> bool:
        return any(target not in loop and loop <= self.shapes.masked for loop in self.shapes.order.loops[block])

    def _is_only_latch(self, block: Block, target: Block) -> bool:
        """Whether lanes that come to *target* from *block* go round a loop as all others do that are still in it: what
        the lanes are given that are not, is of no use."""
        for loop in self.shapes.order.loops[target]:
            if block in loop and loop <= self.shapes.masked and target is min(loop, key=self._position.__getitem__):
                return sum(target in self.shapes.successors(member) for member in loop) == 1
        return False

    def _edges(self, block: Block, mask: ir.Value) -> list[tuple[Block, ir.Value]]:
        """Where the lanes of *mask* go from *block*, each target once."""
        builder, end = self.builder, block.terminator
        targets = self.shapes.successors(block)
        if len(targets) == 1:
            return [(targets[0], mask)]
        if end.opcode == "br":
            taken = self.code.vector(end.operands[0])
            if end.targets[0] is end.targets[1]:
                return [(end.targets[0], mask)]
            return [
                (end.targets[0], self._within(mask, taken)), (end.targets[1], self._within(mask, builder.not_(taken)))
            ]  # fmt: skip
        number = self.code.vector(end.operands[0])
        found: dict[Block, ir.Value] = {}
        rest = mask
        for case, target in zip(end.cases, end.targets[1:], strict=True):
            same = builder.icmp_unsigned("==", number, self.lanes.splat(ir.Constant(end.operands[0].type, case)))
            edge = self._within(mask, same)
            rest = self._within(rest, builder.not_(same))
            found[target] = builder.or_(found[target], edge) if target in found else edge
        default = end.targets[0]
        found[default] = builder.or_(found[default], rest) if default in found else rest
        return list(found.items())

    def _within(self, mask: ir.Value, condition: ir.Value) -> ir.Value:
        """The lanes of *mask* for which *condition* holds. It is a choice, not an ``and``: what other lanes have there
        may be poison, which an ``and`` would spread."""
        return self.builder.select(mask, condition, self.lanes.no_lanes())

    def _write_cluster(self, cluster: LinearizedRegion) -> None:
        """Masked blocks one after another. A mask is taken when its block is run, so that it is empty afterwards."""
        builder = self.builder
        leave = self.done if cluster.exit is None else self._blocks[cluster.exit]
        latches = self._latches(cluster)
        following: dict[Block, ir.Block] = {}
        after = leave
        for block in reversed(cluster.blocks):
            following[block] = latches[block][0][0] if block in latches else after
            after = self._blocks[block]
        for number, block in enumerate(cluster.blocks):
            self._write_masked(block, following[block])
            if block in latches:
                behind = self._blocks[cluster.blocks[number + 1]] if number + 1 < len(cluster.blocks) else leave
                steps = latches[block]
                for step, (latch, header) in enumerate(steps):
                    builder.position_at_end(latch)
                    mask = builder.load(self._masks[header], typ=self.lanes.no_lanes().type)
                    rest = steps[step + 1][0] if step + 1 < len(steps) else behind
                    builder.cbranch(self.lanes.any(mask), self._blocks[header], rest)

    def _latches(self, cluster: LinearizedRegion) -> dict[Block, list[tuple[ir.Block, Block]]]:
        """Behind which blocks a loop may go on, with where it starts; the innermost first."""
        loops = {
            loop for block in cluster.blocks for loop in self.shapes.order.loops[block] if loop <= self.shapes.masked
        }
        latches: dict[Block, list[tuple[ir.Block, Block]]] = {}
        for loop in sorted(loops, key=len):
            first, last = min(loop, key=self._position.__getitem__), max(loop, key=self._position.__getitem__)
            latches.setdefault(last, []).append((self.builder.append_basic_block("round"), first))
        return latches

    def _write_masked(self, block: Block, following: ir.Block) -> None:
        builder = self.builder
        builder.position_at_end(self._blocks[block])
        place = self._masks[block]
        mask = builder.load(place, typ=self.lanes.no_lanes().type)
        builder.store(self.lanes.no_lanes(), place)
        if (
            any(needs_a_lane(instruction) for instruction in block.instructions)
            or len(block.instructions) > _CHEAP
            or self._branches_as_one(block)
        ):
            run = builder.append_basic_block(f"{block.name}.run")
            builder.cbranch(self.lanes.any(mask), run, following)
            builder.position_at_end(run)
        self._write_body(block, mask)
        if self._branches_as_one(block):
            targets = block.terminator.targets
            values = [self._read_phis(block, target) for target in targets]
            with builder.if_else(self.code.scalar(block.terminator.operands[0])) as paths:
                for path, target, given in zip(paths, targets, values, strict=True):
                    with path:
                        self._arrive(block, target, mask, given)
        elif block.terminator.opcode in ("br", "switch"):
            self._send(block, self._edges(block, mask))
        builder.branch(following)

    def _branches_as_one(self, block: Block) -> bool:
        """Whether all lanes that run a masked block go the same way at its end, one of two."""
        end = block.terminator
        two = end.opcode == "br" and len(self.shapes.successors(block)) == 2
        return two and self.shapes.of(end.operands[0], block) == 0


_CHEAP = 6
"""Instructions of a block that are rather run for nothing than jumped over."""


def _given(phi: Instruction, source: Block) -> Value:
    """What *phi* is when lanes come from *source*."""
    for value, block in zip(phi.operands, phi.targets, strict=True):
        if block is source:
            return value
    raise UnsupportedError(f"a phi has no value for the block {source.name!r}")
