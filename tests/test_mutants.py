"""What is mutated is there, and what may survive is told from what may not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.explanations import LETTERS, NAMES, STRICT, Change, read_table
from tools.mutants.listed_changes import ListedChanges, run_limited
from tools.mutants.mutations import read_mutations
from tools.mutants.package_copy import ROOT, sample
from tools.mutants.results import Results

TARGETS: dict[str, Any] = read_table("targets.toml")
EXPLAINED: dict[str, Any] = read_table("explained.toml")


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_mutated_is_there(name: str) -> None:
    target = TARGETS[name]
    if "changes" in target:
        text = (ROOT / target["file"]).read_text()
        assert all(before in text and before != after for before, after in target["changes"])
        assert (ROOT / target["tests"][0]).is_file()
        return
    package = ROOT / "packages" / target["package"]
    assert all((package / "src" / module).is_file() for module in target["modules"])
    assert all((package / "tests" / module).is_file() for module in target["tests"])


def test_explanations_are_of_targets() -> None:
    assert set(EXPLAINED) <= set(TARGETS)
    assert all(entry["why"] for entries in EXPLAINED.values() for entry in entries)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('raise Error("no such thing")', 'raise Error("XXno such thingXX")', LETTERS),
        ('raise Error("no such thing")', 'raise Error("NO SUCH THING")', LETTERS),
        ('function.append_basic_block("head")', 'function.append_basic_block("XXheadXX")', NAMES),
        ('self._function("run", VOID, [])', 'self._function("RUN", VOID, [])', NAMES),
        ('self._function("run", VOID, [], "external")', 'self._function("RUN", VOID, [], "external")', ""),
        ('FRAME.field(builder, frame, "active")', 'FRAME.field(builder, frame, "ACTIVE")', ""),
        (
            'a, b = allocate(builder, I32, "a"), allocate(builder, I64, "b")',
            'a, b = allocate(builder, I32, "a"), allocate(builder, I64, )',
            NAMES,
        ),
        ('allocate(builder, I32, "a")', "allocate(builder, )", ""),
        ("zip(one, two, strict=True)", "zip(one, two, strict=False)", STRICT),
        ("zip(one, two, strict=True)", "zip(one, two, )", STRICT),
        ('raise Error("no such thing")', "raise Error(None)", ""),
        ('order == "C"', 'order == "c"', ""),
        ('order == "C"', 'order == "XXCXX"', ""),
        ("one < two", "one <= two", "said"),
        ("one < 2", "one <= 2", ""),
    ],
)
def test_why_a_change_may_survive(before: str, after: str, why: str) -> None:
    explained = [{"function": "compare", "before": "one < two", "after": "<=", "why": "said"}]
    assert Change("module.x_compare", before, after).reason(explained) == why
    assert Change("module.x_other", "one < two", "one <= two").reason(explained) == ""


def test_samples_are_spread_evenly() -> None:
    names = [str(number) for number in range(100)]
    for seed in range(5):
        found = [int(name) for name in sample(names, 7, seed)]
        assert all(14 <= after - before <= 15 for before, after in pairwise(found))
        assert 0 <= found[0] < 15
        assert 85 <= found[-1] < 100
    assert sample(names, 7, 1) != sample(names, 7, 2)
    assert sample(names, 100, 1) == sample(names, 200, 1) == names


MODULE = """
import os

def x_double__mutmut_orig(number):
    if number > 100:
        return 0
    doubled = number + \\
        number
    return doubled

def x_double__mutmut_1(number):
    if number > 100:
        return 0
    doubled = number - \\
        number
    return doubled

def x_double__mutmut_2(number):
    if number >= 100:
        return 0
    doubled = number + \\
        number
    return doubled

def x_double__mutmut_3(number):
    if number > 100:
        return 1
    doubled = number + \\
        number
    return doubled

def x_double__mutmut_4(number):
    if number > 100:
        return 0
    doubled = os.abort() or number + \\
        number
    return doubled

def x_other__mutmut_orig():
    return 1

def x_other__mutmut_1():
    return 2

def called(prefix, *arguments):
    name = os.environ.get("MUTANT_UNDER_TEST", "").rpartition(".")[2]
    return globals()[name if name.startswith(prefix) else prefix + "orig"](*arguments)
"""
TESTS = """
import subprocess, sys
from sample import called

def test_in_the_process():
    assert called("x_double__mutmut_", 5) == 10
    assert prepared == [1]

def test_in_another_process():
    program = "from sample import called; assert called('x_other__mutmut_') == 1"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0

def test_of_nothing():
    assert {}
