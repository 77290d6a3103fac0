"""The runner of benchmarks: measures, compares, and does not let a wrong result pass."""

from __future__ import annotations

import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numba.core import event

from benchmarks import (
    __main__,
    array_algorithms,
    comparison,
    compile_growth,
    compile_time,
    environments,
    forms,
    nas,
    regressions,
    report,
    runner,
    worker,
)
from benchmarks.case import Case
from benchmarks.catalog import BENCHMARKS, FAMILIES
from benchmarks.empty_launch import HipForm
from benchmarks.environments import ON_GPUS, REQUIREMENTS, Environment
from benchmarks.problem import PEERS
from benchmarks.processors import NAME
from hip_runtime import config

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


@pytest.mark.long
def test_no_kernel_of_the_benchmarks_races(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    with config.cpu_races.scope("1"):
        for benchmark in BENCHMARKS.values():
            case = benchmark.implementations["hip"](True)
            case.run()  # a race is an error, or a warning, which is one here
            case.check()


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_and_is_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    output = tmp_path / "results" / "quick.json"
    assert __main__.main([name, "--quick", "--rounds", "2", "--output", str(output)]) == 0
    document = json.loads(output.read_text())
    assert document["quick"] is True
    assert document["machine"]["cores"] >= 1
    assert set(document["benchmarks"]) == {name}
    results = document["benchmarks"][name]
    implementations = BENCHMARKS[name].implementations
    assert set(results) == implementations.keys() - {*REQUIREMENTS, *ON_GPUS}
    for result in results.values():
        assert len(result["rounds"]) == 2
        assert all(times["wall"] > 0 and times["cpu"] > 0 for times in result["rounds"])
    assert results[BENCHMARKS[name].peer]["ratio"] == {"wall": 1.0, "cpu": 1.0}
    others = set(ON_GPUS) if name == "empty-launch" else {*REQUIREMENTS, *ON_GPUS}
    assert set(document["unmeasured"][name]) == others


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in ("empty-launch", "launch-forms")])
def test_wrong_outputs_are_noticed(name: str) -> None:
    problem = BENCHMARKS[name].implementations["njit-parallel"](True).problem  # type: ignore[attr-defined]
    untouched = {output: problem.arrays[output] for output in problem.outputs}
    with pytest.raises(AssertionError):
        problem.verify(untouched)


def test_a_form_of_a_launch_that_does_not_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    made = {name: make(True) for name, make in BENCHMARKS["launch-forms"].implementations.items()}
    for case in made.values():
        case.run()
        case.settle()
        case.check()
    nothing: Case = HipForm(True, lambda given, number: lambda *arrays: None)
    nothing.run()
    with pytest.raises(AssertionError):
        nothing.check()


def test_every_peer_that_a_benchmark_has_is_one_that_the_module_of_the_peer_has() -> None:
    for benchmark in BENCHMARKS.values():
        for peer in {*REQUIREMENTS, *ON_GPUS} & benchmark.implementations.keys():
            if benchmark.name == "empty-launch":
                continue  # it is no problem with a toolkit
            module, toolkit = PEERS[peer]
            source = (ROOT / (module.replace(".", "/") + ".py")).read_text()
            function = benchmark.name.replace("n-body", "nbody").replace("-", "_")
            assert f"def {function}(" in source
            assert re.search(rf"^class {toolkit}\b|^from .* import {toolkit} as {toolkit}$", source, re.MULTILINE)
        assert not benchmark.unable.keys() & benchmark.implementations.keys()


def test_peers_that_are_not_there_are_named() -> None:
    made = {"taichi": Environment(missing="no wheel"), "warp": Environment("python")}
    saxpy, tree = BENCHMARKS["saxpy"], BENCHMARKS["tree-reduction"]
    no_environment = "its environment was not made"
    wanted = {"opencl-intel": no_environment, "opencl-pocl": no_environment, "taichi": "no wheel"}
    assert runner.unmeasured(saxpy, made) == {"hipcc": "for AMD GPUs: nox -s gpu", **wanted}
    assert "GPU back ends only" in runner.unmeasured(tree, made)["taichi"]
    results = {"hip": {"device": "d", "median": {"cpu": 1, "wall": 1}, "ratio": {"cpu": 1, "wall": 1}}}
    lines = report.table(saxpy, results, wanted).splitlines()
    assert lines[0].endswith("aim 1.0 of its processor time")
    assert lines[-1].split(maxsplit=1) == ["taichi", "not measured: no wheel"]


