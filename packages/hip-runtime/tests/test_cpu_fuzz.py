"""Random typed programs, those that failed once, and the net itself: that it finds what is wrong and makes it small."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from spmd_fuzz import evaluation
from spmd_fuzz.__main__ import reduce_failure
from spmd_fuzz.cases import choose_forms, find_mismatch
from spmd_fuzz.generator import make_program
from spmd_fuzz.kept import FOLDER, Case, read_case, write_case
from spmd_fuzz.nodes import Layout, Node, Program
from spmd_fuzz.reproducer import write_script

from hip_runtime import Device

KEPT = sorted(FOLDER.glob("*.json"))


@pytest.mark.sample(3)
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
