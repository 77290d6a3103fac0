"""Parts of a function that are written several times, and the paths into and out of them."""

from __future__ import annotations

from collections.abc import Collection

from hip_runtime.drivers.cpu.analyses.cfg import find_following, immediate_postdominators
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import Copies
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value

Version = tuple[Copies, dict[Instruction, Value]]
"""Copies, and what stands for each instruction there."""


def join_versions(function: Function, inside: list[Block], joined: Block, versions: list[Version]) -> None:
    """Have *joined*, in *function*, follow the copies of the blocks *inside* in *versions*, too. What these compute is
    replaced, where it is used elsewhere, by what either version has computed."""
    sources = [block for block in inside if joined in block.successors]
    for phi in joined.phis:
        for value, source in zip(list(phi.operands), list(phi.targets), strict=True):
            for copies, results in versions if source in sources else ():
                phi.operands.append(results.get(value, value) if isinstance(value, Instruction) else value)
                phi.targets.append(copies.blocks[source])
    every = {*inside, *(copy for copies, _ in versions for copy in copies.blocks.values())}
    written = versions[0][1]
    phis: dict[Instruction, Instruction] = {}
    for block in function.blocks:
        for user in block.instructions if block not in every else ():
            for number, value in enumerate(user.operands):
                is_edge = user.opcode == "phi" and user.targets[number] in every
                if isinstance(value, Instruction) and value in written and not is_edge:
                    if value not in phis:
                        phis[value] = _merge(value, sources, versions)
                    user.operands[number] = phis[value]
    joined.instructions[:0] = phis.values()


def _merge(value: Instruction, sources: list[Block], versions: list[Version]) -> Instruction:
    """What *value*, or one of its *versions*, is behind the blocks that are *sources* or their copies."""
    operands: list[Value] = [value] * len(sources)
    targets = list(sources)
    for copies, results in versions:
        operands += [results[value]] * len(sources)
        targets += [copies.blocks[source] for source in sources]
    return Instruction(value.type, "phi", operands, f"{value.name}.joined", targets=targets)


def change_source(targets: Collection[Block], source: Block, now: Block) -> None:
    """Have the phis of *targets* come from the block that they *now* do instead of *source*."""
    for target in targets:
        for phi in target.phis:
            phi.targets = [now if before is source else before for before in phi.targets]


def find_branches(block: Block, shapes: VectorShapes) -> tuple[list[Block], Block] | None:
    """The blocks between *block* and the one in which its branches meet again, and that; ``None`` if there are none, if
    these are not in the same loops, or if something else leads to them."""
    joined = immediate_postdominators(shapes.order.blocks, shapes.successors)[block]
    if joined is None or shapes.order.loops[joined] != shapes.order.loops[block]:
        return None
    following = order_following(block, shapes, joined)
    if not following or block in following or not is_entered_from(block, following, shapes):
        return None
    return following, joined


def order_following(block: Block, shapes: VectorShapes, until: Block | None = None) -> list[Block]:
    """The blocks that are reached from *block*, in order, before *until*."""
    found = set(find_following(block, shapes.successors, until))
    return [other for other in shapes.order.blocks if other in found]


def enter_by(copies: Copies, originals: Collection[Block]) -> None:
    """Leave out what phis of the *copies* have for paths that do not come from copies of the *originals*: these lead to
    the originals only."""
    inside = {copies.blocks[block] for block in originals}
    for block in inside:
        for phi in block.phis:
            kept = [
                (value, source) for value, source in zip(phi.operands, phi.targets, strict=True) if source in inside
            ]
            phi.operands, phi.targets = [value for value, _ in kept], [source for _, source in kept]


def is_entered_from(block: Block, following: Collection[Block], shapes: VectorShapes) -> bool:
    """Whether the blocks *following* are only reached through *block*."""
    inside = {block, *following}
    return all(
        source in inside or target not in inside or target is block
        for source in shapes.order.blocks
        for target in shapes.successors(source)
    )
