"""The kernels of `benchmarks.user_kernels`: each is right, and its peer computes the same."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from benchmarks.case import Benchmark
from benchmarks.environments import ROOT, Environment
from benchmarks.user_kernels import __main__ as program
from benchmarks.user_kernels.catalog import KERNELS, SUBJECTS
from benchmarks.user_kernels.definition import OPENCL, UserKernel
from hip_runtime import config

PEERS = ROOT / "benchmarks" / "peers"


def problem_of(name: str) -> UserKernel:
    """The data of the kernel called *name*, little of it."""
    problem: UserKernel = KERNELS[name].implementations["njit"](True).problem  # type: ignore[attr-defined]
    return problem


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_again_and_again_and_so_is_its_peer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    for made, make in KERNELS[name].implementations.items():
        if made == OPENCL:
            continue  # its environment is made by `nox -s bench`
        case = make(True)
        case.run()
        case.check()
        case.check()


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", KERNELS)
def test_wrong_outputs_of_a_kernel_are_noticed(name: str) -> None:
    problem = problem_of(name)
    with pytest.raises(AssertionError):
        problem.verify({output: problem.arrays[output] for output in problem.outputs})


RACING = ("bfs-step", "sieve", "floyd-warshall", "lu-step")
"""Kernels that read plainly what other threads may be writing, where either number will do."""


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in RACING])
def test_no_kernel_races(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    with config.cpu_races.scope("1"):
        KERNELS[name].implementations["hip"](True).run()  # a race is an error, or a warning, which is one here


def test_every_subject_has_kernels_with_descriptions() -> None:
    assert all(any(isinstance(one, Benchmark) for one in vars(subject).values()) for subject in SUBJECTS)
    assert all(one.description and one.name == name for name, one in KERNELS.items())


def test_every_kernel_with_a_peer_in_opencl_has_it() -> None:
    source = (PEERS / "opencl_user_kernels.py").read_text()
    compared = [name for name, one in KERNELS.items() if OPENCL in one.implementations]
    assert compared
    for name in compared:
        assert f"def {name.replace('-', '_')}(" in source
    kernels = "".join(path.read_text() for path in PEERS.glob("*.cl"))
    for name in re.findall(r'(?:launcher|kernel_of)\("(\w+)"', source):
        assert f"kernel void {name}(" in kernels


def test_opencl_runs_beside_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", "own")
    peer = Environment(str(tmp_path / "bin" / "python"), {"OCL_ICD_VENDORS": "vendors"})
    found = program.beside_numba(peer, {"NUMBA_NUM_THREADS": "1"})
    assert found.python == sys.executable
    assert found.variables == {
        "NUMBA_NUM_THREADS": "1", "OCL_ICD_VENDORS": "vendors", "PYTHONPATH": os.pathsep.join(["own", str(packages)]),
    }  # fmt: skip


def test_a_ratio_is_that_of_processor_times() -> None:
    found = program.measure(KERNELS["sieve"], rounds=3, threads=1, quick=True)
    assert len(found["ratios"]) == 3
    assert found["ratio"] == sorted(found["ratios"])[1] > 0
    assert min(found["hip"], found["njit"], found["translated"]) > 0


def test_the_command_prints_and_writes_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = {
        "fnv-1a": {"hip": 2.0, "njit": 1.0, "ratio": 2.0, "opencl-intel": 0.75, "ratios": [1.5, 2.0, 3.0]},
        "sieve": {"hip": 3.0, "njit": 1.0, "ratio": 3.0, "translated": 0.9, "ratios": [3.0, 2.5, 4.0]},
    }
    monkeypatch.setattr(program, "measure", lambda kernel, **options: made_up[kernel.name])
    output = tmp_path / "results" / "ratios.json"
    arguments = ["fnv-1a", "sieve", "--quick", "--rounds", "3", "--output", str(output)]
    assert program.main(arguments) == 0
    document = json.loads(output.read_text())
    assert document["options"] == {"rounds": 3, "threads": 1, "quick": True}
    assert document["kernels"] == made_up
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[3:5]] == [
        ["sieve", "3.000", "1.000", "3.00", "(0.90", "of", "the", "same", "in", "njit)"],
        ["fnv-1a", "2.000", "1.000", "2.00", "(0.75", "of", "opencl-intel)"],
    ]
    assert lines[-1].split()[:-1] == ["geometric", "mean"]


@pytest.mark.parametrize(("arguments", "message"), [(["no-such"], "no-such"), (["--rounds", "0"], "at least one")])
def test_what_cannot_be_measured_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        program.main(arguments)
    assert message in capsys.readouterr().err
