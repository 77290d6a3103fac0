"""Checks that a graph is well formed: each value is defined before its uses, each block has one terminator, types
match.

It finds in graphs what LLVM's verifier finds in IR, before instructions are written from them: directly after the pass
with the mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.control_flow import ControlFlow
from hip_runtime.drivers.cpu.ir.keywords import BINARY
from hip_runtime.drivers.cpu.ir.model import AGREE, FIRST, RAMP, ROW, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.ir.printer import print_function

_BIT = ir.IntType(1)


class MalformedGraphError(AssertionError):
    """A pass has left a graph that breaks a rule; ``problems`` are the rules with the instructions that break them."""

    def __init__(self, stage: str, function: Function, problems: list[str]) -> None:
        listed = "\n".join(f"- {problem}" for problem in problems)
        super().__init__(
            f"the graph of {function.name!r} after {stage} breaks rules:\n{listed}\n{print_function(function)}"
        )
        self.problems = problems


def verify(function: Function, stage: str) -> None:
    """Raise `MalformedGraphError` if *function*, after the pass *stage*, breaks a rule."""
    problems = list(find_problems(function))
    if problems:
        raise MalformedGraphError(stage, function, problems)


def find_problems(function: Function) -> Iterator[str]:
    """The rules that *function* breaks."""
    if not function.blocks:
        yield "there is no block"
        return
    broken = list(_check_blocks(function))
    yield from broken
    if not broken:  # otherwise the control flow is not known
        yield from _check_uses(function)
        yield from _check_types(function)


def _check_blocks(function: Function) -> Iterator[str]:
    known = set(function.blocks)
    if len(known) != len(function.blocks):
        yield "a block is there twice"
    for block in function.blocks:
        ends = [instruction.is_terminator for instruction in block.instructions]
        if not ends or not ends[-1] or any(ends[:-1]):
            yield f"block {block.name!r} does not end with its only terminator"
            continue
        if any(target not in known for target in block.terminator.targets):
            yield f"block {block.name!r} goes to a block that is not there"
        if any(target is function.blocks[0] for target in block.terminator.targets):
            yield f"block {block.name!r} goes back to the entry"
        phis = [instruction.opcode == "phi" for instruction in block.instructions]
        if any(phis[len(list(block.phis)) :]):
            yield f"block {block.name!r} has a phi behind other instructions"


def _check_uses(function: Function) -> Iterator[str]:
    homes: dict[Value, Block] = {}
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction in homes:
                yield f"{instruction.opcode} {instruction.name!r} is in two places"
            homes[instruction] = block
            if instruction.opcode == "synchronise":  # the result is there from the next block on
                homes[instruction.operands[0]] = instruction.targets[0]
    flow = ControlFlow(function)
    for block in flow.reachable:
        seen: set[Value] = set()
        for instruction in block.instructions:
            if instruction.opcode == "phi":
                yield from _check_phi(instruction, block, flow, homes)
            else:
                for value in _read_by(instruction):
                    problem = _find_use(value, homes)
                    if not problem and value in homes and value not in seen:
                        home = homes[value]
                        starts_here = home is block and value not in block.instructions
                        if not starts_here and (home is block or not flow.dominates(home, block)):
                            problem = "before it is defined"
                    if problem:
                        yield f"{instruction.opcode} {instruction.name!r} in {block.name!r} uses a value {problem}"
            seen.add(instruction)


def _read_by(instruction: Instruction) -> list[Value]:
    if instruction.opcode != "synchronise":
        return instruction.operands
    call, *keys = instruction.operands
    assert isinstance(call, Instruction)
    return [*call.operands, *keys]


def _find_use(value: Value, homes: dict[Value, Block]) -> str:
    return "that is not in the graph" if isinstance(value, Instruction) and value not in homes else ""


def _check_phi(phi: Instruction, block: Block, flow: ControlFlow, homes: dict[Value, Block]) -> Iterator[str]:
    where = f"phi {phi.name!r} in {block.name!r}"
    sources = flow.predecessors[block]
    if set(phi.targets) & flow.reached != sources:
        names = ", ".join(sorted(source.name for source in sources))
        yield f"{where} has values for other blocks than those that lead to it: {names}"
        return
    given: dict[Block, Value] = {}
    for value, source in zip(phi.operands, phi.targets, strict=True):
        if source not in flow.reached:
            continue
        if given.setdefault(source, value) is not value:
            yield f"{where} has two values for block {source.name!r}"
        problem = _find_use(value, homes)
        if not problem and value in homes and not flow.dominates(homes[value], source):
            problem = f"that is not defined where block {source.name!r} ends"
        if problem:
            yield f"{where} is given a value {problem}"


def _check_types(function: Function) -> Iterator[str]:
    for block in function.blocks:
        for instruction in block.instructions:
            problem = _mistyped(instruction)
            if problem:
                yield f"{instruction.opcode} {instruction.name!r} in {block.name!r}: {problem}"


def _mistyped(instruction: Instruction) -> str:
    kinds = [value.type for value in instruction.operands]
    opcode = instruction.opcode
    if opcode == "phi" or opcode in BINARY or opcode in ("fneg", "freeze"):
        wrong = any(kind != instruction.type for kind in kinds)
    elif opcode in ("icmp", "fcmp"):
        wrong = kinds[0] != kinds[1]
    elif opcode == "select":
        wrong = kinds[1:] != [instruction.type] * 2
    elif opcode in ("load", "store", ROW):
        wrong = not _is_pointer(kinds[-1])
    elif opcode == "br":
        wrong = kinds not in ([], [_BIT]) or len(instruction.targets) != 1 + len(kinds)
    elif opcode == AGREE:
        wrong = kinds != [_BIT] or instruction.type != _BIT
    elif opcode in (FIRST, RAMP):
        wrong = kinds != [instruction.type] * (1 if opcode == FIRST else 2)
    elif opcode == "call":
        return _mistyped_call(instruction)
    else:
        wrong = False
    return f"types do not fit: {', '.join(map(str, kinds))} give {instruction.type}" if wrong else ""


def _mistyped_call(instruction: Instruction) -> str:
    call = instruction.call
    if call is None:
        return "no type of the function"
    kinds = [value.type for value in instruction.arguments]
    taken = list(call.function_type.args)
    if kinds[: len(taken)] != taken or (len(kinds) > len(taken) and not call.function_type.var_arg):
        return f"the function takes ({', '.join(map(str, taken))}), and is given ({', '.join(map(str, kinds))})"
    if len(call.argument_attributes) != len(kinds):
        return "attributes of other arguments than those that are passed"
    return "" if call.function_type.return_type == instruction.type else f"the function gives no {instruction.type}"


def _is_pointer(kind: ir.Type) -> bool:
    return isinstance(kind, ir.PointerType)
