"""From a function of llvmlite's binding layer to the graph of `graph`.

Opcode, types and operands come from LLVM's objects; what those do not tell is read from the one printed instruction,
by one small reader per kind of instruction. Everything printed has to be understood: what is not known raises
`UnsupportedError` with the instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu.spmd.ir import calls
from hip_runtime.drivers.cpu.spmd.ir.graph import (
    Argument,
    Atomic,
    Block,
    Constant,
    Function,
    Instruction,
    Symbol,
    Value,
)
from hip_runtime.drivers.cpu.spmd.ir.metadata import PLACE, MetadataTable
from hip_runtime.drivers.cpu.spmd.ir.printed import split_function
from hip_runtime.drivers.cpu.spmd.ir.text import Cursor, TokenKind, tokenize
from hip_runtime.drivers.cpu.spmd.ir.types import TypeTable
from hip_runtime.drivers.cpu.spmd.ir.words import (
    BINARY,
    CASTS,
    FAST_MATH,
    FLOAT_PREDICATES,
    GLOBAL_KINDS,
    IGNORED_CALLS,
    INTEGER_PREDICATES,
    ORDERINGS,
    POINTER_FLAGS,
    WRAPPING,
)
from hip_runtime.errors import UnsupportedError

_NOTHING = ir.VoidType()
_GIVING_NOTHING = frozenset({"store", "br", "switch", "ret", "fence", "unreachable"})

_BRANCHES = frozenset({"br", "switch"})
"""Instructions that have blocks among their operands."""


def read_function(module: Any, function: Any, context: ir.Context) -> Function:
    """The graph of *function*, a definition in *module*; named structs become types of *context*.

    The blocks must have names (LLVM's pass ``instnamer`` gives them), and so must the globals that it refers to.
    """
    return _Reader(module, function, context).read()


class _Reader:
    def __init__(self, module: Any, function: Any, context: ir.Context) -> None:
        self.types = TypeTable(context)
        for struct in module.struct_types:
            self.types.parse(str(struct))
        self.metadata = MetadataTable(module)
        self._function = function
        self._arguments = [
            Argument(self.types.of(argument), index, argument.name) for index, argument in enumerate(function.arguments)
        ]
        self._values: dict[Any, Value] = dict(zip(function.arguments, self._arguments, strict=True))
        self._blocks: dict[str, Block] = {}

    def read(self) -> Function:
        blocks = list(self._function.blocks)
        self._blocks = {block.name: Block(block.name) for block in blocks}
        if "" in self._blocks or len(self._blocks) != len(blocks):
            raise UnsupportedError(f"the blocks of {self._function.name!r} must have names to be read")
        pending: list[tuple[Instruction, Any, Cursor]] = []
        printed = iter(split_function(str(self._function)))
        for block, graph_block in zip(blocks, self._blocks.values(), strict=True):
            for value in block.instructions:
                cursor, opcode = Cursor(next(printed, "")), value.opcode
                if opcode == "call" and "@llvm." in cursor.text and _is_ignored(value):
                    continue
                kind, name = _NOTHING if opcode in _GIVING_NOTHING else self.types.of(value), ""
                if kind != _NOTHING:
                    name = cursor.take(TokenKind.LOCAL)
                    cursor.expect_mark("=")
                instruction = self._values[value] = Instruction(kind, opcode, [], name)
                graph_block.instructions.append(instruction)
                pending.append((instruction, value, cursor))
        for instruction, value, cursor in pending:
            self._fill(instruction, value, cursor)
        return Function(self._function.name, self._arguments, list(self._blocks.values()))

    def _fill(self, instruction: Instruction, value: Any, cursor: Cursor) -> None:
        read = _READERS.get(instruction.opcode)
        if read is None:
            raise UnsupportedError(
                f"the CPU device cannot run {instruction.opcode!r} in a kernel whose threads synchronise: "
                f"{cursor.text.strip()!r}"
            )
        operands = list(value.operands)
        if instruction.opcode in _BRANCHES:
            operands = [operand for operand in operands if operand.value_kind is not llvm.ValueKind.basic_block]
        instruction.operands = [self._operand(operand) for operand in operands]
        if instruction.opcode == "phi":
            instruction.targets = [self._blocks[block.name] for block in value.incoming_blocks]
        calls.skip_tail(cursor)
        cursor.expect_word(instruction.opcode)
        read(self, instruction, cursor)
        if instruction.call is not None:
            instruction.call = calls.with_group(instruction.call, value.attributes)

    def _operand(self, value: Any) -> Value:
        found = self._values.get(value)
        if found is not None:
            return found
        kind = value.value_kind
        if kind in GLOBAL_KINDS:
            if not value.name:
                raise UnsupportedError(f"a global must have a name to be referred to: {str(value).strip()!r}")
            found = Symbol(self.types.of(value), value.name)
        elif kind is llvm.ValueKind.constant_int:
            found = self._integer(value)
        elif value.is_constant:
            found = self._constant(value)
        else:
            raise UnsupportedError(f"the CPU device does not know operands of kind {kind.name}: {str(value).strip()!r}")
        self._values[value] = found
        return found

    def _integer(self, value: Any) -> Constant:
        """A constant integer, whose text tells all: asking LLVM for type and number takes four times as long."""
        cursor = Cursor(str(value))
        kind = self.types.read(cursor)
        if not isinstance(kind, ir.IntType):
            return self._constant(value)
        text = cursor.take()
        number = int(text == "true") if text in ("true", "false") else int(text) % (1 << kind.width)
        return Constant(kind, text, number, ())

    def _constant(self, value: Any) -> Constant:
        kind = self.types.of(value)
        text = str(value)
        cursor = Cursor(text)
        names: tuple[str, ...] = ()
        if "@" in text:
            tokens = tokenize(text)
            names = tuple(dict.fromkeys(token.text for token in tokens if token.kind is TokenKind.GLOBAL))
            if any(token.kind is TokenKind.WORD and token.text == "blockaddress" for token in tokens):
                raise UnsupportedError(f"the CPU device does not support addresses of blocks: {text!r}")
        if self.types.read(cursor) != kind:
            raise cursor.error(f"the type {kind}")
        return Constant(kind, text[_type_length(text) :], None, names)

    def target(self, cursor: Cursor) -> Block:
        """Take ``label %block``."""
        cursor.expect_word("label")
        return self._blocks[cursor.take(TokenKind.LOCAL)]

    def skip_operands(self, cursor: Cursor, count: int) -> None:
        """Take *count* operands with a type each, as they are separated by commas."""
        for number in range(count):
            if number:
                cursor.expect_mark(",")
            self.skip_operand(cursor)

    def skip_operand(self, cursor: Cursor) -> None:
        """Take a type and an operand behind it, whatever that is."""
        self.types.read(cursor)
        cursor.take_item()

    def finish(self, instruction: Instruction, cursor: Cursor) -> None:
        """Take what may stand at the end of each instruction: alignment and metadata."""
        while not cursor.at_end:
            cursor.expect_mark(",")
            if cursor.accept_word("align"):
                instruction.align = int(cursor.take(TokenKind.NUMBER))
                continue
            name, node = cursor.take(TokenKind.METADATA), cursor.take_item()
            if name == "range":
                instruction.ranges = self.metadata.ranges(node[0].text)
            elif name == PLACE:
                instruction.location = self.metadata.text(node[0].text)
            elif name == "dbg" and instruction.opcode == "call":
                instruction.location = instruction.location or self.metadata.location(node[0].text)


def _type_length(text: str) -> int:
    """Characters of the type, and the space behind it, that a printed constant starts with."""
    depth, place, quoted = 0, 0, False
    while place < len(text):
        letter = text[place]
        quoted ^= letter == '"'
        if not quoted:
            depth += (letter in "[{<(") - (letter in "]}>)")
            if letter == " " and depth == 0 and not text.startswith(" addrspace(", place):
                return place + 1
        place += 1
    raise UnsupportedError(f"cannot read the constant {text!r}")


def _is_ignored(value: Any) -> bool:
    *_, callee = value.operands
    return str(callee.name).startswith(IGNORED_CALLS)


def _read_binary(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(WRAPPING | FAST_MATH)
    reader.skip_operand(cursor)
    cursor.expect_mark(",")
    cursor.take_item()
    reader.finish(instruction, cursor)


def _read_unary(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(FAST_MATH)
    reader.skip_operand(cursor)
    reader.finish(instruction, cursor)


def _read_cast(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(WRAPPING | FAST_MATH)
    reader.types.read(cursor)
    tokens = cursor.take_item()  # operand, `to` and the type, which the value itself tells
    if not any(token.kind is TokenKind.WORD and token.text == "to" for token in tokens):
        raise cursor.error("'to'")
    reader.finish(instruction, cursor)


def _read_comparison(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    integers = instruction.opcode == "icmp"
    instruction.flags = cursor.take_words(frozenset({"samesign"}) if integers else FAST_MATH)
    if not cursor.is_word(*(INTEGER_PREDICATES if integers else FLOAT_PREDICATES)):
        raise cursor.error("a predicate")
    instruction.predicate = cursor.take()
    reader.skip_operand(cursor)
    cursor.expect_mark(",")
    cursor.take_item()
    reader.finish(instruction, cursor)


def _read_several(count: int) -> Callable[[_Reader, Instruction, Cursor], None]:
    def read(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
        instruction.flags = cursor.take_words(FAST_MATH)
        reader.skip_operands(cursor, count)
        reader.finish(instruction, cursor)

    return read


def _read_shuffle(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    reader.skip_operands(cursor, 2)
    cursor.expect_mark(",")
    kind = reader.types.read(cursor)
    mask = [token.text for token in cursor.take_item()]
    instruction.literal = f"{kind} {' '.join(mask)}"
    reader.finish(instruction, cursor)


def _read_indexed(count: int) -> Callable[[_Reader, Instruction, Cursor], None]:
    def read(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
        reader.skip_operands(cursor, count)
        indices: list[int] = []
        while cursor.is_mark(",") and not _metadata_follows(cursor):
            cursor.expect_mark(",")
            indices.append(int(cursor.take(TokenKind.NUMBER)))
        instruction.indices = tuple(indices)
        reader.finish(instruction, cursor)

    return read


def _metadata_follows(cursor: Cursor) -> bool:
    return cursor.following.kind is TokenKind.METADATA


def _read_phi(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(FAST_MATH)
    reader.types.read(cursor)
    for number in range(len(instruction.operands)):
        if number:
            cursor.expect_mark(",")
        cursor.take_item()
    reader.finish(instruction, cursor)


def _read_pointer(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(POINTER_FLAGS)
    if cursor.accept_word("inrange"):
        cursor.take_group()
    instruction.source_type = reader.types.read(cursor)
    for _ in instruction.operands:
        cursor.expect_mark(",")
        reader.skip_operand(cursor)
    reader.finish(instruction, cursor)


def _read_alloca(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    if cursor.is_word("inalloca", "swifterror"):
        raise cursor.error("memory of the ordinary kind")
    instruction.source_type = reader.types.read(cursor)
    if cursor.is_mark(",") and not (cursor.following.text in ("align", "addrspace") or _metadata_follows(cursor)):
        cursor.expect_mark(",")
        reader.skip_operand(cursor)
    reader.finish(instruction, cursor)


def _read_access(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    """``load`` and ``store``."""
    atomic = cursor.accept_word("atomic") is not None
    instruction.volatile = cursor.accept_word("volatile") is not None
    if instruction.opcode == "load":
        reader.types.read(cursor)
        cursor.expect_mark(",")
    else:
        reader.skip_operand(cursor)
        cursor.expect_mark(",")
    reader.types.read(cursor)
    _take_address(cursor)
    if atomic:
        instruction.atomic = _read_atomic(cursor, 1)
    reader.finish(instruction, cursor)


def _take_address(cursor: Cursor) -> None:
    """A pointer operand that a synchronisation scope or an ordering may follow."""
    if cursor.token.kind in (TokenKind.LOCAL, TokenKind.GLOBAL):
        cursor.take()
        return
    cursor.take(TokenKind.WORD)
    while cursor.token.kind is TokenKind.WORD and not cursor.is_word("syncscope", *ORDERINGS):
        cursor.take()
    if cursor.is_mark("("):
        cursor.take_group()


def _read_atomic(cursor: Cursor, count: int) -> Atomic:
    scope = ""
    if cursor.accept_word("syncscope"):
        cursor.expect_mark("(")
        scope = cursor.take(TokenKind.STRING)
        cursor.expect_mark(")")
    orderings = []
    for _ in range(count):
        if not cursor.is_word(*ORDERINGS):
            raise cursor.error("an ordering")
        orderings.append(cursor.take())
    return Atomic(tuple(orderings), scope)


def _take_operand(reader: _Reader, cursor: Cursor) -> None:
    reader.types.read(cursor)
    if cursor.token.kind is TokenKind.MARK:  # a constant vector or struct
        raise cursor.error("a scalar")
    if cursor.token.kind is TokenKind.NUMBER:
        cursor.take()
    else:
        _take_address(cursor)


def _read_modification(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.volatile = cursor.accept_word("volatile") is not None
    instruction.operation = cursor.take(TokenKind.WORD)
    reader.skip_operand(cursor)
    cursor.expect_mark(",")
    _take_operand(reader, cursor)
    instruction.atomic = _read_atomic(cursor, 1)
    reader.finish(instruction, cursor)


def _read_exchange(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(frozenset({"weak"}))
    instruction.volatile = cursor.accept_word("volatile") is not None
    reader.skip_operands(cursor, 2)
    cursor.expect_mark(",")
    _take_operand(reader, cursor)
    instruction.atomic = _read_atomic(cursor, 2)
    reader.finish(instruction, cursor)


def _read_fence(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.atomic = _read_atomic(cursor, 1)
    reader.finish(instruction, cursor)


def _read_branch(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    if instruction.operands:
        reader.skip_operand(cursor)
        cursor.expect_mark(",")
    instruction.targets.append(reader.target(cursor))
    if cursor.is_mark(",") and not _metadata_follows(cursor):
        cursor.expect_mark(",")
        instruction.targets.append(reader.target(cursor))
    reader.finish(instruction, cursor)


def _read_switch(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    del instruction.operands[1:]  # up to LLVM 21 the numbers of the cases are operands too
    reader.skip_operand(cursor)
    cursor.expect_mark(",")
    instruction.targets.append(reader.target(cursor))
    cursor.expect_mark("[")
    cases: list[int] = []
    while not cursor.accept_mark("]"):
        reader.types.read(cursor)
        cases.append(_case(cursor))
        cursor.expect_mark(",")
        instruction.targets.append(reader.target(cursor))
    instruction.cases = tuple(cases)
    reader.finish(instruction, cursor)


def _case(cursor: Cursor) -> int:
    if cursor.is_word("true", "false"):
        return int(cursor.take() == "true")
    return int(cursor.take(TokenKind.NUMBER))


def _read_return(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    if instruction.operands:
        reader.skip_operand(cursor)
    else:
        cursor.expect_word("void")
    reader.finish(instruction, cursor)


def _read_call(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(FAST_MATH)
    instruction.call = calls.read_call(reader.types, cursor, len(instruction.operands) - 1)
    reader.finish(instruction, cursor)


_READERS: dict[str, Callable[[_Reader, Instruction, Cursor], None]] = {
    **dict.fromkeys(BINARY, _read_binary),
    **dict.fromkeys(CASTS, _read_cast),
    "fneg": _read_unary, "freeze": _read_unary, "icmp": _read_comparison, "fcmp": _read_comparison,
    "select": _read_several(3), "extractelement": _read_several(2), "insertelement": _read_several(3),
    "shufflevector": _read_shuffle, "extractvalue": _read_indexed(1), "insertvalue": _read_indexed(2),
    "phi": _read_phi, "getelementptr": _read_pointer, "alloca": _read_alloca, "load": _read_access,
    "store": _read_access, "atomicrmw": _read_modification, "cmpxchg": _read_exchange, "fence": _read_fence,
    "br": _read_branch, "switch": _read_switch, "ret": _read_return, "unreachable": _read_several(0),
    "call": _read_call,
}  # fmt: skip
