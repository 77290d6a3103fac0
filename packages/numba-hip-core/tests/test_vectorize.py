"""``vectorize`` and ``guvectorize``: host and device arrays, broadcasting, outputs, streams, and what does not fit."""

import enum
import pickle
from functools import partial

import numpy as np
import pytest
from numba import guvectorize, vectorize
from numba.core.errors import NumbaWarning, TypingError

import numba_hip as hip
from hip_runtime.errors import MaskedArrayError
from hip_runtime.protocols import array_interface
from numba_hip import config
from numba_hip.array_functions.elementwise import Operand, elementwise_kernel


@vectorize(["int32(int32, int32)", "float32(float32, float32)", "float64(float64, float64)"], target="hip")
def add(a, b):
    return a + b


@hip.guvectorize(["void(float32[:,:], float32[:,:], float32[:,:])"], "(m,n),(n,p)->(m,p)")
def multiply(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            total = np.float32(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((100,), (100,)), ((3, 1), (4,)), ((2, 3, 4), (3, 1)), ((), (5,)), ((0,), (0,)), ((1,), (3, 2)),
        ((3, 5, 2), (3, 5, 2)), ((1, 5), (1, 5)), ((1, 1), (4, 1)), ((0, 3), (1, 3)), ((2, 1, 3), (1, 4, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [np.asarray, hip.to_device])
def test_operands_are_broadcast(dtype, left, right, place):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 100, shape).astype(dtype) for shape in (left, right))
    result = add(place(a), place(b))
    if place is hip.to_device:
        result = result.copy_to_host()
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, a + b)


def test_views_on_the_device():
    a = np.arange(24.0).reshape(4, 6)
    device = hip.to_device(a)
    result = add(device[::2, ::-1], device.T[::3][:1, ::2].T)
    assert hip.is_device_array(result)
    np.testing.assert_array_equal(result.copy_to_host(), a[::2, ::-1] + a[::2, :1])
    with pytest.raises(ValueError, match=r"add: operands of shapes \(2, 6\), \(4, 2\) cannot be broadcast together"):
        add(device[::2], device[:, :2])


def test_rows_are_taken_for_one_matrix_and_for_one_row():
    """The same kernel cannot serve arrays that have one row and others that have as many as the result."""
    matrix, row = np.arange(12.0).reshape(4, 3), np.array([[10.0, 20.0, 30.0]])
    for left, right in ((matrix, matrix), (matrix, row), (row, matrix), (row, row), (matrix[:1], row)):
        np.testing.assert_array_equal(add(hip.to_device(left), hip.to_device(right)).copy_to_host(), left + right)


def test_contiguous_arrays_of_several_axes_share_a_kernel():
    elementwise_kernel.cache_clear()
    for shape in ((60,), (6, 10), (3, 4, 5)):
        for place in (np.ones(shape), hip.to_device(np.ones(shape))):
            result = add(place, place)
            assert result.shape == shape
            np.testing.assert_array_equal(np.asarray(result), 2.0)
    assert elementwise_kernel.cache_info().currsize == 1


def test_a_view_that_is_transposed():
    a = np.random.default_rng(1).random((10, 3, 1))
    b = a.transpose(2, 1, 0)
    np.testing.assert_array_equal(add(hip.to_device(a), hip.to_device(a).transpose(2, 1, 0)).copy_to_host(), a + b)
    np.testing.assert_array_equal(add(a, b), a + b)


def test_numbers():
    assert add(2, 3) == 5
    assert add(np.float32(0.5), 1).dtype == np.float32
    np.testing.assert_array_equal(add(np.arange(4.0), 2), np.arange(4.0) + 2)


def test_the_first_signature_that_takes_the_operands():
    assert add(np.ones(2, np.int16), np.ones(2, np.int32)).dtype == np.int32
    assert add(np.ones(2, np.int16), np.ones(2, np.float32)).dtype == np.float32
    assert add(hip.to_device(np.ones(2, np.int64)), np.ones(2, np.float32)).dtype == np.float64
    with pytest.raises(TypeError, match=r"compiled for \(int32, int32; .*\(complex128, float64\) does not convert"):
        add(np.ones(2, complex), np.ones(2))


