"""Vectors of one to four numbers: made, read, and kept in shared and private arrays."""

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import NumbaError, TypingError

import numba_hip as hip
from numba_hip.language.vector_types import C_NAMES, VECTORS


@pytest.mark.parametrize("base", C_NAMES, ids=str)
@pytest.mark.sample(5)
def test_components(base):
    one, two, three, four = (getattr(hip, f"{base}x{count}") for count in range(1, 5))

    @hip.jit
    def kernel(a, out):
        single = one(a[0])
        pair = two(a[0], a[1])
        triple = three(pair, single)
        both = four(pair, two(a[2], a[3]))
        out[0] = single.x
        out[1], out[2] = pair.x, pair.y
        out[3], out[4], out[5] = triple.x, triple.y, triple.z
        out[6], out[7], out[8], out[9] = both.x, both.y, both.z, both.w
        out[10] = four(single, triple).w

    a = np.array([1, 2, 3, 4], str(base))
    out = np.zeros(11, str(base))
    kernel[1, 1](a, out)
    np.testing.assert_array_equal(out, [1, 1, 2, 1, 2, 1, 1, 2, 3, 4, 1])


def test_components_are_converted():
    @hip.jit
    def kernel(out):
        vector = hip.int4(2.75, True, hip.float32x2(-1.5, 300.25))
        out[0], out[1], out[2], out[3] = vector.x, vector.y, vector.z, vector.w

    out = np.zeros(4)
    kernel[1, 1](out)
    np.testing.assert_array_equal(out, [2, 1, -1, 300])


def reverse(a, out):
    shared = hip.shared.array(8, hip.float32x4)
    private = hip.local.array(2, hip.float4)
    i = hip.threadIdx.x
    shared[i] = hip.float4(a[i, 0], a[i, 1], a[i, 2], a[i, 3])
    hip.syncthreads()
    private[i % 2] = shared[7 - i]
    vector = private[i % 2]
    out[i, 0], out[i, 1], out[i, 2], out[i, 3] = vector.w, vector.z, vector.y, vector.x


def test_vectors_in_shared_and_private_arrays():
    a = np.random.default_rng(0).random((8, 4), np.float32)
    out = np.zeros_like(a)
    hip.jit(reverse)[1, 8](a, out)
    np.testing.assert_array_equal(out, a[::-1, ::-1])


def test_device_functions_take_and_return_vectors():
    @hip.jit(device=True)
    def cross(a, b):
        return hip.double3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)

    @hip.jit
    def kernel(a, b, out):
        c = cross(hip.double3(a[0], a[1], a[2]), hip.double3(b[0], b[1], b[2]))
        out[0], out[1], out[2] = c.x, c.y, c.z

    a, b, out = np.array([1.0, 2, 3]), np.array([-2.0, 0.5, 4]), np.zeros(3)
    kernel[1, 1](a, b, out)
    np.testing.assert_array_equal(out, np.cross(a, b))


def test_names():
    assert hip.float4 is hip.float32x4 is VECTORS["float4"]
    assert hip.uchar2 is hip.uint8x2
    assert hip.longlong3 is hip.long3 is hip.int64x3
    assert (hip.float4.name, hip.float4.shape, hip.float4.length) == ("float32x4", (4,), 4)
    assert hip.float4.dtype == types.float32
    with pytest.raises(AttributeError, match="float5"):
        hip.float5  # noqa: B018
    with pytest.raises(TypeError, match="hip.float32x2 can be called in kernels only"):
        hip.float2(1, 2)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.sample(2)
def test_for_amd_gpus(target):
    image, _ = hip.compile(reverse, "(float32[:,::1], float32[:,::1])", target=target, output="object")
    assert image[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("hip.float4(1, 2)", r"hip.float32x4 has 4 components; \(.*\) has 2"),
        ("hip.float2(1, hip.int2(1, 2))", "has 2 components; .* has 3"),
        ("hip.int2(1j, 2)", "has 2 components; .* has 3"),
        ("hip.int2('1')", "takes numbers and vectors, not"),
        ("hip.int2(x=1, y=2)", "takes no arguments by name"),
        ("hip.int2(1, 2).z", "Unknown attribute 'z'"),
    ],
)
def test_what_is_no_vector(source, says):
    namespace = {"hip": hip}
    exec(f"def kernel(x):\n    {source}", namespace)
    with pytest.raises((TypingError, NumbaError), match=says):
        hip.compile(namespace["kernel"], "(int32[::1],)", target="cpu", output="llvm")


def reference(a, b, number):
    """What the kernel beneath computes, with NumPy's numbers of the same type."""
    kind = a.dtype.type
    numbers = [a + b, a - b, a * b, a // b, a % b, -a, +a, abs(a), a + kind(number), kind(number) - a, a * kind(number)]
    return np.stack([one.astype(a.dtype) for one in numbers])


@pytest.mark.parametrize("base", C_NAMES, ids=str)
@pytest.mark.sample(4)
def test_arithmetic_is_that_of_the_components(base):
    four = getattr(hip, f"{base}x4")

    @hip.jit
    def kernel(a, b, number, out):
        v, w = four(a[0], a[1], a[2], a[3]), four(b[0], b[1], b[2], b[3])
        results = (v + w, v - w, v * w, v // w, v % w, -v, +v, abs(v), v + number, number - v, v * number)
        for i in range(len(results)):
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = results[i].x, results[i].y, results[i].z, results[i].w

    signed = not str(base).startswith("uint")
    a = np.array([7, 100, -9 if signed else 200, 5], str(base))
    b = np.array([2, 3, 4, -5 if signed else 5], str(base))
    out = np.zeros((11, 4), str(base))
    kernel[1, 1](a, b, 3, out)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, reference(a, b, 3))


def test_division_gives_floats_their_quotients():
    @hip.jit
    def kernel(out):
        v = hip.float32x2(1.0, 3.0) / 2
        v /= hip.float32x2(2.0, 0.5)
        v += 1
        out[0], out[1] = v.x, v.y

    out = np.zeros(2)
    kernel[1, 1](out)
    assert out.tolist() == [1.25, 4]


@pytest.mark.parametrize(
    "combine",
    [
        lambda: hip.int32x2(1, 2) / 2,
        lambda: hip.int32x2(1, 2) + hip.int32x3(1, 2, 3),
        lambda: hip.int32x2(1, 2) + hip.int64x2(1, 2),
        lambda: hip.int32x2(1, 2) - (1, 2),
        lambda: hip.float32x2(1, 2) + 1j,
    ],
)
def test_vectors_that_do_not_fit_are_refused(combine):
    combined = hip.jit(device=True)(combine)

    @hip.jit
    def kernel(out):
        out[0] = combined().x

    with pytest.raises(TypingError, match="No implementation of function"):
        kernel[1, 1](np.zeros(1))
