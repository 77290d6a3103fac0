"""Page-locked, mapped and managed memory, and arrays of other libraries, as Numba CUDA has them."""

import gc

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config, is_device_array
from hip_runtime.errors import ArrayError, InvalidHandleError
from hip_runtime.protocols import array_interface


@hip.jit
def add(values, step):
    i = hip.grid(1)
    if i < values.size:
        values[i] += step


def free_memory():
    hip.synchronize()
    gc.collect()
    return hip.get_current_device().memory_info()[0]


@pytest.mark.parametrize("make", [hip.mapped_array, hip.managed_array])
def test_arrays_of_host_and_device(make):
    array = make(100, np.int32)
    array[:] = np.arange(100)
    add[1, 128](array, 5)
    hip.synchronize()
    np.testing.assert_array_equal(array, np.arange(100) + 5)
    assert isinstance(array, np.ndarray)
    assert hip.is_device_array(array)
    assert hip.as_device_array(array).address == array.ctypes.data
    assert hip.to_device(array).address == array.ctypes.data
    np.testing.assert_array_equal(array.copy_to_host(), array)
    array.copy_to_device(np.zeros(100, np.int32))
    assert (array == 0).all()


def test_views_of_mapped_arrays_are_mapped():
    array = hip.mapped_array((4, 6))
    array[:] = 0
    for view in (array[1], array[:, ::-2][3], array.T[2]):
        assert view.is_mapped
        add[1, 16](view, 1.0)
    hip.synchronize()
    expected = np.zeros((4, 6))
    expected[1] += 1
    expected[3, ::-2] += 1
    expected[:, 2] += 1
    np.testing.assert_array_equal(array, expected)


def test_what_is_computed_from_a_mapped_array_is_not():
    array = hip.mapped_array(10)
    array[:] = 1
    for other in (array + 1, array.copy(), array.astype(np.float32)):
        assert not other.is_mapped
        assert not hip.is_device_array(other)
        with pytest.raises(ArrayError, match="computed from a mapped one"):
            other.device_array  # noqa: B018
        before = other.copy()
        add[1, 16](other, 1.0)
        np.testing.assert_array_equal(other, before + 1)
    assert (array == 1).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_like_others(order):
    for like in (np.zeros((3, 4), np.int16, order=order), hip.to_device(np.zeros((3, 4), np.int16, order=order))):
        for make in (hip.mapped_array_like, hip.pinned_array_like):
            array = make(like)
            assert (array.shape, array.dtype) == ((3, 4), np.int16)
            assert array.flags.f_contiguous == (order == "F")
            assert make(like[::2, ::2]).strides == ((4, 2) if order == "C" else (2, 4))
    assert not hip.is_device_array(hip.pinned_array_like(np.zeros(3)))


@pytest.mark.cpu_device("what a GPU has free does not tell of memory of the host")
def test_mapped_memory_is_given_back_with_the_last_view():
    free = free_memory()
    array = hip.mapped_array(1000)
    view = array[10:]
    del array
    assert free_memory() < free
    del view
    assert free_memory() == free


def test_pinning():
    values = np.arange(10.0)
    with hip.pinned(values, np.zeros(3)):
        device = hip.to_device(values)
    np.testing.assert_array_equal(device.copy_to_host(), values)
    with pytest.raises(ArrayError, match="page-locking takes NumPy arrays.*a list"), hip.pinned([1]):
        pass
    with pytest.raises(ArrayError, match="dtype object"), hip.pinned(np.array([object()])):
        pass


@pytest.mark.cpu_device("it uses all memory of the host")
def test_mapping():
    first, second = np.arange(10.0), np.arange(5.0)
    with hip.mapped(first) as device:
        add[1, 16](device, 1.0)
    np.testing.assert_array_equal(first, np.arange(10.0) + 1)
    with hip.mapped(first[::2], second) as (left, right):
        add[1, 16](left, 1.0)
        add[1, 16](right, 1.0)
    np.testing.assert_array_equal(first[::2], np.arange(10.0)[::2] + 2)
    np.testing.assert_array_equal(second, np.arange(5.0) + 1)
    first.flags.writeable = False
    with hip.mapped(first) as device:
        assert device.readonly


def test_the_cuda_array_interface():
    array = hip.to_device(np.arange(10.0))
    description = array_interface(array)
    other = hip.from_cuda_array_interface(description, owner=array)
    add[1, 16](other, 1.0)
    np.testing.assert_array_equal(array.copy_to_host(), np.arange(10.0) + 1)
    assert hip.from_cuda_array_interface(description, array, sync=False).address == array.address
    with pytest.raises(ArrayError, match="has no .version"):
        hip.from_cuda_array_interface({})
    assert hip.as_device_array(type("Other", (), {"__cuda_array_interface__": description})(), sync=False).size == 10


