"""HIP's device functions in kernels, by HIP's names and by those of CUDA's libdevice; results against NumPy."""

import math
import pickle

import numpy as np
import pytest
from llvmlite import binding as llvm
from numba.core.errors import NumbaError

import numba_hip as hip
from hip_devicelib.cpu.functions import ABSENT
from hip_devicelib.errors import NotFoundError
from hip_devicelib.manifest import load_reference
from numba_hip import config, libdevice
from numba_hip.language.hip_functions import find
from numba_hip.targets.amd.device_library import write_forwards

X = np.array([0.1, 0.5, 1.0, 2.5, -3.25, -0.0, np.inf, np.nan], np.float32)


def run(kernel, *arrays):
    hip.jit(kernel)[1, len(arrays[0])](*arrays)
    return arrays[-1]


def test_functions_of_numbers():
    def kernel(x, n, out):
        i = hip.grid(1)
        out[i, 0] = hip.sinf(x[i])
        out[i, 1] = hip.__popc(n[i])
        out[i, 2] = hip.__fmaf_rn(x[i], 2, 1)
        out[i, 3] = hip.__float_as_int(x[i])
        out[i, 4] = hip.__umulhi(n[i], 0x80000000)
        out[i, 5] = hip.fmod(x[i], 0.3)  # of the C library
        out[i, 6] = hip.__isnanf(x[i])

    numbers = np.arange(len(X), dtype=np.uint32) * 77
    with np.errstate(invalid="ignore"):
        out = run(kernel, X, numbers, np.zeros((len(X), 7)))
        np.testing.assert_allclose(out[:, 0], np.sin(X), rtol=3e-7)
        np.testing.assert_array_equal(out[:, 5], np.fmod(X.astype(float), 0.3))
    np.testing.assert_array_equal(out[:, 1], [int(number).bit_count() for number in numbers])
    np.testing.assert_array_equal(out[:, 2], X * 2 + 1)
    np.testing.assert_array_equal(out[:, 3], X.view(np.int32))
    np.testing.assert_array_equal(out[:, 4], numbers >> 1)
    np.testing.assert_array_equal(out[:, 6], np.isnan(X))


def test_the_overload_follows_the_types():
    def kernel(single, double, half, out):
        i = hip.grid(1)
        out[i, 0] = hip.sqrt(single[i])
        out[i, 1] = hip.sqrt(double[i])
        half[i] = hip.__hadd(half[i], half[i])
        out[i, 2] = hip.abs(-7)

    values = np.array([2.0, 3.0, 5.0])
    half, out = np.array([0.1, 1.5, 4], np.float16), np.zeros((3, 3))
    expected = half + half
    run(kernel, values.astype(np.float32), values, half, out)
    np.testing.assert_array_equal(out[:, 0], np.sqrt(values.astype(np.float32)))
    np.testing.assert_array_equal(out[:, 1], np.sqrt(values))
    np.testing.assert_array_equal(out[:, 2], 7)
    np.testing.assert_array_equal(half, expected)


def test_pointers_are_arrays():
    def kernel(x, table, counts, out):
        i = hip.grid(1)
        sine, cosine = hip.local.array(1, np.float32), hip.local.array(1, np.float32)
        hip.sincosf(x[i], sine, cosine)
        out[i, 0], out[i, 1] = sine[0], cosine[0]
        out[i, 2] = hip.__ldg(table[i:])
        hip.atomicAdd(counts, 1)
        hip.atomicMax(counts[1:], i)

    x, counts = np.linspace(-3, 3, 32, dtype=np.float32), np.zeros(2, np.int32)
    table, out = np.arange(32.0) ** 2, np.zeros((32, 3))
    table.flags.writeable = False
    run(kernel, x, table, counts, out)
    np.testing.assert_allclose(out[:, :2], np.stack([np.sin(x), np.cos(x)], 1), rtol=4e-7, atol=1e-7)
    np.testing.assert_array_equal(out[:, 2], table)
    assert counts.tolist() == [32, 31]


