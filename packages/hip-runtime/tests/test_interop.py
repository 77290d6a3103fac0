"""Arrays of other libraries by the CUDA array interface, in both directions."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime import ArrayError, Device, InvalidHandleError, Stream, config
from hip_runtime.interop import from_interface, speaks_dlpack
from hip_runtime.protocols import array_interface


class Foreign:
    """An array of somebody else, in host memory: the CPU device reads it in place."""

    def __init__(self, array: np.ndarray[Any, Any], **changes: Any) -> None:
        self.array = array
        interface = {
            "shape": array.shape,
            "strides": array.strides,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "version": 3,
        }
        if array.dtype.names:
            interface["descr"] = np.lib.format.dtype_to_descr(array.dtype)
        interface.update(changes)
        self.__cuda_array_interface__ = {key: value for key, value in interface.items() if value != "absent"}


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["f4", "c16", "?", ">i2", "M8[D]", "S5", [("a", "i4"), ("b", "f8")]], ids=str)
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_in(device: Device, dtype: Any, version: int) -> None:
    array = np.random.default_rng(0).integers(0, 2, 12 * np.dtype(dtype).itemsize, np.uint8).view(dtype).reshape(3, 4)
    for view in (array, array.T, array[::-1, ::2], array[:0]):
        foreign = Foreign(view, version=version)
        found = rt.as_device_array(foreign)
        assert (found.dtype, found.shape) == (view.dtype, view.shape)
        assert (found.copy_to_host() == view).all()
    assert rt.is_device_array(foreign)
    assert rt.is_device_array(found)
    assert not rt.is_device_array(array)


def test_it_is_the_same_memory_and_keeps_its_owner(device: Device) -> None:
    foreign = Foreign(np.arange(6))
    gone = weakref.ref(foreign)
    array = foreign.array
    found = rt.as_device_array(foreign)
    del foreign
    gc.collect()
    assert gone() is not None
    found[2] = -1
    assert array[2] == -1
    part = found[3:]
    del found
    gc.collect()
    assert gone() is not None
    del part
    gc.collect()
    assert gone() is None
    assert device.memory_info()[0] == device.memory_info()[1]  # memory of others is not counted


def test_without_strides_it_is_contiguous(device: Device) -> None:
    array = np.arange(6.0).reshape(2, 3)
    for strides in ("absent", None):
        assert rt.as_device_array(Foreign(array, strides=strides)).strides == (24, 8)


def test_out(device: Device) -> None:
    array = rt.to_device(np.arange(12, dtype=np.int32).reshape(3, 4))
    interface = array_interface(array)
    assert interface == {
        "version": 3,
        "shape": (3, 4),
        "strides": None,
        "typestr": "<i4",
        "data": (array.address, False),
        "stream": None,
    }
    assert array_interface(array.T)["strides"] == (4, 16)
    assert array_interface(array[:0])["data"] == (0, False)
    stream = Stream()
    array.stream = stream
    assert array_interface(array)["stream"] == stream.handle


@pytest.mark.parametrize("align", [False, True])
def test_structured_types_go_round(device: Device, align: bool) -> None:
    dtype = np.dtype([("a", "i1"), ("b", "f8", (2,)), ("c", [("d", "i2")])], align=align)
    array = rt.to_device(np.ones(3, dtype))

    class Holder:
        __cuda_array_interface__ = array_interface(array)

    found = rt.as_device_array(Holder())
    assert found.dtype == dtype
    assert (found.copy_to_host() == np.ones(3, dtype)).all()


def test_copies_from_and_to_foreign_arrays(device: Device) -> None:
    array = rt.to_device(np.zeros((2, 3)))
    source = np.arange(6.0).reshape(2, 3)
    array.copy_to_device(Foreign(source))
    np.testing.assert_array_equal(array.copy_to_host(), source)
    array[1] = Foreign(source[0] * 2)
    np.testing.assert_array_equal(array.copy_to_host(), [source[0], source[0] * 2])
    assert rt.to_device(Foreign(source)).address == source.ctypes.data
    assert rt.device_array_like(Foreign(source)).shape == (2, 3)


def test_stream_of_the_producer_is_waited_for(device: Device) -> None:
    stream, gate = Stream(), threading.Event()
    stream.add_callback(lambda error: gate.wait(10) and None)
    threading.Timer(0.05, gate.set).start()
    rt.as_device_array(Foreign(np.zeros(1), stream=stream.handle))
    assert gate.is_set()
    assert stream.query()
    for default in (1, 2):
        rt.as_device_array(Foreign(np.zeros(1), stream=default))
    rt.as_device_array(Foreign(np.zeros(1), stream=999_999), synchronize=False)
    with config.array_interface_sync.scope(False):
        rt.as_device_array(Foreign(np.zeros(1), stream=999_999))
    with pytest.raises(InvalidHandleError, match="999999"):
        rt.as_device_array(Foreign(np.zeros(1), stream=999_999))


def test_stream_of_the_producer_is_that_of_the_array(device: Device) -> None:
    stream = Stream()
    found = rt.as_device_array(Foreign(np.zeros(1), stream=stream.handle))
    assert isinstance(found.stream, Stream)
    assert (found.stream.handle, found.stream.external) == (stream.handle, True)
    assert array_interface(found)["stream"] == stream.handle
    gate = threading.Event()
    stream.add_callback(lambda error: gate.wait(10) and None)
    threading.Timer(0.05, gate.set).start()
    assert found.copy_to_host() == [0]
    assert gate.is_set(), "the copy came after what was on the stream"
    assert rt.as_device_array(Foreign(np.zeros(1))).stream == 0
    assert not stream.external
    assert not Stream(handle=1).external


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": "absent"}, "has no 'shape'"),
        ({"data": "absent"}, "has no 'data'"),
        ({"data": 5}, r"data .* is 5; it must be \(address, read-only\)"),
        ({"data": (1.5, False)}, r"data\[0\] .* is 1.5, which is not a whole number"),
        ({"data": ("0x10", False)}, r"data\[0\] .* is '0x10', which is not a whole number"),
        ({"data": (None, False)}, r"data\[0\] .* is None"),
        ({"data": (True, False)}, r"data .* is \(True, False\); it must be a whole number and a truth value"),
        ({"data": (64, "no")}, "data .* must be a whole number and a truth value"),
        ({"data": (-64, False)}, r"data\[0\] .* is -64; addresses are from 0"),
        ({"data": (2**63, False)}, r"data\[0\] .* is 9223372036854775808; addresses are from 0"),
        ({"data": (2**63 - 8, False)}, "to outside of the address space"),
        ({"data": (8, False), "strides": (-24, -8)}, "to outside of the address space"),
        ({"version": "absent"}, "has no 'version'"),
        ({"version": 4}, "version .* is 4; versions 0 to 3 are supported"),
        ({"version": -1}, "version .* is -1"),
        ({"version": "3"}, "version .* is '3', which is not a whole number"),
        ({"typestr": "absent"}, "has no 'typestr'"),
        ({"typestr": 4}, "typestr .* is 4, which is not a type of elements"),
        ({"typestr": "(2,)<f8"}, "typestr .* is not a type"),
        ({"typestr": "<f8,<f8"}, "typestr .* is not a type"),
        ({"typestr": "<f7"}, "typestr.*'<f7'"),
        ({"typestr": "<V9999999999"}, "typestr.*V9999999999"),
        ({"typestr": "|O"}, "Python objects"),
        ({"typestr": "|V8", "descr": 5}, "descr .* is 5, which is not a list of fields"),
        ({"typestr": "|V8", "descr": [5]}, "descr .* is not a type of elements"),
        ({"typestr": "|V8", "descr": [("a", "|O")]}, "descr .* Python objects"),
        ({"typestr": "zz"}, "'zz'"),
        ({"typestr": "|V16", "descr": [("a", "<i4")]}, "descr .* has 4 bytes, typestr"),
        ({"shape": (-1, 2)}, r"shape\[0\] .* is -1, a negative extent"),
        ({"shape": ("a",)}, r"shape\[0\] .* is 'a', which is not a whole number"),
        ({"shape": b"ab"}, "shape .* is b'ab', which is not a tuple"),
        ({"shape": 6, "strides": None}, "shape .* is 6, which is not a tuple"),
        ({"shape": (2.0, 3)}, r"shape\[0\] .* is 2.0"),
        ({"shape": (1,) * 65, "strides": None}, "shape .* has 65 numbers; an array has at most"),
        ({"shape": (2**63, 1)}, r"shape\[0\] .* has 64 bits"),
        ({"shape": (2**40, 2**40)}, "larger than any address space"),
        ({"shape": (0, 2**40, 2**40), "strides": None}, "larger than any address space"),
        ({"strides": (2**64, 8)}, r"strides\[0\] .* has 65 bits"),
        ({"strides": (2**62, 8), "shape": (3, 2)}, "to outside of the address space"),
        ({"strides": 8}, "strides .* is 8, which is not a tuple"),
        ({"strides": (8,)}, r"strides \(8,\) .* do not fit shape \(2, 3\)"),
        ({"strides": (8.0, 1)}, r"strides\[0\] .* is 8.0, which is not a whole number"),
        ({"data": (0, False)}, "address 0 for 6 elements"),
        ({"mask": [True]}, "mask"),
        ({"stream": 0}, "stream .* is 0; it must be None"),
        ({"stream": -3}, "stream .* is -3; it must be None"),
        ({"stream": True}, "stream .* is True; it must be None"),
        ({"stream": 2**64}, "stream .* is 18446744073709551616; it must be None"),
        ({"stream": "s"}, "stream .* is 's', which is not a whole number"),
        ({"stream": 999_999}, "stream .* is 999999: "),
    ],
    ids=str,
)
def test_malformed_interfaces(device: Device, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        rt.as_device_array(Foreign(np.zeros((2, 3)), **changes))


class Raising:
    """An array whose interfaces cannot be asked for, as those of PyTorch's tensors that need a gradient."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise RuntimeError("needs a gradient")


