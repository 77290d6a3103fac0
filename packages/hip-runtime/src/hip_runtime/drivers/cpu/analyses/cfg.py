"""The control flow graph: loops, a topological order that keeps loops contiguous, postdominators, liveness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction

Successors = Callable[[Block], Sequence[Block]]


@dataclass
class Order:
    """The reachable blocks in topological order, back edges aside, with the blocks of each loop contiguous; and the
    loops that contain each block, outermost first."""

    blocks: list[Block] = field(default_factory=list)
    loops: dict[Block, tuple[frozenset[Block], ...]] = field(default_factory=dict)

    def header_of(self, loop: frozenset[Block]) -> Block:
        """The block that *loop* is entered at."""
        return self._headers[loop]

    def headers(self) -> Mapping[frozenset[Block], Block]:
        """The block that each loop is entered at, those of outer loops first."""
        return self._headers

    def innermost(self) -> list[frozenset[Block]]:
        """The loops that have no other in them."""
        return [loop for loop in self._headers if not any(other < loop for other in self._headers)]

    @cached_property
    def _headers(self) -> dict[frozenset[Block], Block]:
        found: dict[frozenset[Block], Block] = {}
        for block in self.blocks:
            for loop in self.loops[block]:
                found.setdefault(loop, block)
        return found


def order_blocks(entry: Block, successors: Successors) -> Order:
    """The order of the blocks that are reachable from *entry*."""
    order = Order()
    reachable = list(dict.fromkeys([entry, *find_following(entry, successors)]))
    following = {block: successors(block) for block in reachable}
    incoming = _number_edges(following)
    # Each entry: blocks to order, starting with their first; blocks whose incoming edges are ignored; enclosing loops.
    pending: list[tuple[list[Block], frozenset[Block], tuple[frozenset[Block], ...]]] = [(reachable, frozenset(), ())]
    while pending:
        blocks, cut, loops = pending.pop()
        if len(blocks) == 1 and blocks[0] in cut:
            order.blocks.append(blocks[0])
            order.loops[blocks[0]] = loops
            continue
        kept = frozenset(blocks) - cut
        edges = {block: [target for target in following[block] if target in kept] for block in blocks}
        for component in reversed(_components(edges)):  # the last to be pushed is the first to be ordered
            first = component[0]
            if len(component) > 1 or first in edges[first]:
                header = _header(component, entry, incoming)
                members = [header, *(block for block in component if block is not header)]
                pending.append((members, frozenset({header}), (*loops, frozenset(component))))
            else:
                pending.append(([first], frozenset({first}), loops))
    return order


def order_function(function: Function) -> Order:
    """The order of the blocks that *function* can reach."""
    return order_blocks(function.blocks[0], block_successors)


def block_successors(block: Block) -> list[Block]:
    """The successors of *block* that its terminator has."""
    return block.successors


def has_loop(function: Function) -> bool:
    """Whether *function* has a loop."""
    return any(order_function(function).loops.values())


def find_following(block: Block, successors: Successors, until: Block | None = None) -> list[Block]:
    """The blocks that are reached from *block* before *until*, each once; *block* is one of them if it is in a loop."""
    found: dict[Block, None] = {}
    waiting = [block]
    while waiting:
        for target in successors(waiting.pop()):
            if target not in found and target is not until:
                found[target] = None
                waiting.append(target)
    return list(found)


def _number_edges(following: Mapping[Block, Sequence[Block]]) -> dict[Block, list[tuple[int, Block]]]:
    """The edges to each block: the number of each among all edges, and the block that it leaves."""
    incoming: dict[Block, list[tuple[int, Block]]] = {block: [] for block in following}
    edges = ((source, target) for source, targets in following.items() for target in targets)
    for number, (source, target) in enumerate(edges):
        incoming[target].append((number, source))
    return incoming


def _header(component: list[Block], entry: Block, incoming: Mapping[Block, Sequence[tuple[int, Block]]]) -> Block:
    """The block at which a loop is entered: by the first edge from outside."""
    inside = frozenset(component)
    if entry in inside:
        return entry
    entered = [(number, block) for block in component for number, source in incoming[block] if source not in inside]
    return min(entered, key=lambda edge: edge[0])[1]


def _components(edges: Mapping[Block, Sequence[Block]]) -> list[list[Block]]:
    """Strongly connected components in topological order, by Tarjan's algorithm without recursion; *edges* lead from
    each block to others of them."""
    index: dict[Block, int] = {}
    low: dict[Block, int] = {}
    stack: list[Block] = []
    on_stack: set[Block] = set()
    found: list[list[Block]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            block, rest = work[-1]
            target = next(rest, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[block])
                if low[block] == index[block]:
                    found.append(_pop_component(stack, on_stack, block))
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(edges[target])))
            elif target in on_stack:
                low[block] = min(low[block], index[target])
    return found[::-1]


def _pop_component(stack: list[Block], on_stack: set[Block], first: Block) -> list[Block]:
    component: list[Block] = []
    while True:
        block = stack.pop()
        on_stack.discard(block)
        component.append(block)
        if block is first:
            return component


def immediate_postdominators(blocks: Sequence[Block], successors: Successors) -> dict[Block, Block | None]:
    """For each of *blocks* its immediate postdominator: the first block on every path from it to the exit, ``None`` if
    that is the exit itself. *blocks* are in the order of `order_blocks`; targets outside of them count as the exit."""
    position = {block: number for number, block in enumerate(blocks)}
    everything = (1 << len(blocks)) - 1
    sets = dict.fromkeys(blocks, everything)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            common = everything
            targets = [target for target in successors(block) if target in position]
            if len(targets) < len(successors(block)) or not targets:
                common = 0  # a path exits here
            for target in targets:
                common &= sets[target]
            common |= 1 << position[block]
            if common != sets[block]:
                sets[block] = common
                changed = True
    ending = _reaching_end(blocks, successors, position)
    found = {sets[block]: block for block in ending}
    # Postdominators follow one another: the nearest has all the others of a block.
    return {block: found.get(sets[block] & ~(1 << position[block])) if block in ending else None for block in blocks}


def _reaching_end(blocks: Sequence[Block], successors: Successors, position: Mapping[Block, int]) -> set[Block]:
    """Blocks from which the exit can be reached; the others are in infinite loops."""
    ending: set[Block] = set()
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            targets = successors(block)
            if block not in ending and (
                not targets or any(target in ending or target not in position for target in targets)
            ):
                ending.add(block)
                changed = True
    return ending


def live_values(
    blocks: Sequence[Block],
    successors: Successors,
    uses: Mapping[Block, Iterable[Instruction]],
    definitions: Mapping[Block, Iterable[Instruction]],
) -> dict[Block, frozenset[Instruction]]:
    """The values that are live at the start of each block; *uses* are the values that a block needs from others."""
    live: dict[Block, frozenset[Instruction]] = {block: frozenset(uses[block]) for block in blocks}
    defined = {block: frozenset(definitions[block]) for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            needed = live[block].union(*(live[target] - defined[block] for target in successors(block)))
            if len(needed) != len(live[block]):
                live[block] = needed
                changed = True
    return live
