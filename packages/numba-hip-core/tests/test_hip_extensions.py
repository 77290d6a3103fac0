"""Kernels that call functions of a program's own HIP C++."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from hip_devicelib.errors import CompileError, HeaderError, NotFoundError
from hip_devicelib.rocm import find_rocm
from numba_hip.errors import HipExtensionError
from numba_hip.language import hip_extensions

pytest.importorskip("clang", reason="needs libclang: pip install 'hip-devicelib[headers]'")

SOURCE = """
__device__ float my_scale(float x, int n) { return sinf(x) * n; }
__device__ double my_scale(double x, int n) { return sin(x) * n; }
__device__ __forceinline__ int my_divide(int a, int b, int *rest) { *rest = a % b; return a / b; }
__device__ void my_bounds(double a, double *up, double &down) { *up = ceil(a); down = floor(a) + FIRST; }
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of its own, and what was set before afterwards."""
    monkeypatch.setenv("HIP_DEVICELIB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(hip_extensions, "_chosen", hip_extensions._Chosen())
    yield
    hip_extensions._compiled.cache_clear()


def test_they_are_called_by_their_names_with_their_overloads_and_results() -> None:
    assert hip.current_hip_extensions() == ""
    hip.set_hip_extensions(code=SOURCE, extra_cflags=["-DFIRST=100"])
    assert hip.current_hip_extensions() == SOURCE
    assert hip.current_hip_extra_cflags() == ["-DFIRST=100"]

    @hip.jit
    def kernel(singles: Any, doubles: Any, quotients: Any) -> None:
        i = hip.grid(1)
        singles[i] = hip.my_scale(singles[i], 2)
        doubles[i, 0] = hip.my_scale(doubles[i, 0], 2)
        doubles[i, 1], doubles[i, 2] = hip.my_bounds(i + 0.5)
        quotients[i, 0], quotients[i, 1] = hip.my_divide(17 + i, 5)

    singles, doubles, quotients = np.ones(40, np.float32), np.ones((40, 3)), np.zeros((40, 2), np.int32)
    kernel[1, 40](singles, doubles, quotients)
    i = np.arange(40)
    np.testing.assert_allclose(singles, 2 * math.sin(1), rtol=1e-6)
    np.testing.assert_allclose(doubles[:, 0], 2 * math.sin(1), rtol=1e-15)
    np.testing.assert_array_equal(doubles[:, 1:], np.stack([i + 1, i + 100], axis=1))
    np.testing.assert_array_equal(quotients, np.stack([(17 + i) // 5, (17 + i) % 5], axis=1))
    with pytest.raises(TypingError, match=r"no overload of hip\.my_divide"):
        hip.jit("void(int32[::1])")(lambda out: hip.my_divide(out[0]))


def test_another_call_takes_their_place_and_kernels_keep_theirs(tmp_path: Path) -> None:
    file = tmp_path / "mine.hip"
    file.write_text("__device__ int my_number() { return FIRST; }")
    kernels = []
    for number in (1, 2):
        hip.set_hip_extensions(filepath=file, extra_cflags=[f"-DFIRST={number}"])
        kernels.append(hip.jit("void(int32[::1])")(lambda out: _store(out, hip.my_number())))
    hip.set_hip_extensions(code="__device__ int my_other() { return FIRST + 1; }")
    assert hip.current_hip_extra_cflags() == ["-DFIRST=2"]
    assert not hasattr(hip, "my_number")
    out = hip.to_device(np.zeros(1, np.int32))
    for number, kernel in enumerate(kernels, 1):
        kernel[1, 1](out)
        assert out.copy_to_host()[0] == number
    hip.jit(lambda out: _store(out, hip.my_other()))[1, 1](out)
    assert out.copy_to_host()[0] == 3


@hip.jit(device=True)
def _store(out: Any, value: Any) -> None:
    out[0] = value


def test_what_is_wrong_is_told_and_changes_nothing() -> None:
    code = "__device__ int my_number() { return 1; }"
    hip.set_hip_extensions(code=code)
    with pytest.raises(HipExtensionError, match="^set_hip_extensions takes either code or filepath; got both$"):
        hip.set_hip_extensions(code=code, filepath="mine.hip")
    with pytest.raises(KeyError, match="got neither"):
        hip.set_hip_extensions()
    with pytest.raises(FileNotFoundError):
        hip.set_hip_extensions(filepath="no such file")
    with pytest.raises(HeaderError, match="no device function"):
        hip.set_hip_extensions(code="int f() { return 1; }")
    says = r"(extension\.hip:2|line \d+):.*undeclared identifier 'missing'"  # the latter beside a ROCm
    with pytest.raises((CompileError, HeaderError), match=says):
        hip.set_hip_extensions(code="\n__device__ int f() { return missing; }")
    assert hip.current_hip_extensions() == code


def test_for_an_amd_gpu_they_need_rocm() -> None:
    try:
        find_rocm()
    except NotFoundError:
        pass
    else:
        pytest.skip("there is a ROCm")
    hip.set_hip_extensions(code="__device__ int my_number() { return 1; }")
    with pytest.raises(NotFoundError, match="ROCm"):
        hip.compile(lambda out: _store(out, hip.my_number()), "void(int32[::1])", target="gfx90a")
