"""The text of a printed module, split into its functions and their instructions.

A module is printed only once and as a whole: LLVM renumbers metadata and attribute groups whenever it prints, and walks
the whole module even to print a single function.

The shape of the lines is that of ``printBasicBlock`` in ``llvm/lib/IR/AsmWriter.cpp``.
"""

from __future__ import annotations

from typing import Any

from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind
from hip_runtime.errors import UnsupportedError

_INDENT = "  "
_RECORD = "#dbg_"
"""What LLVM's records of variables start with. They stand among the instructions and are none."""

_GROUP = "attributes #"


class PrintedModule:
    """The text of *module*, a module of the binding layer, which must not change while this is in use."""

    def __init__(self, module: Any) -> None:
        self.structs: list[str] = []
        """Definitions of the structs that have names."""
        self.metadata: dict[str, str] = {}
        """Metadata nodes by their numbers or names."""
        self.groups: dict[str, str] = {}
        """Groups of attributes by their numbers."""
        self.functions: dict[str, list[str]] = {}
        """The lines of each function that is defined, by its name."""
        self._read(str(module).split("\n"))

    def _read(self, lines: list[str]) -> None:
        begin: int | None = None
        for number, line in enumerate(lines):
            if begin is not None:
                if line == "}":
                    self.functions[name_of_definition(lines[begin])] = lines[begin : number + 1]
                    begin = None
            elif line.startswith("define "):
                begin = number
            elif line.startswith("!"):
                name, _, node = line.partition(" = ")
                self.metadata[name[1:]] = node
            elif line.startswith("%"):
                self.structs.append(line)
            elif line.startswith(_GROUP):
                name, _, node = line.partition(" = ")
                self.groups[name[len(_GROUP) :]] = node

    @property
    def has_lines(self) -> bool:
        """Whether the code has debug locations."""
        return "llvm.dbg.cu" in self.metadata

    def instructions(self, function: str) -> list[str]:
        """The instructions of *function*, in their order, with all the lines of each."""
        return [instruction for _, block in split_blocks(self.functions[function]) for instruction in block]


def name_of_definition(line: str) -> str:
    """The name of the function whose definition begins with *line*; a number if it has none."""
    cursor = Cursor(line)
    cursor.skip_to(TokenKind.GLOBAL)
    return cursor.take()


def split_blocks(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The blocks of a definition that LLVM printed: the label of each as it is printed, empty for a first block without
    a name, and its instructions, with all the lines of each."""
    blocks: list[tuple[str, list[str]]] = []
    for line in lines[_opening(lines) + 1 :]:
        if line == "}":
            return blocks
        if not line:
            continue
        if not line.startswith(_INDENT):
            if not line.startswith(";"):
                blocks.append((line.partition(";")[0].rstrip() if line[0] != '"' else _quoted_label(line), []))
            continue
        rest = line.lstrip(" ")
        if rest.startswith(_RECORD):
            continue
        if not blocks:
            blocks.append(("", []))
        instructions = blocks[-1][1]
        if len(line) - len(rest) == len(_INDENT) and rest[0] != "]":
            instructions.append(line)
        elif instructions:  # the cases of a switch, and the closing bracket
            instructions[-1] = f"{instructions[-1]}\n{line}"
    raise UnsupportedError(f"cannot read a function without an end: {lines[-1] if lines else ''!r}")


def _quoted_label(line: str) -> str:
    return line[: line.index('"', 1) + 2]


def _opening(lines: list[str]) -> int:
    for number, line in enumerate(lines):
        if line.startswith("define "):
            return number
    raise UnsupportedError(f"cannot read a function that is not defined: {lines[0] if lines else ''!r}")
