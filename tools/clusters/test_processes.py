"""`concurrent.futures` and joblib: kernels and device arrays as what other processes are given and return."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import joblib
import numpy as np
import pytest
from numba import hip

from tools.clusters import jobs
from tools.clusters.jobs import N


@pytest.fixture(params=["spawn", "fork", "forkserver"])
def pool(request):
    context = multiprocessing.get_context(request.param)
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        yield executor


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_arrays_and_kernels_go_to_other_processes(pool):
    values = hip.to_device(np.arange(float(N)))
    for factor, found in zip((2.0, 3.0), pool.map(jobs.scaled, [values] * 2, (2.0, 3.0)), strict=True):
        np.testing.assert_array_equal(found.copy_to_host(), factor * np.arange(N))
    np.testing.assert_array_equal(pool.submit(jobs.run_kernel, jobs.scale, values).result(60), 5.0 * np.arange(N))
    np.testing.assert_array_equal(values.copy_to_host(), np.arange(N), "this process has its own")


def test_a_process_that_has_no_memory_says_so():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        with pytest.raises(Exception, match="out of memory|bytes are free|memory") as caught:
            executor.submit(jobs.allocate, 1 << 60).result(60)
        assert type(caught.value).__name__ == "OutOfDeviceMemoryError"
        assert executor.submit(jobs.allocate, 100).result(60).size == 100


def test_a_process_without_a_device_says_so(tmp_path):
    (tmp_path / "array").write_bytes(pickle.dumps(hip.to_device(np.ones(N))))
    program = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"
    environment = {**os.environ, "NUMBA_HIP_DEVICE": "hip", "HIP_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", program, str(tmp_path / "array")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "DeviceUnavailableError: NUMBA_HIP_DEVICE=hip asks for an AMD GPU: " in done.stderr
    assert "Set NUMBA_HIP_DEVICE=cpu" in done.stderr


def test_a_process_that_ends_is_told():
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor, pytest.raises(BrokenProcessPool):
        executor.submit(jobs.end_process, hip.to_device(np.ones(N))).result(60)


def test_joblib():
    arrays = [hip.to_device(np.full(N, float(number))) for number in range(4)]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(jobs.scaled)(array, 2.0) for array in arrays)
    assert [set(array.copy_to_host()) for array in found] == [{0.0}, {2.0}, {4.0}, {6.0}]
