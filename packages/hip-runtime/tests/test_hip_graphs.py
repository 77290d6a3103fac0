"""Graphs on AMD GPUs over the stand-in for the HIP runtime: what `test_driver_graphs.py` cannot see."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from hip_standin import Standin
from test_hip_driver import Loaded, driver, standin

from hip_runtime.driver import Strided
from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.drivers.hip.memory import RETIRED_COUNT
from hip_runtime.drivers.hip.unloading import UNLOADING_COUNT
from hip_runtime.errors import CaptureError, InvalidHandleError, KernelFault, LaunchError

__all__ = ["driver", "standin"]

WAITING = {"hipStreamSynchronize", "hipDeviceSynchronize", "hipEventQuery", "hipEventRecord", "hipFree", "hipMalloc"}


def test_the_runtime_is_told_of_the_work_alone(driver: HipDriver, standin: Standin) -> None:
    stream = driver.create_stream(0)
    gone = driver.create_stream(0)
    place = driver.alloc(0, 64)
    unwanted = [driver.alloc(0, 8) for _ in range(RETIRED_COUNT + 1)]
    with Loaded(driver, "count") as loaded:
        standin.calls()
        driver.begin_capture(stream)
        driver.fill(place, 0, 64, stream)
        loaded.launch("count", place, stream=stream, owners=object())
        for address in unwanted:
            driver.free(address)
        driver.destroy_stream(gone)
        graph = driver.end_capture(stream)
        calls = [call for call in standin.calls() if not call.startswith("hipSetDevice")]
        calls = calls[calls.index("hipStreamBeginCapture mode 1") :]
        assert calls[-1] == "hipStreamEndCapture"
        assert not WAITING & {call.split()[0] for call in calls}
        executable = driver.instantiate(graph)
        driver.destroy_graph(graph)
        driver.launch_graph(executable, stream)
        driver.launch_graph(executable, 0)
        driver.synchronize_device(0)
        launched = [call for call in standin.calls() if call.startswith("hipGraph")]
    assert launched == ["hipGraphInstantiateWithFlags flags 0", "hipGraphDestroy", *["hipGraphLaunch on 0"] * 2]
    driver.destroy_executable(executable)
    driver.destroy_stream(stream)
    driver.free(place)


def test_a_capture_that_the_runtime_lost(driver: HipDriver, standin: Standin) -> None:
    stream, place = driver.create_stream(0), driver.alloc(0, 64)
    driver.begin_capture(stream)
    standin._library.hipDeviceSynchronize()  # as another library in the process might
    with pytest.raises(CaptureError, match=r"hipStreamEndCapture: hipErrorStreamCaptureInvalidated \(901\)"):
        driver.end_capture(stream)
    assert not driver.is_capturing(stream)
    driver.fill(place, 7, 64, stream)
    found = np.zeros(64, np.uint8)
    driver.copy(found.ctypes.data, place, 64, stream)
    driver.synchronize_stream(stream)
    assert (found == 7).all()
    driver.destroy_stream(stream)
    driver.free(place)


def test_work_behind_a_callback_is_not_captured(driver: HipDriver) -> None:
    stream, place, gate = driver.create_stream(0), driver.alloc(0, 8), threading.Event()
    told: list[BaseException] = []
    with Loaded(driver, "count") as loaded:
        driver.fill(place, 0, 8, stream)
        driver.add_callback(stream, lambda error: gate.wait(10) and None)
        loaded.launch("count", place, stream=stream)
        threading.Timer(0.02, gate.set).start()
        driver.begin_capture(stream)  # waits for the callback
        loaded.launch("count", place, grid=10, stream=stream)
        graph = driver.end_capture(stream)
        executable = driver.instantiate(graph)
        driver.destroy_graph(graph)

        def capture(error: BaseException | None) -> None:
            try:
                driver.begin_capture(stream)
            except CaptureError as refusal:
                told.append(refusal)

        driver.add_callback(stream, capture)
        driver.launch_graph(executable, stream)  # while the stream is held, maybe
        driver.synchronize_stream(stream)
        found = np.zeros(1, np.int64)
        driver.copy(found.ctypes.data, place, 8)
    assert found[0] == 11
    assert "callback" in str(told[0])
    driver.destroy_executable(executable)
    driver.destroy_stream(stream)
    driver.free(place)


def test_copies_that_cannot_be_recorded(driver: HipDriver) -> None:
    stream, place = driver.create_stream(0), driver.alloc(0, 4096)
    backwards = np.arange(64, dtype=np.int32).reshape(8, 8)[:, ::-1]
    driver.begin_capture(stream)
    with pytest.raises(CaptureError, match="overlaps itself"):
        driver.copy(place, place + 8, 64, stream)
    with pytest.raises(CaptureError, match="goes through the host"):
        driver.copy_strided(
            Strided(place, (32, 4)), Strided(backwards.ctypes.data, backwards.strides), (8, 8), 4, stream, backwards
        )
    driver.copy_strided(Strided(place, (64, 4)), Strided(place + 2048, (32, 4)), (8, 8), 4, stream)
    driver.destroy_graph(driver.end_capture(stream))
    driver.destroy_stream(stream)
    driver.free(place)


def test_a_graph_belongs_to_a_device(driver: HipDriver, standin: Standin) -> None:
    stream, other = driver.create_stream(1), driver.create_stream(0)
    place = driver.alloc(1, 8)
    driver.begin_capture(stream)
    driver.fill(place, 3, 8, stream)
    graph = driver.end_capture(stream)
    executable = driver.instantiate(graph)
    with pytest.raises(LaunchError, match="the graph is of device 1; the stream is of device 0"):
        driver.launch_graph(executable, other)
    standin.calls()
    driver.launch_graph(executable, 0)  # the default stream of its device
    assert "hipGraphLaunch on 1" in standin.calls()
    found = np.zeros(8, np.uint8)
    driver.copy(found.ctypes.data, place, 8)
    assert found.tolist() == [3] * 8
    driver.destroy_graph(graph)
    driver.destroy_executable(executable)
    for handle in (stream, other):
        driver.destroy_stream(handle)
    driver.free(place)


def test_code_stays_loaded_as_long_as_a_graph_runs_it(driver: HipDriver, standin: Standin) -> None:
    stream, seen, modules = driver.create_stream(0), driver.alloc(0, 64), standin.live()["modules"]
    with Loaded(driver, "fault") as loaded:
        driver.begin_capture(stream)
        loaded.launch("fault", seen, 5, 100, block=64, stream=stream)
        graph = driver.end_capture(stream)
    del loaded
    for _ in range(2):
        driver.synchronize_device(0)
        assert standin.live()["modules"] == modules + 1
        executable = driver.instantiate(graph)
        driver.launch_graph(executable, stream)
        driver.destroy_executable(executable)
        with pytest.raises(KernelFault, match="error code 100"):
            driver.synchronize_device(0)
    driver.destroy_graph(graph)
    del executable
    gc.collect()
    driver.synchronize_device(0)
    assert standin.live()["modules"] == modules
    driver.destroy_stream(stream)
    driver.free(seen)


def test_executables_that_nobody_wants_do_not_pile_up(driver: HipDriver, standin: Standin) -> None:
    stream = driver.create_stream(0)
    driver.begin_capture(stream)
    graph = driver.end_capture(stream)
    for _ in range(2 * UNLOADING_COUNT + 1):
        executable = driver.instantiate(graph)
        driver.launch_graph(executable, stream)
        driver.destroy_executable(executable)
        with pytest.raises(InvalidHandleError, match="graph was destroyed"):
            driver.launch_graph(executable, stream)
    assert 0 < standin.live()["executables"] <= UNLOADING_COUNT + 1
    driver.destroy_graph(graph)
    driver.destroy_stream(stream)
