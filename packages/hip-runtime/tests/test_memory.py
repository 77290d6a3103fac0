"""Memory that is given back later, and memory that other processes open."""

import gc
import pickle
from contextlib import nullcontext

import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime import config


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


def waiting(device):
    return len(device.pending), device.pending.nbytes


def test_memory_waits_as_far_as_the_settings_allow(device):
    with config.pending_releases.scope(2):
        for count in (1, 2):
            rt.device_array(100)
            assert waiting(device) == (count, 800 * count)
        rt.device_array(100)
        assert waiting(device) == (0, 0)
        rt.device_array(100)
        with rt.defer_release():
            rt.device_array(100)
            device.pending.clear()
            assert waiting(device) == (2, 1600)
        assert waiting(device) == (0, 0)
        rt.pinned_array(100)
        assert waiting(device) == (1, 800), "memory of the host waits, too"
        assert device.memory_info()[0] == device.total_memory, "what waits is free for all who ask"
    rt.device_array(100)
    assert waiting(device) == (0, 0)


def test_memory_waits_up_to_a_part_of_the_device(device):
    half = device.total_memory // 2
    with config.pending_releases.scope(100), config.pending_release_ratio.scope(0.5):
        assert device.pending.max_bytes == half
        device.allocate(half - 8)
        assert waiting(device) == (1, half - 8)
        device.allocate(8)
        assert waiting(device) == (2, half)
        device.allocate(1)
        assert waiting(device) == (0, 0)


def test_what_waits_is_given_back_where_memory_runs_out(device):
    with config.pending_releases.scope(100), config.pending_release_ratio.scope(1.0):
        for _ in range(5):
            device.allocate(device.total_memory // 2)


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        (config.pending_releases, ("-1", "1.5", "many"), {"0": 0, "12": 12}),
        (config.pending_release_ratio, ("-0.1", "1.01", "nan", "half"), {"0": 0.0, "0.25": 0.25, "1": 1.0}),
    ],
)
def test_limits_that_cannot_be_are_refused(setting, wrong, right, device, monkeypatch):
    for text, value in right.items():
        with setting.scope(text):
            assert setting() == value
    for text in wrong:
        monkeypatch.setenv(setting.variable, text)
        with pytest.raises(rt.SettingError, match=setting.variable):
            setting()
        buffer = device.allocate(64)
        waits = config.pending_releases.scope(1) if setting is config.pending_release_ratio else nullcontext()
        with waits, pytest.raises(rt.SettingError):
            buffer.close()
        assert waiting(device) == (0, 0), "nothing is lost by it"


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
            with pytest.raises(rt.ArrayError, match="already opened"):
                handle.open()
        assert sharing.opened == []
        with pytest.raises(rt.ArrayError, match="not open"):
            handle.close()


def test_opened_arrays_are_closed_when_they_go(sharing):
    array = rt.to_device(np.arange(10))
    opened = rt.open_ipc_array(array.get_ipc_handle().memory.handle, 4, np.int64, offset=16)
    np.testing.assert_array_equal(opened.copy_to_host(), np.arange(2, 6))
    del opened
    gc.collect()
    assert sharing.opened == []


def test_impossible_shapes_open_nothing(sharing):
    for wrong in ({"shape": -1}, {"dtype": object}, {"strides": (-8,)}, {"strides": (8, 8)}):
        with pytest.raises(rt.ArrayError):
            rt.open_ipc_array(bytes(8), **{"shape": 4, "dtype": np.int64, **wrong})
    assert sharing.opened == []
    array = rt.to_device(np.arange(3))
    assert array.get_ipc_handle() == array.get_ipc_handle() != array[1:].get_ipc_handle()
    page = 4096
    with pytest.raises(rt.ArrayError, match=f"has {page} bytes; {page + 8} were asked for"):
        rt.open_ipc_array(array.get_ipc_handle().memory.handle, page // 8 + 1, np.int64)
    assert sharing.opened == []
