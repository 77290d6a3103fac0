"""``hip.reduce``, and grids whose threads wait for one another."""

import numpy as np
import pytest

import numba_hip as hip
from hip_devicelib import amdgpu
from hip_runtime.errors import ArrayError, MaskedArrayError
from numba_hip.array_functions import reduction
from numba_hip.compilation.bitcode_properties import is_cooperative
from numba_hip.compilation.kernel_code import compile_kernel
from numba_hip.compilation.options import CompileOptions


@hip.reduce
def add(a, b):
    return a + b


largest = hip.Reduce(lambda a, b: a if a > b else b)


@pytest.mark.parametrize("count", [1, 2, 3, 31, 255, 256, 257, 1000, 2048, 2049, 2081, 65536, 131072, 600_001])
@pytest.mark.parametrize("place", [np.asarray, hip.to_device])
@pytest.mark.sample(5)
def test_sums_of_every_length(count, place, scaled):
    count = scaled(count)
    a = np.random.default_rng(count).integers(-1000, 1000, count)
    assert add(place(a)) == a.sum()
    assert add(place(a), size=count // 2) == a[: count // 2].sum()
    assert largest(place(a), init=-5000) == a.max()


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, np.float64, np.complex128])
def test_types(dtype):
    a = np.random.default_rng(1).integers(0, 3, 80).astype(dtype)
    total = add(a, init=2)
    assert total.dtype == dtype
    assert total == a.sum(dtype=dtype) + 2


def test_sums_are_the_same_each_time():
    a = np.random.default_rng(2).random(70000)
    first = add(a)
    np.testing.assert_allclose(first, a.sum(), rtol=1e-12)
    assert {float(add(a)) for _ in range(5)} == {float(first)}


def test_results_that_stay_on_the_device():
    stream = hip.stream()
    a = hip.to_device(np.arange(1000.0)[::-1], stream=stream)
    res = hip.to_device(np.full(3, 7.0), stream=stream)
    assert add(a, res=res, stream=stream) is None
    assert res.copy_to_host(stream=stream) is not None
    stream.synchronize()
    np.testing.assert_array_equal(res.copy_to_host(), [a.copy_to_host().sum(), 7, 7])
    assert add(a[::2]) == np.arange(1000.0)[::-1][::2].sum()


