"""The suites of others' tests: which there are, and what the lists of what is not expected to pass say of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.cuda_suite import expectations
from tools.cuda_suite.repository import TAKEN, fetch_repository
from tools.cuda_suite.run import test_modules as find_modules
from tools.cuda_suite.suites import SUITE, SUITES
from tools.cuda_suite.wheel import FetchError


@pytest.fixture(params=SUITES)
def suite(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(SUITE, request.param)
    return str(request.param)


@pytest.mark.parametrize("name", ["not_applicable", "known_failures"])
def test_every_entry_has_a_reason_and_stands_once(suite: str, name: str) -> None:
    sections = expectations.read_file(SUITES[suite].expected / f"{name}.txt")
    entries = [entry for section in sections for entry in section.entries]
    assert len(entries) == len(set(entries))
    assert all(section.reason.endswith(".") for section in sections)


def test_what_does_not_apply_in_the_original_does_not_in_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    test = "cudapy/test_fastmath.py::TestFastMathOption::test_kernel"
    monkeypatch.setenv(SUITE, "numba-cuda")
    original = expectations.Index(expectations.read("not_applicable")).find(test)
    monkeypatch.setenv(SUITE, "numba-cuda-mlir")
    index = expectations.Index(expectations.read("not_applicable"))
    copied = index.find(f"numba_cuda_tests/{test}")
    assert original is not None and copied is not None  # noqa: PT018
    assert (original.name, original.reason) == (copied.name, copied.reason)
    assert index.find(test) is None
    mine = index.find("mlir/test_arith_pow.py::test_pow")
    assert mine is not None
    assert mine.name == "mlir"


def test_a_copy_of_the_repository_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FetchError, match="is it a copy of numba-cuda-mlir's repository"):
        fetch_repository(tmp_path / "cache", tmp_path)
    for folder in TAKEN:
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tests" / "benchmarks").mkdir()
    for module in ("test_a.py", "benchmarks/test_b.py"):
        (tmp_path / "tests" / module).touch()
    tests = fetch_repository(tmp_path / "cache", tmp_path)
    assert tests == (tmp_path / "tests").resolve()
    monkeypatch.setenv(SUITE, "numba-cuda-mlir")
    assert find_modules(tests, []) == ["test_a.py"]
