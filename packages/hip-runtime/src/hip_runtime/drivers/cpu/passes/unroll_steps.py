"""Unrolls loops that run a few times, where LLVM would not: those around barriers, those through shared memory, and
those around others that depend on them.

The steps of a scan in shared memory are such loops. Unrolled, each step is a region of its own, of which it is known
which threads take part and how far apart they access memory. LLVM does that for small loops only: it cannot tell what
a region costs of which neither is known. llvmlite cannot mark a loop that LLVM made, so the mark is put into the
printed module, behind the branch that goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, prod
from typing import Any

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.analyses.cfg import Order, order_function
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.trip_counts import count_iterations, expect_iterations
from hip_runtime.drivers.cpu.ir.model import Block, Function
from hip_runtime.drivers.cpu.ir.module_text import name_of_definition

_MOST_ITERATIONS = 16
_MOST_INSTRUCTIONS = 800
"""Of what an unrolled loop becomes, before it is simplified."""

_MOST_OF_WALK = 320
"""Of what a loop through shared memory becomes."""

_MOST_WAITS = 32
"""Sync points of a kernel with unrolled loops; more regions make LLVM's passes slow."""

_LOOP = "!llvm.loop"


def find_steps(function: Function) -> list[str]:
    """The names of the blocks that end with the branch back of loops to be unrolled."""
    order = order_function(function)
    waits = sum(map(_count_waits, order.blocks))
    headers = order.headers()
    found = []
    for loop in order.innermost():
        header = headers[loop]
        back = [block for block in loop if header in block.successors]
        inside = sum(map(_count_waits, loop))
        if not inside or len(back) != 1 or any(map(_has_private_memory, loop)):
            continue
        size = sum(len(block.instructions) for block in loop)
        iterations = count_iterations(loop, header, min(_MOST_ITERATIONS, _MOST_INSTRUCTIONS // size))
        if iterations is None or waits + inside * (iterations - 1) > _MOST_WAITS:
            continue
        waits += inside * (iterations - 1)
        found.append(back[0].name)
    return found


def find_shared_walks(function: Function) -> list[str]:
    """The names of the blocks that are loops to be unrolled because they go through shared memory, as through a row of
    a tile: what does not depend on the row of threads is then loaded once for all of these."""
    order = order_function(function)
    if not any(map(_count_waits, order.blocks)):
        return []
    found = []
    for block in order.blocks:
        if block not in block.successors or _has_private_memory(block) or any(map(has_effect, block.instructions)):
            continue
        loads = [value for value in block.instructions if value.opcode == "load"]
        if not any(is_in_block_memory(load.operands[0]) for load in loads):
            continue
        most = min(_MOST_ITERATIONS, _MOST_OF_WALK // len(block.instructions))
        if count_iterations(frozenset({block}), block, most) is not None:
            found.append(block.name)
    return found


def find_nests(function: Function) -> list[str]:
    """The names of the blocks that end with the branch back of loops to be unrolled because loops in them depend on
    their counters, as in factorisations of small matrices: LLVM unrolls a loop that has others in it only if it knows
    how often these run. Only private arrays are worth it, which become values."""
    if not any(map(_has_private_memory, function.blocks)):
        return []
    order = order_function(function)
    iterations = expect_iterations(order, _MOST_ITERATIONS)
    headers = order.headers()
    constant = [loop for loop in headers if count_iterations(loop, headers[loop], _MOST_ITERATIONS) is not None]
    found = []
    for loop in constant:
        back = [block for block in loop if headers[loop] in block.successors]
        decides = any(other < loop and other not in constant for other in headers)
        if decides and len(back) == 1 and _unrolled_size(loop, order, iterations) <= _MOST_INSTRUCTIONS:
            found.append(back[0].name)
    return found


def _unrolled_size(loop: frozenset[Block], order: Order, iterations: Mapping[frozenset[Block], int]) -> float:
    """Instructions of *loop* once it and all loops in it are unrolled; infinite where one runs any number of times."""
    size = 0.0
    for block in loop:
        around = [other for other in order.loops[block] if other <= loop]
        size += prod(iterations.get(other, inf) for other in around) * len(block.instructions)
    return size


def has_short_loop(function: Function) -> bool:
    """Whether *function* has an innermost loop of few iterations, whose number depends on constants and on counters of
    loops around it alone."""
    order = order_function(function)
    short = expect_iterations(order, _MOST_ITERATIONS)
    return any(loop in short for loop in order.innermost())


def mark_unrolled(module: Any, function: str, blocks: Mapping[str, int | None]) -> str:
    """The text of *module* with marks at the ends of *blocks* of *function*, by which LLVM unrolls their loops: so many
    times, with another loop for the iterations that are left over, or wholly."""
    lines = str(module).split("\n")
    nodes = [line[1:].partition(" = ")[0] for line in lines if line.startswith("!")]
    number = 1 + max((int(name) for name in nodes if name.isdigit()), default=-1)
    start = next(
        place for place, line in enumerate(lines) if line.startswith("define ") and name_of_definition(line) == function
    )
    added: list[str] = []
    for place, times in _find_ends(lines, start, blocks):
        if f", {_LOOP} " not in lines[place]:
            how, mark = (f"!{number + len(added) + ahead}" for ahead in range(2))
            lines[place] = f"{lines[place]}, {_LOOP} {mark}"
            kind = '!"llvm.loop.unroll.full"' if times is None else f'!"llvm.loop.unroll.count", i32 {times}'
            added += [f"{how} = !{{{kind}}}", f"{mark} = distinct !{{{mark}, {how}}}"]
    return "\n".join([*lines, *added, ""])


def _find_ends(lines: list[str], start: int, blocks: Mapping[str, int | None]) -> Iterator[tuple[int, int | None]]:
    """The places of the branches that end *blocks* of the function that is defined at *start*, and what is told of
    these."""
    name = ""
    for place in range(start, lines.index("}", start)):
        line = lines[place]
        if line and not line.startswith((" ", ";")):
            name = line.partition(":")[0].strip('"')
        elif name in blocks and line.startswith("  br "):
            yield place, blocks[name]


def _count_waits(block: Block) -> int:
    return sum(instruction.callee in spmd.SYNCHRONISING for instruction in block.instructions)


def _has_private_memory(block: Block) -> bool:
    return any(instruction.opcode == "alloca" for instruction in block.instructions)