def test_a_float_that_is_a_whole_number_is_an_integer_where_no_signature_takes_floats():
    scale = hip.vectorize(["int16(int16, int16)"])(lambda a, b: a * b)
    array = np.arange(4, dtype=np.int16)
    for number in (3.0, np.float64(3.0)):
        np.testing.assert_array_equal(scale(array, number), array * 3)
    for number in (3.5, 70000.0, np.float64("inf"), np.array([3.0])):
        with pytest.raises(TypeError, match="does not convert to it without loss"):
            scale(array, number)
    wide = hip.vectorize(["int32(int32, int32)", "float64(float64, float64)"])(lambda a, b: a * b)
    assert wide(np.arange(3, dtype=np.int32), 3.0).dtype == np.float64


def test_a_ufunc_takes_any_number_where_arguments_are_truncated():
    scale = hip.vectorize(["float32(float32, float32)"])(lambda a, b: a * b)
    array = np.arange(4, dtype=np.float32)
    with config.truncate_arguments.scope(True):
        with pytest.warns(NumbaWarning, match=r"converted from \(float32, float64\) to \(float32, float32\)"):
            result = scale(array, np.float64(0.1))
        np.testing.assert_array_equal(result, array * np.float32(0.1))
        with pytest.raises(TypeError, match="does not convert"):
            scale(array, np.full(4, 0.1))
    with pytest.raises(TypeError, match="does not convert"):
        scale(array, np.float64(0.1))


@pytest.mark.parametrize("number", [2.5, 2, True])
@pytest.mark.sample(1)
def test_pythons_numbers_go_with_the_arrays(number):
    wide_first = hip.vectorize(["float64(float64, float64)", "int32(int32, int32)", "float32(float32, float32)"])(
        lambda a, b: a + b
    )
    for array in (np.arange(3, dtype=np.float32), hip.to_device(np.arange(3, dtype=np.float32))):
        for found in (wide_first(array, number), wide_first(number, array)):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, np.arange(3) + number)
    assert wide_first(np.arange(3.0), number).dtype == np.float64
    assert wide_first(np.arange(3, dtype=np.float32), np.float64(2.5)).dtype == np.float64  # it has a size, as in NumPy
    whole = wide_first(np.arange(3, dtype=np.int32), number)
    assert whole.dtype == (np.float64 if number == 2.5 else np.int32)
    assert wide_first(np.arange(3, dtype=np.int32), 2**40).dtype == np.float64


class Foreign:
    """An array of another library."""

    def __init__(self, array):
        self.kept = array
        self.__cuda_array_interface__ = array_interface(array)


def test_arrays_of_other_libraries():
    add = hip.vectorize(["float64(float64, float64)"])(lambda a, b: a + b)
    a = np.arange(5.0)
    given, out = Foreign(hip.to_device(a)), Foreign(hip.to_device(np.zeros(5)))
    np.testing.assert_array_equal(add(given, 6).copy_to_host(), a + 6)
    assert add(a, given, out=out).address == out.kept.address
    np.testing.assert_array_equal(out.kept.copy_to_host(), 2 * a)
    double = hip.guvectorize(["void(float64, float64[:])"], "()->()")(fill_double)
    assert double(given, out=out).address == out.kept.address
    np.testing.assert_array_equal(out.kept.copy_to_host(), 2 * a)


def fill_double(a, out):
    out[0] = 2 * a


@pytest.mark.parametrize("value", [7, np.int64(7), np.uint64(7), np.array(7), np.int8(7)])
@pytest.mark.sample(2)
def test_a_number_is_converted_where_it_stays_the_same(value):
    narrow = hip.vectorize(["int32(int32)"])(lambda a: 2 * a)
    double = hip.guvectorize(["void(int32, int32[:])"], "()->()")(fill_double)
    assert narrow(value) == 14
    assert double(value) == 14


