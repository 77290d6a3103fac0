"""What is mutated is there, and what may survive is told from what may not."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.__main__ import try_changes
from tools.mutants.explanations import LETTERS, STRICT, Survivor, read_table
from tools.mutants.package_copy import FORKS, ROOT, sample

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
    assert Survivor("module.x_compare", before, after).reason(explained) == why
    assert Survivor("module.x_other", "one < two", "one <= two").reason(explained) == ""


def test_samples_are_spread_evenly() -> None:
    names = [str(number) for number in range(100)]
    for seed in range(5):
        found = [int(name) for name in sample(names, 7, seed)]
        assert all(14 <= after - before <= 15 for before, after in pairwise(found))
        assert 0 <= found[0] < 15
        assert 85 <= found[-1] < 100
    assert sample(names, 7, 1) != sample(names, 7, 2)
    assert sample(names, 100, 1) == sample(names, 200, 1) == names


TESTS = """
import os, time

def test_it():
    mutant = os.environ.get("MUTANT_UNDER_TEST")
    while mutant == "endless":
        time.sleep(1)
    assert mutant not in ({}, "noticed")
    if mutant == "crash":
        os.abort()
"""


def try_in_forks(folder: Path, fails: str, mutants: str) -> tuple[int, list[str]]:
    (folder / "test_sample.py").write_text(TESTS.format(fails))
    command = [sys.executable, str(FORKS), "2", "test_sample.py"]
    done = subprocess.run(command, cwd=folder, input=mutants, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout.split()


def test_mutants_in_forks(tmp_path: Path) -> None:
    assert try_in_forks(tmp_path, "'fail'", "one noticed crash two") == (0, ["one", "two"])


@pytest.mark.long
def test_forks_that_say_nothing(tmp_path: Path) -> None:
    assert try_in_forks(tmp_path, "'fail'", "endless") == (0, [])
    assert try_in_forks(tmp_path, "None", "one") == (1, [])  # no test comes to what every function raises
    assert try_in_forks(tmp_path, "''", "one") == (1, [])  # fails without any


@pytest.mark.long
def test_a_listed_change_that_no_test_notices_is_found(tmp_path: Path) -> None:
    target = {
        "file": "packages/hip-runtime/src/hip_runtime/layout.py",
        "tests": ["packages/hip-runtime/tests/test_layout.py", "-k", "transpose_needs"],
        "changes": [['"repeated axis', '"an axis'], ["only 1 is squeezed", "no others are squeezed"]],
    }
    assert try_changes("some", target, tmp_path) == [Survivor("some", *target["changes"][1])]
