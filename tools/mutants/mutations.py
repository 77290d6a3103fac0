"""mutmut's output: each mutant of a module, its change, and the changed statement."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from tools.mutants.explanations import Change

_NAMED = re.compile(r"(.*__mutmut_)(orig|\d+)")


@dataclass(frozen=True)
class Mutation(Change):
    """The mutant *name*, and the first and last line in *file* of the changed statements in the original function."""

    name: str
    file: str
    spans: tuple[tuple[int, int], ...]

    def is_reached(self, lines: set[int]) -> bool:
        """Whether code that runs *lines* of the file reaches the change."""
        return any(first <= line <= last for first, last in self.spans for line in lines)


def read_mutations(file: Path, module: str) -> list[Mutation]:
    """The mutants in *file*, which mutmut created from *module*, in the order of the lines."""
    text = file.read_text()
    lines = text.splitlines()
    originals: dict[str, ast.FunctionDef] = {}
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef) or not (match := _NAMED.fullmatch(node.name)):
            continue
        if match[2] == "orig":
            originals[match[1]] = node
        else:
            found.append((node.lineno, match[1], node))
    return [
        _compare(f"{module}.{node.name}", str(file), lines, originals[prefix], node)
        for _, prefix, node in sorted(found, key=lambda entry: entry[0])
    ]


def _compare(name: str, file: str, lines: list[str], original: ast.FunctionDef, mutant: ast.FunctionDef) -> Mutation:
    old, new = (_lines_of(lines, node) for node in (original, mutant))
    before, after, spans = [], [], set()
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        before += old[i:j]
        after += new[k:m]
        spans |= {_span(original, original.lineno + line) for line in range(i, max(j, i + 1))}
    lost, gained = (" ".join(line.strip() for line in part) for part in (before, after))
    return Mutation(name.rpartition("__mutmut_")[0], lost, gained, name, file, tuple(sorted(spans)))


def _lines_of(lines: list[str], node: ast.FunctionDef) -> list[str]:
    own = lines[node.lineno - 1 : node.end_lineno]
    own[0] = own[0].replace(node.name, "", 1)
    return own


def _span(function: ast.FunctionDef, line: int) -> tuple[int, int]:
    """The first and last line of the smallest statement around *line*; for a compound statement, those before its
    body."""
    spans = []
    for node in ast.walk(function):
        if not isinstance(node, ast.stmt | ast.ExceptHandler):
            continue
        last = node.end_lineno or node.lineno
        body = getattr(node, "body", None)
        if body and line < body[0].lineno:
            last = max(node.lineno, body[0].lineno - 1)
        if node.lineno <= line <= last:
            spans.append((last - node.lineno, node.lineno, last))
    return min(spans)[1:] if spans else (function.lineno, function.lineno)
