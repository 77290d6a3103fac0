"""Random typed programs, those that failed once, and the net itself: that it finds what is wrong and makes it small."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from spmd_fuzz import cases, evaluation
from spmd_fuzz.__main__ import reduce_failure
from spmd_fuzz.cases import choose_forms, find_mismatch, run_form
from spmd_fuzz.evaluation import TooManyRoundsError, evaluate, make_memory
from spmd_fuzz.generator import make_program
from spmd_fuzz.kept import FOLDER, Case, read_case, write_case
from spmd_fuzz.limits import OverdueError, limit_time
from spmd_fuzz.nodes import Layout, Node, Program
from spmd_fuzz.reproducer import write_script
from spmd_fuzz.writer import compile_program

from hip_runtime import Device
from hip_runtime.errors import TrapError

KEPT = sorted(FOLDER.glob("*.json"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(8))
def test_program(device: Device, seed: int) -> None:
    program = make_program(seed)
    assert find_mismatch(device, program, seed, choose_forms(program, seed, 2)) is None


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_program_that_failed_once(device: Device, path: Path) -> None:
    case = read_case(path.read_text())
    assert find_mismatch(device, case.program, case.seed, [case.form]) is None, case.note


def test_case_is_the_same_when_read() -> None:
    for seed in range(40):
        program = make_program(seed)
        read = read_case(write_case(Case(program, seed, ("vectors", 4), "why")))
        assert repr(read) == repr(Case(program, seed, ("vectors", 4), "why"))  # a nan is not itself


def _loaded(kind: str) -> Node:
    return Node("load", kind, ("plain", 1, 0))


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> tuple[Program, int]:
    """A program with a maximum without signs in a branch, which is evaluated as one with signs, among other things."""
    monkeypatch.setitem(evaluation.BINARY, "umax", np.maximum)
    largest = Node("binary", "i16", ("umax",), (_loaded("i16"), Node("const", "i16", (5,))))
    condition = Node("compare", "i1", ("slt",), (_loaded("i32"), Node("const", "i32", (7,))))
    then, other = Node("store", "i16", (0,), (largest,)), Node("store", "i32", (3,), (_loaded("i32"),))
    branch = Node("if", "", (), (condition,), (then,), (other,))
    others = tuple(Node("store", "i32", (column,), (_loaded("i32"),)) for column in range(3))
    layouts = {"i16": Layout(1, 40, 3, 50, True), "i32": Layout(4, 1, 0, 160, False)}
    return Program((*others, branch, *others), block=(37, 1, 1), layouts=layouts), 3


def test_wrong_result_is_found_and_made_small(device: Device, wrong: tuple[Program, int]) -> None:
    program, seed = wrong
    mismatch = find_mismatch(device, program, seed, [("loop", None), ("vectors", 8)])
    assert mismatch is not None
    assert (mismatch.array, mismatch.form) == ("own_i16", ("loop", None))
    small, shown = reduce_failure(device, program, seed, mismatch)
    kinds = [node.kind for node in small.walk()]
    assert len(small.statements) == 1
    assert kinds[:2] == ["store", "binary"]
    assert "if" not in kinds
    assert shown.places
    assert small.layouts == program.layouts


@pytest.mark.long
def test_script_runs_by_itself(device: Device, wrong: tuple[Program, int], tmp_path: Path) -> None:
    program, seed = wrong
    mismatch = find_mismatch(device, program, seed, [("vectors", 8)])
    assert mismatch is not None
    script = tmp_path / "script.py"
    script.write_text(write_script(program, seed, mismatch))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "expected:" in ran.stdout
    assert "8 threads at a time" in ran.stdout
    right = replace(mismatch, expected=mismatch.found)
    script.write_text(write_script(program, seed, right))
    assert subprocess.run([sys.executable, script], capture_output=True, timeout=120, check=False).returncode == 0


def _repeat(limit: Node, *body: Node) -> Program:
    layouts = {"i32": Layout(2, 1, 0, 80, True)}
    statements = (Node("store", "i32", (1,), (_loaded("i32"),)), Node("repeat", "i32", ("t1",), (limit,), body))
    return Program(statements, block=(37, 1, 1), layouts=layouts)


def test_program_that_ends_in_an_error_is_made_small_and_never_waited_for(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(device: Device, code: object, program: Program, memory: evaluation.Memory, form: cases.Form) -> object:
        if any(node.words == ("umax",) for node in program.walk()):
            raise TrapError("k", 0, (0, 0, 0), (0, 0, 0), 4, 0, 0)
        found = {name: array.copy() for name, array in memory.items()}
        evaluate(program, found)
        return found, "(37, 1, 1): loop (as asked)"

    monkeypatch.setattr(cases, "run_form", run)
    few = Node("binary", "i32", ("and",), (_loaded("i32"), Node("const", "i32", (7,))))
    largest = Node("binary", "i32", ("umax",), (_loaded("i32"), Node("const", "i32", (5,))))
    program = _repeat(few, Node("store", "i32", (0,), (largest,)))
    mismatch = find_mismatch(device, program, 3, [("loop", None)])
    assert mismatch is not None
    assert mismatch.cause == "TrapError"
    small, shown = reduce_failure(device, program, 3, mismatch)
    assert [node.kind for node in small.statements] == ["repeat"]
    assert "TrapError" in str(shown)
    compile(write_script(small, 3, shown), "script.py", "exec")


def test_loop_that_does_not_end_is_no_program_and_is_ended_where_it_runs(device: Device) -> None:
    change = Node("own_atomic", "i32", ("add", "own", 0, "oi32"), (_loaded("i32"),))
    program = _repeat(Node("const", "i32", (2**31 - 1,)), change)
    memory = make_memory(program, 3)
    code = compile_program(program)
    with pytest.raises(OverdueError, match=r"not done after 0\.3 s"), limit_time(0.3):
        run_form(device, code, program, memory, ("loop", None))
    with pytest.raises(TooManyRoundsError):
        evaluate(program, memory)
    assert find_mismatch(device, _repeat(Node("const", "i32", (3,)), change), 3, [("loop", None)]) is None