@pytest.mark.long
def test_an_environment_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "REQUIREMENTS", {"nothing": (str(tmp_path / "no-such.whl"),)})
    made = environments.make(tmp_path / "peers")
    assert "no-such.whl" in made["nothing"].missing
    assert environments.load(tmp_path / "peers") == made


def test_a_peer_runs_with_its_python_and_its_variables(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "{\\"device\\": \\"$PEER_OF $3 $4 $5\\"}"\n')
    python.chmod(0o755)
    with runner.Worker("saxpy", "warp", True, Environment(str(python), {"PEER_OF": "ours"})) as process:
        assert process.receive() == {"device": "ours saxpy warp quick"}


def test_the_plot_has_every_implementation_and_the_aims(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="draws with matplotlib")
    ratios = {"hip": {"ratio": {"cpu": 1.5}}, "warp": {"ratio": {"cpu": 3.0}}}
    report.plot(tmp_path / "plot.svg", {"saxpy": ratios, "warp-reduction": {"hip": ratios["hip"]}})
    drawn = (tmp_path / "plot.svg").read_text()
    assert all(f"<!-- {word} -->" in drawn for word in ("hip", "warp", "saxpy", "warp-reduction", "aim of hip"))


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
    assert f"no benchmark saxpi; there are {', '.join(BENCHMARKS)}" in capsys.readouterr().err
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


@pytest.mark.long
def test_the_time_of_compiling_is_told_and_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    ours, theirs = compile_time.measure("empty-launch", 1)
    assert len(ours) == len(theirs) == 2
    for one in ours:
        assert one.analysis > 0
        assert one.lowering > 0
        assert one.rest > 0
    assert all(one.total > 0 for one in theirs)
    name, *numbers = compile_time.describe("empty-launch", ours, theirs).split()
    assert name == "empty-launch"
    assert float(numbers[-1]) == pytest.approx(ours[1].total / theirs[1].total, abs=0.006)


def test_passes_inside_of_passes_are_counted_once() -> None:
    passes = compile_time.PassTimes()

    def spend(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    with event.install_listener("numba:run_pass", passes):
        with event.trigger_event("numba:run_pass", data={"name": "nopython_type_inference [f]"}):
            spend(0.02)
            with event.trigger_event("numba:run_pass", data={"name": "hip_lowering [g]"}):
                spend(0.03)
        spend(0.02)
    assert passes.analysis == pytest.approx(0.02, abs=0.005)
    assert passes.lowering == pytest.approx(0.03, abs=0.005)


@pytest.mark.parametrize(("arguments", "message"), [(["gemm"], "gemm"), (["--rounds", "0"], "at least one round")])
def test_compile_time_of_nothing_is_an_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        compile_time.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("kind", compile_growth.KINDS)
def test_the_kernels_that_grow_do_something(kind: str) -> None:
    """As plain Python, in a small size."""
    write, least, most = compile_growth.KINDS[kind]
    assert most == 4 * least
    source = write(100 if kind == "captured" else 3)
    kernel, arguments = compile_growth.make_kernel(source, "0", lambda function: function, math)
    kernel(*arguments)
    assert np.isfinite(arguments[0][0])
    assert arguments[0][0] != 3, "what a body that does nothing gives"


def test_growth_of_nothing_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compile_growth.main(["lines", "gemm"])
    assert "gemm: no kind" in capsys.readouterr().err


def test_a_regression_is_what_differs_by_more_than_a_revision_does_from_itself() -> None:
    quiet = [[(1.1, 1.0, 1.01), (1.3, 1.2, 1.2), (1.1, 1.0, 0.99)]]  # the machine slows down for all of them
    verdict = regressions.judge(quiet)
    assert verdict.ratio == pytest.approx(1.1)
    assert verdict.limit == pytest.approx(1 + regressions.LEAST)
    assert verdict.is_slower
    assert not verdict.is_faster
    noisy = regressions.judge([*quiet, [(1.1, 1.0, 0.8)] * 3, [(1.1, 1.0, 1.0)] * 3])
    assert noisy.ratio == pytest.approx(1.1)
    assert noisy.limit == pytest.approx(1.25**2)
    assert not noisy.is_slower
    luck = regressions.judge([[(2.0, 1.0, 1.0)], [(1.0, 1.0, 1.0)], [(1.0, 1.0, 1.0)]])
    assert not luck.is_slower
    faster = regressions.judge([[(0.9, 1.0, 1.0)]])
    assert faster.is_faster
    assert not faster.is_slower


def test_what_looks_slower_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {"saxpy": iter([2.0, 0.5]), "stencil": iter([2.0, 2.0]), "n-body": iter([1.0])}
    monkeypatch.setattr(
        regressions, "measure", lambda name, other, rounds, groups, quick: [[(next(times[name]), 1.0, 1.0)]] * groups
    )
    assert regressions.compare(list(times), Environment("none"), 1, 1, False) == ["stencil"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(times)
    assert [line.split()[-1] for line in lines] == ["same", "SLOWER", "same"]


def make_repository(folder: Path) -> Path:
    """A repository with one package in *folder*; returns the package's folder."""
    package = folder / "packages" / "hip-runtime" / "src" / "hip_runtime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("told = 'first'\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *command], cwd=folder, check=True)
    return package


def worktrees(folder: Path) -> list[str]:
    said = subprocess.run(["git", "worktree", "list"], cwd=folder, capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def test_each_form_that_can_run_a_kernel_is_compared_with_the_chosen_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    some = (forms.CHOSEN, "loop", "regions", "8 lanes")
    monkeypatch.setattr(forms, "REQUESTS", {name: forms.REQUESTS[name] for name in some})
    taken = forms.measure("tree-reduction", rounds=2, quick=True)
    assert list(taken) == [forms.CHOSEN, "regions", "8 lanes"], "its threads wait for each other: it cannot be a loop"
    assert taken[forms.CHOSEN] == 1
    assert min(taken.values()) > 0


def test_a_choice_far_from_the_best_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {"saxpy": {forms.CHOSEN: 1.0, "loop": 0.95}, "stencil": {forms.CHOSEN: 1.0, "loop": 0.5, "vectors": 2.0}}
    monkeypatch.setattr(forms, "measure", lambda name, rounds, quick, processes: taken[name])
    assert forms.main(["saxpy", "stencil"]) == 1
    assert forms.main(["saxpy"]) == 0
    first, second, count, verdict, *_ = capsys.readouterr().out.splitlines()
    assert "1.05 times" in first
    assert "best: loop" in second
    assert "2.00 times" in second
    assert count == "1 of 2 chosen forms take at most 1.1 of the best, the mean 1.45"
    assert verdict.endswith("the best: stencil")
    with pytest.raises(SystemExit):
        forms.main(["no-such-benchmark"])
    with pytest.raises(SystemExit):
        forms.main(["saxpy", "--processes", "0"])


def test_the_least_of_several_processes_tells_of_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    once = iter([{forms.CHOSEN: 3.0, "loop": 1.5}, {forms.CHOSEN: 2.0, "loop": 4.0}])
    monkeypatch.setattr(forms, "_measure_once", lambda name, rounds, quick: next(once))
    assert forms.measure("saxpy", 1, quick=False, processes=2) == {forms.CHOSEN: 1.0, "loop": 0.75}


def test_another_revision_is_one_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = make_repository(tmp_path)
    (package / "__init__.py").write_text("told = 'second'\n")
    monkeypatch.setattr(regressions, "ROOT", tmp_path)
    with regressions.environment_of("HEAD") as other:
        script = "import hip_runtime, numpy; print(hip_runtime.told, numpy.__version__)"
        said = subprocess.run([other.python, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["first", np.__version__]
    assert len(worktrees(tmp_path)) == 1
    assert regressions.main(["--against", "no-such-revision"]) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_comparison_that_is_stopped_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    repository, temporary = tmp_path / "repository", tmp_path / "temporary"
    make_repository(repository)
    temporary.mkdir()
    script = (
        "import pathlib, sys, time\n"
        "from benchmarks import regressions\n"
        f"regressions.ROOT = pathlib.Path({str(repository)!r})\n"
        "regressions.compare = lambda *all: (print('comparing', flush=True), time.sleep(60))\n"
        "sys.exit(regressions.main(['--against', 'HEAD', 'saxpy']))\n"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "comparing\n"
        assert len(worktrees(repository)) == 2
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert len(worktrees(repository)) == 1
    assert list(temporary.iterdir()) == []


def test_every_benchmark_but_those_of_launches_is_in_one_family() -> None:
    names = [name for family in FAMILIES.values() for name in family]
    assert len(names) == len(set(names))
    assert set(BENCHMARKS) - set(names) == {"empty-launch", "launch-forms"}
    assert all({"hip", BENCHMARKS[name].peer} <= BENCHMARKS[name].implementations.keys() for name in names)


def test_the_summary_has_the_mean_of_each_family_and_the_largest_ratios() -> None:
    ratios = {"saxpy": 0.5, "stencil": 2.0, "histogram": 4.0, "reduce": 1.5, "n-body": 1.25, "saxpy-few": 3.0}
    results = {name: {"hip": {"ratio": {"cpu": ratio}}} for name, ratio in ratios.items()}
    results["launch-forms"] = {"plain": {"ratio": {"cpu": 9.0}}}
    assert report.means(results) == pytest.approx(
        {"elementwise": 1.0, "arithmetic": 1.25, "reductions": 1.5, "atomics": 4.0, "few elements": 3.0}
    )
    lines = report.summarise(results).splitlines()
    assert lines[-2].split() == ["all", "of", "these", f"{22.5 ** (1 / 6):.2f}"]
    assert lines[-1] == "largest: histogram 4.00, saxpy-few 3.00, stencil 2.00, reduce 1.50, n-body 1.25"
    assert report.summarise({"launch-forms": results["launch-forms"]}) == ""


def test_what_a_nas_program_prints_is_read() -> None:
    text = (
        " Time in seconds =                     0.06\n Verification    =             UNSUCCESSFUL\n NPB Version = 4.1"
    )
    ours = nas.read(text, 3.25)
    assert ours == (0.06, "unsuccessful", 3.25)
    failed = nas.read("Traceback\nValueError: x", 1.0)
    assert failed == (None, "ended: ValueError: x", 1.0)
    assert nas.read("", 1.0).verdict == "ended: silently"
    words = nas.describe("LU", ours, failed).split()
    assert words[:6] == ["LU", "0.06", "-", "3.2", "1.0", "unsuccessful"]


@pytest.mark.long
def test_nas_programs_run_posed_and_serially(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = """
import sys
sys.path.append(None)
print(" Time in seconds = 1.5\\n Verification = SUCCESSFUL" if sys.argv[1:] == ["-c", "S"] else sys.argv)
sys.exit(1 if POSED != ("numba_hip_cuda" in sys.modules) else 0)
"""
    for part in (nas.OURS, nas.PEER):
        (tmp_path / part).mkdir()
        (tmp_path / part / "EP.py").write_text(f"POSED = {part == nas.OURS}\n{program}")
    assert nas.main([str(tmp_path), "EP"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split()[:3] == ["EP", "1.50", "1.50"]
    assert line.endswith("successful | successful")
    with pytest.raises(SystemExit):
        nas.main([str(tmp_path / "none")])
    with pytest.raises(SystemExit):
        nas.main([str(tmp_path), "XX"])


@pytest.mark.long
def test_algorithms_give_what_other_libraries_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["array_algorithms", "--elements", "5000", "--rounds", "1"])
    array_algorithms.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 19
    assert all(re.match(r"\| [\w ,]+ \| \d+\.\d \(\d+\.\d\) \| \d", line) for line in lines[2:])


def test_a_wrong_result_of_an_algorithm_is_an_error() -> None:
    wrong = comparison.Comparison("sum", {"ours": lambda: 1, "NumPy": lambda: 2})
    with pytest.raises(AssertionError, match="sum of NumPy"):
        comparison.measure(wrong, 1)


def test_all_code_is_for_the_processor_that_is_named() -> None:
    """Of the benchmarks' processes and of what they start; nothing is compiled here."""

    def ask(name: str) -> subprocess.CompletedProcess[str]:
        asks = "import benchmarks, llvmlite.binding as llvm; print(llvm.get_host_cpu_name())"
        features = "; print(llvm.get_host_cpu_features().get('avx2'), llvm.get_host_cpu_features().get('avx512f'))"
        variables = {**os.environ, NAME: name}
        return subprocess.run([sys.executable, "-c", asks + features], env=variables, capture_output=True, text=True)

    assert ask("haswell").stdout.split() == ["haswell", "True", "None"]
    assert ask("x86-64").stdout.split() == ["x86-64", "None", "None"]
    assert "it can be x86-64, x86-64-v2, haswell" in ask("486").stderr
