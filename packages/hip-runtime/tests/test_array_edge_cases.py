"""What arrays and their copies do at the edges: how memory is copied, words of errors, streams of views."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime import Device, Stream, copying
from hip_runtime.driver import PER_THREAD_STREAM
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.errors import ArrayError, ArrayTypeError, CopyError
from hip_runtime.layout import Layout, check_numbers, dense, index, reinterpret, reshape, squeeze
from hip_runtime.protocols import array_interface


class Foreign:
    """Another library's array over the memory of *array*."""

    def __init__(self, array: Any, **changed: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array_interface(array), **changed}


# how memory is copied


class Recorder:
    """A driver that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def copy(self, target: int, source: int, nbytes: int, stream: int, owners: object) -> None:
        self.asked.append((target, source, nbytes, stream, owners))

    def is_capturing(self, stream: int) -> bool:
        return False

    def is_pageable(self, address: int) -> bool:
        return True

    def synchronize_stream(self, stream: int) -> None:
        self.asked.append(f"wait for {stream}")


@pytest.mark.parametrize("copy", [copying.bytes_to_host, copying.bytes_to_device])
def test_copies_of_bytes(copy: Callable[..., None]) -> None:
    driver, owners, stream = Recorder(), object(), PER_THREAD_STREAM + 1
    for nbytes, on in ((3, stream), (0, stream), (3, PER_THREAD_STREAM)):
        copy(SimpleNamespace(driver=driver), 10, 20, nbytes, on, owners)
    assert driver.asked == [
        (10, 20, 3, stream, owners), f"wait for {stream}", (10, 20, 0, stream, owners),
        (10, 20, 3, PER_THREAD_STREAM, owners),
    ]  # fmt: skip


def test_arrays_live_as_long_as_their_copies(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    array, target, stream = rt.to_device(np.arange(8192.0)), np.zeros(8192), Stream()
    owned, made = [], type(device.driver).copy

    def note(self: Any, *arguments: Any) -> None:
        owned.extend(map(id, arguments[4]))
        made(self, *arguments)

    monkeypatch.setattr(type(device.driver), "copy", note)
    array.copy_to_host(target, stream=stream)
    assert {id(target), id(array)} <= set(owned)


def test_an_axis_of_two_that_both_repeat_is_copied_once(device: Device) -> None:
    array = rt.to_device(np.zeros(3))
    array.broadcast_to((2, 3))[:] = np.arange(3.0)
    assert array.copy_to_host().tolist() == [0, 1, 2]


@pytest.mark.parametrize("strides", [(0,), (4,), (-4,)])
def test_an_array_whose_elements_overlap_is_no_target(device: Device, strides: tuple[int]) -> None:
    memory = rt.to_device(np.arange(8, dtype=np.int32)).view(np.int8)[8:24]
    overlapping = Foreign(memory, shape=(3,), strides=strides, typestr="<i8", data=(memory.address + 8, False))
    target = rt.as_device_array(overlapping)
    for source in (np.zeros(3, np.int64), rt.to_device(np.zeros(3, np.int64))):
        with pytest.raises(CopyError, match=rf"shape \(3,\) and strides \({strides[0]},\): its elements overlap"):
            target.copy_to_device(source)
    if strides == (0,):  # which is one element
        target[:] = 1
        assert memory.view(np.int32).copy_to_host().tolist() == [2, 3, 1, 0]
        return
    with pytest.raises(CopyError, match="elements overlap"):
        target[:] = 1
    assert memory.view(np.int32).copy_to_host().tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[::-1],
        lambda array: array[:, ::-1, ::-1],
        lambda array: array[::-1, ::-1, ::-1],
        lambda array: array.T,
        lambda array: array[1:2, :, :].reshape(3, 4),
        lambda array: array[::5],
    ],
)
def test_what_lies_in_the_same_order_without_gaps_is_copied_at_once(
    device: Device, monkeypatch: pytest.MonkeyPatch, view: Callable[[Any], Any]
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("element by element")

    monkeypatch.setattr(type(device.driver), "copy_strided", refuse)
    source, target = np.arange(24.0).reshape(2, 3, 4), rt.to_device(np.zeros((2, 3, 4)))
    view(target).copy_to_device(view(rt.to_device(source)))
    expected = np.zeros((2, 3, 4))
    view(expected)[...] = view(source)
    np.testing.assert_array_equal(target.copy_to_host(), expected)


def test_axes_of_one_element_have_any_stride(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []
    monkeypatch.setattr(type(device.driver), "copy_strided", lambda *arguments: copied.append(len(arguments)))
    target = rt.to_device(np.zeros((3, 4)))
    source = rt.to_device(np.arange(12.0).reshape(3, 4))
    target[1:2].copy_to_device(source[::-1][1:2])
    assert not copied
    target[1:3, 0:2].copy_to_device(source[1:3, 0:2])  # with gaps
    target.copy_to_device(source[::-1])
    assert len(copied) == 2


def test_arrays_of_other_libraries_are_copied_on_the_device(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    source = rt.to_device(np.arange(4))
    target, stream = rt.to_device(np.zeros(4, np.int64)), Stream()
    monkeypatch.setattr(Foreign, "__array__", None, raising=False)  # not by way of the host
    target.copy_to_device(Foreign(source), stream=stream)
    stream.synchronize()
    assert target.copy_to_host().tolist() == [0, 1, 2, 3]
    with pytest.raises(CopyError, match="shapes must be equal"):
        target.copy_to_device(Foreign(source[:2]))


def test_elements_of_a_device_are_set_without_the_host(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = rt.to_device(np.arange(2)), rt.to_device(np.zeros((3, 2), np.int64))
    monkeypatch.setattr(rt.DeviceArray, "__array__", None)
    monkeypatch.setattr(rt.DeviceArray, "copy_to_host", None)
    target[1:] = source
    target[0] = Foreign(source[::-1])
    monkeypatch.undo()
    assert target.copy_to_host().tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    "ask",
    [
        lambda array, stream: array.T.ravel(stream=stream),
        lambda array, stream: array.copy(stream=stream),
        lambda array, stream: array.copy_to_device(rt.to_device(np.zeros((2, 3))), stream=stream),
        lambda array, stream: array.copy_to_device(Foreign(rt.to_device(np.zeros((2, 3)))), stream=stream),
        lambda array, stream: array.copy_to_device(np.zeros((2, 3)), stream=stream),
        lambda array, stream: array.getitem((1, 2), stream=stream),
        lambda array, stream: array.setitem((1, 2), 5.0, stream=stream),
    ],
)
def test_copies_go_to_the_stream_that_is_given(
    device: Device, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Any, Stream], object]
) -> None:
    array, stream = rt.to_device(np.arange(6.0).reshape(2, 3)), Stream()
    streams = []
    for name, place in (("copy", 3), ("copy_strided", 4)):
        made = getattr(type(device.driver), name)

        def note(self: Any, *arguments: Any, made: Any = made, place: int = place) -> None:
            streams.append(arguments[place])
            made(self, *arguments)

        monkeypatch.setattr(type(device.driver), name, note)
    ask(array, stream)
    stream.synchronize()
    assert streams[-1] == stream.handle


def test_new_arrays_and_parts_have_the_stream_of_the_array(device: Device) -> None:
    stream, other = Stream(), Stream()
    array = rt.to_device(np.arange(7), stream=stream)
    assert array.empty_like().stream is stream
    assert [part.stream for part in array.split(3)] == [stream] * 3
    assert [part.stream for part in array.split(3, other)] == [other] * 3
    assert [part.copy_to_host().tolist() for part in array.split(1)] == [[number] for number in range(7)]
    with pytest.raises(ArrayError, match="section of 1 or more, not 0"):
        list(array.split(0))


def test_the_type_of_the_elements_is_that_which_is_asked_for(device: Device) -> None:
    array = rt.to_device(np.arange(3.0))
    assert np.asarray(array).dtype == np.float64
    found = np.asarray(array, np.int16)
    assert (found.dtype, found.tolist()) == (np.int16, [0, 1, 2])
    array[0] = 2.75
    array[1:] = [1, 2]
    assert array.copy_to_host().tolist() == [2.75, 1, 2]
    numbers = rt.to_device(np.zeros(2, np.int32))
    numbers[0] = 2.75  # cast as NumPy casts it
    assert numbers.copy_to_host().tolist() == [2, 0]
    numbers[:] = np.array([1.5, -2.5])
    assert numbers.copy_to_host().tolist() == [1, -2]


def test_a_copy_that_is_read_only_is_the_same_memory(device: Device) -> None:
    stream = Stream()
    array = rt.to_device(np.arange(6).reshape(2, 3).T, stream=stream)
    frozen = array.read_only()
    assert (frozen.layout, frozen.dtype, frozen.address) == (array.layout, array.dtype, array.address)
    assert (frozen.device, frozen.stream, frozen.readonly) == (array.device, stream, True)
    assert frozen.buffer is array.buffer
    assert not array.readonly


def test_a_view_without_axes_of_one_element(device: Device) -> None:
    array = rt.to_device(np.zeros((1, 3, 1)))
    assert array.squeeze(0).shape == (3, 1)
    assert array.squeeze([0, 2]).shape == array.squeeze().shape == (3,)
    assert array.transpose(None).shape == (1, 3, 1)
    assert array.transpose([1, 2, 0]).shape == array.transpose(1, 2, 0).shape == (3, 1, 1)


# words


def test_errors_say_what_is_wrong(device: Device) -> None:
    array = rt.to_device(np.arange(6).reshape(2, 3))
    with pytest.raises(ArrayError, match=r"new shape \(-1, -1\) has more than one -1"):
        array.reshape(-1, -1)
    with pytest.raises(ArrayError, match="slice.*integers"):
        array["a":2]  # type: ignore[misc]
    with pytest.raises(ArrayError, match=r"\[0, 1\] cannot index a device array: use integers, slices, '...' and None"):
        array[[0, 1]]
    with pytest.raises(ArrayError, match="True cannot index"):
        array[True]
    with pytest.raises(ArrayError, match="cannot index"):
        array[np.array([1])]
    with pytest.raises(ArrayError, match="^repeated axis in transpose$"):
        array.transpose(0, 0)
    with pytest.raises(CopyError, match="ary of type list holds Python objects; convert it to int64"):
        array.copy_to_device([None, None])
    with pytest.raises(ArrayTypeError, match="shape must be a whole number"):
        rt.device_array(np.array([[2, 3]]), np.int8)


def test_errors_of_layouts_say_what_is_wrong() -> None:
    with pytest.raises(ArrayError, match="elements of 4 bytes; it cannot view 2"):
        reinterpret(dense((), 4), 2)
    with pytest.raises(ArrayError, match="last axis must be contiguous; elements have 4 bytes and are 8 apart"):
        reinterpret(Layout((3,), (8,), 4), 2)
    with pytest.raises(ArrayError, match="^When changing to a larger dtype, .* of the array.$"):
        reinterpret(dense((3,), 4), 8)
    with pytest.raises(ArrayError, match=r"strides\[1\] of x has 64 bits; at most 63 are possible"):
        check_numbers(Layout((1, 1), (0, -(1 << 63)), 1), "of x")
    with pytest.raises(ArrayError, match="larger than any address space"):
        check_numbers(Layout((1 << 62, 0, 2), (0, 0, 0), 1))
    check_numbers(Layout(((1 << 62) - 1, 0, 2), (0, 0, 0), 1))


# layouts


def test_layouts_of_views() -> None:
    new_axis, _ = index(dense((3,), 4), (None, slice(None)))
    assert (new_axis.shape, new_axis.strides) == ((1, 3), (0, 4))
    assert index(dense((3,), 4), np.int8(-1))[1] == 8
    assert index(dense((3,), 4), np.array(2))[1] == 8  # an array without axes is a number
    assert reshape(dense((2, 3), 4, "F"), (6,), "F") == dense((6,), 4)
    assert reshape(dense((6,), 4), (2, 3), "F").strides == (4, 8)
    assert reshape(dense((0, 3), 4), (-1, 3)).shape == (0, 3)
    assert squeeze(Layout((1, 2, 1), (9, 4, 8), 4), (0, 2)) == Layout((2,), (4,), 4)


# what is handed on as it was given


def part_of_an_array(device: Device) -> Any:
    """A part of an array: its address is not that of the memory."""
    return rt.to_device(np.arange(6, dtype=np.int32), device=device)[2:5]


def test_read_only_arrays_begin_where_the_array_does(device: Device) -> None:
    offset = part_of_an_array(device)
    assert offset.read_only().copy_to_host().tolist() == [2, 3, 4]
    assert offset.read_only().readonly


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_one_element_fits_an_axis_of_any_length(device: Device, count: int) -> None:
    offset = part_of_an_array(device)
    assert offset[1:2].broadcast_to((count,)).copy_to_host().tolist() == [3] * count


def test_numpy_gets_the_type_that_it_asks_for(device: Device) -> None:
    offset = part_of_an_array(device)
    assert np.asarray(offset).dtype == np.int32
    assert np.asarray(offset, dtype=np.float32).dtype == np.float32


def test_fields_may_have_titles(device: Device) -> None:
    records = np.zeros(3, [(("the first", "a"), np.int32), (("the second", "b"), np.float64)])
    records["b"] = [1, 2, 3]
    assert rt.to_device(records, device=device).field("b").copy_to_host().tolist() == [1, 2, 3]
    assert rt.to_device(records[:0], device=device).field("b").shape == (0,)
    tables = np.zeros(3, [("n", np.int8), ("table", (np.dtype((np.int32, (2, 2))), (4,)))])
    tables["table"] = np.arange(48).reshape(3, 4, 2, 2)
    np.testing.assert_array_equal(rt.to_device(tables, device=device).field("table").copy_to_host(), tables["table"])
    assert rt.to_device(tables[:0], device=device).field("table")[:, 1, 0].copy_to_host().shape == (0, 2)


def test_an_element_is_waited_for_on_the_stream_that_copies_it(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    offset = part_of_an_array(device)
    stream, waited = Stream(device), []
    wait = device.driver.synchronize_stream
    monkeypatch.setattr(device.driver, "synchronize_stream", lambda handle: (waited.append(handle), wait(handle)))
    assert offset.getitem(1, stream=stream) == 3
    assert waited[-1] == stream.handle


def test_arrays_stay_until_the_copy_between_them_is_done(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    offset = part_of_an_array(device)
    kept, copy = [], device.driver.copy
    monkeypatch.setattr(
        device.driver, "copy", lambda *given: (kept.append([id(one) for one in given[-1]]), copy(*given))
    )
    target = rt.device_array(3, np.int32, device=device)
    target.copy_to_device(offset)
    assert kept == [[id(target), id(offset)]]


class OfAnotherKind(CpuDriver):
    """Memory that the CPU device's driver knows nothing of."""

    name = "another"