@pytest.mark.parametrize("simulated", [False, True])
def test_numbers_of_libdevice_have_the_types_that_it_says(simulated):
    @hip.jit
    def kernel(i32, u64, f32, i16, integers, floats):
        integers[0], integers[1] = libdevice.umax(i32[0], 4), libdevice.umin(i32[0], 4)
        integers[2], integers[3] = libdevice.ullmin(i32[0], 4), libdevice.llmax(u64[0], 4)
        integers[4], integers[5] = libdevice.llmin(u64[0], 4), libdevice.ullmax(u64[0], 4) == u64[0]
        for k in range(f32.size):
            integers[6 + k] = libdevice.float2half_rn(f32[k])
            floats[k] = libdevice.saturatef(f32[k])
        for k in range(i16.size):
            floats[6 + k] = libdevice.half2float(i16[k])

    i32, u64 = np.array([-100], np.int32), np.array([2**64 - 100], np.uint64)
    f32 = np.array([1.0, np.nan, -0.0, 0.25, np.inf, -7.0], np.float32)
    i16 = np.array([0x3C00, -0x4400, 0x7C00, 0x0001], np.int16)
    integers, floats = np.zeros(12, np.int64), np.zeros(10)
    with config.simulator.scope(simulated):
        hip.jit(kernel.py_func)[1, 1](i32, u64, f32, i16, integers, floats)
    assert integers[:6].tolist() == [2**32 - 100, 4, 4, 4, -100, 1]
    assert integers[[6, 8, 9, 10, 11]].tolist() == [0x3C00, -(2**15), 0x3400, 0x7C00, np.float16(-7).view(np.int16)]
    assert np.isnan(np.int16(integers[7]).view(np.float16))
    assert floats.tolist() == [1.0, 0.0, 0.0, 0.25, 1.0, 0.0, 1.0, -1.0, np.inf, 2.0**-24]
    assert not np.signbit(floats[:6]).any()


def test_libdevice_has_one_function_for_a_name_and_returns_what_it_writes():
    def kernel(x, out):
        i = hip.grid(1)
        sine, _ = libdevice.sincosf(x[i])
        fraction, exponent = hip.libdevice.frexp(x[i])
        out[i, 0], out[i, 1], out[i, 2] = sine, fraction, exponent
        out[i, 3] = libdevice.sin(x[i])  # in double precision, whatever x is
        out[i, 4] = libdevice.fast_expf(x[i])
        out[i, 5] = libdevice.popcll(i)
        out[i, 6] = libdevice.llmax(i, 3)
        out[i, 7] = libdevice.isinfd(x[i])

    x = X[:6]
    out = run(kernel, x, np.zeros((6, 8)))
    np.testing.assert_allclose(out[:, 0], np.sin(x), rtol=3e-7)
    np.testing.assert_array_equal(out[:, 1:3].T, np.frexp(x))
    np.testing.assert_allclose(out[:, 3], np.sin(x.astype(float)), rtol=1e-15)
    np.testing.assert_allclose(out[:, 4], np.exp(x), rtol=1e-6)
    assert out[:, 5].tolist() == [0, 1, 1, 2, 1, 2]
    assert out[:, 6].tolist() == [3, 3, 3, 3, 4, 5]
    assert not out[:, 7].any()


def test_a_function_that_hip_lacks():
    with pytest.raises(AttributeError, match=r"HIP has no counterpart of libdevice\.sin_ru"):
        libdevice.sin_ru  # noqa: B018


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(
            "hip.__shfl(x[0], 0, 64)",
            r"the CPU device does not have float __shfl\(float var, .*: ",
            marks=pytest.mark.cpu_device("GPUs have the function"),
        ),
        ("hip.sinf(x[0], x[0])", r"no overload of hip.sinf takes \(float32, float32\); HIP declares\s+float sinf"),
        ("hip.sinf(__x=x[0])", "hip.sinf takes no arguments by name"),
        ("hip.sinf(x)", r"no overload of hip.sinf takes \(array\(float32"),
        ("hip.__ldg(x[0])", r"A pointer is given as an array with elements of that type"),
        ("hip.atomicAdd(captured, 1)", r"no overload of hip.atomicAdd takes \(.*readonly"),
    ],
)
def test_calls_that_cannot_be(call, says):
    namespace = {"hip": hip, "captured": np.ones(1, np.float32)}
    exec(f"def kernel(x):\n    {call}", namespace)
    with pytest.raises(NumbaError, match=says):
        hip.jit(namespace["kernel"])[1, 1](np.ones(1, np.float32))


