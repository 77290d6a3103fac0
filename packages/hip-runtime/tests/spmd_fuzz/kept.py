"""Cases as JSON, so that a program that failed once stays what it was when the generator changes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spmd_fuzz.cases import Form
from spmd_fuzz.nodes import DeviceFunction, Layout, Node, Program

FOLDER = Path(__file__).parent / "kept"
"""Programs that failed once, each made as small as it could be; `test_cpu_fuzz.py` runs them all."""


@dataclass(frozen=True)
class Case:
    """A program, the seed of the numbers in memory, the form in which it failed, and what was wrong with it."""

    program: Program
    seed: int
    form: Form
    note: str


def write_case(case: Case) -> str:
    """*case* as JSON, one statement a line."""
    program = case.program
    functions = [
        [list(one.parameters), *map(_pack, (one.condition, one.then, one.other)), one.inlined]
        for one in program.functions
    ]
    fields = {
        "note": case.note, "seed": case.seed, "form": list(case.form), "block": list(program.block),
        "blocks": program.blocks, "wave_size": program.wave_size, "n": program.n,
        "layouts": {kind: asdict(layout) for kind, layout in program.layouts.items()}, "functions": functions,
    }  # fmt: skip
    head = "".join(f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in fields.items())
    body = ",\n".join(f"  {json.dumps(_pack(statement))}" for statement in program.statements)
    return f'{{\n{head} "statements": [\n{body}\n ]\n}}\n'


def read_case(text: str) -> Case:
    """The case that `write_case` wrote."""
    found = json.loads(text)
    functions = tuple(
        DeviceFunction(tuple(parameters), _unpack(condition), _unpack(then), _unpack(other), inlined)
        for parameters, condition, then, other, inlined in found["functions"]
    )
    layouts = {kind: Layout(**layout) for kind, layout in found["layouts"].items()}
    program = Program(
        tuple(map(_unpack, found["statements"])), functions, tuple(found["block"]), found["blocks"],
        found["wave_size"], found["n"], layouts,
    )  # fmt: skip
    return Case(program, found["seed"], tuple(found["form"]), found["note"])


def _pack(node: Node) -> list[Any]:
    """*node* as a list, without what is empty at its end."""
    inside = (node.parts, node.body, node.other)
    found: list[Any] = [node.kind, node.type, list(node.words), *([_pack(child) for child in part] for part in inside)]
    while found[-1] in ([], ""):
        found.pop()
    return found


def _unpack(packed: list[Any]) -> Node:
    kind, type_, words, *inside = [*packed, *["", [], [], [], []][len(packed) - 1 :]]
    parts, body, other = (tuple(map(_unpack, part)) for part in inside)
    return Node(kind, type_, tuple(words), parts, body, other)