@pytest.mark.parametrize("value", [2**31, np.int64(-(2**40)), np.float64(2.5), 1.5, 1j, np.array([2**33]), "text"])
def test_a_number_that_would_change_is_refused(value):
    for function in (
        hip.vectorize(["int32(int32)"])(lambda a: 2 * a),
        hip.guvectorize(["void(int32, int32[:])"], "()->()")(fill_double),
    ):
        with pytest.raises(TypeError):
            function(value)


def test_results_into_an_array_that_is_given():
    a = np.arange(6.0).reshape(2, 3)
    for out in (np.zeros((2, 3)), np.zeros((2, 3), np.float32), np.zeros((3, 2)).T, np.zeros((4, 3))[::2]):
        assert add(a, 1, out=out) is out
        np.testing.assert_array_equal(out, a + 1)
    device = hip.to_device(a)
    assert add(device, device, out=device) is device
    np.testing.assert_array_equal(device.copy_to_host(), a * 2)
    assert add(a, a, device) is device
    with pytest.raises(ValueError, match=r"out has shape \(2, 2\); the result has \(2, 3\)"):
        add(a, a, out=np.zeros((2, 2)))
    with pytest.raises(TypeError, match="float64, which does not convert to int32"):
        add(a, a, out=np.zeros((2, 3), np.int32))
    with pytest.raises(TypeError, match="out is a list"):
        add(a, a, out=[0])


def test_a_stream():
    stream = hip.stream()
    a = np.arange(1000.0)
    device = hip.to_device(a, stream=stream)
    result = add(device, device, stream=stream)
    host = result.copy_to_host(stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(host, a * 2)
    np.testing.assert_array_equal(add(a, a, stream=stream), a * 2)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100, 257])
@pytest.mark.parametrize("place", [np.asarray, hip.to_device])
def test_reduction(count, place):
    a = np.arange(count, dtype=np.int32)
    assert add.reduce(place(a)) == a.sum()
    np.testing.assert_array_equal(a, np.arange(count))


def test_what_cannot_be_reduced():
    with pytest.raises(TypeError, match="no elements"):
        add.reduce(np.zeros(0))
    with pytest.raises(TypeError, match=r"one axis, got shape \(2, 2\)"):
        add.reduce(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="takes 1 numbers"):
        hip.vectorize(lambda x: x).reduce(np.zeros(2))


def test_without_signatures():
    @hip.vectorize
    def square(x):
        """Its square."""
        return x * x

    for dtype in (np.int32, np.float32, np.complex128):
        result = square(np.arange(5).astype(dtype))
        np.testing.assert_array_equal(result, np.arange(5).astype(dtype) ** 2)
        assert result.dtype.kind == np.dtype(dtype).kind
    assert square.__name__ == "square"
    assert square.__doc__ == "Its square."


@pytest.mark.parametrize("decorate", [hip.vectorize, partial(vectorize, target="hip")], ids=["hip", "numba"])
@pytest.mark.sample(1)
def test_an_exception_of_an_element(decorate):
    @decorate(["float64(float64)"], exceptions=True)
    def root(x):
        if x < 0:
            raise ValueError("negative")
        return x**0.5

    for ufunc in (root, pickle.loads(pickle.dumps(root))):
        with pytest.raises(ValueError, match="negative"):
            ufunc(np.array([1.0, -1.0]))
        assert ufunc(4.0) == 2


@pytest.mark.parametrize("decorate", [hip.guvectorize, partial(guvectorize, target="hip")], ids=["hip", "numba"])
@pytest.mark.sample(1)
def test_an_exception_of_a_part(decorate):
    @decorate(["void(int64[:], int64[:])"], "(n)->(n)", exceptions=True)
    def check(a, b):
        for i in range(a.size):
            if a[i] < 0:
                raise ValueError("negative")
            b[i] = a[i]

    good = np.arange(6).reshape(2, 3)
    for gufunc in (check, pickle.loads(pickle.dumps(check))):
        with pytest.raises(ValueError, match="negative"):
            gufunc(good - 1)
        np.testing.assert_array_equal(gufunc(good), good)