def test_outside_of_kernels():
    assert hip.__popc is find("__popc")
    assert pickle.loads(pickle.dumps(hip.sinf)) is hip.sinf
    assert pickle.loads(pickle.dumps(libdevice.sinf)) is libdevice.sinf
    assert "float sinf(float __x)" in hip.sinf.__doc__
    assert not hasattr(hip, "no_such_function")
    with pytest.raises(TypeError, match=r"hip\.sinf is a device function of HIP; it can be called from a kernel only"):
        hip.sinf(1.0)


def test_a_kernel_that_names_one_is_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_HIP_CACHE_DIR", str(tmp_path))

    def kernel(x):
        x[0] = hip.__sinf(x[0])

    for hits in (0, 1):
        x = np.ones(1, np.float32)
        cached = hip.jit(cache=True)(kernel)
        cached[1, 1](x)
        assert abs(x[0] - math.sin(1)) < 1e-6
        assert sum(cached.stats.cache_hits.values()) == hits


def test_functions_of_amd_gpus_keep_their_symbols():
    def kernel(x):
        vector = hip.make_float4(x[0], x[1], 0, hip.__shfl(x[2], 3, 64))
        x[0] = vector.x + vector.w

    code, _ = hip.compile(kernel, "(float32[::1],)", target="gfx942", output="llvm")
    assert "call <4 x float> @hipdl_make_float4__f32_f32_f32_f32(" in code
    assert "call float @hipdl___shfl__f32_i32_i32(" in code

    class Found:
        functions = load_reference().functions
        target = "gfx942"

    assert write_forwards({"hipdl___shfl__f32_i32_i32": "float (float, i32, i32)"}, Found()) == ""
    assert "hipdl___shfl__f32_i32_i32" in ABSENT


def test_forwards_to_the_overload_of_their_type():
    class Found:
        functions = load_reference().functions
        target = "gfx942"

    for kind in ("float", "double"):
        text = write_forwards({"lgamma": f"{kind} ({kind})"}, Found())
        assert str(llvm.parse_assembly(text).get_function("lgamma").global_value_type) == f"{kind} ({kind})"
    with pytest.raises(NotFoundError, match=r"has 'lgamma' as .*double \(double\).*; not as double \(float\)"):
        write_forwards({"lgamma": "double (float)"}, Found())
    with pytest.raises(NotFoundError, match="has no function 'lgammas'"):
        write_forwards({"lgammas": "double (double)"}, Found())


def test_forwards_to_functions_without_a_result():
    class Found:
        functions = load_reference().functions
        target = "gfx942"

    text = write_forwards({"__ockl_grid_sync": "void ()", "__ockl_clz_u32": "i32 (i32)"}, Found())
    module = llvm.parse_assembly(text)
    module.verify()
    barrier, zeros = (module.get_function(name) for name in ("__ockl_grid_sync", "__ockl_clz_u32"))
    assert not barrier.is_declaration
    assert not zeros.is_declaration
    assert b"convergent" in b" ".join(barrier.attributes)
    assert b"convergent" not in b" ".join(zeros.attributes)

    def wait(x):
        hip.cg.this_grid().sync()

    code, _ = hip.compile(wait, "(float32[::1],)", target="gfx942", output="llvm")
    called = llvm.parse_assembly(code).get_function("__ockl_grid_sync")
    assert b"convergent" in b" ".join(called.attributes)
