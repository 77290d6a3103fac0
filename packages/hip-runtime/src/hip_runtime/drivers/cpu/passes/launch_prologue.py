"""Takes what a launch decides out of a kernel, for a prologue that computes it once for all blocks of a chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.launch_values import Choice, LaunchValues, find_launch_values
from hip_runtime.drivers.cpu.ir.control_flow import ControlFlow
from hip_runtime.drivers.cpu.ir.keywords import WRAPPING
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import PTR, VOID
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused


@dataclass(frozen=True)
class LaunchPrologue:
    """What computes numbers of these *types* from a kernel's arguments, if any: the arguments of *function* are the
    kernel's, followed by the address at which to store each number. The kernel takes the numbers behind its own
    arguments."""

    function: Function | None = None
    types: tuple[ir.Type, ...] = ()

    def extend(self, kernel: ir.FunctionType) -> ir.FunctionType:
        """The type of a *kernel* that takes the numbers, too."""
        return ir.FunctionType(kernel.return_type, [*kernel.args, *self.types])


def take_out_launch_values(function: Function) -> LaunchPrologue:
    """The prologue of the kernel *function*, which computes no more what the launch decides."""
    found = find_launch_values(function)
    if found is None:
        return LaunchPrologue()
    prologue = _Prologue(function, found).write()
    first = len(function.arguments)
    passed: dict[Value, Value] = {
        value: Argument(value.type, first + place, f"launch.{place}") for place, value in enumerate(found.values)
    }
    function.arguments += [value for value in passed.values() if isinstance(value, Argument)]
    for user in function.instructions():
        user.operands = [passed.get(operand, operand) for operand in user.operands]
    _remove(function, found)
    record("take_out_launch_values", function)
    return LaunchPrologue(prologue, tuple(value.type for value in found.values))


class _Prologue:
    """Writes the graph of the prologue: the blocks with what is needed, one after the other, and the choices."""

    def __init__(self, function: Function, found: LaunchValues) -> None:
        self._function = function
        self._found = found
        self._blocks: dict[Block, Block] = {}
        self._values: dict[Value, Value] = {}

    def write(self) -> Function:
        inside = {block for choice in self._found.choices.values() for block in choice.blocks}
        order = ControlFlow(self._function).reachable
        outer = ((end, choice) for end, choice in self._found.choices.items() if end not in inside)
        ends = {choice.start: end for end, choice in outer}
        chain = list(dict.fromkeys(block for first in order if first not in inside for block in _follow(first, ends)))
        for block in order:
            self._copy(block)
        for block, following in zip(chain, [*chain[1:], None], strict=True):
            if block not in ends:
                self._blocks[block].instructions.append(self._end(following))
        for choice in self._found.choices.values():
            for block in choice.branching:
                self._copy_branch(block)
        for value in self._values.values():
            if isinstance(value, Instruction):
                value.operands = [self._values.get(operand, operand) for operand in value.operands]
                value.targets = [self._blocks[target] for target in value.targets]
        kept = [self._blocks[block] for block in order if block in inside or block in chain]
        arguments = [*self._function.arguments, *self._places()]
        return Function(f"{self._function.name}.launch", arguments, kept)

    def _copy(self, block: Block) -> None:
        made = self._blocks[block] = Block(f"{block.name}.launch")
        for value in block.instructions:
            if value in self._found.needed:
                flags = tuple(flag for flag in value.flags if flag not in WRAPPING)  # no check comes before it
                copied = self._values[value] = replace(value, flags=flags)
                made.instructions.append(copied)

    def _copy_branch(self, block: Block) -> None:
        made, end = self._blocks[block], block.terminator
        if made.instructions and made.instructions[-1].is_terminator:
            return  # of a choice within another
        copied = replace(end, targets=[self._blocks[target] for target in end.targets])
        if end.operands:
            condition = end.operands[0]
            settled = Instruction(condition.type, "freeze", [self._values.get(condition, condition)])
            made.instructions.append(settled)
            copied.operands = [settled, *end.operands[1:]]
        made.instructions.append(copied)

    def _end(self, following: Block | None) -> Instruction:
        if following is not None:
            return Instruction(VOID, "br", [], targets=[self._blocks[following]])
        return Instruction(VOID, "ret", [])

    def _places(self) -> Iterator[Argument]:
        """Where the numbers are to be stored, as each is by the last block."""
        first = len(self._function.arguments)
        last = next(block for block in self._blocks.values() if block.instructions[-1:] and _returns(block))
        for place, value in enumerate(self._found.values):
            pointer = Argument(PTR, first + place, f"place.{place}")
            store = Instruction(VOID, "store", [self._values[value], pointer])
            last.instructions.insert(-1, store)
            yield pointer


def _follow(block: Block, ends: dict[Block, Block]) -> Iterator[Block]:
    """*block*, and the ends of the choices that follow it at once."""
    yield block
    while block in ends:
        block = ends[block]
        yield block


def _returns(block: Block) -> bool:
    return block.terminator.opcode == "ret"


def _remove(function: Function, found: LaunchValues) -> None:
    """Remove from *function* what was only needed for what is taken out, and the choices that decide nothing more."""
    _remove_unused(function, found)
    for end, choice in sorted(found.choices.items(), key=lambda entry: -len(entry[1].blocks)):
        _join(function, end, choice, found)
    _remove_unused(function, found)
    remove_unused(function)


def _remove_unused(function: Function, found: LaunchValues) -> None:
    unused = set(found.needed)
    while (
        again := {operand for user in function.instructions() if user not in unused for operand in user.operands}
        & unused
    ):
        unused -= again
    for block in function.blocks:
        block.instructions = [value for value in block.instructions if value not in unused]


def _join(function: Function, end: Block, choice: Choice, found: LaunchValues) -> None:
    """Go from the start of *choice* to its *end* if nothing depends on the path."""
    left = [block for block in function.blocks if block in choice.blocks]
    inside = {value for block in left for value in block.instructions}
    used = {operand for user in function.instructions() if user not in inside for operand in user.operands}
    computed = {value for value in inside if not value.is_terminator}
    if not any(end.phis) and computed <= found.needed and computed.isdisjoint(used):
        choice.start.instructions[-1] = Instruction(VOID, "br", [], targets=[end])
        function.blocks = [block for block in function.blocks if block not in choice.blocks]
