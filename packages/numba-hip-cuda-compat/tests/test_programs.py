"""Programs in the style of a CUDA notebook give the right values when they run posed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

HEADER = "from numba_hip_cuda import pose_as_cuda; pose_as_cuda(); import math; import numpy as np"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("statement", "cuda"),
    [
        ("from numba import cuda", "cuda"),
        ("import numba.cuda as cuda", "cuda"),
        ("import numba.cuda", "numba.cuda"),
        ("import numba; from numba import cuda", "numba.cuda"),
    ],
)
def test_vector_add(check: Callable[..., str], statement: str, cuda: str) -> None:
    check(f"""
        {HEADER}
        {statement}

        @{cuda}.jit
        def add(x, y, out):
            i = {cuda}.grid(1)
            if i < out.size:
                out[i] = x[i] + y[i]

        n = 100_003
        x = np.arange(n, dtype=np.float32)
        y = (2 * x + 1)[::-1].copy()
        d_x, d_y = {cuda}.to_device(x), {cuda}.to_device(y)
        d_out = {cuda}.device_array_like(d_x)
        threads = 256
        add[math.ceil(n / threads), threads](d_x, d_y, d_out)
        {cuda}.synchronize()
        np.testing.assert_array_equal(d_out.copy_to_host(), x + y)
    """)


@pytest.mark.long
def test_the_parts_of_an_index(check: Callable[..., str]) -> None:
    check(f"""
        {HEADER}
        from numba import cuda

        @cuda.jit("void(int32[:, :])")
        def number(out):
            row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
            column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
            if row < out.shape[0] and column < out.shape[1]:
                out[row, column] = row * cuda.gridDim.x * cuda.blockDim.x + column

        out = np.full((13, 29), -1, dtype=np.int32)
        number[(4, 4), (8, 4)](out)
        np.testing.assert_array_equal(out, np.arange(13)[:, None] * 32 + np.arange(29))
    """)


@pytest.mark.long
def test_a_stream_and_a_device_function(check: Callable[..., str]) -> None:
    check(f"""
        {HEADER}
        from numba import cuda

        @cuda.jit(device=True)
        def twice(value):
            return 2 * value

        @cuda.jit
        def double(x):
            start, stride = cuda.grid(1), cuda.gridsize(1)
            for i in range(start, x.size, stride):
                x[i] = twice(x[i])

        stream = cuda.stream()
        x = np.arange(10_000, dtype=np.int64)
        d_x = cuda.to_device(x, stream=stream)
        double[16, 64, stream](d_x)
        result = d_x.copy_to_host(stream=stream)
        stream.synchronize()
        np.testing.assert_array_equal(result, 2 * x)
    """)


def test_a_name_that_is_not_there_fails_when_the_kernel_is_compiled(check: Callable[..., str]) -> None:
    printed = check(f"""
        {HEADER}
        from numba import cuda

        @cuda.jit
        def wrong(x):
            x[0] = cuda.no_such_name(1)

        x = np.zeros(4)
        try:
            wrong[1, 1](x)
        except Exception as error:
            print(type(error).__name__, error)
        np.testing.assert_array_equal(x, np.zeros(4))
    """)
    assert printed.startswith("UnknownNameError")
    assert "no_such_name" in printed
    assert "numba_hip_cuda poses as numba.cuda" in printed