@pytest.mark.sample(1)
@pytest.mark.parametrize("exceptions", [False, True])
def test_what_raises_on_a_gpu_has_a_place_for_it_only_if_asked_for(exceptions):
    core = hip.jit(device=True)(lambda x: 1 // x)
    kernel = elementwise_kernel(core, (Operand((False,)),), (Operand((False,)),), exceptions)
    assert kernel.options.reports_faults is exceptions


def test_masks_would_be_lost():
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    plus = hip.vectorize(lambda a, b: a + b)
    copy = hip.guvectorize(["(float64[:], float64[:])"], "(n)->(n)")(lambda x, out: None)
    for call, what in (
        (lambda: plus(1, masked), "argument 2 of <lambda>"),
        (lambda: plus(1, np.ones(2), out=masked), "out 1 of <lambda>"),
        (lambda: plus.reduce(masked), "argument 1 of <lambda>.reduce"),
        (lambda: copy(masked), "argument 1 of <lambda>"),
        (lambda: copy(np.ones(2), out=masked), "out 1 of <lambda>"),
    ):
        with pytest.raises(MaskedArrayError, match=f"{what} has a mask, which devices do not see"):
            call()


@pytest.mark.parametrize("signatures", [["int64(int64)"], []])
def test_members_of_enumerations_are_results(signatures):
    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 5

    level_of = hip.vectorize(signatures)(lambda x: Level.HIGH if x > 1 else Level.LOW)
    np.testing.assert_array_equal(level_of(np.arange(4)), [1, 1, 5, 5])


def test_functions_that_cannot_be_vectorized():
    with pytest.raises(TypeError, match="returns nothing"):
        hip.vectorize(["void(float64)"])(lambda x: None)
    for returned in ((1, 2), "text", None):
        with pytest.raises(TypeError, match="<lambda> returns .*; a vectorized function returns one number"):
            hip.vectorize(["float64(float64)"])(lambda x: returned)  # noqa: B023
    with pytest.raises(TypeError, match="returns complex128, which does not convert to float64, the result in the sig"):
        hip.vectorize(["float64(float64)"])(lambda x: x * 1j)
    for layout, kind, says in (
        ("(n)->(n", ValueError, r"layout '\(n\)->\(n': a parenthesis is missing; write it as in"),
        ("(3)->(3)", ValueError, "layout .*: bad token in signature"),
        ("(n)->(m)", NameError, "layout .*: undefined output symbols: m"),
    ):
        with pytest.raises(kind, match=says):
            hip.guvectorize(["(float64[:], float64[:])"], layout)(lambda x, out: None)
    with pytest.raises(TypeError, match="takes 1 arguments; signature"):
        hip.vectorize(["float64(float64, float64)"])(lambda x: x)
    with pytest.raises(TypingError):
        hip.vectorize(["float64(float64)"])(lambda x: x.no_such)
    with pytest.raises(KeyError, match="does not support option: 'nothing'"):
        vectorize(["float64(float64)"], target="hip", nothing=1)(lambda x: x)
    with pytest.warns(RuntimeWarning, match="nopython kwarg for hip target is redundant"):
        vectorize(["float64(float64)"], target="hip", nopython=True)(lambda x: x)
    with pytest.raises(TypeError, match="takes 2 arrays or numbers"):
        add(1)


@pytest.mark.parametrize("place", [np.asarray, hip.to_device])
def test_matrices(place):
    rng = np.random.default_rng(2)
    for left, right in (((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (3, 4)), ((4, 1, 2, 3), (6, 3, 4))):
        a, b = rng.random(left, np.float32), rng.random(right, np.float32)
        result = multiply(place(a), place(b))
        result = result.copy_to_host() if place is hip.to_device else result
        np.testing.assert_allclose(result, a @ b, rtol=1e-5)


def test_numbers_among_the_dimensions_of_a_gufunc():
    @guvectorize(["void(float64[:], float64, float64[:])"], "(n),()->()", target="hip")
    def weigh(a, weight, total):
        total[0] = 0
        for x in a:
            total[0] += x * weight

    a = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(weigh(a, 2.0), a.sum(1) * 2)
    np.testing.assert_array_equal(weigh(a, np.arange(3.0)), a.sum(1) * np.arange(3))
    assert weigh(a[0], 3) == a[0].sum() * 3


def test_several_outputs_that_are_given_or_made():
    @hip.guvectorize("void(float32[:], float32[:], int64[:])", "(n)->(n),()")
    def scan(a, sums, count):
        total = np.float32(0)
        for i in range(a.shape[0]):
            total += a[i]
            sums[i] = total
        count[0] = a.shape[0]

    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    sums, count = scan(a)
    np.testing.assert_array_equal(sums, a.cumsum(1))
    np.testing.assert_array_equal(count, [5] * 4)
    out = np.zeros((4, 5), np.float32), np.zeros(4, np.int64)
    assert scan(a, *out)[0] is out[0]
    np.testing.assert_array_equal(out[0], a.cumsum(1))
    on_device = hip.device_array((4, 5), np.float32), hip.device_array(4, np.int64)
    assert scan(hip.to_device(a), out=on_device, stream=hip.stream())[1] is on_device[1]
    np.testing.assert_array_equal(on_device[0].copy_to_host(), a.cumsum(1))


def add_first(x, y, out):
    for i in range(x.size):
        out[i] = x[i] + y[0]


def test_a_result_without_leading_axes_of_one_element():
    add = hip.guvectorize(["void(int32[:], int32[:], int32[:])"], "(n),()->(n)")(add_first)
    x, y, out = np.arange(4, dtype=np.int32), np.array([2], np.int32), np.zeros(4, np.int32)
    assert add(x, y, out=out) is out
    assert out.tolist() == [2, 3, 4, 5]
    assert add(x, y).shape == (1, 4)
    with pytest.raises(ValueError, match="output 0 has shape"):
        add(x, np.zeros(2, np.int32), out=out)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_a_result_that_does_not_convert_to_out(dtype):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    for out in (np.zeros((2, 2), dtype), hip.to_device(np.zeros((2, 2), dtype))):
        with pytest.raises(TypeError, match="multiply: the result is float32, which does not convert to"):
            multiply(a, a.T, out=out)
    out = np.full((2, 2), 1j)
    np.testing.assert_allclose(multiply(a, a.T, out=out), a @ a.T, rtol=1e-5)  # without a warning


def test_what_cannot_be_compiled_is_told_at_its_line():
    def fill(x, out):
        out[0] = undefined(x[0])  # noqa: F821

    for make in (
        lambda: hip.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")(fill),
        lambda: hip.vectorize(["float64(float64)"])(lambda x: undefined(x)),  # noqa: F821
        lambda: hip.vectorize(lambda x: undefined(x))(np.ones(3)),  # noqa: F821
    ):
        with pytest.raises(TypingError) as caught:
            make()
        assert str(caught.value).startswith("name 'undefined' is not defined")
        assert "pipeline" not in str(caught.value)


def test_a_gufunc_takes_wider_arrays_where_arguments_are_truncated():
    a = np.arange(6).reshape(2, 3) / 3
    with config.truncate_arguments.scope(True):
        with pytest.warns(
            NumbaWarning, match=r"multiply are converted from \(float64, float64\) to \(float32, float32\)"
        ):
            result = multiply(a, a.T)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, multiply(a.astype(np.float32), a.T.astype(np.float32)))
        for inputs in ((hip.to_device(a), a.T), (a.astype("U"), a.T)):
            with pytest.raises(TypeError, match="do not fit"):
                multiply(*inputs)
    with pytest.raises(TypeError, match="do not fit"):
        multiply(a, a.T)


def test_what_does_not_fit_a_gufunc():
    a = np.zeros((2, 3), np.float32)
    for args, kws, error, says in (
        ((a,), {}, TypeError, r"gufunc accepts 2 positional arguments .* or 3 .*Got 1 positional argument\."),
        ((a, a), {}, ValueError, "dimension n of .* has extent 3, but input 1 has 2"),
        ((a, a[0]), {}, ValueError, "input 1 has 1 dimensions"),
        ((a, a.T, a), {"out": a}, ValueError, "both positional and keyword"),
        ((a, a.T), {"out": np.zeros((3, 3), np.float32)}, ValueError, r"output 0 has shape \(3, 3\)"),
        ((a.astype(complex), a.T), {}, TypeError, "do not fit"),
        ((hip.to_device(a.astype(np.float16)), a.T), {}, TypeError, r"A device array does not support .astype\(\)"),
    ):
        with pytest.raises(error, match=says):
            multiply(*args, **kws)
    with pytest.raises(TypeError, match="cannot return values"):
        hip.guvectorize(["float32(float32[:], float32[:])"], "(n)->(n)")(lambda a, b: 1)
    with pytest.raises(TypeError, match=r"float32 does not fit dimensions \(n\)"):
        hip.guvectorize(["void(float32, float32[:])"], "(n)->(n)")(lambda a, b: None)
    with pytest.raises(TypeError, match="not supported: 'what'"):
        guvectorize(["void(float32[:], float32[:])"], "(n)->(n)", target="hip", what=1)(lambda a, b: None)
    with pytest.raises(TypeError, match="nopython flag must be True"):
        guvectorize(["void(float32[:], float32[:])"], "(n)->(n)", target="hip", nopython=False)(lambda a, b: None)

    with pytest.raises(NameError, match="undefined output symbols: m"):
        hip.guvectorize(["void(float32[:], float32[:])"], "(n)->(m)")(lambda a, b: None)


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_for_amd_gpus(target):
    from numba_hip.array_functions.elementwise import Operand, elementwise_kernel

    kernel = elementwise_kernel(add.core, (Operand((False, False)), Operand((False,))), (Operand((False, False)),))
    signature = "(UniTuple(int64, 2), float32[:,:], float32[::1], float32[:,::1])"
    assert hip.compile(kernel, signature, target=target, output="object")[0][:4] == b"\x7fELF"
    kernel = elementwise_kernel(
        multiply.core, (Operand((False,), 2, True), Operand((), 2, True)), (Operand((False,), 2, True),)
    )
    signature = "(UniTuple(int64, 1), float32[:,:,::1], float32[:,::1], float32[:,:,::1])"
    assert hip.compile(kernel, signature, target=target, output="object")[0][:4] == b"\x7fELF"


def test_a_number_for_a_gufunc_that_takes_it_as_an_array():
    """As the moving mean of Numba's manual does."""

    @hip.guvectorize(["void(float64[:], int64[:], float64[:])"], "(n),()->(n)")
    def scaled(values, factor, result):
        for i in range(values.size):
            result[i] = values[i] * factor[0]

    rows = np.arange(12.0).reshape(3, 4)
    for factor in (7, np.int64(7), np.array(7), np.array([7]), hip.to_device(np.array([7]))):
        np.testing.assert_array_equal(np.asarray(scaled(rows, factor)), 7 * rows)
        one_row = scaled(rows[1], factor)
        np.testing.assert_array_equal(np.asarray(one_row).reshape(-1), 7 * rows[1])
    np.testing.assert_array_equal(scaled(rows, np.arange(3)), np.arange(3)[:, None] * rows)


def test_numbers_for_a_gufunc_that_takes_all_as_arrays():
    add = hip.guvectorize(["void(int32[:], int32[:], int32[:])"], "(),()->()")(add_first)
    for x in (5, np.int32(5), np.array(5, np.int32)):
        result = add(x, 2)
        assert (result, np.shape(result)) == (7, ())
    assert add(hip.to_device(np.array(5, np.int32)), 2).copy_to_host() == 7


@pytest.mark.parametrize("large", [np.uint64(2**63), np.array(2**63, np.uint64)], ids=["scalar", "no axes"])
def test_an_unsigned_number_does_not_become_negative(large):
    whole = hip.vectorize(["int64(int64, int64)", "float64(float64, float64)"])(lambda a, b: a + b)
    found = whole(np.array([1]), large)
    assert found.dtype == np.float64
    assert found == 2.0**63
    assert whole(np.array([1]), np.uint64(5)).dtype == np.int64
    small = hip.vectorize(["int8(int8, int8)"])(lambda a, b: a + b)
    assert small(np.zeros(1, np.int8), np.uint8(100)) == 100
    with pytest.raises(TypeError, match=r"\(int8, uint8\) does not convert to it without loss"):
        small(np.zeros(1, np.int8), np.uint8(200))
