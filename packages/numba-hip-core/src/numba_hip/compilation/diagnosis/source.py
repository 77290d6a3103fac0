"""The user's source around a line: its text, its syntax nodes, and the function that it is in."""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Iterator
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of a statement with other statements."""


class SourceLine(NamedTuple):
    """A line of a file."""

    filename: str
    line: int


def text_of(place: SourceLine) -> str:
    """The text of the line, without indentation; empty if there is no such file."""
    return linecache.getline(*place).strip()


def functions_at(place: SourceLine) -> list[Function]:
    """The functions that *place* is in, the innermost one last."""
    tree = _parse(place.filename)
    functions = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, Function)]
    around = [node for node in functions if _first_line(node) <= place.line <= (node.end_lineno or node.lineno)]
    return sorted(around, key=lambda node: (_first_line(node), node.col_offset))


def is_in_function(place: SourceLine, start: SourceLine) -> bool:
    """Whether *place* is in the function that begins at *start*, with its decorators."""
    return place.filename == start.filename and any(_first_line(one) == start.line for one in functions_at(place))


def name_at(place: SourceLine) -> str:
    """The name of the function that *place* is in; empty where that is not known."""
    found = functions_at(place)
    return "" if not found else getattr(found[-1], "name", "<lambda>")


def nodes_at(place: SourceLine) -> list[ast.AST]:
    """The nodes of the innermost statement at *place*, the statement first; of a compound statement, its head only."""
    found: list[ast.AST] = []
    for function in functions_at(place):
        for statement in ast.walk(function):
            if isinstance(statement, ast.stmt) and statement.lineno <= place.line <= _end_of_head(statement):
                found = list(_head(statement))
    return found


def nodes_of(function: Function) -> list[ast.AST]:
    """All nodes of *function*, in the order of the source."""
    nodes = [node for node in ast.walk(function) if hasattr(node, "lineno")]
    return sorted(nodes, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))


def _first_line(function: Function) -> int:
    decorators: list[ast.expr] = getattr(function, "decorator_list", [])
    return min([function.lineno, *(decorator.lineno for decorator in decorators)])


def _parse(filename: str) -> ast.Module | None:
    """The syntax tree of a file, or of a cell of a notebook."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):  # commands of a notebook, or no source at all
        return None


def _head(statement: ast.stmt) -> Iterator[ast.AST]:
    """*statement* and its nodes, without the statements inside of it."""
    yield statement
    for name, value in ast.iter_fields(statement):
        if name not in BODIES or isinstance(statement, ast.expr):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from ast.walk(part)


def _end_of_head(statement: ast.stmt) -> int:
    """The last line of *statement* before the statements inside of it."""
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return max(statement.lineno, int(body[0].lineno) - 1)
    return statement.end_lineno or statement.lineno