"""
OUTCOMES = {
    "sample.x_double__mutmut_1": "noticed",
    "sample.x_double__mutmut_2": "survives",
    "sample.x_double__mutmut_3": "unreached",
    "sample.x_double__mutmut_4": "noticed",
    "sample.x_other__mutmut_1": "noticed",
}


def write_sample(folder: Path, passes: str = "True") -> Path:
    """A module in which there are mutants, as mutmut writes them, and its tests."""
    for name, text in (("src/sample.py", MODULE), ("tests/test_sample.py", TESTS.format(passes))):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / "src" / "sample.py"


def try_mutants(folder: Path, names: list[str], *options: str) -> tuple[subprocess.CompletedProcess[str], list[Any]]:
    command = [sys.executable, "-m", "tools.mutants.runner", "2", "import builtins; builtins.prepared = [1]", "tests"]
    paths = os.pathsep.join((str(folder / "src"), str(ROOT)))
    done = subprocess.run(
        [*command, *options], cwd=folder, input=json.dumps(names), capture_output=True, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": paths}, check=False,
    )  # fmt: skip
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_mutants_are_tried(tmp_path: Path) -> None:
    """The tests that come to a mutant notice it or not; what another process does is not seen, so all may come to it
    that start one."""
    write_sample(tmp_path)
    done, results = try_mutants(tmp_path, list(OUTCOMES), "-k", "not another")
    assert done.returncode == 0, done.stderr
    expected = OUTCOMES | {"sample.x_other__mutmut_1": "unreached"}
    assert {result["mutant"]: result["outcome"] for result in results} == expected


@pytest.mark.long
def test_mutants_that_other_processes_run(tmp_path: Path) -> None:
    write_sample(tmp_path)
    done, results = try_mutants(tmp_path, list(OUTCOMES))
    assert done.returncode == 0, done.stderr
    expected = OUTCOMES | {"sample.x_double__mutmut_3": "survives"}
    assert {result["mutant"]: result["outcome"] for result in results} == expected
    write_sample(tmp_path, "False")
    done, results = try_mutants(tmp_path, list(OUTCOMES))
    assert (bool(done.returncode), results) == (True, [])
    assert "test_of_nothing fails without any mutant" in done.stderr


def test_what_mutants_change(tmp_path: Path) -> None:
    file = write_sample(tmp_path)
    found = read_mutations(file, "sample")
    assert [one.name for one in found] == list(OUTCOMES)
    first = found[0]
    assert (first.function, first.before, first.after) == (
        "sample.x_double", "doubled = number + \\", "doubled = number - \\",
    )  # fmt: skip
    lines = MODULE.splitlines()
    start = lines.index("    doubled = number + \\") + 1
    assert first.spans == ((start, start + 1),)
    assert first.is_reached({start + 1})
    assert not first.is_reached({start - 1, start + 2})


def test_results_are_kept_as_they_come(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl", "digest")
    assert results.outcomes() == {}
    results.begin(more=True)
    results.add("one", "survives")
    with results.path.open("a") as file:
        file.write('{"mutant": "two", "outc')  # the process was ended
    assert results.outcomes() == {"one": "survives"}
    assert Results(results.path, "of another module").outcomes() == {}
    results.begin(more=True)
    assert results.outcomes() == {"one": "survives"}
    results.begin(more=False)
    assert results.outcomes() == {}


@pytest.mark.long
def test_a_listed_change_that_no_test_notices_is_found(tmp_path: Path) -> None:
    target = {
        "file": "packages/hip-runtime/src/hip_runtime/layout.py",
        "tests": ["packages/hip-runtime/tests/test_layout.py", "-k", "transpose_needs"],
        "changes": [['"repeated axis', '"an axis'], ["only 1 is squeezed", "no others are squeezed"]],
    }
    listed = ListedChanges("some", target, tmp_path)
    listed.try_changes(listed.changes, 2, more=False)
    assert list(map(listed.results.outcomes().get, map(str, listed.changes))) == ["noticed", "survives"]


LEAVES_ONE_BEHIND = """
import subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("left", "w").write(str(left.pid))
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize(("sleeps", "expected"), [("0", 0), pytest.param("600", None, marks=pytest.mark.long)])
def test_what_a_listed_change_leaves_behind_is_ended(tmp_path: Path, sleeps: str, expected: int | None) -> None:
    command = [sys.executable, "-c", LEAVES_ONE_BEHIND, sleeps]
    assert run_limited(command, tmp_path, dict(os.environ), 5.0) == expected
    status = Path(f"/proc/{(tmp_path / 'left').read_text()}/status")
    until = time.monotonic() + 30
    while status.exists() and "State:\tZ" not in status.read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
