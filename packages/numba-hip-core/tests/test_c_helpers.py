"""What Numba's lowering calls of its functions in C: they have code for every device, or are refused at the line."""

import inspect

import numpy as np
import pytest
from numba import guvectorize, hip, njit, types
from numba.core.errors import LoweringError, TypingError

from hip_devicelib import undefined_symbols

SHAPES = [(24,), (4, 6), (2, 3, 4), (1, 24, 1), (8, 1, 3), (3, 8), (2, 12)]


@hip.jit
def read_in_other_shapes(x, out):
    out[0, hip.threadIdx.x] = x.reshape(24)[hip.threadIdx.x]
    out[1, hip.threadIdx.x] = x.reshape((4, 6))[hip.threadIdx.x // 6, hip.threadIdx.x % 6]
    out[2, hip.threadIdx.x] = x.reshape(-1, 3, 2)[hip.threadIdx.x // 6, hip.threadIdx.x // 2 % 3, hip.threadIdx.x % 2]
    out[3, hip.threadIdx.x] = np.reshape(x, (1, 24, 1))[0, hip.threadIdx.x, 0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_in_the_order_of_c(shape):
    values = np.arange(24.0)
    out = np.zeros((4, 24))
    read_in_other_shapes[1, 24](values.reshape(shape), out)
    np.testing.assert_array_equal(out, np.tile(values, (4, 1)))


@hip.jit
def strides_of(x, rows, layers, columns, out):
    found = x.reshape((rows, layers, columns))
    for axis in range(3):
        out[axis] = found.strides[axis]


@pytest.mark.parametrize("shape", [(4, 3, 2), (2, 2, 6), (4, 2, 3)])
def test_shapes_of_arrays_in_fortrans_order(shape):
    values = np.asfortranarray(np.arange(24.0).reshape(4, 6))
    out = np.zeros(3)
    strides_of[1, 1](values, *shape, out)
    view = values.reshape(shape)
    assert np.shares_memory(view, values)
    assert tuple(out) == view.strides


def test_a_shape_that_would_take_a_copy():
    @hip.jit(debug=True, opt=False)
    def kernel(x, rows, columns, out):
        out[0] = x.reshape((rows, columns))[0, 0]

    x = np.asfortranarray(np.arange(24.0).reshape(4, 6))
    for shape in ((6, 4), (2, 12), (3, 8)):
        with pytest.raises(NotImplementedError, match="incompatible shape for array"):
            kernel[1, 1](x, *shape, np.zeros(1))
    with pytest.raises(ValueError, match="total size of new array must be unchanged"):
        kernel[1, 1](x, 5, 5, np.zeros(1))


def test_arrays_of_no_elements():
    @hip.jit
    def kernel(x, out):
        out[0] = x.reshape((0, 7)).shape[1]

    out = np.zeros(1)
    kernel[1, 1](np.zeros((3, 0)), out)
    assert out[0] == 7


@pytest.mark.sample(1)
@pytest.mark.parametrize(("kind", "closeness"), [(np.complex128, 1e-13), (np.complex64, 2e-5)])
def test_complex_powers(kind, closeness):
    @hip.jit
    def kernel(x, y, out):
        out[hip.threadIdx.x] = x[hip.threadIdx.x] ** y[hip.threadIdx.x]

    @njit
    def expected(x, y, out):
        for i in range(x.size):
            out[i] = x[i] ** y[i]

    parts = [0, 1, -1.5, 2 + 1j, -0.5j, -3 + 2j, 2]
    x, y = (part.ravel().astype(kind) for part in np.meshgrid(parts, parts))
    out, wanted = np.zeros_like(x), np.zeros_like(x)
    kernel[1, x.size](x, y, out)
    expected(x, y, wanted)
    np.testing.assert_allclose(out, wanted, rtol=closeness, atol=closeness)


def reshaping(x):
    x[0] = x.reshape((2, 3))[1, 1] + x.ravel()[3] + x.reshape(6)[2]


def test_amd_has_code_for_reshape():
    bitcode, _ = hip.compile(reshaping, (types.float64[::1],), target="gfx1100", output="bitcode")
    assert undefined_symbols(bitcode) == ()


def test_what_gpus_do_not_have_is_refused_at_the_line():
    def kernel(x):
        x[1] = 1
        x[0] = hash(x[1])

    line = inspect.getsourcelines(kernel)[1] + 2
    with pytest.raises((LoweringError, TypingError), match=r"Numba's C function 'numba_\w+', which GPUs") as caught:
        hip.compile(kernel, (types.float64[:],), target="gfx1100")
    assert f"line {line}" in str(caught.value)


def test_ufuncs_without_dimensions_take_numbers():
    @guvectorize(["(float64, float64[:])"], "()->()", target="hip")
    def halve(x, out):
        out[0] = x / 2

    assert halve(3.0) == 1.5