@pytest.mark.parametrize("make", [lambda: hip.to_device(np.zeros(3)), lambda: hip.mapped_array(3)])
def test_memory_of_the_host_is_described_as_that_of_a_gpu_only_where_asked_for(make):
    array = make()
    assert is_device_array(array)
    if hip.current_context().device.is_cpu:
        assert not hasattr(array, "__cuda_array_interface__")
    with config.cpu_array_interface.scope(True):
        assert array.__cuda_array_interface__["shape"] == (3,)


class Foreign:
    """An array of a library that has DLPack and no CUDA array interface."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_kernels_take_arrays_by_dlpack():
    array = hip.to_device(np.arange(10.0))
    for _ in range(2):
        add[1, 16](Foreign(array), 1.0)
    np.testing.assert_array_equal(array.copy_to_host(), np.arange(10.0) + 2)
    assert hip.from_dlpack(Foreign(array)).address == array.address
    assert add.specialize(Foreign(array), 1.0).signatures == add.specialize(array, 1.0).signatures
    add[1, 16](hip.Out(Foreign(array)), 1.0)
    np.testing.assert_array_equal(array.copy_to_host(), np.arange(10.0) + 3)


def test_numpy_takes_device_arrays_by_dlpack():
    if not hip.get_current_device().is_cpu:
        pytest.skip("needs device memory that NumPy can read")
    array = hip.to_device(np.arange(10.0))
    seen = np.from_dlpack(array)
    add[1, 16](array, 1.0)
    np.testing.assert_array_equal(seen, np.arange(10.0) + 1)


@pytest.mark.cpu_device("HIP opens no handle in the process that it comes from")
def test_arrays_of_other_processes():
    array = hip.to_device(np.arange(4.0))
    handle = array.get_ipc_handle().memory.handle
    with hip.open_ipc_array(handle, 3, np.float64, offset=8) as opened:
        assert opened.copy_to_host().tolist() == [1, 2, 3]
        buffer = opened.buffer
    assert buffer.closed
    with pytest.raises(InvalidHandleError, match="IPC handle"), hip.open_ipc_array(bytes(63), 3, np.float64):
        pass


def test_memory_by_its_bytes():
    context = hip.current_context()
    for memory in (context.memhostalloc(16), context.memhostalloc(16, mapped=True), context.memallocmanaged(16)):
        words = np.ndarray(4, np.uint32, buffer=memory)
        words[:] = range(4)
        assert memory.nbytes == 16
        assert memory.tolist()[::4] == [0, 1, 2, 3]
    assert context.memallocmanaged(16).device_ctypes_pointer.value
    host = np.arange(4)
    memory = context.mempin(host, host.ctypes.data, host.nbytes, mapped=context.device.is_cpu)
    assert (memory.device_ctypes_pointer.value, memory.size, memory.owner is host) == (host.ctypes.data, 32, True)


@pytest.mark.parametrize("make", [hip.mapped_array, hip.managed_array])
def test_mapped_arrays_have_what_device_arrays_have(make):
    array = make(10, np.int32)
    array[:] = range(10)
    assert array.__cuda_memory__
    assert array.__cuda_ndarray__
    assert array.gpu_data == array.as_cuda_arg() == array.device_array.gpu_data
    assert array[2:5].gpu_data == array.gpu_data.view(8, 20)
    assert (array.alloc_size, array[::2].alloc_size) == (40, 36)
    assert [part.copy_to_host().tolist() for part in array.split(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    stream = hip.stream()
    bound = array.bind(stream)
    assert (bound.stream, array.stream, type(bound)) == (stream, hip.mapped_array(1).stream, type(array))
    array.stream = stream
    assert array.stream is array.device_array.stream is stream
    bound[0] = 7
    assert array[0] == 7
    copied = array + 1
    assert copied.stream is not None
    assert not hasattr(copied, "__cuda_memory__")
    with pytest.raises(ArrayError, match="was computed from a mapped one"):
        copied.gpu_data  # noqa: B018


@pytest.mark.cpu_device("HIP shares memory of its own alone")
def test_a_mapped_array_for_another_process():
    handle = hip.mapped_array(4).get_ipc_handle()
    assert (handle.shape, len(handle._ipc_handle.handle) > 0) == ((4,), True)
