"""Parses a function printed by LLVM into the graph of `model`.

Everything is read from the text of a whole module, printed once: using LLVM's objects instead takes a dozen calls for
each instruction, each of which takes longer than parsing the instruction. Everything printed has to be understood:
anything unknown raises `UnsupportedError` with the instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir import calls
from hip_runtime.drivers.cpu.ir.keywords import (
    BINARY,
    CASTS,
    FAST_MATH,
    FLOAT_PREDICATES,
    IGNORED_CALLS,
    INTEGER_PREDICATES,
    ORDERINGS,
    POINTER_FLAGS,
    WRAPPING,
)
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind
from hip_runtime.drivers.cpu.ir.metadata import MetadataTable
from hip_runtime.drivers.cpu.ir.model import Argument, Atomic, Block, Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule, split_blocks
from hip_runtime.drivers.cpu.ir.operands import OperandReader
from hip_runtime.drivers.cpu.ir.types import POINTER, TypeTable
from hip_runtime.errors import UnsupportedError

_NOTHING = ir.VoidType()
_BIT = ir.IntType(1)
_COUNT = ir.IntType(32)

_TAILS = frozenset({"tail", "notail", "musttail"})
"""What stands before a call."""


def read_function(module: PrintedModule, name: str, context: ir.Context) -> Function:
    """The graph of the function *name*, a definition in *module*; named structs become types of *context*.

    The blocks must have names (LLVM's pass ``instnamer`` gives them), and so must the globals that it refers to.
    """
    return _Reader(module, name, context).read()


class _Reader:
    def __init__(self, module: PrintedModule, name: str, context: ir.Context) -> None:
        self.types = TypeTable(context)
        for struct in module.structs:
            self.types.parse(struct)
        self.metadata = MetadataTable(module.metadata)
        self.groups = module.groups
        self._name = name
        self._lines = module.functions[name]

    def read(self) -> Function:
        printed = split_blocks(self._lines)
        names = [_name_of_label(label) for label, _ in printed]
        if "" in names or len(set(names)) != len(names):
            raise UnsupportedError(f"the blocks of {self._name!r} must have names to be read")
        blocks = {name: Block(name) for name in names}
        arguments = self._read_parameters()
        self.operands = OperandReader(self.types, ((printed_as, one) for printed_as, one in arguments), blocks)
        pending: list[tuple[Instruction, Cursor]] = []
        for block, (_, lines) in zip(blocks.values(), printed, strict=True):
            for line in lines:
                cursor = Cursor(line)
                instruction = self._begin(cursor)
                if instruction is not None:
                    block.instructions.append(instruction)
                    pending.append((instruction, cursor))
        for instruction, cursor in pending:
            _READERS[instruction.opcode](self, instruction, cursor)
        return Function(self._name, [argument for _, argument in arguments], list(blocks.values()))

    def _read_parameters(self) -> list[tuple[str, Argument]]:
        """The parameters, and the printed name of each: a number if it has no name."""
        cursor = Cursor(self._lines[0])
        cursor.skip_to(TokenKind.GLOBAL)
        cursor.take()
        cursor.expect_mark("(")
        found: list[tuple[str, Argument]] = []
        while not cursor.accept_mark(")"):
            if found:
                cursor.expect_mark(",")
            kind = self.types.read(cursor)
            cursor.skip_to(TokenKind.LOCAL)  # the words in between are attributes
            name = cursor.take()
            found.append((name, Argument(kind, len(found), name)))
        return found

    def _begin(self, cursor: Cursor) -> Instruction | None:
        """Take name and opcode of an instruction; None for one that is of no interest."""
        name = ""
        if cursor.token.kind is TokenKind.LOCAL:
            name = cursor.take()
            cursor.expect_mark("=")
        if cursor.is_word(*_TAILS):
            if cursor.is_word("musttail"):  # without meaning in an outlined function
                raise cursor.error("a call that need not be a tail call")
            cursor.take()
        opcode = cursor.take(TokenKind.WORD)
        if opcode not in _READERS:
            raise UnsupportedError(
                f"the CPU device cannot run {opcode!r} in a kernel whose threads synchronise: {cursor.text.strip()!r}"
            )
        if opcode == "call" and "@llvm." in cursor.text and _is_ignored(cursor):
            return None
        instruction = Instruction(_NOTHING, opcode, [], name)
        if name:
            self.operands.define(name, instruction)
        return instruction

    def finish(self, instruction: Instruction, cursor: Cursor) -> None:
        """Parse the optional end of an instruction: alignment and metadata."""
        while not cursor.at_end:
            cursor.expect_mark(",")
            if cursor.accept_word("align"):
                instruction.align = int(cursor.take(TokenKind.NUMBER))
                continue
            if cursor.accept_word("addrspace"):
                cursor.take_group()
                continue
            name, node = cursor.take(TokenKind.METADATA), cursor.take_item()
            if name == "range":
                instruction.ranges = self.metadata.ranges(node[0].text)
            elif name == spmd.PLACE:
                instruction.location = self.metadata.text(node[0].text)
            elif name == "dbg":
                instruction.location = instruction.location or self.metadata.location(node[0].text)


def _name_of_label(label: str) -> str:
    """The name of a block, empty where it has none and is printed with a number."""
    if label.startswith('"'):
        return Cursor(label).take(TokenKind.STRING)
    name = label.removesuffix(":")
    return "" if name.isdigit() else name


def _is_ignored(cursor: Cursor) -> bool:
    return next(token.text for token in cursor.left if token.kind is TokenKind.GLOBAL).startswith(IGNORED_CALLS)


def _over_lanes(kind: ir.Type, like: ir.Type) -> ir.Type:
    """*kind*, or a vector of it where *like* is a vector."""
    return ir.VectorType(kind, like.count) if isinstance(like, ir.VectorType) else kind


def _read_binary(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(WRAPPING | FAST_MATH)
    instruction.type, left = reader.operands.typed(cursor)
    cursor.expect_mark(",")
    instruction.operands = [left, reader.operands.operand(cursor, instruction.type)]
    reader.finish(instruction, cursor)


def _read_unary(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(FAST_MATH)
    instruction.type, operand = reader.operands.typed(cursor)
    instruction.operands = [operand]
    reader.finish(instruction, cursor)


def _read_cast(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(WRAPPING | FAST_MATH)
    instruction.operands = [reader.operands.typed(cursor)[1]]
    cursor.expect_word("to")
    instruction.type = reader.types.read(cursor)
    reader.finish(instruction, cursor)


_SAME_SIGN = frozenset({"samesign"})
"""The flag of a comparison of two numbers that are both negative, or both not."""


def _read_comparison(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    integers = instruction.opcode == "icmp"
    flags = cursor.take_words(_SAME_SIGN if integers else FAST_MATH)
    instruction.flags = () if integers else flags
    if not cursor.is_word(*(INTEGER_PREDICATES if integers else FLOAT_PREDICATES)):
        raise cursor.error("a predicate")
    predicate = cursor.take()
    # numbers of one sign compare alike as numbers with a sign, for which processors have instructions
    is_turned = integers and flags and predicate.startswith("u")
    instruction.predicate = f"s{predicate[1:]}" if is_turned else predicate
    kind, left = reader.operands.typed(cursor)
    cursor.expect_mark(",")
    instruction.operands = [left, reader.operands.operand(cursor, kind)]
    instruction.type = _over_lanes(_BIT, kind)
    reader.finish(instruction, cursor)


def _read_choice(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(FAST_MATH)
    kinds, instruction.operands = reader.operands.several(cursor, 3)
    instruction.type = kinds[1]
    reader.finish(instruction, cursor)


def _read_extraction(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    kinds, instruction.operands = reader.operands.several(cursor, 2)
    instruction.type = kinds[0].element
    reader.finish(instruction, cursor)


def _read_insertion(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    kinds, instruction.operands = reader.operands.several(cursor, 3)
    instruction.type = kinds[0]
    reader.finish(instruction, cursor)


def _read_shuffle(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    kinds, instruction.operands = reader.operands.several(cursor, 2)
    cursor.expect_mark(",")
    kind = reader.types.read(cursor)
    mask = [token.text for token in cursor.take_item()]
    instruction.literal = f"{kind} {' '.join(mask)}"
    instruction.type = ir.VectorType(kinds[0].element, kind.count)
    reader.finish(instruction, cursor)


def _read_member(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    """``extractvalue`` and ``insertvalue``."""
    kinds, instruction.operands = reader.operands.several(cursor, 1 if instruction.opcode == "extractvalue" else 2)
    indices: list[int] = []
    while cursor.is_mark(",") and not _metadata_follows(cursor):
        cursor.expect_mark(",")
        indices.append(int(cursor.take(TokenKind.NUMBER)))
    instruction.indices = tuple(indices)
    instruction.type = kinds[0]
    for index in indices if instruction.opcode == "extractvalue" else ():
        inner = instruction.type
        instruction.type = inner.element if isinstance(inner, ir.ArrayType) else inner.elements[index]
    reader.finish(instruction, cursor)


def _metadata_follows(cursor: Cursor) -> bool:
    return cursor.following.kind is TokenKind.METADATA


def _read_phi(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(FAST_MATH)
    instruction.type = reader.types.read(cursor)
    while True:
        cursor.expect_mark("[")
        instruction.operands.append(reader.operands.operand(cursor, instruction.type))
        cursor.expect_mark(",")
        instruction.targets.append(reader.operands.block(cursor))
        cursor.expect_mark("]")
        if not cursor.is_mark(",") or _metadata_follows(cursor):
            break
        cursor.expect_mark(",")
    reader.finish(instruction, cursor)


def _read_pointer(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(POINTER_FLAGS)
    if cursor.accept_word("inrange"):
        cursor.take_group()
    instruction.source_type = reader.types.read(cursor)
    kinds: list[ir.Type] = []
    while cursor.is_mark(",") and not _metadata_follows(cursor):
        cursor.expect_mark(",")
        kind, operand = reader.operands.typed(cursor)
        kinds.append(kind)
        instruction.operands.append(operand)
    wide = next((kind for kind in kinds if isinstance(kind, ir.VectorType)), kinds[0])
    instruction.type = kinds[0] if isinstance(kinds[0], ir.VectorType) else _over_lanes(kinds[0], wide)
    reader.finish(instruction, cursor)


def _read_alloca(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    if cursor.is_word("inalloca", "swifterror"):
        raise cursor.error("memory of the ordinary kind")
    instruction.source_type = reader.types.read(cursor)
    if cursor.is_mark(",") and not (cursor.following.text in ("align", "addrspace") or _metadata_follows(cursor)):
        cursor.expect_mark(",")
        instruction.operands = [reader.operands.typed(cursor)[1]]
    else:
        instruction.operands = [reader.operands.one(_COUNT)]
    instruction.type = POINTER
    reader.finish(instruction, cursor)


def _read_access(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    """``load`` and ``store``."""
    atomic = cursor.accept_word("atomic") is not None
    instruction.volatile = cursor.accept_word("volatile") is not None
    if instruction.opcode == "load":
        instruction.type = reader.types.read(cursor)
        cursor.expect_mark(",")
        instruction.operands = [reader.operands.typed(cursor)[1]]
    else:
        _, instruction.operands = reader.operands.several(cursor, 2)
    if atomic:
        instruction.atomic = _read_atomic(cursor, 1)
    reader.finish(instruction, cursor)


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


def _read_modification(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.volatile = cursor.accept_word("volatile") is not None
    instruction.operation = cursor.take(TokenKind.WORD)
    kinds, instruction.operands = reader.operands.several(cursor, 2)
    instruction.type = kinds[1]
    instruction.atomic = _read_atomic(cursor, 1)
    reader.finish(instruction, cursor)


def _read_exchange(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(frozenset({"weak"}))
    instruction.volatile = cursor.accept_word("volatile") is not None
    kinds, instruction.operands = reader.operands.several(cursor, 3)
    instruction.type = ir.LiteralStructType([kinds[1], _BIT])
    instruction.atomic = _read_atomic(cursor, 2)
    reader.finish(instruction, cursor)


def _read_fence(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.atomic = _read_atomic(cursor, 1)
    reader.finish(instruction, cursor)


def _read_branch(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    count = 1
    if not cursor.is_word("label"):
        instruction.operands = [reader.operands.typed(cursor)[1]]
        cursor.expect_mark(",")
        count = 2
    for number in range(count):
        if number:
            cursor.expect_mark(",")
        instruction.targets.append(reader.operands.target(cursor))
    reader.finish(instruction, cursor)


def _read_switch(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.operands = [reader.operands.typed(cursor)[1]]
    cursor.expect_mark(",")
    instruction.targets.append(reader.operands.target(cursor))
    cursor.expect_mark("[")
    cases: list[int] = []
    while not cursor.accept_mark("]"):
        reader.types.read(cursor)
        cases.append(_case(cursor))
        cursor.expect_mark(",")
        instruction.targets.append(reader.operands.target(cursor))
    instruction.cases = tuple(cases)
    reader.finish(instruction, cursor)


def _case(cursor: Cursor) -> int:
    if cursor.is_word("true", "false"):
        return int(cursor.take() == "true")
    return int(cursor.take(TokenKind.NUMBER))


def _read_return(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    if cursor.accept_word("void") is None:
        instruction.operands = [reader.operands.typed(cursor)[1]]
    reader.finish(instruction, cursor)


def _read_unreachable(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    reader.finish(instruction, cursor)


def _read_call(reader: _Reader, instruction: Instruction, cursor: Cursor) -> None:
    instruction.flags = cursor.take_words(FAST_MATH)
    instruction.call, instruction.operands = calls.read_call(reader.operands, cursor, reader.groups)
    instruction.type = instruction.call.function_type.return_type
    reader.finish(instruction, cursor)


_READERS: dict[str, Callable[[_Reader, Instruction, Cursor], None]] = {
    **dict.fromkeys(BINARY, _read_binary),
    **dict.fromkeys(CASTS, _read_cast),
    "fneg": _read_unary, "freeze": _read_unary, "icmp": _read_comparison, "fcmp": _read_comparison,
    "select": _read_choice, "extractelement": _read_extraction, "insertelement": _read_insertion,
    "shufflevector": _read_shuffle, "extractvalue": _read_member, "insertvalue": _read_member,
    "phi": _read_phi, "getelementptr": _read_pointer, "alloca": _read_alloca, "load": _read_access,
    "store": _read_access, "atomicrmw": _read_modification, "cmpxchg": _read_exchange, "fence": _read_fence,
    "br": _read_branch, "switch": _read_switch, "ret": _read_return, "unreachable": _read_unreachable,
    "call": _read_call,
}  # fmt: skip
