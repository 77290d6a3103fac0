"""Device arrays: what they hold after copies of every kind, compared with NumPy doing the same on the host."""

from __future__ import annotations

import gc
import re
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hip_runtime as rt
from hip_runtime import ArrayError, CopyError, Device, OutOfDeviceMemoryError, Stream, config
from hip_runtime.protocols import array_interface

RECORD = np.dtype([("a", "i4"), ("b", "f8", (2,)), ("c", "S3")], align=True)
DTYPES = [
    "?",
    "i1",
    "u2",
    "i4",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "M8[ns]",
    "m8[s]",
    "S5",
    "U3",
    "V7",
    ">i4",
    RECORD,
]

same_device = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def host(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """An array of random bytes."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(seed).integers(0, 2, nbytes, dtype=np.uint8)
    return raw.view(dtype).reshape(shape) if nbytes else np.empty(shape, dtype)


def layouts_of(array: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return [array, array.T, array[::2], array[::-1], array[:, ::-2], array[1:, 1:].T, array[:0], array[0, 0]]


@pytest.mark.sample(9)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip_of_every_type_and_layout(device: Device, dtype: Any) -> None:
    for array in layouts_of(host((6, 7), dtype)):
        found = rt.to_device(array)
        assert (found.shape, found.dtype, found.ndim, found.size) == (array.shape, array.dtype, array.ndim, array.size)
        assert found.nbytes == array.nbytes
        assert found.is_c_contiguous() or found.is_f_contiguous()
        back = found.copy_to_host()
        assert back.dtype == array.dtype
        assert (back == array).all()


@pytest.mark.parametrize("dtype", ["f4", "V3", RECORD], ids=str)
def test_copies_between_all_pairs_of_layouts(device: Device, dtype: Any) -> None:
    source, base = host((6, 7), dtype, 1), host((6, 7), dtype, 2)
    for number, (one, other) in enumerate(zip(layouts_of(source), layouts_of(base.copy()), strict=True)):
        target = rt.to_device(base)
        view = [target, target.T, target[::2], target[::-1], target[:, ::-2], target[1:, 1:].T, target[:0], None][
            number
        ]
        if view is None:
            continue
        view.copy_to_device(one)
        expected = base.copy()
        np.copyto(layouts_of(expected)[number], one)
        assert (target.copy_to_host() == expected).all()  # and nothing beside the view was touched
        into = np.zeros_like(other)
        assert view.copy_to_host(into) is into
        assert (into == one).all()
        view.copy_to_device(rt.to_device(one))
        assert (target.copy_to_host() == expected).all()


@same_device
@given(st.data())
def test_slices_behave_as_numpys(device: Device, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=6))
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    found = rt.to_device(array)
    for _ in range(2):
        key = data.draw(hnp.basic_indices(array.shape, allow_ellipsis=True, allow_newaxis=True))
        if np.ndim(array[key]) == 0:
            assert found[key] == array[key] if not isinstance(found[key], rt.DeviceArray) else True
            return
        array, found = array[key], found[key]
        np.testing.assert_array_equal(found.copy_to_host(), array)
    found[...] = 7
    np.testing.assert_array_equal(found.copy_to_host(), np.full(array.shape, 7))


@same_device
@given(st.data())
def test_assignment_behaves_as_numpys(device: Device, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=5))
    array = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    found = rt.to_device(array)
    key = data.draw(hnp.basic_indices(shape, allow_ellipsis=True))
    value_shape = np.shape(array[key])
    value_shape = value_shape[data.draw(st.integers(0, len(value_shape))) :]
    value = np.random.default_rng(0).random(value_shape)
    array[key] = value
    found[key] = rt.to_device(value) if data.draw(st.booleans()) else value
    np.testing.assert_array_equal(found.copy_to_host(), array)


def test_views_share_memory_and_keep_it_alive(device: Device) -> None:
    array = rt.to_device(np.arange(24, dtype=np.int32).reshape(4, 6))
    row, column = array[1], array[:, 2]
    column[:] = -1
    assert row.copy_to_host().tolist() == [6, 7, -1, 9, 10, 11]
    free = device.memory_info()[0]
    del array
    gc.collect()
    assert device.memory_info()[0] == free
    assert row[2] == -1
    del row, column
    gc.collect()
    assert device.memory_info()[0] > free


def test_elements(device: Device) -> None:
    array = rt.to_device(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert array[1, 2] == 5
    assert type(array[1, 2]) is np.int16
    assert array[-1][np.int64(0)] == 3
    array[0, 0] = 9
    assert [row.copy_to_host().tolist() for row in array] == [[9, 1, 2], [3, 4, 5]]
    assert len(array) == 2
    records = rt.to_device(host((3,), RECORD))
    assert records[1].dtype == RECORD
    scalar = rt.to_device(np.float32(2.5))
    assert (scalar.shape, scalar[()], bool(scalar)) == ((), np.float32(2.5), True)
    for bad in (lambda: len(scalar), lambda: iter(scalar)):
        with pytest.raises(TypeError, match="without dimensions"):
            bad()
    with pytest.raises(ArrayError, match="ambiguous"):
        bool(array)


def test_reshape_ravel_view_squeeze_transpose(device: Device) -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    found = rt.to_device(array)
    for one, other in [
        (found.reshape(6, 4), array.reshape(6, 4)),
        (found.reshape((4, -1)), array.reshape(4, -1)),
        (found.ravel(), array.ravel()),
        (found.T.ravel(), array.T.ravel()),
        (found.T.ravel("F"), array.T.ravel("F")),
        (found[:, ::2].ravel(), array[:, ::2].ravel()),
        (found.view("i2"), array.view("i2")),
        (found.view("f8"), array.view("f8")),
        (found[:1].squeeze(), array[:1].squeeze()),
        (found[:1].squeeze(0), array[:1].squeeze(0)),
        (found.transpose(1, 0, 2), array.transpose(1, 0, 2)),
        (found.transpose((2, 0, 1)), array.transpose(2, 0, 1)),
        (found.T, array.T),
        (found[:, 1].copy(), array[:, 1]),
    ]:
        np.testing.assert_array_equal(one.copy_to_host(), other)
    assert found.ravel().address == found.address
    assert found[:, 1].copy("F").is_f_contiguous()


def test_a_transpose_of_two_axes_can_be_a_new_array(device: Device) -> None:
    host = np.arange(12, dtype=np.int32).reshape(3, 4)
    found = rt.to_device(host)
    assert found.T.address == found.address
    with config.transpose_copies.scope(True):
        for turned in (found.T, found.transpose(), found.transpose(1, 0), found.transpose((1, 0)), found[::-1].T):
            assert turned.is_c_contiguous()
            assert turned.buffer is not found.buffer
            assert turned.shape == (4, 3)
        np.testing.assert_array_equal(found[::2, ::-1].T.copy_to_host(), host[::2, ::-1].T)
        assert found.transpose(0, 1).address == found.address
        assert found.reshape(1, 3, 4).T.address == found.address


def test_split(device: Device) -> None:
    parts = list(rt.to_device(np.arange(10)).split(4))
    assert [part.copy_to_host().tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with pytest.raises(ArrayError, match="one axis, not 2"):
        list(rt.to_device(np.zeros((2, 2))).split(2))
    with pytest.raises(ArrayError, match="not 0"):
        list(rt.to_device(np.zeros(2)).split(0))


def test_what_it_is_cannot_be_changed(device: Device) -> None:
    array = rt.to_device(np.zeros(3))
    for name in ("shape", "strides", "dtype", "address", "buffer", "layout", "other"):
        with pytest.raises(AttributeError, match=name):
            setattr(array, name, None)
    array.upper = "anything"
    assert array.upper == "anything"
    assert array[1:].upper is None


def test_copies_that_do_not_fit_change_nothing(device: Device) -> None:
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = rt.to_device(source)
    target = np.full((3, 2), 5, np.float32)
    with pytest.raises(CopyError, match=r"shape \(2, 3\) to one of shape \(3, 2\)"):
        array.copy_to_host(target)
    with pytest.raises(CopyError, match="float32 to an array of float64"):
        array.copy_to_host(np.zeros((2, 3)))
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(CopyError, match="read-only"):
        array.copy_to_host(frozen)
    with pytest.raises(CopyError, match="must be a NumPy array, not list"):
        array.copy_to_host([0])  # type: ignore[arg-type]
    for bad in (
        np.zeros((2, 3)),
        np.zeros(3, np.float32),
        [1.0, 2.0],
        rt.to_device(np.zeros((2, 3), np.int32)),
        object(),
    ):
        with pytest.raises(CopyError):
            array.copy_to_device(bad)
    for key, value in [((0, 0), "text"), (slice(None), np.zeros(2, np.float32)), (0, np.zeros(3, complex)), (0, None)]:
        if value is None:
            continue
        with pytest.raises(CopyError, match="cannot store|could not broadcast input array from shape"):
            array[key] = value
    with pytest.raises(ArrayError, match="broadcast"):
        array[0] = rt.to_device(np.zeros(2, np.float32))
    np.testing.assert_array_equal(array.copy_to_host(), source)
    np.testing.assert_array_equal(target, 5)


def test_overlapping_copies_within_an_array(device: Device) -> None:
    for one, other in [
        (slice(1, None), slice(None, -1)),
        (slice(None), slice(None, None, -1)),
        (slice(0, 8, 2), slice(4)),
    ]:
        expected = np.arange(10)
        array = rt.to_device(expected)
        array[one] = array[other]
        expected[one] = expected[other].copy()
        np.testing.assert_array_equal(array.copy_to_host(), expected)


def test_read_only_arrays_are_not_written_to(device: Device) -> None:
    class Frozen:
        array = rt.to_device(np.zeros(3))
        __cuda_array_interface__ = {**array_interface(array), "data": (array.address, True)}

    frozen = rt.as_device_array(Frozen())
    for write in (lambda: frozen.copy_to_device(np.ones(3)), lambda: frozen.setitem(0, 1.0)):
        with pytest.raises(CopyError, match="read-only"):
            write()
    assert frozen.copy_to_host().tolist() == [0, 0, 0]
    assert frozen[1:].readonly


def test_copies_on_a_stream(device: Device) -> None:
    stream = Stream()
    source = np.arange(1000.0).reshape(10, 100)
    array = rt.to_device(source, stream=stream)
    assert array.stream is stream
    view = array[::2, ::-1]
    first = view.copy_to_host(stream=stream)
    view.copy_to_device(np.zeros((5, 100)), stream=stream)
    second = array.copy_to_host(stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(first, source[::2, ::-1])
    assert second[::2].sum() == 0
    np.testing.assert_array_equal(second[1::2], source[1::2])
    assert array[1, 5] == 105  # waits by itself
    np.testing.assert_array_equal(np.asarray(array[1]), source[1])


def test_copies_without_a_stream_wait_for_that_of_the_array(device: Device) -> None:
    stream, gate = Stream(), threading.Event()
    array = rt.to_device(np.zeros(4, np.int32), stream=stream)
    stream.add_callback(lambda fault: gate.wait(10))
    threading.Timer(0.05, gate.set).start()
    source = np.arange(4, dtype=np.int32)
    array.copy_to_device(source)
    assert gate.is_set()
    source[:] = 9
    gate.clear()
    stream.add_callback(lambda fault: gate.wait(10))
    threading.Timer(0.05, gate.set).start()
    found = array.copy_to_host()
    assert gate.is_set()
    assert found.tolist() == [0, 1, 2, 3]


def test_source_of_a_copy_on_a_stream_lives_until_it_is_done(device: Device) -> None:
    stream = Stream()
    array = rt.device_array(1 << 20, np.uint8, stream=stream)
    for value in range(20):
        array.copy_to_device(np.full(1 << 20, value, np.uint8), stream=stream)
    stream.synchronize()
    assert (array.copy_to_host(stream=rt.Stream(handle=0)) == 19).all()


def test_as_numpy(device: Device) -> None:
    array = rt.to_device(np.arange(3))
    np.testing.assert_array_equal(np.asarray(array), [0, 1, 2])
    assert np.array(array, dtype=np.float32).dtype == np.float32
    with pytest.raises(ArrayError, match="`copy=False` is not possible"):
        array.__array__(np.float16, copy=False)


# making arrays


@pytest.mark.parametrize("order", ["C", "F"])
def test_device_array(device: Device, order: str) -> None:
    array = rt.device_array((3, 4), np.int32, order=order)
    assert array.strides == np.empty((3, 4), np.int32, order=order).strides  # type: ignore[call-overload]
    assert rt.device_array(5).dtype == np.float64
    assert rt.device_array_like(array).strides == array.strides
    view = array[::2, ::2]
    assert rt.device_array_like(view).strides == ((8, 4) if order == "C" else (4, 8))
    assert rt.device_array_like(view.T).strides == ((4, 8) if order == "C" else (8, 4))
    assert rt.device_array_like(np.zeros((2, 3, 4), np.int8).transpose(1, 2, 0)).strides == (4, 1, 12)
    assert rt.device_array_like([[1, 2]]).shape == (1, 2)
    assert rt.device_array((0, 3)).copy_to_host().shape == (0, 3)


def test_device_array_with_strides(device: Device) -> None:
    source = np.arange(6, dtype=np.int32).reshape(2, 3)
    for strides in [(32, 4), (-12, 4), (4, -8), (100, -20)]:
        array = rt.device_array((2, 3), np.int32, strides)
        assert array.strides == strides
        array.copy_to_device(source)
        np.testing.assert_array_equal(array.copy_to_host(), source)
    with pytest.raises(ArrayError, match=r"strides \(0, 4\) make elements .* overlap"):
        rt.device_array((2, 3), np.int32, (0, 4))
    for bad in ((4,), "ab", (1.5, 2)):
        with pytest.raises(ArrayError, match="strides"):
            rt.device_array((2, 3), np.int32, bad)


def test_errors_are_those_that_numba_cuda_raises_too(device: Device) -> None:
    array = rt.to_device(np.arange(6))
    for wrong in (
        lambda: array.copy_to_host(np.zeros(6, np.float32)),
        lambda: array.copy_to_device(np.zeros(6, np.float32)),
        lambda: array.copy_to_host([0] * 6),
        lambda: rt.as_device_array(np.arange(3)),
        lambda: array[1.0],
        lambda: array[[0, 1]],
        lambda: array.__setitem__(1.5, 0),
    ):
        with pytest.raises(TypeError) as caught:
            wrong()
        assert isinstance(caught.value, ArrayError)
    with pytest.raises(OverflowError, match="negative extent") as overflow:
        rt.device_array(-1)
    assert isinstance(overflow.value, ArrayError)
    with pytest.raises(IndexError, match="there is no device 99"):
        rt.find_device(99)


def test_arrays_that_cannot_be(device: Device) -> None:
    for dtype in (object, [("a", object)]):
        with pytest.raises(ArrayError, match="Python objects"):
            rt.device_array(3, dtype)
    with pytest.raises(ArrayError, match="Python objects"):
        rt.to_device(np.array([None, "a"]))
    with pytest.raises(ArrayError, match="'no type'"):
        rt.device_array(3, "no type")
    with pytest.raises(ArrayError, match="no bytes"):
        rt.device_array(3, "S0")
    with pytest.raises(
        ArrayError, match="dtype .* has axes of its own, .*; add them to the array's shape, and use int32"
    ):
        rt.device_array(3, "3i4")
    with pytest.raises(ArrayError, match="-3"):
        rt.device_array((2, -3))
    with pytest.raises(ArrayError, match="order must be 'C' or 'F', not 'A'"):
        rt.device_array(3, order="A")
    with pytest.raises(ArrayError, match="address space"):
        rt.device_array((1 << 40, 1 << 40))
    with pytest.raises(OutOfDeviceMemoryError, match="NUMBA_HIP_CPU_MEMORY"):
        rt.device_array(1 << 30)


def test_to_device_options(device: Device) -> None:
    source = np.arange(12.0).reshape(3, 4)
    array = rt.to_device(source)
    assert rt.to_device(array) is array
    assert rt.to_device(source, to=array[:, ::-1]).copy_to_host()[0].tolist() == [0, 1, 2, 3]
    assert array.copy_to_host()[0].tolist() == [3, 2, 1, 0]
    with pytest.raises(CopyError, match=r"shape \(2,\) to one of shape \(3, 4\)"):
        rt.to_device(np.zeros(2), to=array)
    assert rt.to_device(array, to=rt.device_array((3, 4)))[0, 0] == 3
    assert rt.to_device(source, copy=False).shape == (3, 4)
    assert rt.to_device(np.asfortranarray(source)).is_f_contiguous()
    assert rt.to_device(source[:, ::2]).is_c_contiguous()
    assert rt.to_device(np.broadcast_to(source[0], (5, 4))).copy_to_host().tolist() == [[0, 1, 2, 3]] * 5
    assert rt.to_device([1, 2]).copy_to_host().tolist() == [1, 2]


@pytest.mark.parametrize("make", [rt.mapped_array, rt.managed_array])
def test_memory_that_host_and_device_share(device: Device, make: Any) -> None:
    free = device.memory_info()[0]
    on_host, on_device = make((3, 4), np.int32, order="F")
    assert on_host.flags.f_contiguous
    on_host[:] = np.arange(12).reshape(3, 4)
    assert on_device[1, 2] == 6
    on_device[1, 2] = -1
    assert on_host[1, 2] == -1
    del on_device
    gc.collect()
    on_host[:] = 3  # still there
    assert device.memory_info()[0] < free
    del on_host
    gc.collect()
    assert device.memory_info()[0] == free


def test_pinned_array(device: Device) -> None:
    array = rt.pinned_array((3, 4), RECORD)
    assert (array.shape, array.dtype, array.flags.c_contiguous) == ((3, 4), RECORD, True)
    array[:] = host((3, 4), RECORD)
    assert rt.to_device(array).copy_to_host().tobytes() == array.tobytes()
    assert rt.pinned_array(0).size == 0


def test_closed_buffer(device: Device) -> None:
    buffer = device.allocate(100)
    assert not buffer.closed
    buffer.close()
    buffer.close()
    assert buffer.closed
    with pytest.raises(ArrayError, match="-1"):
        device.allocate(-1)


def test_memory_that_only_a_cycle_holds_is_found(device: Device) -> None:
    gc.disable()
    try:
        for _ in range(4):
            cycle: list[Any] = [rt.device_array(40 << 20, np.uint8)]
            cycle.append(cycle)
            del cycle
    finally:
        gc.enable()


def test_memory_manager_can_be_replaced(device: Device) -> None:
    class Pool:
        def __init__(self) -> None:
            self.buffer = device.allocate(1 << 12)
            self.asked: list[int] = []

        def allocate(self, nbytes: int, *, stream: int) -> rt.Buffer:
            self.asked.append(nbytes)
            return rt.Buffer(self.buffer.address, nbytes, owner=self.buffer)

    pool, usual = Pool(), device.memory_manager
    device.memory_manager = pool
    array = rt.to_device(np.arange(5.0))
    assert (array.address, pool.asked) == (pool.buffer.address, [40])
    assert array.copy_to_host().tolist() == [0, 1, 2, 3, 4]
    device.memory_manager = usual


def test_view_must_lie_inside_of_its_buffer(device: Device) -> None:
    buffer = device.allocate(64)
    layout = rt.layout.Layout((9,), (8,), 8)
    with pytest.raises(ArrayError, match="outside"):
        rt.DeviceArray(layout, np.dtype("f8"), buffer, device=device)
    with pytest.raises(ArrayError, match="elements of 8 bytes"):
        rt.DeviceArray(layout, np.dtype("f4"), buffer, device=device)


def test_fields_of_structured_arrays():
    kind = np.dtype([("a", np.int16), ("b", np.float64, (2, 3)), ("c", [("x", np.int8), ("y", np.float32)])])
    host = np.zeros((4, 5), kind)
    host["a"] = np.arange(20).reshape(4, 5)
    host["b"] = np.arange(120).reshape(4, 5, 2, 3)
    host["c"]["y"] = -host["a"]
    array = rt.to_device(host)
    for name in ("a", "b", "c"):
        np.testing.assert_array_equal(array[name].copy_to_host(), host[name])
        np.testing.assert_array_equal(array[::-2, 1:]["c"]["y"].copy_to_host(), host[::-2, 1:]["c"]["y"])
    array["b"] = np.ones((2, 3))
    array["c"]["x"] = rt.to_device(np.arange(5, dtype=np.int8))
    host["b"], host["c"]["x"] = 1, np.arange(5)
    np.testing.assert_array_equal(array.copy_to_host(), host)


def test_records_are_views():
    records = rt.to_device(np.array([(1, (2.0, 3))], [("a", "i4"), ("b", [("x", "f8"), ("y", "i2")])]))
    records[0]["a"] = 5
    records[0]["b"]["x"] = 7.5
    assert records.copy_to_host()[0].item() == (5, (7.5, 3))
    host = np.zeros(1, records.dtype)[0]
    assert records[0].copy_to_host(host) is host
    assert host.item() == (5, (7.5, 3))
    with pytest.raises(CopyError, match="shape"):
        records.copy_to_host(host)


def test_names_of_numba_cuda():
    array = rt.to_device(np.arange(12, dtype=np.int32).reshape(3, 4))
    assert array.memory is array.buffer
    part = array[1:, 1]
    assert part.memory.address == array.address + 20
    assert part.alloc_size == part.memory.nbytes == part.memory.size == 20
    assert part.device_ctypes_pointer.value == part.memory.device_pointer == part.address
    with pytest.raises(ArrayError, match="bytes 8 to 40 are not within the 20"):
        part.memory.view(8, 40)
    inner = part.memory.view(4)
    assert (inner.address, inner.nbytes) == (part.address + 4, 16)
    assert inner.device_ctypes_pointer.value == inner.address


@pytest.mark.parametrize(("shape", "shown"), [((1, 2, 3), "(2,3)"), ((2,), "(2,)"), ((5, 1), "(5,1)")])
def test_values_that_do_not_fit(shape, shown):
    array = rt.to_device(np.arange(35))
    message = f"could not broadcast input array from shape {shown} into shape (35,)"
    with pytest.raises(CopyError, match=re.escape(message)):
        array[:] = np.zeros(shape)
    array[:] = np.zeros((1, 35), np.int64)
    assert not array.copy_to_host().any()


def test_fields_of_one_record():
    host = np.array((3, (1.5, 2)), [("a", np.int16), ("b", [("x", np.float64), ("y", np.int32)])])
    record = rt.to_device(host)
    assert record["a"] == 3
    assert record["b"].shape == ()
    assert record["b"]["x"] == 1.5
    record["b"]["y"] = 7
    assert record.copy_to_host()["b"]["y"] == 7


def test_fields_that_there_are_not():
    array = rt.to_device(np.zeros(3, [("a", np.int16), ("b", np.int8)]))
    before = array.copy_to_host()
    with pytest.raises(rt.ArrayError, match=r"no field 'x' in elements of type .*; fields: a, b"):
        array["x"]
    with pytest.raises(rt.ArrayError, match="no field 'x'"):
        array["x"] = 1
    with pytest.raises(rt.ArrayError, match="no field 'a' in elements of type float64; fields: none"):
        rt.to_device(np.zeros(3))["a"]
    np.testing.assert_array_equal(array.copy_to_host(), before)


@pytest.mark.parametrize("shape", [[3, 4], (np.int32(3), 4), np.array([3, 4])])
def test_a_shape_is_any_sequence_of_whole_numbers(device: Device, shape: Any) -> None:
    assert rt.device_array(shape).shape == (3, 4)
    assert rt.device_array(np.array(5)).shape == (5,)


@pytest.mark.parametrize("shape", [1.5, np.float64(2), [1.0], np.array([1.5]), np.array(1.5), "ab", {"a": 1}])
def test_a_shape_of_another_type_is_an_error_of_type_too(device: Device, shape: Any) -> None:
    with pytest.raises(rt.ArrayTypeError, match="shape must be a whole number or a sequence of them") as caught:
        rt.device_array(shape)
    assert isinstance(caught.value, (TypeError, ValueError))


@pytest.mark.parametrize("shape", [64 / 2, (4, np.float64(32)), [32.0]])
def test_a_shape_that_is_a_quotient(device: Device, shape: Any) -> None:
    with pytest.raises(rt.ArrayTypeError, match=r"; 32\.0 is a float: divide with // instead of /, or .* int\("):
        rt.device_array(shape)


def test_ravel_in_the_order_of_the_array(device: Device) -> None:
    for array in (np.arange(24).reshape(2, 3, 4), np.asfortranarray(np.arange(24).reshape(2, 3, 4))):
        found = rt.to_device(array)
        assert found.ravel("A").address == found.address
        np.testing.assert_array_equal(found.ravel("A").copy_to_host(), array.ravel("A"))
    strided = rt.to_device(np.arange(24).reshape(2, 3, 4))[:, ::2]
    np.testing.assert_array_equal(strided.ravel("A").copy_to_host(), strided.copy_to_host().ravel())


def test_flags(device: Device) -> None:
    found = rt.to_device(np.arange(6).reshape(2, 3))
    assert found.flags == {"C_CONTIGUOUS": True, "F_CONTIGUOUS": False}
    assert found.T.flags == {"C_CONTIGUOUS": False, "F_CONTIGUOUS": True}
    assert found[0].flags == {"C_CONTIGUOUS": True, "F_CONTIGUOUS": True}


def test_an_array_bound_to_a_stream_is_the_same_array(device: Device) -> None:
    found, stream = rt.to_device(np.arange(3)), Stream()
    bound = found.bind(stream)
    assert bound.stream is stream
    assert found.stream == 0
    assert bound.address == found.address
    bound.copy_to_device(np.arange(3, 6))
    stream.synchronize()
    assert found.copy_to_host().tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    "host",
    [
        np.broadcast_to(np.float32(3), (4, 5)),
        np.broadcast_to(np.arange(4), (3, 4)),
        np.broadcast_to(np.arange(12).reshape(3, 4)[:, ::2].T[:, None], (2, 5, 3)),
        np.broadcast_to(np.asfortranarray(np.arange(6).reshape(2, 3))[..., None], (2, 3, 7)),
    ],
)
def test_what_a_host_array_repeats_is_one_element_on_the_device(device: Device, host: np.ndarray) -> None:
    once = host[tuple(slice(0, 1) if not stride else slice(None) for stride in host.strides)]
    found = rt.to_device(host)
    assert [stride == 0 for stride in found.strides] == [stride == 0 for stride in host.strides]
    assert found.buffer.nbytes == once.nbytes
    np.testing.assert_array_equal(found.copy_to_host(), host)
    assert rt.to_device(host, copy=False).strides == found.strides
    filled = rt.device_array(host.shape, host.dtype)
    assert rt.to_device(host, to=filled) is filled
    np.testing.assert_array_equal(filled.copy_to_host(), host)
    with pytest.raises(ArrayError, match="cannot be broadcast"):
        found.broadcast_to((9, 9))
    other = np.broadcast_to(np.ascontiguousarray(once) + 1, host.shape)
    found.copy_to_device(other)
    np.testing.assert_array_equal(found.copy_to_host(), other)
    found.copy_to_device(rt.to_device(host))
    np.testing.assert_array_equal(found.copy_to_host(), host)
    with pytest.raises(CopyError, match="its elements overlap"):
        found.copy_to_device(np.ascontiguousarray(host))


def test_an_empty_array_keeps_its_strides(device: Device) -> None:
    for host in (np.ndarray((0,), np.int8, strides=(0,)), np.zeros((3, 0, 2)), np.zeros((0, 4), order="F")):
        array = rt.to_device(host, device=device)
        assert (array.shape, array.strides, array.dtype) == (host.shape, host.strides, host.dtype)
        array.copy_to_device(host)
        array.copy_to_device(rt.device_array(host.shape, host.dtype, device=device))
        assert array.copy_to_host().shape == host.shape