def test_arrays_of_two_devices(device: Device) -> None:
    offset = part_of_an_array(device)
    target = rt.device_array(3, np.int32, device=Device(CpuDriver(1 << 20), 0, 1))
    target.copy_to_device(offset)
    assert target.tolist() == offset.tolist()
    other = Device(OfAnotherKind(1 << 20), 0, 2)
    target = rt.device_array(3, np.int32, device=other)
    with pytest.raises(CopyError, match=re.escape(f"cannot copy from {offset.device} to {other}: copy through")):
        target.copy_to_device(offset)


def test_new_host_arrays_have_the_order_of_the_array(device: Device) -> None:
    array = rt.to_device(np.arange(6).reshape(2, 3))
    assert array.T.copy_to_host().flags.f_contiguous
    for one in (array, array[:, ::2], array[0], array.T[:, ::2]):
        assert one.copy_to_host().flags.c_contiguous
    assert array.T.copy().is_c_contiguous()
    assert array.T.empty_like().is_c_contiguous()
    assert array.empty_like("F").is_f_contiguous()


@pytest.mark.parametrize(("strides", "first"), [((8,), 0), ((-8,), 56), ((0,), 0), ((0,), 56)])
def test_an_array_reaches_as_far_as_its_memory(device: Device, strides: tuple[int], first: int) -> None:
    buffer = device.allocate(64)

    def make(offset: int) -> rt.DeviceArray:
        layout = Layout((8,), strides, 8)
        return rt.DeviceArray(layout, np.dtype("f8"), buffer, device=device, address=buffer.address + offset)

    assert make(first).address == buffer.address + first
    beyond = (-1, 57) if strides == (0,) else (first - 1, first + 1)
    for offset in beyond:
        says = rf"shape \(8,\) and strides \({strides[0]},\) at {buffer.address + offset:#x} reaches outside of <Buffer"
        with pytest.raises(ArrayError, match=says):
            make(offset)


