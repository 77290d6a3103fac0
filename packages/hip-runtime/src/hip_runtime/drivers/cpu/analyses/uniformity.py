"""Which values are uniform across the threads of a block, and at which branches threads can diverge.

A value *varies* if threads of a block can hold different values at the same step of the program. Sources are thread
indices, memory, unless no thread of the block writes to it from one barrier to the next, and operands that vary; and a
``phi`` at which paths from a divergent branch join. A value of a loop that threads leave in different iterations varies
after the loop (temporal divergence), and within it, too, if a thread can iterate without waiting for the others.

Uniform means uniform across the threads that are still running.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.cfg import Order, block_successors, immediate_postdominators
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

_FROM_MEMORY = frozenset({"load", "atomicrmw", "cmpxchg", "alloca"})


def _yields(block: Block) -> bool:
    return block.terminator.opcode == "synchronise" and block.synchronising.callee == intrinsics.YIELD


class Uniformity:
    """The result for one graph whose blocks end at synchronising operations. *is_settled* says whether all threads of a
    block that load from one place in one of its blocks find the same there."""

    def __init__(
        self, order: Order, homes: dict[Instruction, Block], is_settled: Callable[[Instruction, Block], bool]
    ) -> None:
        self._order = order
        self._homes = homes
        self._position = {block: number for number, block in enumerate(order.blocks)}
        self._postdominators = immediate_postdominators(order.blocks, block_successors)
        self._is_settled = is_settled
        self._divergent_loops: set[frozenset[Block]] = set()
        self.free_running: set[frozenset[Block]] = set()
        """Loops in which a thread can complete an iteration without waiting for the others."""
        self.varying: set[Instruction] = set()
        self.divergent_branches: set[Block] = set()
        """Blocks whose branch can diverge."""
        for block in order.blocks:
            if _yields(block):  # threads leave such a loop, and those around it, in different iterations
                self._divergent_loops.update(order.loops[block])
                self.free_running.update(order.loops[block])
        self._solve()

    def varies(self, value: Value, block: Block) -> bool:
        """Whether *value* varies as seen from *block*."""
        if not isinstance(value, Instruction):
            return False
        if value in self.varying:
            return True
        if not (self._divergent_loops or self.free_running):
            return False
        loops = self._order.loops[self._homes[value]]
        return any(loop in self.free_running or (loop in self._divergent_loops and block not in loop) for loop in loops)

    def _solve(self) -> None:
        changed = True
        while changed:
            changed = False
            for block in self._order.blocks:
                for instruction in block.instructions:
                    if instruction not in self.varying and self._is_varying(instruction, block):
                        self.varying.add(instruction)
                        changed = True
                if block not in self.divergent_branches and self._diverges(block):
                    self.divergent_branches.add(block)
                    self._propagate(block)
                    changed = True
            changed |= self._update_results()

    def _update_results(self) -> bool:
        """Mark the results of synchronising operations; whether there were new ones."""
        results = [block.synchronising for block in self._order.blocks if block.terminator.opcode == "synchronise"]
        count = len(self.varying)
        self.varying.update(call for call in results if call.callee not in spmd.BLOCK_WIDE)
        return len(self.varying) != count

    def _is_varying(self, instruction: Instruction, block: Block) -> bool:
        if instruction.opcode == "load" and self._is_settled(instruction, block):
            return self.varies(instruction.operands[0], block)
        if instruction.opcode in _FROM_MEMORY:
            return True
        if instruction.opcode == "call":
            name = instruction.callee
            if spmd.is_uniform(name):
                return False
            if not is_arithmetic(name):
                return True
        if instruction.opcode == "phi":
            pairs = zip(instruction.operands, instruction.targets, strict=True)
            return any(self.varies(value, source) for value, source in pairs)
        return any(self.varies(value, block) for value in instruction.operands)

    def _diverges(self, block: Block) -> bool:
        terminator = block.terminator
        return len(block.successors) > 1 and self.varies(terminator.operands[0], block)

    def _propagate(self, branch: Block) -> None:
        """Mark what varies because threads diverge at *branch*.

        Each successor of the branch is a label, which is propagated in block order up to the reconvergence point. At a
        block that two labels reach, the phis vary, and the block becomes a new label."""
        reconvergence = self._postdominators[branch]
        for loop in self._order.loops[branch]:
            if reconvergence not in loop:
                self._divergent_loops.add(loop)
            if self._can_iterate_without_waiting(branch, loop):
                self.free_running.add(loop)
        labels_reaching: dict[Block, set[Block]] = {}
        labels: dict[Block, Block] = {}
        waiting: list[int] = []

        def reach(block: Block, label: Block) -> None:
            labels_reaching.setdefault(block, set()).add(label)
            heapq.heappush(waiting, self._position[block])

        for target in branch.successors:
            reach(target, target)
        while waiting:
            block = self._order.blocks[heapq.heappop(waiting)]
            is_join = len(labels_reaching[block]) > 1
            label = block if is_join else next(iter(labels_reaching[block]))
            if labels.get(block) is label:
                continue
            labels[block] = label
            if is_join:
                self.varying.update(block.phis)
            if block is not reconvergence and block is not branch:
                for target in block.successors:
                    reach(target, label)

    @staticmethod
    def _can_iterate_without_waiting(branch: Block, loop: frozenset[Block]) -> bool:
        """Whether a thread can complete an iteration of *loop* without reaching one of its sync points, so that it is
        an iteration ahead of the threads that wait there."""
        if not any(block.terminator.opcode == "synchronise" and not _yields(block) for block in loop):
            return False
        found: set[Block] = set()
        waiting = [branch]
        while waiting:
            block = waiting.pop()
            if block.terminator.opcode == "synchronise" and not _yields(block):
                continue
            for target in block.successors:
                if target is branch:
                    return True
                if target in loop and target not in found:
                    found.add(target)
                    waiting.append(target)
        return False


def is_arithmetic(name: str) -> bool:
    """Whether a function is an intrinsic that only computes a result from its arguments."""
    return name.startswith(_ARITHMETIC)


_ARITHMETIC = tuple(
    f"llvm.{name}."
    for name in (
        "abs smin smax umin umax fabs sqrt exp exp2 log log2 log10 pow powi sin cos tan fma fmuladd floor ceil trunc "
        "rint round roundeven nearbyint minnum maxnum minimum maximum copysign ctpop ctlz cttz bswap bitreverse fshl "
        "fshr sadd.with.overflow uadd.with.overflow ssub.with.overflow usub.with.overflow "
        "smul.with.overflow umul.with.overflow sadd.sat uadd.sat ssub.sat usub.sat is.fpclass "
        "lrint llrint lround llround fptosi.sat fptoui.sat"
    ).split()
)
