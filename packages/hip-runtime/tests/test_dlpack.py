"""DLPack in both directions, with NumPy as the other library and with capsules made by hand."""

import gc

import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime import dlpack

DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.float16, np.float32, np.float64,
          np.complex64, np.complex128]  # fmt: skip

on_cpu = pytest.mark.skipif(not rt.current_device().is_cpu, reason="needs device memory that NumPy can read")


class Foreign:
    """An array of a library that speaks DLPack alone, and counts what it lends."""

    def __init__(self, array, *, legacy=False, device=None):
        self.array, self.legacy, self.device = array, legacy, device

    def __dlpack__(self, *, stream=None, **versions):
        if self.legacy and versions:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**versions)

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()


@on_cpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_sees_device_arrays(dtype):
    host = np.arange(24).reshape(2, 3, 4).astype(dtype)
    device = rt.to_device(host)
    seen = np.from_dlpack(device)
    np.testing.assert_array_equal(seen, host)
    assert seen.dtype == host.dtype
    assert seen.ctypes.data == device.address
    np.testing.assert_array_equal(np.from_dlpack(device[::-1, 1:].T), host[::-1, 1:].T)


@on_cpu
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_device_arrays_over_foreign_ones(legacy, dtype):
    host = np.arange(24).reshape(4, 6).astype(dtype)[::2, 1:]
    array = rt.from_dlpack(Foreign(host, legacy=legacy))
    assert (array.shape, array.strides, array.dtype) == (host.shape, host.strides, host.dtype)
    np.testing.assert_array_equal(array.copy_to_host(), host)
    array[0, 0] = dtype(1)
    assert host[0, 0] == dtype(1)
    np.testing.assert_array_equal(rt.as_device_array(Foreign(host)).copy_to_host(), host)


@on_cpu
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_shapes_with_few_elements(shape):
    array = rt.to_device(np.ones(shape))
    assert np.from_dlpack(array).shape == shape
    assert rt.from_dlpack(Foreign(array)).shape == shape


def test_memory_lives_as_long_as_somebody_uses_it():
    def used():
        gc.collect()
        free, total = rt.current_device().memory_info()
        return total - free

    before = used()
    array = rt.to_device(np.arange(10_000.0))
    kept = used()
    other = rt.from_dlpack(Foreign(array))
    del array
    assert used() == kept
    np.testing.assert_array_equal(other.copy_to_host(), np.arange(10_000.0))
    assert len(dlpack._exported) == 1
    del other
    assert used() == before
    assert not dlpack._exported


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_that_nobody_takes(version):
    array = rt.to_device(np.arange(5))
    for _ in range(3):
        capsule = array.__dlpack__(max_version=version)
        assert len(dlpack._exported) == 1
        assert ("versioned" in repr(capsule)) == (version is not None)
        del capsule
        assert not dlpack._exported


def test_a_capsule_is_taken_once():
    array = rt.to_device(np.arange(5))
    capsule = array.__dlpack__()

    class Holder(Foreign):
        def __dlpack__(self, **_):
            return capsule

    first = rt.from_dlpack(Holder(array))
    with pytest.raises(rt.ArrayError, match="not an unused DLPack capsule"):
        rt.from_dlpack(Holder(array))
    np.testing.assert_array_equal(first.copy_to_host(), np.arange(5))


def test_read_only_arrays():
    whole = rt.to_device(np.arange(5.0))
    array = rt.DeviceArray(whole.layout, whole.dtype, whole.buffer, device=whole.device, readonly=True)
    with pytest.raises(rt.ArrayError):
        array[0] = 1
    assert rt.from_dlpack(Foreign(array)).readonly
    with pytest.raises(BufferError, match="read-only array needs a DLPack capsule of version 1"):
        array.__dlpack__()
    assert not dlpack._exported
    copied = rt.from_dlpack(Foreign(type("Copy", (), {
        "__dlpack__": lambda self, **_: array.__dlpack__(copy=True),
        "__dlpack_device__": lambda self: array.__dlpack_device__(),
    })()))  # fmt: skip
    copied[0] = 7
    assert whole[0] == 0


