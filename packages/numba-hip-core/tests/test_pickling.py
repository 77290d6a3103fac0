"""Dispatchers in pickles, within a process and from one to another."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import numba_hip as hip

OFFSETS = np.arange(8.0)


@hip.jit(device=True)
def twice(x):
    return 2 * x


@hip.jit
def in_module(values):
    i = hip.grid(1)
    if i < values.size:
        values[i] = twice(values[i]) + OFFSETS[i]


def make_kernel(step, table):
    @hip.jit
    def closure(values):
        i = hip.grid(1)
        if i < values.size:
            values[i] += step + table[i] + twice(1)

    return closure


@hip.jit(device=True)
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@hip.jit
def factorials(out):
    out[hip.grid(1)] = factorial(hip.grid(1))


def run_elsewhere(data, expected, tmp_path):
    """Unpickle in a process that has never seen the kernel, launch, and compare."""
    (tmp_path / "kernel").write_bytes(data)
    code = (
        "import pickle, sys\nimport numpy as np\nfrom pathlib import Path\n"
        "kernel = pickle.loads(Path('kernel').read_bytes())\n"
        "values = np.zeros(8)\nkernel[1, 8](values)\nprint(values.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == str(expected), done.stderr


def test_within_a_process_it_is_the_same():
    for kernel in (in_module, twice, make_kernel(1, OFFSETS), factorials):
        assert pickle.loads(pickle.dumps(kernel)) is kernel


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_protocols(protocol):
    assert pickle.loads(pickle.dumps(in_module, protocol)) is in_module


@pytest.mark.long
def test_closures_and_captured_arrays_in_another_process(tmp_path):
    kernel = make_kernel(10, OFFSETS)
    run_elsewhere(pickle.dumps(kernel), (OFFSETS + 12).tolist(), tmp_path)


@pytest.mark.long
def test_kernels_of_a_module_in_another_process(tmp_path):
    run_elsewhere(pickle.dumps(in_module), OFFSETS.tolist(), tmp_path)


@pytest.mark.long
def test_recursion_in_another_process(tmp_path):
    run_elsewhere(pickle.dumps(factorials), [1.0, 1.0, 2.0, 6.0, 24.0, 120.0, 720.0, 5040.0], tmp_path)


@pytest.mark.long
def test_options_and_signatures_survive(tmp_path):
    eager = hip.jit("void(float64[::1])", fastmath=True, launch_bounds=64)(in_module.py_func)
    code = (
        "import pickle, sys\nimport numpy as np\nfrom pathlib import Path\n"
        "kernel = pickle.loads(Path('kernel').read_bytes())\n"
        "print(kernel.options.fastmath, kernel.options.launch_bounds, kernel.signatures, kernel.__name__)\n"
        "values = np.ones(8)\nkernel[1, 8](values)\nprint(values[3])\n"
        "try:\n    kernel[1, 8](np.zeros((2, 4)))\nexcept Exception as error:\n    print(type(error).__name__)\n"
    )
    (tmp_path / "kernel").write_bytes(pickle.dumps(eager))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["True 64 [] in_module", "5.0", "KernelArgumentError"], done.stderr


@pytest.mark.long
def test_specialised_kernels(tmp_path):
    special = in_module.specialize(np.zeros(8))
    assert pickle.loads(pickle.dumps(special)).specialized
    run_elsewhere(pickle.dumps(special), OFFSETS.tolist(), tmp_path)


def test_damaged_pickles_leave_nothing_behind(tmp_path):
    from numba_hip.dispatch import pickling

    known = set(pickling._living)
    constructor, (kind, _, data) = in_module.__reduce__()
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever pickle says
        constructor(kind, "another", data[:50])
    assert set(pickling._living) <= known | {in_module.identity, twice.identity}


def test_configured_kernels():
    configured = in_module[1, (4, 2)]
    again = pickle.loads(pickle.dumps(configured))
    assert (again.dispatcher, again.config) == (in_module, configured.config)
    other = in_module[2, 8]
    other.pre_launch_callbacks.append(print)
    with pytest.raises(pickle.PicklingError, match="Cannot pickle configured launches with pre-launch callbacks"):
        pickle.dumps(other)
    with pytest.raises(pickle.PicklingError, match="stream"):
        pickle.dumps(in_module[2, 8, hip.stream()])


def test_ufuncs():
    factor = 3

    def scale(x):
        return x * factor

    whole = hip.vectorize(["int64(int64)", "float64(float64)"])(scale)
    for ufunc in (whole, hip.vectorize(scale)):
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(ufunc))))
        assert again(np.arange(4)).tolist() == [0, 3, 6, 9]
        assert again(np.arange(4) / 2).tolist() == [0, 1.5, 3, 4.5]
    assert pickle.loads(pickle.dumps(whole)).signatures == whole.signatures
    with pytest.raises(TypeError, match="without loss"):
        pickle.loads(pickle.dumps(whole))(1j)

    @hip.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")
    def running(x, out):
        total = 0.0
        for i in range(x.size):
            total += x[i] * factor
            out[i] = total

    again = pickle.loads(pickle.dumps(running))
    assert again(np.ones((2, 3))).tolist() == [[3, 6, 9]] * 2
    assert again.signature == "(n)->(n)"


def test_device_arrays_are_pickled_by_way_of_the_host():
    array = hip.to_device(np.arange(3))
    again = pickle.loads(pickle.dumps(array))
    array[0] = 9
    assert again.copy_to_host().tolist() == [0, 1, 2]