def test_results_of_several_reductions_in_order():
    arrays = [hip.to_device(np.arange(count, dtype=np.int64)) for count in (40_000, 17_000, 40_000)]
    res = [hip.to_device(np.zeros(1, np.int64)) for _ in arrays]
    for array, place in zip(arrays, res, strict=True):
        add(array, res=place, init=5)
    wanted = [5 + array.size * (array.size - 1) // 2 for array in arrays]
    assert [place.copy_to_host()[0] for place in res] == wanted
    (space,) = add._in_order[res[0].device, np.dtype(np.int64)]
    assert space._made, "no array was kept for the next reduction"


@pytest.mark.parametrize("count", [1, 300, reduction.FEW, reduction.FEW + 1])
@pytest.mark.parametrize("init", [0, 0.0, -0.0, False, 2, np.float32(3)])
def test_few_elements_stay_on_the_device(count, init):
    """Launched at once, whatever they start with."""
    a = hip.to_device(np.arange(count + 1, dtype=np.float64))
    res = hip.to_device(np.full(2, -1.0))
    assert add(a, size=count, res=res, init=init) is None
    np.testing.assert_array_equal(res.copy_to_host(), [init + count * (count - 1) / 2, -1])
    assert add(a[:1], res=res, init=init) is None
    assert np.signbit(res.copy_to_host()[0]) == np.signbit(np.float64(0) + init)


def test_host_arrays_of_every_kind():
    """Where the device is the processor they are used in place, which not all can be."""
    a = np.arange(3000.0)
    apart = np.zeros(24001, np.uint8)[1:].view(np.float64)
    apart[:] = a
    fixed = a.copy()
    fixed.flags.writeable = False
    for host in (a, a[::-1], a[::2], apart, fixed):
        assert add(host) == np.asarray(host).sum()
    np.testing.assert_array_equal(a, np.arange(3000.0))
    with pytest.raises(ArrayError, match="holds Python objects"):
        add(np.array([1, None]))


def test_streams_by_their_handles():
    stream = hip.stream()
    a, res = hip.to_device(np.ones(5000)), hip.device_array(1)
    assert add(a, stream=stream.handle) == 5000
    add(a, res=res, stream=stream.handle)
    stream.synchronize()
    assert res.copy_to_host() == 5000


def test_arrays_without_elements():
    assert add(np.zeros(0)) == 0
    assert add(np.ones(5), size=0, init=3) == 3


@pytest.mark.parametrize("place", [np.asarray, hip.to_device])
def test_dates_and_durations(place):
    """The default of init, 0, is a duration; of dates it is the first one."""
    durations = np.array([3, 40, 5], "timedelta64[ms]")
    assert add(place(durations)) == np.timedelta64(48, "ms")
    assert largest(place(-durations)) == np.timedelta64(0, "ms")
    assert add(place(durations), init=np.timedelta64(1, "s")) == np.timedelta64(1048, "ms")
    assert add(place(durations[:0])) == np.timedelta64(0, "ms")
    dates = np.array(["1950-01-01", "1920-01-01", "1960-01-01"], "datetime64[D]")
    assert largest(place(dates)) == dates[2]
    assert largest(place(dates), init=np.datetime64("1970-01-01")) == np.datetime64("1970-01-01")
    result = hip.device_array(1, dates.dtype)
    largest(place(dates), res=result)
    assert result.copy_to_host() == dates[2]
    with pytest.raises(TypeError, match=r"init is .*datetime64.*timedelta64\[ms\] does not hold"):
        add(place(durations), init=np.datetime64("2020-01-01"))
    with pytest.raises(TypeError, match=r"init is .*1500.*, which an element of timedelta64\[s\] does not hold"):
        add(place(durations.astype("timedelta64[s]")), init=np.timedelta64(1500, "ms"))
    with pytest.raises(TypeError, match="init has to be a date, as there are no elements"):
        largest(place(dates[:0]))


def test_what_cannot_be_reduced():
    with pytest.raises(MaskedArrayError, match="the array of a reduction has a mask"):
        add(np.ma.array([1.0, 2.0], mask=[0, 1]))
    with pytest.raises(TypeError, match=r"<lambda>\(a\) is called with two numbers, .*too many positional arguments"):
        hip.reduce(lambda a: a)
    with pytest.raises(TypeError, match="init is 'a'; it has to be a number that float64 has"):
        add(np.zeros(2), init="a")
    with pytest.raises(TypeError, match="one axis, got one of 2"):
        add(np.zeros((2, 2)))
    for size in (-1, 6, 1.5, True):
        with pytest.raises(ValueError, match="size is .*; the array has 5 elements"):
            add(np.zeros(5), size=size)
    with pytest.raises(TypeError, match="res has to be an array on the device"):
        add(np.zeros(5), res=np.zeros(1))
    with pytest.raises(TypeError, match="res has dtype float32; the elements are float64"):
        add(np.zeros(5), res=hip.device_array(1, np.float32))


def shift(values, rounds):
    grid = hip.cg.this_grid()
    i = hip.grid(1)
    for _ in range(rounds):
        neighbour = values[(i + 1) % values.size]
        grid.sync()
        values[i] = neighbour
        grid.sync()


def test_threads_of_a_whole_grid_wait_for_one_another():
    values = np.arange(128)
    hip.jit(shift)[8, 16](values, 5)
    np.testing.assert_array_equal(values, np.roll(np.arange(128), -5))


def test_a_barrier_of_the_grid_makes_a_cooperative_kernel():
    def alone(values, rounds):
        values[0] = rounds

    from numba.core import types

    kinds = (types.int64[::1], types.int64)
    for target in ("cpu", "gfx90a", "gfx942", "gfx1100", "gfx1201"):
        assert is_cooperative(compile_kernel(shift, kinds, CompileOptions(), target).bitcode)
        assert not is_cooperative(compile_kernel(alone, kinds, CompileOptions(), target).bitcode)


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_for_amd_gpus(target):
    from numba.core import types

    code = compile_kernel(shift, (types.int64[::1], types.int64), CompileOptions(), target)
    assert "__ockl_grid_sync" in set(amdgpu.undefined_symbols(code.bitcode))
    assert hip.compile(shift, "(int64[::1], int64)", target=target, output="object")[0][:4] == b"\x7fELF"
    from hip_devicelib import kernel_metadata

    for kernel, signature, nbytes in (
        (reduction._column_kernel(add._functor), "(float32[::1], int64, int64, float32[::1])", 0),
        (reduction._last_kernel(add._functor, types.float32), "(float32[::1], int64, float32[::1], float32)", 256 * 4),
    ):
        image, _ = hip.compile(kernel, signature, target=target, output="object")
        (found,) = kernel_metadata.read_kernels(image)
        assert found.shared_bytes == nbytes


@pytest.mark.parametrize(
    ("kind", "init"), [(np.int64, 2.7), (np.int64, np.uint64(2**63)), (np.int8, 300), (np.uint8, -1)]
)
def test_an_init_that_elements_do_not_hold(kind, init):
    with pytest.raises(TypeError, match=rf"init is .*; it has to be a number that {np.dtype(kind)} has"):
        hip.reduce(lambda a, b: a + b)(np.arange(3, dtype=kind), init=init)


def test_an_init_of_another_type_with_the_same_value():
    total = hip.reduce(lambda a, b: a + b)
    values = np.arange(3)
    assert [total(values, init=init) for init in (2.0, np.uint8(2), np.float32(2), True)] == [5, 5, 5, 4]
