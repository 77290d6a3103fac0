"""Kernels compiled into the cache ahead of a job: `hip.precompile` and its command."""

import os
import subprocess
import sys

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import config
from numba_hip.errors import PrecompilationError, SignatureError

MODULE = """
import numpy as np
from numba import hip

@hip.jit("void(float64[::1], float64)", cache=True)
def scale(values, factor):
    i = hip.grid(1)
    if i < values.size:
        values[i] *= factor

@hip.jit(cache=True)
def shift(values, offset):
    i = hip.grid(1)
    if i < values.size:
        values[i] += offset

@hip.jit(cache=True)
def forgotten(values):
    values[0] = 1

@hip.jit(device=True, cache=True)
def inner(x):
    return x

PRECOMPILE = [(shift[1, 64], "void(float64[::1], float64)"), (scale, None, 64)]

if __name__ == "__main__":
    values = np.ones(64)
    scale[1, 64](values, 2.0)
    shift[1, 64](values, 3.0)
    print(values[0], *(sum(count.values()) for kernel in (scale, shift) for count in kernel.stats[1:]))
"""


@pytest.fixture
def cache(tmp_path):
    with config.cache_dir.scope(tmp_path / "cache"):
        yield tmp_path / "cache"


def make_kernel(**options):
    @hip.jit(**options)
    def kernel(values):
        i = hip.grid(1)
        if i < values.size:
            values[i] += 1

    return kernel


def entries(cache):
    return sorted(path.relative_to(cache).parts[0] for path in cache.rglob("*.entry"))


def test_what_is_compiled_ahead_is_found(cache):
    signature = "void(float64[::1])"
    assert hip.precompile([(make_kernel(cache=True), signature, 32)]) == (1, 0)
    device = hip.get_current_device()
    assert ("machine-code" in entries(cache)) == device.is_cpu
    before = entries(cache)
    kernel = make_kernel(cache=True)
    assert hip.precompile([(kernel[1, 32], signature)]) == (0, 1)
    values = np.zeros(32)
    kernel[1, 32](values)
    assert set(values) == {1.0}
    assert entries(cache) == before


def test_other_targets_and_signatures_of_the_kernel(cache):
    kernel = make_kernel(cache=True)
    kernel.compile("void(float32[::1])")
    assert hip.precompile([kernel, (kernel, "void(int64[::1])")], ["cpu", "gfx942"]) == (4, 0)
    assert len(entries(cache)) == 4
    assert hip.precompile([(make_kernel(cache=True), "void(int64[::1])")], "gfx942") == (0, 1)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (lambda: make_kernel(), r"kernel kernel is not kept: decorate it with hip\.jit\(cache=True\)"),
        (lambda: make_kernel(cache=True), r"kernel kernel has no signature: give one, as in \(kernel, 'void"),
        (lambda: hip.jit(device=True, cache=True)(lambda x: x), "<lambda> is a device function"),
        (lambda: len, "len>? cannot be compiled ahead: give a kernel"),
        (lambda: (make_kernel(cache=True), "void()", 32, 1), "cannot be compiled ahead"),
    ],
    ids=["no cache", "no signature", "device function", "no kernel", "too many parts"],
)
def test_what_cannot_be_kept(cache, given, problem):
    good = (make_kernel(cache=True), "void(float64[::1])")
    with pytest.raises(PrecompilationError, match=problem):
        hip.precompile([good, given()])
    assert not cache.exists(), "nothing was compiled"


def test_a_kernel_alone_is_no_list_of_kernels():
    for one in (make_kernel(cache=True), make_kernel(cache=True)[1, 32]):
        with pytest.raises(PrecompilationError, match="kernels is one, <.*: pass a list of kernels"):
            hip.precompile(one)
    with pytest.raises(TypeError, match="not iterable"):
        iter(make_kernel())


def test_a_wrong_signature(cache):
    with pytest.raises(SignatureError, match="there is no type flaot64"):
        hip.precompile([(make_kernel(cache=True), "void(flaot64[:])")])


def run(folder, *arguments):
    environment = {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-B", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
def test_the_command(tmp_path):
    (tmp_path / "job.py").write_text(MODULE)
    status, out, err = run(tmp_path, "-m", "numba_hip", "precompile", "job")
    assert (status, err) == (0, "")
    assert out == (
        "2 compiled, 0 found in the cache\nwithout a signature, so not compiled: forgotten; list them in PRECOMPILE\n"
    )
    kept = entries(tmp_path / "cache")
    assert run(tmp_path, "job.py") == (0, "5.0 1 0 1 0\n", "")
    assert entries(tmp_path / "cache") == kept


@pytest.mark.long
def test_the_command_with_targets_and_mistakes(tmp_path):
    (tmp_path / "job.py").write_text(MODULE)
    status, out, _ = run(tmp_path, "-m", "numba_hip", "precompile", "job", "--target", "gfx942", "--target", "gfx1100")
    assert (status, out.splitlines()[0]) == (0, "4 compiled, 0 found in the cache")
    status, _, err = run(tmp_path, "-m", "numba_hip", "precompile", "job", "--target", "gfx1")
    assert status == 1
    assert "gfx1" in err
    status, _, err = run(tmp_path, "-m", "numba_hip", "precompile", "jab")
    assert (status, err) == (1, "precompile: No module named 'jab'\n")
    status, _, err = run(tmp_path, "-m", "numba_hip", "precompil", "job")
    assert (status, err) == (2, "no command 'precompil'; there are: doctor, precompile MODULE...\n")
