"""Bounds checks: the host is told which index was out of range, where, and by which thread."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaError

import numba_hip as hip
from hip_runtime.errors import MemoryFaultError, SettingError
from numba_hip import config


def line_of(function, text):
    """The number of the line of *function* that holds *text*."""
    import inspect

    lines, first = inspect.getsourcelines(getattr(function, "py_func", function))
    return first + next(number for number, line in enumerate(lines) if text in line)


@hip.jit(boundscheck=True)
def read(values, index, out):
    i = hip.grid(1)
    out[i] = values[index[i]]


@pytest.mark.parametrize("index", [10, 11, 2**40, -11, -(2**40)])
def test_an_index_out_of_range(index):
    values, out = np.arange(10.0), np.zeros(8)
    indices = np.zeros(8, np.int64)
    indices[6] = index
    with pytest.raises(IndexError) as caught:
        read[2, 4](values, indices, out)
    place = f"test_boundscheck.py:{line_of(read, 'values[index')} in read"
    assert str(caught.value).startswith(
        f"tid=[2, 0, 0] ctaid=[1, 0, 0]: index {index} is out of range of dimension 0 with extent 10 "
        "of array 'values' ("
    )
    assert str(caught.value).endswith(f"{place})")
    assert (out == 0).all(), "nothing is copied back"


def test_indices_in_range():
    values, out = np.arange(10.0), np.zeros(8)
    read[2, 4](values, np.array([0, 9, -1, -10, 5, 1, 2, 3]), out)
    np.testing.assert_array_equal(out, [0, 9, 9, 0, 5, 1, 2, 3])


def test_the_process_goes_on():
    values = np.arange(10.0)
    for index in (10, 12, -13, 14) * 5:
        with pytest.raises(IndexError, match=f"index {index} is out of range"):
            read[1, 1](values, np.array([index]), np.zeros(1))
        out = np.zeros(1)
        read[1, 1](values, np.array([3]), out)
        assert out[0] == 3


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("a[3, 0]", "index 3 is out of range of dimension 0 with extent 3 of array 'a'"),
        ("a[0, 4]", "index 4 is out of range of dimension 1 with extent 4"),
        ("a[0, -5]", "index -5 is out of range of dimension 1 with extent 4"),
        ("a[np.uint8(200), 0]", "index 200 is out of range of dimension 0"),
        ("a[1:, 1:][2, 0]", "index 2 is out of range of dimension 0 with extent 2 of array 'a[...]'"),
        ("a[0][4]", "index 4 is out of range of dimension 0 with extent 4 of array 'a[...]'"),
        ("a.T[0, 3]", "index 3 is out of range of dimension 1 with extent 3 of array 'a.T'"),
        ("local[5]", "index 5 is out of range of dimension 0 with extent 5 of array 'local'"),
        ("captured[7]", "index 7 is out of range of dimension 0 with extent 7 of array 'captured'"),
        ("hip.atomic.add(a, (0, 4), 1.0)", "index 4 is out of range of dimension 1 with extent 4 of array 'a'"),
        (
            "hip.atomic.cas(captured_like, 4, 1.0, 1.0)",
            "index 4 is out of range of dimension 0 with extent 4 of array 'captured_like'",
        ),
        ("record[2].x[1]", "index 2 is out of range of dimension 0 with extent 2"),
        ("record[1].x[3]", "index 3 is out of range of dimension 0 with extent 3 of array 'record[...].x'"),
        ("inner(a, 9)", "index 9 is out of range of dimension 1 with extent 4"),
        ("njitted(a, 8)", "index 8 is out of range of dimension 0 with extent 3"),
        ("recursive(a, 2)", "index 6 is out of range of dimension 0 with extent 3"),
    ],
)
def test_every_kind_of_array(expression, says):
    check_statement(f"out[0] = {expression}", says)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("a[3, 0]", "index 3 is out of range of dimension 0 with extent 3 of array 'a'"),
        ("a[0, -5]", "index -5 is out of range of dimension 1 with extent 4"),
        ("a.T[0, 3]", "index 3 is out of range of dimension 1 with extent 3 of array 'a.T'"),
        ("local[5]", "index 5 is out of range of dimension 0 with extent 5 of array 'local'"),
        ("record[1].x[3]", "index 3 is out of range of dimension 0 with extent 3 of array 'record[...].x'"),
    ],
)
@pytest.mark.sample(2)
def test_writing_to_every_kind_of_array(target, says):
    check_statement(f"{target} = 1", says)


def check_statement(statement, says):
    namespace = {"hip": hip, "np": np, "captured": np.arange(7.0), "inner": inner, "njitted": njitted,
                 "recursive": recursive}  # fmt: skip
    exec(
        "@hip.jit(boundscheck=True)\n"
        "def kernel(a, record, out):\n"
        "    local = hip.local.array(5, np.float64)\n"
        "    captured_like = a[0]\n"
        "    local[0] = captured_like[0]\n"
        f"    {statement}\n",
        namespace,
    )
    a, out = np.zeros((3, 4)), np.zeros(1)
    record = np.zeros(2, np.dtype([("x", np.float64, 3)], align=True))
    with pytest.raises(IndexError, match=re.escape(says)):
        namespace["kernel"][1, 1](a, record, out)
    assert (a == 0).all()
    assert out[0] == 0


@hip.jit(device=True)
def inner(a, i):
    return a[0, i]


@njit
def njitted(a, i):
    return a[i, 0]


@hip.jit(device=True)
def recursive(a, n):
    if n == 6:
        return a[n, 0]
    return recursive(a, n + 1)


def test_the_line_is_that_of_the_function_that_indexed():
    @hip.jit(boundscheck=True)
    def kernel(a, out):
        out[0] = 1
        out[1] = inner(a, 5)

    with pytest.raises(IndexError, match=rf"test_boundscheck.py:{line_of(inner, 'return a')} in inner\)"):
        kernel[1, 1](np.zeros((3, 4)), np.zeros(2))


def test_many_threads_out_of_range():
    """All of these threads fail; the one that is reported is one of them, with the index that it had."""

    @hip.jit(boundscheck=True)
    def kernel(values):
        i = hip.grid(1)
        values[i + 10_000] = i

    for _ in range(5):
        with pytest.raises(IndexError) as caught:
            kernel[300, 256](np.zeros(10_000))
        thread, block = (int(number) for number in re.findall(r"id=\[(\d+), 0, 0\]", str(caught.value)))
        assert f"index {block * 256 + thread + 10_000} is out of range of dimension 0" in str(caught.value)


def launch_and_wait(launch, *arguments):
    """Where launches are asynchronous, what a kernel does wrong is raised where the host waits."""
    launch(*arguments)
    hip.synchronize()


@pytest.mark.cpu_device("a kernel on a GPU tells of one fault until somebody has waited, whatever streams it runs on")
def test_streams():
    first, second = hip.stream(), hip.stream()
    values = hip.to_device(np.zeros(10))
    for stream, index in ((first, 11), (second, 12)):
        read[1, 1, stream](values, hip.to_device(np.array([index])), values)
    for stream, index in ((first, 11), (second, 12)):
        with pytest.raises(IndexError, match=rf"index {index} is out of range|index is out of bounds"):
            stream.synchronize()
    with pytest.raises(IndexError, match="index 13 is out of range"):
        launch_and_wait(read[1, 1], values, hip.to_device(np.array([13])), values)


def test_barriers_and_shared_memory():
    @hip.jit(boundscheck=True)
    def kernel(out, index):
        tile = hip.shared.array(64, np.float64)
        i = hip.threadIdx.x
        tile[i] = i
        hip.syncthreads()
        out[i] = tile[index[i]]

    out, indices = np.zeros(64), np.arange(63, -1, -1)
    kernel[1, 64](out, indices)
    np.testing.assert_array_equal(out, indices)
    indices[5] = 64
    with pytest.raises(IndexError, match=r"index 64 is out of range of dimension 0 with extent 64"):
        kernel[1, 64](np.zeros(64), indices)


def test_kernels_without_arguments_and_with_output():
    @hip.jit(boundscheck=True)
    def nothing():
        own = hip.local.array(3, np.int64)
        own[hip.grid(1)] = 1

    nothing[1, 3]()
    with pytest.raises(IndexError, match=r"tid=\[3, 0, 0\].*index 3 is out of range of dimension 0 with extent 3"):
        launch_and_wait(nothing[1, 4])


def test_with_print(capfd):
    @hip.jit(boundscheck=True)
    def kernel(flag, values):
        print("index", values[0])
        values[flag] = 1

    kernel[1, 1](1, np.zeros(2))
    with pytest.raises(IndexError, match="index 1 is out of range"):
        kernel[1, 1](1, np.zeros(1))
    assert capfd.readouterr().out.startswith("index 0.0")


def test_other_exceptions_are_as_they_were():
    @hip.jit(boundscheck=True)
    def kernel(values, what):
        if what:
            raise IndexError("of my own")
        values[0] = 1

    with pytest.raises(IndexError, match=r"tid=\[0, 0, 0\] ctaid=\[0, 0, 0\]: of my own"):
        kernel[1, 1](np.zeros(1), True)


def test_it_costs_nothing_where_it_is_not_asked_for():
    plain = hip.jit(read.py_func)
    assert len(plain.compile("(float64[::1], int64[::1], float64[::1])").parameters) == 6
    assert "note_index" not in plain.inspect_llvm("(float64[::1], int64[::1], float64[::1])")
    assert "note_index" in read.inspect_llvm("(float64[::1], int64[::1], float64[::1])", "cpu")


def test_a_kernel_both_ways():
    """The functions that a kernel calls are compiled for each way: neither finds the other's code."""

    def kernel(a, out):
        out[0] = inner(a, 3)

    for _ in range(2):
        for checked in (True, False):
            out = np.zeros(1)
            hip.jit(boundscheck=checked)(kernel)[1, 1](np.arange(12.0).reshape(3, 4), out)
            assert out[0] == 3


