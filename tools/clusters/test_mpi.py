"""MPI: device arrays of the CPU device as what ranks send and receive."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(ranks, *program):
    """Exit status, output and errors of a job."""
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    command = [launcher, "-n", str(ranks), sys.executable, "-W", "error", *program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("ranks", [2, 4])
def test_what_ranks_send_and_receive(ranks):
    status, out, err = run(ranks, "tools/clusters/mpi_program.py")
    assert (status, out) == (0, f"{list(range(ranks))}\n"), err


def test_a_rank_without_memory_ends_the_job():
    status, _, err = run(2, "-m", "mpi4py", "tools/clusters/mpi_out_of_memory.py")
    assert status != 0
    assert "OutOfDeviceMemoryError" in err
    assert "bytes" in err


def test_ranks_that_agree_on_a_failure_go_on():
    status, out, err = run(2, "tools/clusters/mpi_out_of_memory.py", "together")
    assert (status, out) == (0, "[True, False]\n"), err
