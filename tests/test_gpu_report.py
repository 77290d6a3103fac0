"""The session that reports on an AMD GPU: what it makes of tests that pass, fail, hang and end their process."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from benchmarks.environments import Environment
from benchmarks.peers import hipcc
from tools import emulated_modules
from tools.gpu_report import __main__, programs, report
from tools.gpu_report.children import Children, Ending
from tools.gpu_report.suites import run_suite

TESTS = """
    import os, time
    import pytest
    from hip_runtime.drivers.hip.errors import DeviceFailure

    def test_one_that_passes():
        pass

    def test_one_that_ends_the_process():
        os.abort()

    @pytest.mark.parametrize("number", [7, 8])
    def test_one_that_fails(number):
        assert not number, f"device {number} is lost"

    class Lost(DeviceFailure):
        def __init__(self):
            Exception.__init__(self)

    def test_one_that_loses_the_device():
        os.environ["DEVICE"] = "lost"
        raise Lost

    def test_one_with_a_device():
        assert "DEVICE" not in os.environ

    def test_one_that_hangs():
        time.sleep(100)

    def test_one_whose_end_fails(request):
        request.addfinalizer(lambda: 1 / 0)

    @pytest.mark.skip(reason="needs two GPUs")
    def test_one_that_is_skipped():
        pass
"""

FACTS = {
    "device": {"name": "A GPU", "target": "gfx942"},
    "versions": {"HIP runtime": "7 | 2"},
    "environment": {},
    "speed": {"launch": 5e-6, "elements": 2e9},
}


@pytest.fixture
def children() -> Children:
    return Children(seconds=12)


@pytest.mark.long
def test_a_suite_goes_on_behind_what_ends_its_process(children: Children, tmp_path: Path) -> None:
    module = tmp_path / "test_some.py"
    module.write_text(textwrap.dedent(TESTS))
    found = run_suite(children, "some", [str(module)], tmp_path)
    told = {result["test"].partition("::test_one_")[2]: result for result in found}
    outcomes = {name: result["outcome"] for name, result in told.items()}
    assert outcomes == {
        "that_passes": "passed",
        "that_ends_the_process": "failed",
        "that_fails[7]": "failed",
        "that_fails[8]": "failed",
        "that_loses_the_device": "failed",
        "with_a_device": "passed",
        "that_hangs": "failed",
        "whose_end_fails": "failed",
        "that_is_skipped": "skipped",
    }
    assert told["that_ends_the_process"]["cause"] == "the process was ended by SIGABRT"
    assert told["that_hangs"]["cause"] == "nothing more after 12 s: ended"
    assert "device 7 is lost" in told["that_fails[7]"]["text"]
    assert "ZeroDivisionError" in told["whose_end_fails"]["cause"]
    assert told["that_is_skipped"]["cause"] == "needs two GPUs"
    causes = report.group(found, "failed")
    assert len(causes) == 5
    assert len(causes[0][1]) == 2, "device 7 and device 8 are one cause"


def test_a_suite_that_cannot_be_collected_fails(children: Children, tmp_path: Path) -> None:
    module = tmp_path / "test_broken.py"
    module.write_text("import no_such_module\n")
    (result,) = run_suite(children, "broken", [str(module)], tmp_path)[:1]
    assert (result["outcome"], "no_such_module" in result["cause"]) == ("failed", True)


def test_the_modules_that_are_named_for_gpus_are_there() -> None:
    """By this session, and by the one that executes machine code."""
    named = {
        "QUICK": __main__.QUICK,
        "EMULATED": emulated_modules.EMULATED,
        "EMULATED_WITH_ROCM": emulated_modules.EMULATED_WITH_ROCM,
        "EMULATED_QUICK": emulated_modules.EMULATED_QUICK,
    }
    folder = __main__.ROOT / __main__.CORE_TESTS
    there = {path.stem.removeprefix("test_") for path in folder.glob("test_*.py")}
    assert {name: set(modules) - there for name, modules in named.items()} == {name: set() for name in named}


def test_the_page_has_what_was_found(tmp_path: Path) -> None:
    failed = {"test": "t.py::b", "outcome": "failed", "cause": "719 | lost", "text": "", "seconds": 2.0}
    passed = {"test": "t.py::a", "outcome": "passed", "seconds": 1.0}
    skipped = {"test": "t.py::c", "outcome": "skipped", "cause": "needs two GPUs", "seconds": 0.0}
    times = {"saxpy": {"quick": False, "medians": {"hip": 0.002, "hipcc": 0.001}, "unmeasured": {}, "hipcc": "7.2"}}
    document = {
        "taken": "now",
        "seconds": 3.0,
        "revision": "abc",
        "facts": FACTS,
        "parts": {"core": [passed, failed, skipped]},
        "times": times,
    }
    report.write(tmp_path, document)
    assert json.loads((tmp_path / "report.json").read_text()) == document
    lines = (tmp_path / "report.md").read_text().splitlines()
    assert lines[0] == "# Numba for AMD GPUs on A GPU (gfx942)"
    assert "| core | 1 | 1 | 1 |" in lines
    assert "| HIP runtime | 7 \\| 2 |" in lines
    assert "| saxpy | 2.0000 | 1.0000 | 2.00 |" in lines
    assert "hipcc: 7.2" in lines
    assert lines[lines.index("- core, 1: 719 \\| lost") + 1] == "  - `t.py::b`"
    assert "- core, 1: needs two GPUs" in lines


def test_a_machine_without_a_gpu_is_told_so_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "-1")  # should there be one
    assert __main__.main(["--output", str(tmp_path / "reports")]) == __main__.NO_GPU
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list((tmp_path / "reports").iterdir())


def test_what_libraries_say_last_hides_nothing(tmp_path: Path) -> None:
    class Talking(Children):
        """A GPU whose runtime complains when the process ends."""

        def run(self, arguments: Any, output: Path, **_: Any) -> Ending:
            Path(arguments[-1]).write_text(json.dumps(FACTS))
            output.write_text("Warning: Resource leak detected, 77 signals leaked.\n")
            return Ending(0)

    assert __main__.describe(Talking(), tmp_path) == FACTS


def test_benchmarks_without_hipcc_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIPCC", "ROCM_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(hipcc, "_rocm_programs", lambda: str(tmp_path))
    assert "there is no hipcc" in programs._make_hipcc(tmp_path, "gfx942").missing
    program = tmp_path / "hipcc"
    program.write_text("#!/bin/sh\necho no such target >&2; exit 1\n")
    program.chmod(0o755)
    assert "no such target" in programs._make_hipcc(tmp_path, "gfx942").missing
    program.write_text("#!/bin/sh\necho HIP version 7\n")
    assert "wrote no code to" in programs._make_hipcc(tmp_path, "gfx942").missing
    for name in (hipcc.KERNELS, hipcc.LAUNCHES):
        (tmp_path / name).write_bytes(b"\x7fELF...")
    made = programs._make_hipcc(tmp_path, "gfx942")
    assert isinstance(made, Environment)
    assert (made.missing, made.packages) == ("", {"hipcc": "HIP version 7"})
    assert made.variables[hipcc.FOLDER] == str(tmp_path)


def test_an_interrupted_session_reports_what_was_done(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Children, "_wait", interrupt)
    options = __main__.parse(["--parts", "examples", "benchmarks"])
    document = __main__.ask(options, children, tmp_path, FACTS)
    (result,) = document["parts"]["examples"]
    assert (result["outcome"], result["cause"]) == ("failed", "interrupted")
    assert list(document["parts"]) == ["examples"]