def test_contents_are_shown_as_numpy_shows_them(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in (
        np.arange(1001), np.arange(5000.0), np.arange(60000, dtype="i4").reshape(30, 2000).T, np.zeros((0, 3)),
        np.arange(9261).reshape(21, 21, 21)[::2], np.float32(3).reshape(()), np.zeros(2, [("a", "i4"), ("b", "f8")]),
        np.array([True, False]), np.array([1 + 2j, np.nan]),
    ):  # fmt: skip
        array = rt.to_device(host)
        assert str(array) == str(host)
        shown = np.array2string(host, separator=", ", prefix="DeviceArray(")
        more = f", shape={host.shape}" if host.size > 1000 or not host.size else ""
        assert repr(array) == f"DeviceArray({shown}{more}, dtype={host.dtype}, device={device.id})"
    with np.printoptions(threshold=5, edgeitems=2):
        assert str(rt.to_device(np.arange(6))) == "[0 1 ... 4 5]"
    copied = []
    monkeypatch.setattr(rt.DeviceArray, "copy_to_host", lambda self: copied.append(self.size) or np.zeros(self.shape))
    str(rt.to_device(np.zeros((1000, 1000))))
    assert sum(copied) == 36, "of a large array no more than is shown"


def test_an_array_that_cannot_be_read_now(device: Device) -> None:
    stream = rt.Stream(device)
    array = rt.to_device(np.arange(3.0), stream=stream)
    other = array.copy()
    with stream.capture() as graph:
        assert repr(array) == f"<DeviceArray (3,) float64 on {device!r}, not read: CaptureError>"
        other.copy_to_device(array, stream)
    graph.instantiate().close()
    assert repr(array).startswith("DeviceArray([0., 1., 2.]")


def test_words_of_arrays(device: Device) -> None:
    array = rt.to_device(np.zeros((2, 3)))
    host = "[[0., 0., 0.],\n             [0., 0., 0.]]"
    assert repr(array) == f"DeviceArray({host}, dtype=float64, device={device.id})"
    assert str(array) == str(np.zeros((2, 3)))
    with pytest.raises(AttributeError, match="^'dtype' of a device array cannot be changed; make a view instead$"):
        array.dtype = np.dtype("f4")
    with pytest.raises(ArrayError, match=r"^the truth of a device array of shape \(2, 3\) is ambiguous; copy it to"):
        bool(array)
    with pytest.raises(ArrayError, match=r"ambiguous"):
        bool(array[:0])
    for ask in (len, iter):
        with pytest.raises(TypeError, match="device array without dimensions$"):
            ask(array[0, :1].squeeze())
    with pytest.raises(CopyError, match=r"^<DeviceArray .* is read-only$"):
        array.read_only()[0] = 1
    with pytest.raises(CopyError, match=r"^cannot store 'a' in an array of shape \(\) and type float64: could not"):
        array[0, 0] = "a"
    assert [bool(rt.to_device(np.array([number]))) for number in (0, 1)] == [False, True]


def test_views_and_copies_are_on_the_device_of_the_array(device: Device) -> None:
    other = Device(CpuDriver(1 << 20), 1, 0)
    array = rt.to_device(np.arange(6, dtype=np.int32).reshape(2, 3), device=other)
    for made in (
        array.T,
        array.copy(),
        array.empty_like(),
        array.read_only(),
        array[1:],
        array.view("i2"),
        array.bind(),
    ):
        assert made.device is other
    assert array.T.ravel().copy_to_host().tolist() == [0, 3, 1, 4, 2, 5]
    assert array.T.ravel("F").copy_to_host().tolist() == [0, 1, 2, 3, 4, 5]
    assert array.ravel("F").copy_to_host().tolist() == [0, 3, 1, 4, 2, 5]
    assert array.reshape(3, 2).reshape([6]).copy_to_host().tolist() == [0, 1, 2, 3, 4, 5]
    assert array.T.reshape(2, 3, order="F").copy_to_host().tolist() == [[0, 2, 4], [1, 3, 5]]


def test_a_record_is_there_when_the_call_returns(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    record = rt.to_device(np.array((3, 1.5), [("a", np.int16), ("b", np.float64)]), device=device)
    stream, waited = Stream(device), []
    wait = device.driver.synchronize_stream
    monkeypatch.setattr(device.driver, "synchronize_stream", lambda handle: (waited.append(handle), wait(handle)))
    host = np.zeros(1, record.dtype)[0]
    assert record.copy_to_host(host, stream) is host
    assert host.item() == (3, 1.5)
    assert waited[-1] == stream.handle
    with pytest.raises(CopyError, match="cannot copy elements of type"):
        record.copy_to_host(np.zeros(1, [("a", np.int16)])[0])
    array, before = rt.to_device(np.zeros(4), device=device), len(waited)
    array.bind(stream).copy_to_host()
    array.bind(stream).copy_to_device(np.zeros(4))
    assert waited[before:] == [stream.handle] * len(waited[before:])
    assert len(waited) >= before + 2


def test_what_is_stored_is_made_to_fit(device: Device) -> None:
    array = rt.to_device(np.zeros((2, 3), np.int8), device=device)
    array[0] = [[[1, 2, 3]]]  # NumPy leaves out axes of one element in front
    array[1, 1] = [[7]]
    array[1, 2] = 255  # the low bits of a number, as in NumPy
    assert array.copy_to_host().tolist() == [[1, 2, 3], [0, 7, -1]]
    with pytest.raises(CopyError, match=re.escape("from shape (2,2) into shape (3,)")):
        array[0] = [[1, 2], [3, 4]]
    for key in ((0,), (slice(None), 0), ...):
        with pytest.raises(CopyError, match="could not broadcast"):
            array[key] = np.zeros(7, np.int8)
