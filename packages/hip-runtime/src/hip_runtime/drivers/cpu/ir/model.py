"""The graph of a function: blocks of instructions, which `reader` creates and all later steps use.

Values are compared by identity. Types are those of llvmlite's builder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir


@dataclass(eq=False, slots=True)
class Value:
    """Anything that can be an operand."""

    type: ir.Type


@dataclass(eq=False, slots=True)
class Constant(Value):
    """A constant as LLVM spells it, without its type.

    ``number`` is the value of an integer, as an unsigned number; ``globals`` are the symbols that the text names.
    """

    text: str
    number: int | None = None
    globals: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Argument(Value):
    """A parameter of the function."""

    index: int
    name: str


@dataclass(eq=False, slots=True)
class Symbol(Value):
    """The address of a function or a global variable of the module."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """The properties of a call besides its operands, which are the arguments and then the callee.

    Only attributes that affect how the call is made or may be transformed are kept, not hints.
    """

    function_type: ir.FunctionType
    convention: str = ""
    return_attributes: tuple[str, ...] = ()
    argument_attributes: tuple[tuple[str, ...], ...] = ()
    attributes: tuple[str, ...] = ()
    elementwise: Function | None = None
    """The function that is called, where all it does is to compute a number from numbers: see `analyses.elementwise`,
    where its graph is changed."""


@dataclass(frozen=True, slots=True)
class Atomic:
    """Orderings (two for ``cmpxchg``) and the synchronisation scope, empty for the whole system."""

    orderings: tuple[str, ...]
    scope: str = ""


@dataclass(eq=False, slots=True)
class Instruction(Value):
    """One instruction.

    ``operands`` are values only: blocks are in ``targets``, for ``phi`` in the order of the operands, for ``br`` and
    ``switch`` in the order in which LLVM prints them, the default of a ``switch`` first.
    """

    opcode: str
    operands: list[Value]
    name: str = ""
    targets: list[Block] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    predicate: str = ""
    """Of ``icmp`` and ``fcmp``."""
    operation: str = ""
    """Of ``atomicrmw``: one of LLVM's, or of `passes.float_extremes`."""
    total: int | None = None
    """Of ``atomicrmw``: the number of the total of a chunk of blocks in which its operands are collected."""
    table: int | None = None
    """Of ``atomicrmw``: the number of the worker's table in which its operands may be combined."""
    meets_tables: frozenset[int] = frozenset()
    """The numbers of the worker's tables of which what is for the same memory has to be done before it."""
    source_type: ir.Type | None = None
    """What ``alloca`` makes room for, and what ``getelementptr`` steps over."""
    align: int = 0
    volatile: bool = False
    atomic: Atomic | None = None
    indices: tuple[int, ...] = ()
    """Of ``extractvalue`` and ``insertvalue``."""
    literal: str = ""
    """The mask of ``shufflevector``, with its type."""
    cases: tuple[int, ...] = ()
    """Of ``switch``: the number for each target but the first."""
    call: Call | None = None
    ranges: tuple[int, ...] = ()
    """What a loaded or returned integer can be: pairs of a first number and one beyond the last."""
    location: str = ""
    """Where it stands in the source, where that is known."""

    @property
    def callee(self) -> str:
        """Name of the function that is called directly, else empty."""
        target = self.operands[-1] if self.opcode == "call" else None
        return target.name if isinstance(target, Symbol) else ""

    @property
    def arguments(self) -> list[Value]:
        """The arguments of a call."""
        return self.operands[:-1]

    @property
    def accessed(self) -> ir.Type:
        """The type of what a load, a store or an atomic operation finds in memory, or writes there."""
        if self.opcode == "load":
            return self.type
        return self.operands[0 if self.opcode == "store" else 1].type

    @property
    def address(self) -> Value:
        """The address that a load, a store or an atomic operation accesses."""
        return self.operands[1 if self.opcode == "store" else 0]

    @property
    def elementwise(self) -> Function | None:
        """The called function, if all that it does is to compute a number from numbers."""
        return self.call.elementwise if self.call is not None else None

    @property
    def is_terminator(self) -> bool:
        """Whether it is a terminator."""
        return self.opcode in TERMINATORS


TERMINATORS = frozenset({"br", "switch", "ret", "unreachable", "synchronise"})
"""Opcodes that end a block. ``synchronise`` stands for a call of a synchronising operation at which a block was cut:
the call itself is its first operand, the block behind it the only target; see `reconvergence_keys` for the other
operands."""


AGREE = "agree"
"""Opcode of the question whether a condition is what ``predicate`` says, ``true`` or ``false``, in all lanes of a group
of threads that run together; see `vectorize.coherent`. LLVM has no such instruction."""


FIRST = "first"
"""Opcode of what the first lane of a group of threads holds, for all of them; LLVM has no such instruction."""


RAMP = "ramp"
"""Opcode of integers that grow from lane to lane: the first operand in the first lane, and the second, a constant, more
in each that follows. They do not wrap, and those of fewer than 64 bits, or of lanes that are not masked out, are not
negative. LLVM has no such instruction."""


ROW = "row"
"""Opcode of a load of neighbouring elements from the operand on, for each lane those of its own: a structure of them;
LLVM loads vectors."""


PARAMETER = "parameter"
RESULT = "result"
"""The opcodes of an elementwise function's parameters and result, for all lanes; see `vectorize.vector_variants`."""


@dataclass(eq=False, slots=True)
class Block:
    """Instructions that run one after another; the last is a terminator, unless the block is being built."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def terminator(self) -> Instruction:
        """The last instruction."""
        return self.instructions[-1]

    @property
    def synchronising(self) -> Instruction:
        """The call of an operation at which the block ends."""
        call = self.terminator.operands[0]
        assert self.terminator.opcode == "synchronise"
        assert isinstance(call, Instruction)
        return call

    @property
    def successors(self) -> list[Block]:
        """The successors, each once."""
        return list(dict.fromkeys(self.terminator.targets))

    def append(self, opcode: str, kind: ir.Type, *operands: Value, **rest: Any) -> Instruction:
        """Add an instruction at the end; *rest* is what else it has."""
        made = Instruction(kind, opcode, list(operands), **{"name": f"{self.name}.{opcode}", **rest})
        self.instructions.append(made)
        return made

    @property
    def phis(self) -> Iterator[Instruction]:
        """The leading ``phi`` instructions."""
        for instruction in self.instructions:
            if instruction.opcode != "phi":
                return
            yield instruction


@dataclass(eq=False, slots=True)
class Function:
    """A function: its parameters and its blocks, the entry first."""

    name: str
    arguments: list[Argument]
    blocks: list[Block]

    def instructions(self) -> Iterator[Instruction]:
        """All instructions, block after block."""
        for block in self.blocks:
            yield from block.instructions