@pytest.mark.parametrize(("module", "fixed"), [("jaxlib._jax", True), ("jaxtyping", False), ("torch", False)])
def test_arrays_of_libraries_that_never_change_them_are_read_only(module, fixed):
    kind = type("Array", (Foreign,), {"__module__": module, "__dlpack__": lambda self, **_: self.array.__dlpack__()})
    whole = rt.to_device(np.arange(5.0))
    array = rt.from_dlpack(kind(whole))
    assert array.readonly == fixed
    if fixed:
        with pytest.raises(rt.ArrayError, match="read-only"):
            array[0] = 1
        copied = array.copy()
        copied[0] = 1
    assert whole[0] == 0


def test_copies_do_not_share_memory():
    array = rt.to_device(np.arange(5))
    copied = rt.from_dlpack(Foreign(type("Copy", (), {
        "__dlpack__": lambda self, **_: array.__dlpack__(copy=True, max_version=(1, 0)),
        "__dlpack_device__": lambda self: array.__dlpack_device__(),
    })()))  # fmt: skip
    copied[0] = 9
    assert array[0] == 0


def test_what_dlpack_cannot_express():
    records = rt.to_device(np.zeros(3, [("a", np.int32), ("b", np.float64)]))
    with pytest.raises(BufferError, match="no elements of type"):
        records.__dlpack__()
    with pytest.raises(BufferError, match="no strides of"):
        records["b"].__dlpack__()
    with pytest.raises(BufferError, match="no elements of type"):
        rt.to_device(np.zeros(3, ">i4")).__dlpack__()
    array = rt.to_device(np.zeros(3))
    with pytest.raises(BufferError, match=r"not on \(2, 0\)"):
        array.__dlpack__(dl_device=(2, 0))
    assert not dlpack._exported


def test_arrays_elsewhere():
    array = rt.to_device(np.zeros(3))
    with pytest.raises(rt.ArrayError, match=r"on DLPack device \(2, 0\); .*copy it there"):
        rt.from_dlpack(Foreign(array, device=(2, 0)))
    with pytest.raises(rt.ArrayError, match="an object of type list does not support DLPack"):
        rt.from_dlpack([1, 2])
    with pytest.raises(rt.ArrayError, match="no CUDA array interface, and no DLPack"):
        rt.as_device_array([1, 2])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda managed: setattr(managed, "major", 2), "gave version 2.0; only 1.x is supported"),
        (lambda managed: setattr(managed.tensor, "lanes", 4), "4 lanes, which NumPy does not have"),
        (lambda managed: setattr(managed.tensor, "code", 4), "code 4, 64 bits"),
        (lambda managed: setattr(managed.tensor, "bits", 4), "4 bits"),
        (lambda managed: setattr(managed.tensor, "bits", 24), "24 bits"),
    ],
)
def test_capsules_that_are_not_understood(change, says):
    array = rt.to_device(np.zeros(3))
    capsules = [array.__dlpack__(max_version=(1, 0))]
    (entry,) = dlpack._exported.values()
    change(entry[0])

    class Holder(Foreign):
        def __dlpack__(self, **_):
            return capsules[0]

    with pytest.raises(rt.ArrayError, match=says):
        rt.from_dlpack(Holder(array))
    del entry
    capsules.clear()
    assert not dlpack._exported, "it still belonged to the capsule"


def test_work_on_a_stream_is_done_before_an_array_is_handed_on():
    stream = rt.Stream()
    host = np.arange(100_000)
    array = rt.to_device(host, stream=stream)
    for _ in range(20):
        array.copy_to_device(host, stream)
    other = rt.from_dlpack(Foreign(array))
    assert stream.query()
    np.testing.assert_array_equal(other.copy_to_host(), host)
