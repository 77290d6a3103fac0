"""Captures over the stand-in, which loses them as HIP does: what other threads and the driver's own do meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hip_standin import Standin
from test_hip_driver import Loaded, driver, standin

from hip_runtime.driver import DEFAULT_STREAM, Strided
from hip_runtime.drivers.hip.device import HipDriver
from hip_runtime.drivers.hip.gate import Gate, closed
from hip_runtime.drivers.hip.memory import RETIRED_COUNT
from hip_runtime.errors import CaptureError, KernelFault

__all__ = ["driver", "standin"]

N = 64


class Scene:
    """A stream that can be captured, with an event recorded on it before; and what other threads use meanwhile."""

    def __init__(self, driver: HipDriver) -> None:
        self.driver = driver
        self.captured, self.other = driver.create_stream(0), driver.create_stream(0, blocking=False)
        self.place, self.spare = driver.alloc(0, N * 8), driver.alloc(0, N * 8)
        self.host = np.arange(N, dtype=np.int64)
        self.before, self.timed = driver.create_event(0, timing=False), driver.create_event(0)
        self.loaded = Loaded(driver, "count", "fault")
        driver.fill(self.place, 0, 8, self.captured)
        for event in (self.before, self.timed):
            driver.record_event(event, self.captured)

    def close(self) -> None:
        self.loaded.driver.unload_module(self.loaded.module)
        for event in (self.before, self.timed):
            self.driver.destroy_event(event)
        for stream in (self.captured, self.other):
            self.driver.destroy_stream(stream)
        for address in (self.place, self.spare):
            self.driver.free(address)

    def read(self) -> list[int]:
        found = np.zeros_like(self.host)
        self.driver.copy(found.ctypes.data, self.spare, found.nbytes)
        return found.tolist()

    # what other threads do

    def copy(self) -> None:
        self.driver.copy(self.spare, self.host.ctypes.data, self.host.nbytes)
        assert self.read() == self.host.tolist()

    def copy_on_the_device(self) -> None:
        self.copy()
        self.driver.copy(self.spare, self.spare + 8, 8 * (N - 1))
        assert self.read() == [*range(1, N), N - 1]

    def fill(self) -> None:
        self.driver.fill(self.spare, 1, 8)
        assert self.read()[0] == 0x0101010101010101

    def copy_layouts(self) -> None:
        self.driver.copy_strided(
            Strided(self.spare, (64, 8)), Strided(self.host.ctypes.data, (64, 8)), (8, 4), 8, DEFAULT_STREAM
        )
        assert self.read()[:4] == [0, 1, 2, 3]

    def transpose(self) -> None:
        self.driver.copy_strided(
            Strided(self.spare, (64, 8)), Strided(self.host.ctypes.data, (8, 64)), (8, 8), 8, DEFAULT_STREAM
        )
        assert self.read()[:3] == [0, 8, 16]

    def ask_for_an_event_from_before(self) -> None:
        assert self.driver.query_event(self.before)

    def wait_for_an_event_from_before(self) -> None:
        self.driver.synchronize_event(self.before)
        assert self.driver.elapsed_time(self.timed, self.timed) == 0

    def order_behind_an_event_from_before(self) -> None:
        self.driver.wait_event(self.other, self.before)
        self.driver.synchronize_stream(self.other)

    def wait_for_the_device(self) -> None:
        self.loaded.launch("count", self.spare, stream=self.other)
        self.driver.synchronize_device(0)
        assert self.driver.query_stream(self.other)

    def wait_for_the_default_stream(self) -> None:
        self.driver.synchronize_stream(DEFAULT_STREAM)

    def make_and_free(self) -> None:
        for _ in range(RETIRED_COUNT + 1):
            self.driver.free(self.driver.alloc(0, 8))
        self.driver.memory_info(0)

    def load_and_unload(self) -> None:
        with Loaded(self.driver, "fault"):
            pass
        self.driver.synchronize_device(0)

    def find_a_fault(self) -> None:
        self.loaded.launch("fault", self.spare, 5, 100, block=8, stream=self.other)
        with pytest.raises(KernelFault, match="error code 100"):
            self.driver.synchronize_stream(self.other)
        self.loaded.launch("fault", self.spare, 6, 101, block=8, stream=self.other)
        with pytest.raises(KernelFault, match="error code 101"):
            self.driver.synchronize_stream(self.other)

    def call_back(self) -> None:
        told: list[BaseException | None] = []
        self.loaded.launch("fault", self.spare, 5, 100, block=8, stream=self.other)
        self.driver.add_callback(self.other, told.append)
        self.driver.copy(self.spare, self.host.ctypes.data, 8, self.other, self.host)
        with pytest.raises(KernelFault, match="error code 100"):
            self.driver.synchronize_stream(self.other)
        assert isinstance(told[0], KernelFault)

    def make_streams(self) -> None:
        self.driver.destroy_stream(self.driver.create_stream(0))

    def capture_another(self) -> None:
        self.driver.begin_capture(self.other)
        self.loaded.launch("count", self.spare, stream=self.other)
        graph = self.driver.end_capture(self.other)
        executable = self.driver.instantiate(graph)
        self.driver.launch_graph(executable, self.other)
        self.driver.synchronize_stream(self.other)
        self.driver.destroy_graph(graph)
        self.driver.destroy_executable(executable)


ACTIONS = [name for name, value in vars(Scene).items() if callable(value) and name not in ("__init__", "close", "read")]


@pytest.fixture
def scene(driver: HipDriver) -> Iterator[Scene]:
    scene = Scene(driver)
    yield scene
    scene.close()
    del scene
    driver.synchronize_device(0)


def while_capturing(scene: Scene, work: Callable[[], None]) -> int:
    """Do *work* in another thread within a capture; answers what three launches of the graph counted."""
    driver = scene.driver
    driver.begin_capture(scene.captured)
    scene.loaded.launch("count", scene.place, grid=5, stream=scene.captured)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        error = done.exception(30)
    scene.loaded.launch("count", scene.place, grid=2, stream=scene.captured)
    graph = driver.end_capture(scene.captured)
    if error is not None:
        raise error
    executable = driver.instantiate(graph)
    for _ in range(3):
        driver.launch_graph(executable, scene.captured)
    driver.synchronize_stream(scene.captured)
    driver.destroy_graph(graph)
    driver.destroy_executable(executable)
    found = np.zeros(1, np.int64)
    driver.copy(found.ctypes.data, scene.place, 8)
    return int(found[0])


@pytest.mark.sample(6)
@pytest.mark.parametrize("action", ACTIONS)
def test_other_threads_do_not_cost_a_capture(scene: Scene, action: str) -> None:
    assert while_capturing(scene, getattr(scene, action)) == 21


@pytest.mark.parametrize("function", ["hipMemcpy", "hipMemset", "hipMemcpy2D", "hipDeviceSynchronize"])
def test_calls_of_others_that_do_are_told(scene: Scene, standin: Standin, function: str) -> None:
    arguments = {
        "hipMemcpy": (scene.spare, scene.host.ctypes.data, 8, 4),
        "hipMemset": (scene.spare, 0, 8),
        "hipMemcpy2D": (scene.spare, 8, scene.host.ctypes.data, 8, 8, 1, 4),
        "hipDeviceSynchronize": (),
    }[function]
    with pytest.raises(CaptureError, match=r"hipErrorStreamCaptureInvalidated \(901\)"):
        while_capturing(scene, lambda: standin.call(function, *arguments))
    assert while_capturing(scene, lambda: None) == 21


def test_the_thread_of_a_callback_has_its_last_look_in_peace(scene: Scene) -> None:
    """It waits for the work behind its callback, to let go of its owners, when the stream is no longer held."""
    for _ in range(30):
        scene.driver.add_callback(scene.captured, lambda error: None)
        scene.driver.copy(scene.place, scene.host.ctypes.data, 8, scene.captured, object())
        scene.driver.fill(scene.place, 0, 8, scene.captured)
        assert while_capturing(scene, lambda: None) == 21


def test_a_capture_begins_when_nobody_asks_and_the_work_is_done(scene: Scene) -> None:
    """So events from before are reached, whenever they are asked for, and are not asked of HIP."""
    place = scene.driver.alloc(0, 8)
    with Loaded(scene.driver, "spin") as loaded:
        loaded.launch("spin", place, 20_000_000, stream=scene.captured)
        late = scene.driver.create_event(0)
        scene.driver.record_event(late, scene.captured)
        waiting = threading.Thread(target=scene.driver.synchronize_event, args=(late,))
        waiting.start()
        assert while_capturing(scene, lambda: None) == 21
        waiting.join(30)
        assert not waiting.is_alive()
        assert scene.driver.query_event(late)
    scene.driver.free(place)


def test_gates() -> None:
    one, other = Gate(), Gate()
    log: list[str] = []
    ready, go = threading.Event(), threading.Event()

    def ask() -> None:
        with one:
            ready.set()
            go.wait(10)
            with one, other:  # as a finaliser may
                log.append("asked")

    def ask_later() -> None:
        with other:
            log.append("asked later")

    asking = threading.Thread(target=ask)
    asking.start()
    ready.wait(10)
    threading.Timer(0.02, go.set).start()
    with closed(one, other):
        log.append("closed")
        with one:  # whoever closed it may ask
            later = threading.Thread(target=ask_later)
            later.start()
            later.join(0.02)
            log.append("opened")
    for thread in (asking, later):
        thread.join(10)
    assert log == ["asked", "closed", "opened", "asked later"]
