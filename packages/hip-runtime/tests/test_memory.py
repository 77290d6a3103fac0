"""Memory that is given back later, and memory that other processes open."""

import gc
import pickle

import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime.ipc import IpcArrayHandle


def free_bytes():
    gc.collect()
    return rt.current_device().memory_info()[0]


def test_deferred_memory_is_given_back_at_the_end():
    before = free_bytes()
    with rt.defer_release():
        array = rt.device_array(1000)
        kept = free_bytes()
        del array
        assert free_bytes() == kept < before
        with rt.defer_release():
            array = rt.device_array(1000)
            del array
        assert free_bytes() < kept
    assert free_bytes() == before
    array = rt.device_array(1000)
    del array
    assert free_bytes() == before


def test_deferred_memory_is_given_back_after_an_error():
    def fail():
        with rt.defer_release():
            rt.device_array(1000)
            raise KeyError

    before = free_bytes()
    with pytest.raises(KeyError):
        fail()
    assert free_bytes() == before


@pytest.mark.skipif(not rt.current_device().is_cpu, reason="needs a device whose memory is counted exactly")
def test_deferred_memory_is_given_back_where_it_runs_out():
    free = free_bytes()
    half = free // 2 // 4096 * 4096
    with rt.defer_release():
        for _ in range(3):
            buffer = rt.current_device().allocate(half)
            del buffer
    assert free_bytes() == free


@pytest.mark.skipif(not rt.current_device().is_cpu, reason="needs a device that cannot share memory")
def test_the_cpu_device_has_no_handles_for_other_processes():
    array = rt.to_device(np.arange(5))
    before = free_bytes()
    with pytest.raises(rt.UnsupportedError, match="cannot be shared with another process by a handle"):
        array.get_ipc_handle()
    with pytest.raises(rt.UnsupportedError, match="cannot be shared"):
        rt.open_ipc_array(bytes(64), 5, np.int64)
    assert free_bytes() == before


class Sharing:
    """The driver of a device, with handles that this very process can open."""

    def __init__(self, driver):
        self.driver, self.opened = driver, []

    def __getattr__(self, name):
        return getattr(self.driver, name)

    def ipc_handle(self, address):
        return address.to_bytes(8, "little")

    def open_ipc_handle(self, device, handle):
        self.opened.append(int.from_bytes(handle, "little"))
        return self.opened[-1]

    def free(self, address):
        if address in self.opened:
            self.opened.remove(address)
        else:
            self.driver.free(address)


@pytest.fixture
def sharing(monkeypatch):
    driver = Sharing(rt.current_device().driver)
    monkeypatch.setattr(rt.current_device(), "driver", driver)
    return driver


def test_handles_of_arrays_and_views(sharing):
    host = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    whole = rt.to_device(host)
    for view, expected in ((whole, host), (whole[1:, ::-2], host[1:, ::-2]), (whole.T, host.T)):
        handle = pickle.loads(pickle.dumps(view.get_ipc_handle()))
        with handle as array:
            assert array.address == view.address
            np.testing.assert_array_equal(array.copy_to_host(), expected)
            assert sharing.opened == [whole.buffer.address]
            with pytest.raises(rt.ArrayError, match="open already"):
                handle.open()
        assert sharing.opened == []
        with pytest.raises(rt.ArrayError, match="not open"):
            handle.close()


def test_opened_arrays_are_closed_when_they_go(sharing):
    array = rt.to_device(np.arange(10))
    opened = rt.open_ipc_array(array.get_ipc_handle().handle, 4, np.int64, offset=16)
    np.testing.assert_array_equal(opened.copy_to_host(), np.arange(2, 6))
    del opened
    gc.collect()
    assert sharing.opened == []


def test_impossible_shapes_open_nothing(sharing):
    for wrong in ({"shape": -1}, {"dtype": object}, {"strides": (-8,)}, {"strides": (8, 8)}):
        with pytest.raises(rt.ArrayError):
            rt.open_ipc_array(bytes(8), **{"shape": 4, "dtype": np.int64, **wrong})
    assert sharing.opened == []
    assert IpcArrayHandle(b"", (1,), (8,), np.dtype(np.int64)) == IpcArrayHandle(b"", (1,), (8,), np.dtype(np.int64))
