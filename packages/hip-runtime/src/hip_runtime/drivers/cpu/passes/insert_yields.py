"""Inserts yields into spin loops, at which a thread is suspended until the others of its block had a chance to run."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.spin_loops import find_spin_loops
from hip_runtime.drivers.cpu.ir.model import Block, Call, Function, Instruction, Symbol
from hip_runtime.drivers.cpu.llvmir import PTR, VOID


def insert_yields(function: Function) -> int:
    """Put a yield on every back edge of each spin loop of *function*; how many loops there are."""
    loops = find_spin_loops(function)
    for loop in loops:
        for latch in loop.latches:
            function.blocks.append(_insert_yield(function, latch, loop.header, loop.poll.location))
    return len(loops)


def _insert_yield(function: Function, latch: Block, header: Block, location: str) -> Block:
    """A block with a yield on the edge from *latch* to *header*."""
    item = function.arguments[0]
    kind = ir.FunctionType(VOID, [PTR])
    call = Instruction(
        VOID, "call", [item, Symbol(PTR, intrinsics.YIELD)], call=Call(kind, argument_attributes=((),)),
        location=location,
    )  # fmt: skip
    block = Block(f"{latch.name}.yield", [call, Instruction(VOID, "br", [], targets=[header])])
    terminator = latch.terminator
    terminator.targets = [block if target is header else target for target in terminator.targets]
    for phi in header.phis:
        phi.targets = [block if source is latch else source for source in phi.targets]
        _drop_repeated(phi, block)
    return block


def _drop_repeated(phi: Instruction, source: Block) -> None:
    """Keep one incoming value for *source*: the switch that it replaces may have had several edges to the block."""
    first = phi.targets.index(source)
    incoming = [
        (value, target)
        for number, (value, target) in enumerate(zip(phi.operands, phi.targets, strict=True))
        if target is not source or number == first
    ]
    phi.operands, phi.targets = [value for value, _ in incoming], [target for _, target in incoming]
