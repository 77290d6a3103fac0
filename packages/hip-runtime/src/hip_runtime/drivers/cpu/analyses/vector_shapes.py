"""How each value of a kernel differs between the lanes of a gang, and which blocks need a mask.

The *shape* of a value is its stride: lane *n* holds the value of lane 0, the *base*, plus *n* strides, modulo overflow.
Stride 0 is *uniform*. `VARYING` values have one element for each lane.

Lanes diverge at a branch on a condition that is not uniform. The blocks between it and its reconvergence point are
*masked*: they run one after another, for the lanes that reached them. All other blocks run for all lanes of the gang,
and branches between them stay branches. A loop that lanes leave in different iterations is masked as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from llvmlite import ir

from hip_devicelib import spmd
from hip_devicelib.cached_property import cached_property
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.alignments import Alignments
from hip_runtime.drivers.cpu.analyses.cfg import immediate_postdominators, order_blocks
from hip_runtime.drivers.cpu.analyses.shape_rules import RULES, VARYING, Shape, uniform_if_all
from hip_runtime.drivers.cpu.analyses.sources import are_all
from hip_runtime.drivers.cpu.ir.model import RAMP, Block, Function, Instruction, Value

_UNKNOWN = "unknown"


AFFINE = frozenset({"add", "sub", "mul", "shl"})
"""Operations whose result grows alike from lane to lane if their operands do."""


class VectorShapes:
    """The result for one function, in gangs of neighbours *along* an axis of the block. *assumed* are branches that all
    lanes are known to take, with their target. *alignments* are those of gangs that begin at multiples of their width,
    ``None`` for gangs that may begin anywhere."""

    def __init__(
        self,
        function: Function,
        assumed: Mapping[Block, Block],
        size_of: Callable[[ir.Type], int],
        private_stride: Callable[[Instruction], int],
        lanes_consecutive: bool,
        along: str = "x",
        alignments: Alignments | None = None,
    ) -> None:
        self.consecutive = frozenset(
            {spmd.thread_idx(along), intrinsics.global_idx(along), intrinsics.NUMBER, intrinsics.LANE_PLACE}
        )
        """Intrinsics whose result grows by one from lane to lane and never wraps."""
        self._assumed = assumed
        self.size_of = size_of
        self.private_stride = private_stride
        self.lanes_consecutive = lanes_consecutive
        """Whether gangs begin where the thread's index is a multiple of their width, which divides that of waves."""
        self._alignments = alignments
        self.order = order_blocks(function.blocks[0], self.successors)
        self.homes = {value: block for block in self.order.blocks for value in block.instructions}
        self._postdominators = immediate_postdominators(self.order.blocks, self.successors)
        self._shapes: dict[Instruction, Shape] = {}
        self.masked: set[Block] = set()
        self._counted: set[Instruction] = set()
        self.divergent: set[Block] = set()
        """Blocks at whose end lanes can diverge."""
        self._solve()

    @cached_property
    def uses(self) -> Counter[Value]:
        """How often each value is an operand."""
        return Counter(operand for value in self.homes for operand in value.operands)

    def successors(self, block: Block) -> list[Block]:
        """The successors of *block*, given the assumed branches."""
        return [self._assumed[block]] if block in self._assumed else block.successors

    def of(self, value: Value, block: Block) -> Shape:
        """The shape of *value* as seen from *block*: values that leave a masked loop vary."""
        found = self.find(value, block)
        return VARYING if isinstance(found, str) else found

    def at_definition(self, value: Instruction) -> Shape:
        """The shape of *value* in the block that defines it."""
        return self._shapes.get(value, VARYING)

    def describe(self, value: Instruction) -> str:
        """The shape of *value*, whether it is masked, and whether a branch is divergent, in words."""
        home = self.homes.get(value)
        if home is None:
            return "not reached"
        mask = "masked" if home in self.masked else ""
        if value.is_terminator:
            return ", ".join(filter(None, [mask, "divergent" if home in self.divergent else ""]))
        if isinstance(value.type, ir.VoidType):
            return mask
        shape = self.at_definition(value)
        how = "varying" if shape is VARYING else f"stride {shape}" if shape else "uniform"
        return f"{how}, {mask}" if mask else how

    def leaves_masked_loop(self, value: Instruction, block: Block) -> bool:
        """Whether *value* is defined in a masked loop that *block* is outside of."""
        loops = self.order.loops[self.homes[value]]
        return any(block not in loop and loop <= self.masked for loop in loops)

    def reconvergence(self, block: Block) -> Block | None:
        """The block where lanes that diverge at *block* reconverge; ``None`` if that is the exit."""
        return self._postdominators[block]

    def find(self, value: Value, block: Block) -> Shape | str:
        """The shape of *value* as seen from *block*, as far as that is known."""
        if not isinstance(value, Instruction):
            return 0
        shape = self._shapes.get(value, _UNKNOWN)
        if shape is not VARYING and value in self.homes and self.leaves_masked_loop(value, block):
            return VARYING
        return shape

    def _solve(self) -> None:
        """Infer all shapes: without loops, each instruction follows all that it depends on, and is looked at once."""
        has_loops = any(self.order.loops.values())
        changed = True
        while changed:
            changed = False
            for block in self.order.blocks:
                for instruction in block.instructions:
                    known = self._shapes.get(instruction, _UNKNOWN)
                    if known is VARYING:
                        continue
                    found = self._infer(instruction, block)
                    if found in (_UNKNOWN, known):
                        continue
                    self._shapes[instruction] = found if known == _UNKNOWN else VARYING  # type: ignore[assignment]
                    changed = has_loops
                changed |= self._diverge(block) and has_loops

    def _diverge(self, block: Block) -> bool:
        targets = self.successors(block)
        if len(targets) < 2 or block in self.divergent:
            return False
        if self.find(block.terminator.operands[0], block) in (0, _UNKNOWN):
            return False
        self.divergent.add(block)
        reconvergence = self._postdominators[block]
        waiting = [target for target in targets if target is not reconvergence]
        seen: set[Block] = set()
        while waiting:
            found = waiting.pop()
            if found not in seen:
                seen.add(found)
                waiting += [target for target in self.successors(found) if target is not reconvergence]
        self.masked |= seen
        return True

    def _infer(self, instruction: Instruction, block: Block) -> Shape | str:
        if instruction.opcode == "phi":
            return self._infer_phi(instruction, block)
        shapes = [self.find(operand, block) for operand in instruction.operands]
        if _UNKNOWN in shapes:
            return _UNKNOWN
        return self.infer_from(instruction, block, shapes)

    def infer_from(self, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
        """The shape of *instruction*, which is not a ``phi``, if its operands have *shapes*."""
        special = RULES.get(instruction.opcode)
        found = special(self, instruction, block, shapes) if special is not None else uniform_if_all(shapes)
        if found and (
            not isinstance(instruction.type, ir.IntType | ir.PointerType) or instruction.type == ir.IntType(1)
        ):
            return VARYING
        return found

    def _infer_phi(self, phi: Instruction, block: Block) -> Shape | str:
        pairs = [
            (value, source) for value, source in zip(phi.operands, phi.targets, strict=True)
            if source in self.order.loops and block in self.successors(source)
        ]  # fmt: skip
        # A value that leaves a masked loop varies in this block, even if it is strided in the block that it comes from.
        shapes = {self.find(value, place) for value, source in pairs for place in (source, block)} - {_UNKNOWN}
        if not shapes:
            return _UNKNOWN
        if len(shapes) > 1 or VARYING in shapes:
            return VARYING
        is_join = block in self.masked or any(source in self.masked or source in self.divergent for _, source in pairs)
        if is_join and len(pairs) > 1 and not self._is_simple_header(block, [source for _, source in pairs]):
            return VARYING
        return shapes.pop()

    def _is_simple_header(self, block: Block, sources: list[Block]) -> bool:
        """Whether *block* is the header of a masked loop with one entry and one latch, where all active lanes are in
        the same iteration."""
        loops = self.order.loops[block]
        if block not in self.masked or not loops or len(sources) != 2:
            return False
        return sum(source in loops[-1] for source in sources) == 1 and self.order.header_of(loops[-1]) is block

    def never_wraps(self, value: Value, block: Block) -> bool:
        """Whether an integer is strided without overflow in any lane, so that extending it keeps the stride."""

        def judge(value: Value) -> bool | list[Value]:
            if not isinstance(value, Instruction):
                return True
            if value.opcode == "phi":
                return self._counts_without_wrapping(value, block)
            if value.opcode == RAMP or self.reaches_over(value, self.find(value, block)) is not None:
                return True
            if value.opcode == "call":
                return value.callee in self.consecutive or self.find(value, block) == 0
            if value.opcode in ("zext", "sext"):
                return value.operands
            if value.opcode in AFFINE and "nsw" in value.flags and self.homes[value] not in self.masked:
                return value.operands if block not in self.masked else False
            return self.find(value, block) == 0

        return are_all(value, judge)

    def _counts_without_wrapping(self, phi: Instruction, block: Block) -> bool:
        """Whether all that *phi* can be is strided without overflow, given that it is in the iterations before."""
        home = self.homes[phi]
        if phi in self._counted:
            return True
        if block in self.masked or home in self.masked or not self.find(phi, block):
            return self.find(phi, block) == 0
        self._counted.add(phi)
        holds = all(self.never_wraps(value, home) for value in phi.operands)
        self._counted.discard(phi)
        return holds

    def reaches_over(self, value: Value, shape: Shape | str) -> int | None:
        """How many low bits of *value*, which has *shape*, come from the lane alone, while those above, of which there
        are some, are the same in all lanes; ``None`` if it is not known to be so."""
        if (
            not isinstance(shape, int)
            or shape < 0
            or self._alignments is None
            or not isinstance(value.type, ir.IntType)
        ):
            return None
        bits = (shape * (self._alignments.width - 1)).bit_length()
        return bits if bits < value.type.width and self._alignments.of(value) >= bits else None

    def is_multiple(self, value: Value, bits: int) -> bool:
        """Whether the lowest *bits* of *value*, which is uniform, are known to be 0."""
        return self._alignments is not None and self._alignments.of(value) >= bits


class LaneShapes(VectorShapes):
    """The shapes for a thread that runs alone: all is uniform."""

    def infer_from(self, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
        """The shape of *instruction*, which is not a ``phi``, if its operands have *shapes*."""
        return 0
