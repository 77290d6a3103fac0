"""What other libraries ask of device arrays: NumPy's protocols, Arrow, copies, pickles; and types of ml_dtypes."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime import ArrayError, Device, arrow, capsules, config, dlpack, small_floats
from hip_runtime.interop import host_source
from hip_runtime.protocols import array_interface, restore

SMALL = [name for name in small_floats.CODES if hasattr(ml_dtypes, name)]


def some_arrays() -> list[rt.DeviceArray]:
    whole = rt.to_device(np.arange(24.0).reshape(4, 6))
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
    return [
        whole, whole.T, whole[::-2, 1::3], whole[:0], whole.read_only(), rt.to_device(np.float32(7)),
        rt.to_device(records), rt.to_device(records)["b"], rt.to_device(np.arange(3).astype(ml_dtypes.bfloat16)),
        rt.to_device(np.array(["2024-02-28", "NaT"], "M8[D]")),
    ]  # fmt: skip


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda array: pickle.loads(pickle.dumps(array)),
    "old pickle": lambda array: pickle.loads(pickle.dumps(array, 2)),
}


@pytest.mark.parametrize("how", COPIES)
def test_copies_have_memory_of_their_own(device: Device, how: str) -> None:
    for array in some_arrays():
        made = COPIES[how](array)
        assert type(made) is rt.DeviceArray
        assert (made.shape, made.dtype, made.device) == (array.shape, array.dtype, device)
        np.testing.assert_array_equal(made.copy_to_host(), array.copy_to_host())
        assert made.is_f_contiguous() or not array.is_f_contiguous()
        if array.size:
            assert made.address != array.address
            made.copy_to_device(np.zeros(made.shape, made.dtype))  # also of what was read-only
            assert array.copy_to_host().tobytes() != made.copy_to_host().tobytes()
    twice = [array, array]
    again = copy.deepcopy(twice)
    assert again[0] is again[1]


def test_contents_are_pickled_out_of_band(device: Device) -> None:
    array = rt.to_device(np.arange(50_000.0))
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(array, 5, buffer_callback=buffers.append)
    assert len(pickled) < 1000
    assert sum(memoryview(buffer).nbytes for buffer in buffers) == array.nbytes
    made = pickle.loads(pickled, buffers=[bytes(buffer) for buffer in buffers])
    made[0] = 5
    assert (made.copy_to_host()[1:] == np.arange(1, 50_000)).all()


def test_pickles_come_to_the_device_of_the_same_number(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    other = Device(device.driver, 1, 1)
    monkeypatch.setattr("hip_runtime.device._registry.devices", (device, other))
    host = np.arange(3)
    assert restore(host, 1).device is other
    pickled = pickle.dumps(rt.to_device(host, device=other))
    assert pickle.loads(pickled).device is other
    monkeypatch.setattr("hip_runtime.device._registry.devices", (device,))
    assert pickle.loads(pickled).device is device


def test_numpy_gets_a_copy_or_the_memory_itself(device: Device) -> None:
    array = rt.to_device(np.arange(6.0).reshape(2, 3))
    copied = np.asarray(array)
    copied[0, 0] = 9
    assert array[0, 0] == 0
    assert np.asarray(array, np.float32).dtype == np.float32
    view = array[:, ::2].__array__(copy=False)
    address = array.address
    assert (view.ctypes.data, view.strides) == (address, (24, 16))
    array[1, 2] = -1
    del array
    gc.collect()
    assert view.tolist() == [[0, 2], [3, -1]]
    fixed = rt.to_device(np.arange(3)).read_only().__array__(copy=False)
    assert not fixed.flags.writeable
    with pytest.raises(
        ArrayError, match=r"`copy=False` is not possible: converting float64 to .*float32.* needs a copy"
    ):
        rt.to_device(np.zeros(2)).__array__(np.float32, copy=False)
    records = np.zeros(2, [("a", "i4"), ("b", "f8")])
    assert rt.to_device(records).__array__(copy=False).dtype == records.dtype


def test_the_cpu_device_claims_no_memory_of_a_gpu(device: Device) -> None:
    array = rt.to_device(np.arange(3))
    assert not hasattr(array, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="NUMBA_HIP_CPU_ARRAY_INTERFACE=1"):
        array.__cuda_array_interface__  # noqa: B018
    with config.cpu_array_interface.scope(True):
        assert array.__cuda_array_interface__ == array_interface(array)
        with pytest.raises(ValueError, match="`copy=False` is not possible: a NumPy array needs"):
            array.__array__(copy=False)
    assert rt.is_device_array(array)


# Arrow.


def read_column(array: Any) -> list[Any]:
    """What a consumer of Arrow's capsules sees, who takes both structures and gives them back."""
    taken = []
    for capsule, name, kind in zip(
        array.__arrow_c_array__(), (b"arrow_schema", b"arrow_array"), (arrow._Schema, arrow._Array), strict=True
    ):
        assert capsules.is_valid(capsule, name)
        source = kind.from_address(capsules.pointer(capsule, name))
        moved = kind.from_buffer_copy(source)
        source.release = None  # which is how a structure is taken
        taken.append(moved)
    del capsule
    gc.collect()
    schema, column = taken
    form, count = schema.format.decode(), column.length
    assert (column.n_buffers, column.n_children, schema.n_children, column.offset) == (2, 0, 0, 0)
    valid, values = column.buffers[0], column.buffers[1]
    if form == "b":
        bits = np.frombuffer(ctypes.string_at(values, (count + 7) // 8), np.uint8)
        found = np.unpackbits(bits, bitorder="little")[:count].astype(bool).tolist()
    else:
        spelled = next(name for name, known in arrow.FORMATS.items() if known == form)
        found = np.frombuffer(ctypes.string_at(values, count * np.dtype(spelled).itemsize), spelled).tolist()
    if valid is not None:
        bits = np.unpackbits(np.frombuffer(ctypes.string_at(valid, (count + 7) // 8), np.uint8), bitorder="little")
        assert column.null_count == count - bits[:count].sum()
        found = [value if bit else None for value, bit in zip(found, bits, strict=False)]
    for structure in taken:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(structure.release)(ctypes.addressof(structure))
        assert not structure.release
    return found


@pytest.mark.parametrize("kind", [name for name in arrow.FORMATS if name[0] not in "mM"])
@pytest.mark.sample(2)
def test_columns_of_arrow(device: Device, kind: str) -> None:
    host = (np.arange(21) % 5 - 2).astype(kind)
    array = rt.to_device(host)
    assert read_column(array) == host.tolist()
    assert read_column(array[::-2]) == host[::-2].tolist()
    assert read_column(array[:0]) == []
    assert not arrow._contents
    assert not arrow._structures


def test_times_that_are_missing_are_null_in_arrow(device: Device) -> None:
    times = np.array(["2024-02-28", "NaT", "1969-12-31T23:59:59"], "M8[ms]")
    assert read_column(rt.to_device(times)) == times.tolist()
    assert read_column(rt.to_device(times - times[0])) == (times - times[0]).tolist()


def test_columns_that_nobody_takes_and_what_arrow_cannot_hold(device: Device) -> None:
    pair = rt.to_device(np.arange(4)).__arrow_c_array__()
    assert len(arrow._contents) == len(arrow._structures) == 2
    del pair
    assert not arrow._contents
    assert not arrow._structures
    with pytest.raises(ArrayError, match="an Arrow column has one axis, and the array has 2"):
        rt.to_device(np.zeros((2, 3))).__arrow_c_array__()
    for kind in ("c8", ">i4", "S3", "M8[D]", ml_dtypes.bfloat16):
        with pytest.raises(ArrayError, match="Arrow has no elements of type"):
            rt.to_device(np.zeros(3, kind)).__arrow_c_array__()


# Types of ml_dtypes.


class Speaker:
    """An array of a library that NumPy cannot read, but for DLPack."""

    def __init__(self, array: rt.DeviceArray) -> None:
        self.array = array

    def __array__(self, *_: object, **__: object) -> object:
        raise TypeError("unsupported ScalarType")

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.sample(3)
def test_small_floats_both_ways(device: Device, name: str) -> None:
    host = np.array([[0.5, 1.0, 4.0], [2.0, 1.0, 0.25]]).astype(getattr(ml_dtypes, name))
    array = rt.to_device(host)
    found = rt.from_dlpack(Speaker(array.T))
    assert (found.dtype, found.strides) == (host.dtype, host.T.strides)
    assert (found.copy_to_host() == host.T).all()
    assert found.address == array.address

    class Described:
        __cuda_array_interface__ = array_interface(array)

    assert rt.as_device_array(Described()).dtype == host.dtype
    assert (rt.as_device_array(Described()).copy_to_host() == host).all()
    source = host_source(Speaker(array))
    assert (source.dtype, source.ctypes.data) == (host.dtype, array.address)
    target = rt.to_device(Speaker(array))  # a copy: it is as memory of the host is
    target.copy_to_device(Speaker(array))
    assert (target.copy_to_host() == host).all()
    assert target.address != array.address
    del found, source
    gc.collect()
    assert not dlpack._exported


def test_typestrs_of_others(device: Device) -> None:
    array = rt.to_device(np.ones(3, ml_dtypes.bfloat16))
    assert array_interface(array)["typestr"] == "<V2"  # as that of PyTorch's
    for typestr, size, kind in [("<f1", 1, ml_dtypes.float8_e5m2), ("|V2", 2, "V2"), ("|V1", 1, "V1")]:
        host = np.zeros(3, f"V{size}")
        description = {"shape": (3,), "typestr": typestr, "data": (host.ctypes.data, False), "version": 3}
        assert rt.as_device_array(type("Other", (), {"__cuda_array_interface__": description})()).dtype == kind


def test_small_floats_without_ml_dtypes(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    array = rt.to_device(np.ones(3, ml_dtypes.bfloat16))
    description = array_interface(array)
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(
        ArrayError, match="dtype of the DLPack tensor of Speaker is bfloat16, .* install or upgrade ml_dtypes"
    ):
        rt.from_dlpack(Speaker(array))
    assert rt.as_device_array(type("Other", (), {"__cuda_array_interface__": description})()).dtype == "V2"


def test_integers_of_few_bits_have_no_place_in_dlpack(device: Device) -> None:
    with pytest.raises(BufferError, match="DLPack has no elements of type int4"):
        rt.to_device(np.zeros(3, ml_dtypes.int4)).__dlpack__()


class Unnamed(Speaker):
    """As tensors of PyTorch on a GPU, whose interface has no name for their elements."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise KeyError("torch.float8_e4m3fn")


def test_dlpack_where_the_interface_raises(device: Device) -> None:
    array = rt.to_device(np.ones(3, ml_dtypes.float8_e4m3fn))
    assert rt.as_device_array(Unnamed(array)).dtype == array.dtype
    assert not rt.is_device_array(Unnamed(array))


def test_the_size_counts_the_elements(device: Device) -> None:
    small, large = rt.zeros(1), rt.zeros(1001)
    assert sys.getsizeof(large) - sys.getsizeof(small) == 8000
    assert sys.getsizeof(large[::2]) - sys.getsizeof(small) == 4000
