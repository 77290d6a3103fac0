"""The example `heat.py`: the same plate in one process, on MPI, Dask and Ray, and what it says of wrong arguments."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = ("--size", "66", "--steps", "20", "--check")


def run(*arguments, ranks=None):
    """Exit status, output and errors of the example."""
    command = [sys.executable, "-W", "error"]
    if ranks is not None:
        launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
        command = [launcher, "-n", str(ranks), *command, "-m", "mpi4py"]
    program = ("examples/distributed/heat.py", *arguments)
    done = subprocess.run([*command, *program], capture_output=True, text=True, timeout=300, cwd=ROOT)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(
    ("way", "ranks"), [("alone", None), ("mpi", 1), ("mpi", 2), ("mpi", 4), ("dask", None), ("ray", None)]
)
def test_the_same_plate(way, ranks):
    status, out, err = run("--on", way, *SMALL, ranks=ranks)
    assert status == 0, err
    assert out[0].startswith(f"heat: {ranks or (1 if way == 'alone' else 2)} on {way}, ")
    assert out[1] == "the same as NumPy's"


def test_dask_on_three_processes_with_unequal_strips():
    status, out, err = run(
        "--on", "dask", "--processes", "3", "--size", "33", "--rows", "18", "--steps", "7", "--check"
    )
    assert (status, out[1:]) == (0, ["the same as NumPy's"]), err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--on", "dask", "--size", "5"), "5 rows: 2 processes need 6 at least, two for each"),
        (("--steps", "0"), "--steps 0: at least 1"),
        (("--size", "3"), "--size 3: at least 4"),
        (("--on", "slurm"), "invalid choice: 'slurm'"),
    ],
)
def test_wrong_arguments(arguments, message):
    status, _, err = run(*arguments)
    assert status != 0
    assert message in err
    assert "Traceback" not in err


def test_too_many_ranks():
    status, _, err = run("--on", "mpi", "--size", "5", ranks=2)
    assert status != 0
    assert "5 rows: 2 processes need 6 at least" in err
