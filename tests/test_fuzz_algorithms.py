"""Random calls of ``hip.algorithms`` and uses of ``hip.block`` and ``hip.wave``, a few of them; ``nox -s fuzz`` tries
many."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from numba_hip import algorithms, block
from tools.fuzz_algorithms.__main__ import main
from tools.fuzz_algorithms.check import MAKERS as MAKERS_OF_CALLS
from tools.fuzz_algorithms.check import Mismatch, check_calls, make_call
from tools.fuzz_algorithms.forms import ARRAYS
from tools.fuzz_algorithms.group_check import MAKERS, TooLargeError, check_group
from tools.fuzz_algorithms.groups import Shape
from tools.fuzz_algorithms.paths import OF, PATHS


def seed_of(algorithm: str, **wanted: Any) -> int:
    """The first seed whose calls are of *algorithm* and have the attributes that are *wanted*."""
    calls = ((seed, make_call(seed, 0)) for seed in range(5000))
    return next(
        seed
        for seed, call in calls
        if call.algorithm == algorithm and all(getattr(call, name) == value for name, value in wanted.items())
    )


@pytest.mark.parametrize("algorithm", ["inclusive_scan", "sort", "select"])
@pytest.mark.sample(1)
def test_random_calls_give_what_numpy_gives(algorithm: str) -> None:
    call = check_calls(seed_of(algorithm, paths=()), 4)
    assert call.algorithm == algorithm


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_more_random_calls_give_what_numpy_gives(seed: int) -> None:
    check_calls(1000 + seed, 8)


def test_the_same_seed_gives_the_same_call_and_what_is_compiled_depends_on_it_alone() -> None:
    made = set()
    for seed in range(300):
        first, again, other = make_call(seed, 3), make_call(seed, 3), make_call(seed, 4)
        for name, source in first.sources.items():
            assert source.values.tobytes() == again.sources[name].values.tobytes()
            assert (source.form, source.values.dtype) == (other.sources[name].form, other.sources[name].values.dtype)
        assert first.paths == other.paths
        made.add(first.algorithm)
    assert made >= set(algorithms.__all__) - {
        "AlgorithmError", "CacheModifiedInputIterator", "ConstantIterator", "CountingIterator", "Iterator",
        "PermutationIterator", "ReverseIterator", "TransformIterator", "Workspace", "ZipIterator",
    }  # fmt: skip


def test_all_ways_are_taken_by_some_calls() -> None:
    taken = {path for seed in range(1500) for path in make_call(seed, 0, 0).paths}
    assert taken == set(PATHS) == {path for paths in OF.values() for path in paths}
    assert {kind for _, kinds in MAKERS_OF_CALLS for kind in kinds} == set(OF)


def test_what_is_wrong_is_found_and_the_smallest_call_is_written_as_a_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, sort = seed_of("sort", returns="array", paths=()), algorithms.sort

    def sort_wrong(source: Any, **options: Any) -> Any:
        made = sort(source, **options)
        if len(made) > 40:
            made[7:8] = made[8:9]
        return made

    monkeypatch.setattr(algorithms, "sort", sort_wrong)
    assert main(["--kinds", "calls", "--seed", str(seed), "--cases", "1", "--scripts", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert f"seed {seed}, sort(source=" in told
    assert "[63] " in told  # the least size above 40 that is tried
    ran = subprocess.run([sys.executable, tmp_path / f"call_{seed}.py"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr  # what was wrong was added here
    assert "instead of" in ran.stdout


def test_memory_that_a_call_has_nothing_to_do_with_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next(seed for seed in range(5000) if _has_room(seed))
    scan = getattr(algorithms, name := make_call(seed, 0).algorithm)

    def scan_further(source: Any, out: Any, **options: Any) -> Any:
        made = scan(source, out=out, **options)
        if len(out) > len(source):
            out[len(source) :].fill(0)
        return made

    monkeypatch.setattr(algorithms, name, scan_further)
    with pytest.raises(Mismatch, match="what is around an array differs at [1-3] of"):
        check_calls(seed, 8)


@pytest.mark.parametrize("seed", [0, 4, 9])
@pytest.mark.sample(1)
def test_random_uses_of_groups_give_what_numpy_gives(seed: int) -> None:
    check_group(seed, 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_more_random_uses_of_groups_give_what_numpy_gives(seed: int) -> None:
    with suppress(TooLargeError):
        check_group(1000 + seed, 6)


def test_functions_of_groups_that_are_wrong_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def make_wrong(*given: Any, **options: Any) -> Any:
        asked.append(given)
        return right(*given, **options)

    seed = next(seed for seed in range(300) if Shape(seed).makers == "block" and _is_of("make_inclusive_scan", seed))
    right = block.make_exclusive_scan
    monkeypatch.setattr(block, "make_inclusive_scan", make_wrong)
    assert main(["--kinds", "groups", "--seed", str(seed), "--cases", "1"]) == 1
    assert len(asked) == 1
    told = capsys.readouterr().out
    assert f"seed {seed}, block.make_inclusive_scan(" in told
    assert f"failed: seeds {seed}" in told


def _is_of(function: str, seed: int) -> bool:
    shape = Shape(seed)
    return bool(shape.random.choice(MAKERS)(shape).function == function)


def _has_room(seed: int) -> bool:
    call = make_call(seed, 0)
    is_scan = call.algorithm in ("inclusive_scan", "exclusive_scan")
    is_array = is_scan and call.sources["source"].form in ARRAYS
    return is_array and call.results[0].form == "device within"
