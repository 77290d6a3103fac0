"""The suites of others' tests: which there are, and what the lists of what is not expected to pass say of each."""

from __future__ import annotations

import http.client
import io
import os
import tarfile
from pathlib import Path

import pytest

from tools.cuda_suite import expectations
from tools.cuda_suite.__main__ import main
from tools.cuda_suite.repository import NUMBA_CUDA_MLIR, NUMBA_HIP, fetch_repository
from tools.cuda_suite.run import test_modules as find_modules
from tools.cuda_suite.suites import SUITE, SUITES
from tools.cuda_suite.wheel import NOT_FETCHED, FetchError


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
    test = "cudapy/test_mandel.py::TestCudaMandel::test_kernel"
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
        fetch_repository(tmp_path / "cache", NUMBA_CUDA_MLIR, tmp_path)
    for folder in NUMBA_CUDA_MLIR.taken:
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tests" / "benchmarks").mkdir()
    for module in ("test_a.py", "benchmarks/test_b.py"):
        (tmp_path / "tests" / module).touch()
    tests = fetch_repository(tmp_path / "cache", NUMBA_CUDA_MLIR, tmp_path)
    assert tests == (tmp_path / "tests").resolve()
    monkeypatch.setenv(SUITE, "numba-cuda-mlir")
    assert find_modules(tests, []) == ["test_a.py"]


def archive_of(files: dict[str, str]) -> bytes:
    """An archive as GitHub makes it, with everything in one folder."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"somewhere/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return written.getvalue()


def test_the_tests_alone_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"numba/hip/tests/test_a.py": "a", "numba/hip/codegen.py": "b", "numba/hip/tests/../../evil.py": "c"}
    asked = []

    def answer(address: str, timeout: float) -> io.BytesIO:
        asked.append(address)
        return io.BytesIO(archive_of(files))

    monkeypatch.setattr("urllib.request.urlopen", answer)
    for _ in range(2):
        tests = fetch_repository(tmp_path, NUMBA_HIP)
    assert asked == [NUMBA_HIP.archive]
    assert [str(one.relative_to(tests)) for one in tests.rglob("*")] == ["test_a.py"]
    assert not list(tmp_path.rglob("evil.py"))


@pytest.mark.parametrize("option", [[], ["--fetch"]])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            OSError("no such host"),
            "could not be downloaded (no such host); give a copy of the repository with --source",
        ),
        (http.client.IncompleteRead(b""), "could not be downloaded (IncompleteRead(0 bytes read)); give a copy"),
        (b"no archive", "cannot be unpacked into"),
        (archive_of({"tests/test_a.py": ""}), "has no tests and src/numba_cuda_mlir/numba_cuda/tests: is it a copy"),
    ],
    ids=["no network", "broken off", "damaged", "another"],
)
def test_what_cannot_be_fetched_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: Exception | bytes,
    says: str,
    option: list[str],
) -> None:
    def open_address(address: str, timeout: float) -> io.BytesIO:
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setenv(SUITE, "")
    monkeypatch.setattr("urllib.request.urlopen", open_address)
    assert main(["--suite", "numba-cuda-mlir", "--cache", str(tmp_path), *option]) == 75
    (line,) = capsys.readouterr().out.splitlines()
    assert says in line


def test_a_wheel_that_cannot_be_had_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), SUITE: ""}
    for name, value in nowhere.items():
        monkeypatch.setenv(name, value)
    assert main(["--cache", str(tmp_path / "cache"), "--fetch"]) == NOT_FETCHED
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("pip could not download numba-cuda")