def test_the_setting():
    def kernel(values):
        values[hip.grid(1)] = 1

    with config.boundscheck.scope(True):
        for chosen in (hip.jit(kernel), hip.jit(boundscheck=None)(kernel)):
            with pytest.raises(IndexError, match="index 2 is out of range"):
                chosen[1, 3](np.zeros(2))
        assert not hip.jit(boundscheck=False)(kernel).compile("(float64[::1],)").target.checked
    assert not hip.jit(kernel).compile("(float64[::1],)").target.checked
    with config.boundscheck.scope(False):
        assert hip.jit(boundscheck=True)(kernel).compile("(float64[::1],)").target.checked


@pytest.mark.long
def test_the_environment_variable():
    code = (
        "import numpy as np, numba_hip as hip\n"
        "@hip.jit\ndef kernel(values):\n    values[hip.grid(1)] = 1\n"
        "try:\n    kernel[1, 3](np.zeros(2))\nexcept IndexError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "NUMBA_HIP_BOUNDSCHECK": "1", "NUMBA_HIP_DEVICE": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert "index 2 is out of range of dimension 0 with extent 2" in done.stdout, done.stderr
    assert done.returncode == 0
    with pytest.raises(SettingError, match="NUMBA_HIP_BOUNDSCHECK='maybe': must be 0 or 1"):
        config.boundscheck.scope("maybe").__enter__()


def test_the_cache_keeps_both_ways(tmp_path):
    def kernel(values):
        values[hip.grid(1)] = 1

    with config.cache_dir.scope(tmp_path / "cache"):
        for expected in ((0, 1), (1, 0)):
            for checked in (True, False):
                dispatcher = hip.jit(cache=True, boundscheck=checked)(kernel)
                values = np.zeros(2)
                dispatcher[1, 2](values)
                assert (values == 1).all()
                assert tuple(map(len, dispatcher.stats[1:])) == expected
            with pytest.raises(IndexError, match="index 2 is out of range"):
                hip.jit(cache=True, boundscheck=True)(kernel)[1, 3](np.zeros(2))


def test_code_that_does_not_compile_says_so_as_always():
    @hip.jit(boundscheck=True)
    def kernel(values):
        values["x"] = 1

    with pytest.raises(NumbaError):
        kernel[1, 1](np.zeros(1))


@pytest.mark.cpu_device("an access outside of memory ends the process on a GPU")
def test_access_outside_of_memory_without_checks():
    """An error that says where the kernel stands and how to find the index; arrays and the device are as they were."""

    @hip.jit
    def far(values, distance):
        values[hip.grid(1) + distance] = 1

    values = np.zeros(3)
    for _ in range(2):
        with pytest.raises(MemoryFaultError, match=r"boundscheck=True.*NUMBA_HIP_BOUNDSCHECK=1.*names array") as caught:
            far[2, 3](values, 1 << 40)
        assert f"{__file__}:{far.py_func.__code__.co_firstlineno + 2} in far" in str(caught.value)
    far[1, 3](values, 0)
    assert values.all()


@hip.jit(boundscheck=True)
def exchange(values, out):
    t = hip.threadIdx.x
    out[t] = hip.syncthreads_count(t < 5) + hip.shfl(values[t], 3) + (10 if hip.ballot(t > 0) else 0)


def test_threads_exchange_values_in_checked_kernels():
    out = np.zeros(8, np.int64)
    exchange[1, 8](np.arange(100, 108), out)
    np.testing.assert_array_equal(out, 5 + 103 + 10)
    with pytest.raises(IndexError, match=r"index 7 is out of range of dimension 0 with extent 7 .*in exchange\)$"):
        exchange[1, 8](np.arange(7), out)
