"""The runner of benchmarks: measures, compares, and does not let a wrong result pass."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__, report, runner, worker
from benchmarks.case import Case
from benchmarks.catalog import BENCHMARKS

ROOT = Path(__file__).parents[1]


class Sleepy(Case):
    """Waits, then computes, so that the two kinds of time differ."""

    operations = 2

    def __init__(self) -> None:
        self.ran = self.settled = 0

    def run(self) -> None:
        time.sleep(0.05)
        self.ran += 1

    def settle(self) -> None:
        self.settled += 1

    def check(self) -> None:
        np.testing.assert_equal(self.ran, 1)


def test_all_benchmarks_run_and_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    output = tmp_path / "results" / "quick.json"
    assert __main__.main(["--quick", "--rounds", "2", "--output", str(output)]) == 0
    document = json.loads(output.read_text())
    assert document["quick"] is True
    assert document["machine"]["cores"] >= 1
    assert set(document["benchmarks"]) == set(BENCHMARKS) == {"saxpy", "empty-launch"}
    for name, results in document["benchmarks"].items():
        assert set(results) == set(BENCHMARKS[name].implementations)
        for result in results.values():
            assert len(result["rounds"]) == 2
            assert all(times["wall"] > 0 and times["cpu"] > 0 for times in result["rounds"])
        assert results[BENCHMARKS[name].peer]["ratio"] == {"wall": 1.0, "cpu": 1.0}


def test_times_are_of_one_operation() -> None:
    case = Sleepy()
    times = worker.measure(case)
    assert 0.025 <= times["wall"] < 0.5
    assert times["cpu"] < times["wall"]
    assert (case.ran, case.settled) == (1, 1)


def test_processor_time_counts_all_threads() -> None:
    def burn() -> None:
        start = time.thread_time()
        while time.thread_time() - start < 0.05:
            pass

    class Busy(Sleepy):
        operations = 1

        def run(self) -> None:
            threads = [threading.Thread(target=burn) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    assert worker.measure(Busy())["cpu"] >= 0.1


def test_a_worker_answers_line_by_line() -> None:
    answers = io.StringIO()
    worker.serve(Sleepy(), io.StringIO("check\nrun\ncheck\nquit\nrun\n"), answers)
    before, times, after = (json.loads(line) for line in answers.getvalue().splitlines())
    assert "ACTUAL: 0" in before["wrong"]
    assert set(times) == {"wall", "cpu"}
    assert after == {"right": True}
    with pytest.raises(ValueError, match="unknown command 'dance'"):
        worker.serve(Sleepy(), io.StringIO("dance\n"), answers)


def test_the_median_and_its_ratio() -> None:
    times = {
        "ours": [{"wall": 1.0, "cpu": 2.0}, {"wall": 9.0, "cpu": 2.0}, {"wall": 2.0, "cpu": 4.0}],
        "theirs": [{"wall": 4.0, "cpu": 8.0}],
    }
    results = runner.summarise("theirs", {"ours": "a", "theirs": "b"}, times)
    assert results["ours"]["median"] == {"wall": 2.0, "cpu": 2.0}
    assert results["ours"]["ratio"] == {"wall": 0.5, "cpu": 0.25}
    assert results["theirs"]["ratio"] == {"wall": 1.0, "cpu": 1.0}
    line = report.table(BENCHMARKS["saxpy"], results).splitlines()[1]
    assert line.split() == "ours cpu 2000.000 ms ( 0.25x) wall 2000.000 ms ( 0.50x) on a".split()


def test_a_wrong_result_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with runner.Worker("saxpy", "njit-parallel", True) as process:
        process.receive()
        process.check()
        monkeypatch.setattr(process, "ask", lambda command: {"wrong": f"{command}: 1 != 2"})
        with pytest.raises(runner.BenchmarkError, match="saxpy/njit-parallel is wrong: check: 1 != 2"):
            process.check()


def test_a_worker_that_dies_is_an_error_and_leaves_no_process(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(runner.BenchmarkError, match=r"saxpy/no-such ended with status 1"),
        runner.Worker("saxpy", "no-such", True) as process,
    ):
        process.receive()
    assert process._process.returncode == 1
    assert "KeyError: 'no-such'" in capfd.readouterr().err


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        __main__.main(["saxpi"])
    assert caught.value.code == 2
    assert "no benchmark saxpi; there are saxpy, empty-launch" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        __main__.main(["--rounds", "0"])
    assert "at least one" in capsys.readouterr().err


def test_what_an_implementation_prints_does_not_disturb_the_answers() -> None:
    code = """
        import os
        from benchmarks import worker
        from benchmarks.case import Benchmark, Case

        class Noisy(Case):
            def run(self):
                print("noise", flush=True)
                os.write(1, b"more noise\\n")

            def check(self):
                print("still more")

        noisy = Benchmark("noisy", "", "noisy", 1.0, "s", {"noisy": lambda quick: Noisy()})
        worker.BENCHMARKS = {"noisy": noisy}
        worker.main("noisy", "noisy", "quick")
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], input="check\n", capture_output=True, text=True, cwd=ROOT
    )
    assert [json.loads(line) for line in result.stdout.splitlines()] == [{"device": "processor"}, {"right": True}]
    assert "noise\nmore noise\n" in result.stderr