class RaisingByDlpack:
    @property
    def __dlpack__(self) -> object:
        raise RuntimeError("needs a gradient")


@pytest.mark.parametrize("kind", [Raising, RaisingByDlpack])
def test_interfaces_that_raise(device: Device, kind: type) -> None:
    says = f"of an object of type {kind.__name__} raises RuntimeError: .*needs a gradient"
    with pytest.raises(ArrayError, match=says) as caught:
        rt.as_device_array(kind())
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ArrayError, match=says):
        speaks_dlpack(kind()) or rt.is_device_array(kind())


def test_what_raises_as_a_mapping(device: Device) -> None:
    class Hostile(dict[str, Any]):
        def __iter__(self) -> Any:
            raise RuntimeError("not today")

        keys = __iter__

    with pytest.raises(ArrayError, match="cannot be read: .*not today"):
        from_interface(Hostile(shape=(1,)), None)
    for interface in (5, [("shape", (1,))], "shape"):
        with pytest.raises(ArrayError, match="which is not a dictionary"):
            from_interface(interface, None)  # type: ignore[arg-type]


def test_what_has_no_interface(device: Device) -> None:
    for obj in (object(), np.zeros(3), None):
        with pytest.raises(ArrayError, match="no CUDA array interface"):
            rt.as_device_array(obj)


def test_empty_array_at_address_zero(device: Device) -> None:
    found = from_interface({"shape": (0, 3), "typestr": "<f4", "data": (0, False), "version": 3}, None)
    assert found.copy_to_host().shape == (0, 3)


def test_an_array_with_a_mask_is_not_implemented(device: Device) -> None:
    array = rt.to_device(np.arange(4.0), device=device)
    masked = {**array_interface(array), "mask": array}
    with pytest.raises(NotImplementedError, match="Masked arrays are not supported"):
        from_interface(masked, array, device=device)
