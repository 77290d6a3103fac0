"""Kernels that are linked with functions in C, C++ and HIP C++."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from numba_hip import config
from numba_hip.errors import LinkedCodeError

pytest.importorskip("ziglang", reason="needs a compiler of C++: pip install ziglang")

SMOOTHSTEP = """
template <typename T> static __device__ T clamped(T x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
extern "C" __device__ float smoothstep(float from, float to, float x) {
    float t = clamped((x - from) / (to - from));
    return t * t * (3 - 2 * t);
}
"""
SUM = """
extern "C" __device__ int total(float *result, const float *values, long count) {
    if (count < 0) return 1;
    *result = 0;
    for (long i = 0; i < count; ++i) *result += values[i];
    return 0;
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIP_DEVICELIB_CACHE_DIR", str(tmp_path / "cache"))


def smoothed(x: np.ndarray) -> np.ndarray:
    t = np.clip(x, 0, 1)
    return t * t * (3 - 2 * t)


@pytest.mark.parametrize("given", ["file", "text", "bytes", "kernel"])
@pytest.mark.sample(1)
def test_a_function_in_hip_cpp(given: str, tmp_path: Path) -> None:
    path = tmp_path / "steps.hip"
    path.write_text(SMOOTHSTEP)
    links = {
        "file": path, "text": hip.LinkedSource(SMOOTHSTEP), "bytes": hip.LinkedSource(SMOOTHSTEP.encode(), "steps.cu"),
        "kernel": None,
    }  # fmt: skip
    function = hip.declare_device("smoothstep", "float32(float32, float32, float32)", link=links[given], abi="c")

    @hip.jit(link=str(path) if given == "kernel" else None)
    def fade(values):
        i = hip.grid(1)
        if i < values.size:
            values[i] = function(0.0, 1.0, values[i])

    values = np.linspace(-1, 2, 77, dtype=np.float32)
    expected = smoothed(values)
    fade[3, 32](values)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-7)


def test_pointers_to_the_elements_of_arrays() -> None:
    cffi = pytest.importorskip("cffi", reason="needs cffi, for pointers to buffers")
    ffi = cffi.FFI()
    total = hip.declare_device("total", "float32(CPointer(float32), int64)", link=hip.LinkedSource(SUM))

    @hip.jit
    def sum_rows(rows, sums):
        i = hip.grid(1)
        if i < sums.size:
            row = rows[i]
            sums[i] = total(ffi.from_buffer(row), row.size)

    @hip.jit
    def sum_columns(rows, sums):
        i = hip.grid(1)
        sums[i] = total(ffi.from_buffer(rows[:, i]), rows.shape[0])

    with pytest.raises(TypingError, match="side by side, in C order; got array.float32, 1d, A."):
        sum_columns[1, 12](np.zeros((10, 12), np.float32), np.zeros(12, np.float32))
    rows, sums = np.arange(120, dtype=np.float32).reshape(10, 12), np.zeros(10, np.float32)
    sum_rows[1, 32](rows, sums)
    np.testing.assert_array_equal(sums, rows.sum(axis=1))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.sample(1)
def test_the_same_source_for_amd_gpus(target: str) -> None:
    function = hip.declare_device(
        "smoothstep", "float32(float32, float32, float32)", link=hip.LinkedSource(SMOOTHSTEP), abi="c"
    )

    @hip.jit
    def fade(values):
        i = hip.grid(1)
        values[i] = function(0.0, 1.0, values[i])

    signature = "void(float32[::1])"
    assembly = fade.inspect_asm(signature, target=target)
    assert "s_swappc" not in assembly, "it is inlined"
    assert "global_store" in assembly
    assert hip.compile(fade, signature, target=target, output="object")[0][:4] == b"\x7fELF"


def test_a_kept_kernel_knows_what_the_source_includes(tmp_path: Path) -> None:
    (tmp_path / "factor.h").write_text("#define FACTOR 3\n")
    path = tmp_path / "scale.cpp"
    path.write_text('#include "factor.h"\nextern "C" int scale(int x) { return x * FACTOR; }')

    def kernel(out):
        out[0] = scale(7)

    found = []
    for factor in (3, 5):
        (tmp_path / "factor.h").write_text(f"#define FACTOR {factor}\n")
        scale = hip.declare_device("scale", "int32(int32)", link=path, abi="c")
        out = np.zeros(1, np.int32)
        hip.jit(kernel, cache=True)[1, 1](out)
        found.append(int(out[0]))
    assert found == [21, 35]


def test_folders_that_all_sources_include_from(tmp_path: Path) -> None:
    for folder, name, number in (("own", "a", 2), ("common", "a", 3), ("common", "b", 5), ("last", "b", 7)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.h").write_text(f"#define {name.upper()} {number}\n")
    text = '#include <a.h>\n#include <b.h>\nextern "C" int scale(int x) { return x * A * B; }'
    paths = f"{tmp_path / 'common'}:{tmp_path / 'last'}:"

    def kernel(out):
        out[0] = scale(1)

    out = np.zeros(1, np.int32)
    for own, expected in (((), 15), ((tmp_path / "own",), 10)):
        source = hip.LinkedSource(text, "scale.cpp", include_paths=own)
        scale = hip.declare_device("scale", "int32(int32)", source, abi="c")
        with config.include_paths.scope(paths):
            hip.jit(kernel)[1, 1](out)
        assert out[0] == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('\nextern "C" int f(int x) { return y; }', r"source\.hip:2:.*undeclared identifier 'y'"),
        ('extern "C" __device__ int f(int x) { return x + threadIdx.x; }', "undeclared identifier 'threadIdx'"),
        ('extern "C" __device__ float f(float x) { return x; }', "f.*float"),
    ],
    ids=["rejected", "threads", "another type"],
)
def test_mistakes(text: str, says: str) -> None:
    function = hip.declare_device("f", "int32(int32)", link=hip.LinkedSource(text), abi="c")

    def kernel(out):
        out[0] = function(out[0])

    with pytest.raises(LinkedCodeError, match=says):
        hip.jit("void(int32[::1])")(kernel)
