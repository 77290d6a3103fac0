"""Numbers that a launch decides: they follow from the kernel's arguments alone, by computations that LLVM cannot move
out of a loop, such as ``math.cos(angle)``.

What has no branch LLVM computes once for all blocks by itself. sin, cos and tan of float64 have one, for arguments
beyond 2**40, so they were computed for each gang; so is what a function of the user computes that branches. All of it
is computed only if that cannot fail, whatever the arguments are: where the kernel checks them first, it is computed
before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llvmlite import ir

from hip_devicelib.cpu.argument_reduction import TABLE
from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.control_flow import ControlFlow
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Constant, Function, Instruction, Symbol, Value

_COMPUTES = (BINARY - DIVISIONS) | CASTS | {"fneg", "icmp", "fcmp", "select", "freeze"}
"""Opcodes of what depends on the operands alone, and cannot fail."""

_REALS = ir.HalfType | ir.FloatType | ir.DoubleType
_NUMBERS = ir.IntType | _REALS

_PASSES_ON = frozenset({"store", "bitcast", "phi", "select"})
"""Opcodes of what takes a real number as its bits, which may have an integer's type."""

_LENGTHS = (16, 32, 64)
"""Bits of real numbers."""

_MOST_VALUES = 8
"""Numbers that are computed ahead at most: each is a register, or a load, in all that follows."""

_SHORTEST = 16
"""Instructions that are computed ahead at least: fewer take a gang less time than they take the launch."""


@dataclass(frozen=True)
class Choice:
    """The *blocks* between a branch at the end of *start* and the block in which all paths from there meet."""

    start: Block
    blocks: tuple[Block, ...]

    @property
    def branching(self) -> tuple[Block, ...]:
        """The blocks whose branches decide the path."""
        return self.start, *self.blocks


@dataclass
class LaunchValues:
    """The *values* that the kernel uses, what has to be computed for them, and the choices that this depends on, by the
    blocks in which their paths meet."""

    values: list[Instruction] = field(default_factory=list)
    needed: set[Instruction] = field(default_factory=set)
    choices: dict[Block, Choice] = field(default_factory=dict)


def find_launch_values(function: Function) -> LaunchValues | None:
    """The numbers that a launch of the kernel *function* decides; ``None`` if there are none that are worth it."""
    finder = _Finder(function)
    values = finder.values()
    if not 0 < len(values) <= _MOST_VALUES:
        return None
    found = LaunchValues(values)
    waiting: list[Value] = list(values)
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Instruction) or value in found.needed:
            continue
        found.needed.add(value)
        waiting += value.operands
        if value.opcode == "phi":
            place = finder.homes[value]
            choice = found.choices[place] = finder.choices[place]
            waiting += (operand for block in choice.branching for operand in block.terminator.operands)
    return found if len(found.needed) >= _SHORTEST else None


class _Finder:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._order = order_function(function)
        self._flow = ControlFlow(function)
        self.homes = {value: block for block in self._order.blocks for value in block.instructions}
        self.choices: dict[Block, Choice] = {}
        self._decided: set[Instruction] = set()
        self._stays: set[Instruction] = set()
        """What is decided and depends on a branch or a call, so that LLVM leaves it where it is."""
        for block in self._order.blocks:
            for value in block.instructions:
                if self._is_decided(value, block):
                    self._decided.add(value)
                    if self._is_bound(value):
                        self._stays.add(value)

    def values(self) -> list[Instruction]:
        """What stays and something else uses, of real numbers: as such, or their bits, if these are only passed on."""
        used: dict[Value, bool] = {}
        for user in self._function.instructions():
            if user not in self._stays:
                for operand in user.operands:
                    used[operand] = used.get(operand, True) and user.opcode in _PASSES_ON
        return [
            value for block in self._order.blocks for value in block.instructions
            if value in self._stays and value in used and (isinstance(value.type, _REALS) or _may_be_bits(value, used))
        ]  # fmt: skip

    def _is_bound(self, value: Instruction) -> bool:
        is_call = value.opcode == "call" and value.elementwise is not None
        return value.opcode == "phi" or is_call or any(operand in self._stays for operand in value.operands)

    def _is_decided(self, value: Instruction, block: Block) -> bool:
        if _reads_table(value):
            address, *indices = value.operands
            return (isinstance(address, Symbol) or address in self._decided) and all(map(self._is_known, indices))
        if not isinstance(value.type, _NUMBERS):
            return False
        if value.opcode == "phi":
            return all(map(self._is_known, value.operands)) and self._is_choice(block)
        if value.opcode == "call":
            return _cannot_fail(value) and all(map(self._is_known, value.arguments))
        return value.opcode in _COMPUTES and all(map(self._is_known, value.operands))

    def _is_known(self, value: Value) -> bool:
        if not isinstance(value.type, _NUMBERS):
            return False
        if isinstance(value, Constant):
            return not value.globals
        return isinstance(value, Argument) or value in self._decided

    def _is_choice(self, block: Block) -> bool:
        """Whether the launch decides from where *block* is reached."""
        if block not in self.choices:
            found = self._find_choice(block)
            if found is None:
                return False
            self.choices[block] = found
        return True

    def _find_choice(self, end: Block) -> Choice | None:
        """The choice whose paths meet at *end*, if only the launch decides which is taken."""
        sources = self._flow.predecessors[end]
        above = [block for block in self._flow.reachable if self._flow.dominates(block, end) and block is not end]
        if not above:
            return None
        start = above[-1]  # the nearest: dominators are in one order
        blocks: set[Block] = set()
        waiting = [source for source in sources if source is not start]
        while waiting:
            block = waiting.pop()
            if block not in blocks:
                blocks.add(block)
                waiting += (source for source in self._flow.predecessors[block] if source is not start)
        loops = self._order.loops[start]
        inside = (*blocks, end)
        if any(self._order.loops[block] != loops for block in inside):
            return None
        for block in (start, *blocks):
            end_of_block = block.terminator
            if end_of_block.opcode not in ("br", "switch") or not blocks.union((end,)).issuperset(block.successors):
                return None
            if not all(map(self._is_known, end_of_block.operands)):
                return None
        return Choice(start, tuple(filter(blocks.__contains__, self._flow.reachable)))


def _may_be_bits(value: Instruction, used: Mapping[Value, bool]) -> bool:
    return value.type.width in _LENGTHS and used[value]


def _reads_table(value: Instruction) -> bool:
    """Whether *value* is an address in the table of the math library, whose index is always in it, or loads from
    there."""
    if value.opcode not in ("load", "getelementptr"):
        return False
    address = value.operands[0]
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        address = address.operands[0]
    return isinstance(address, Symbol) and address.name == TABLE


def _cannot_fail(call: Instruction) -> bool:
    """Whether *call* is of a function that computes a number whatever it is called with."""
    if call.elementwise is None:
        return is_arithmetic(call.callee)
    return not any(value.opcode in DIVISIONS for value in call.elementwise.instructions())
