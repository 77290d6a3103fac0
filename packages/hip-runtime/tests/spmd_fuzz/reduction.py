"""Takes away from a program what it does not need to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from spmd_fuzz.nodes import FLOATS, Node, Program


def reduce_program(program: Program, fails: Callable[[Program], bool], attempts: int = 400) -> Program:
    """A smaller program for which *fails* still holds, found by at most *attempts* trials of it."""
    left = attempts
    smaller = True
    while smaller:
        smaller = False
        for tried in _variants(program):
            if left == 0:
                return program
            left -= 1
            if fails(tried):
                program, smaller = tried, True
                break
    return program


def _variants(program: Program) -> Iterator[Program]:
    """Programs that are a step smaller, those that are much smaller first."""
    count = len(program.statements)
    for size in (count // 2, count // 4):
        for first in range(0, count, size) if size > 1 else ():
            yield replace(program, statements=program.statements[:first] + program.statements[first + size :])
    for statements in _sequences(program.statements):
        yield replace(program, statements=statements)
    if program.blocks > 1:
        yield replace(program, blocks=1)
    if program.functions and not any(node.kind == "call" for node in program.walk()):
        yield replace(program, functions=())


def _sequences(nodes: Sequence[Node]) -> Iterator[tuple[Node, ...]]:
    """*nodes* without one of them, with what is inside of one instead of it, or with a smaller one."""
    before = tuple(nodes)
    for place in range(len(before) - 1, -1, -1):
        yield before[:place] + before[place + 1 :]
    for place, node in enumerate(before):
        for inside in (node.body, node.other):
            if inside and node.kind in ("if", "uniform_if"):
                yield before[:place] + inside + before[place + 1 :]
        for smaller in _smaller(node):
            yield (*before[:place], smaller, *before[place + 1 :])


def _smaller(node: Node) -> Iterator[Node]:
    for body in _sequences(node.body):
        yield replace(node, body=body)
    for other in _sequences(node.other):
        yield replace(node, other=other)
    for place, part in enumerate(node.parts):
        for simpler in _simpler(part):
            yield replace(node, parts=(*node.parts[:place], simpler, *node.parts[place + 1 :]))


def _simpler(part: Node) -> Iterator[Node]:
    """Expressions of the same type with less in them."""
    if part.kind == "const":
        return
    # Which zero a zero is that fast-math gives does not count, so it is only ever used with something added to it.
    yield from (inner for inner in part.parts if inner.type == part.type and " fast" not in str(inner.words[:1]))
    if part.type != "i1" and part.kind not in ("get", "load"):
        yield Node("const", part.type, (1.0 if part.type in FLOATS else 1,))
    yield from _smaller(part)
