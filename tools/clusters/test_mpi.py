"""MPI: device arrays of the CPU device as what ranks send and receive."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(ranks, program, *arguments):
    """Exit status, output and errors of a job."""
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    command = [launcher, "-n", str(ranks), sys.executable, "-W", "error", str(ROOT / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("ranks", [2, 4])
def test_what_ranks_send_and_receive(ranks):
    status, out, err = run(ranks, "tools/clusters/mpi_program.py")
    assert (status, out) == (0, f"{list(range(ranks))}\n"), err


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_heat(ranks):
    status, out, err = run(ranks, "examples/distributed/heat_mpi.py", "--size", "66", "--steps", "20")
    assert status == 0, err
    assert out.startswith(f"heat: {ranks} ranks, ")
    assert out.endswith("the same as NumPy's\n")


def test_a_plate_that_is_too_small():
    status, _, err = run(2, "examples/distributed/heat_mpi.py", "--size", "5")
    assert status != 0
    assert "--size 5: 2 ranks need 6 rows at least" in err
