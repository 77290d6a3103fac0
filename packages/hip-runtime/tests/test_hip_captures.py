"""Captures over the stand-in, which loses them as HIP does: what other threads and the driver's own do meanwhile."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_void_p

import numpy as np
import pytest
from hip_standin import Standin
from test_hip_driver import Loaded, driver, standin

from hip_runtime.driver import DEFAULT_STREAM, Strided
from hip_runtime.drivers.hip.capture_gate import Gate, closed
from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.drivers.hip.memory import RETIRED_COUNT
from hip_runtime.drivers.hip.streams import OWNERS_PER_POINT
from hip_runtime.drivers.hip.unloading import UNLOADING_COUNT
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


class Owner:
    """Something that work needs."""


class Theirs:
    """A stream that another library made, and captures in the global mode while it is in this context."""

    def __init__(self, standin: Standin) -> None:
        self._standin = standin
        self.graph = c_void_p()
        self.executable = c_void_p()
        self.open()

    def open(self) -> None:
        place = c_void_p()
        assert self._standin.call("hipStreamCreateWithPriority", byref(place), 1, 0) == 0
        self.handle = place.value or 0

    def __enter__(self) -> Theirs:
        assert self._standin.call("hipStreamBeginCapture", self.handle, 0) == 0
        return self

    def __exit__(self, *error: object) -> None:
        code = self._standin.call("hipStreamEndCapture", self.handle, byref(self.graph))
        assert code == 0 or error[0] is not None, "the capture was lost"

    def launch(self) -> None:
        if not self.executable:
            assert self._standin.call("hipGraphInstantiateWithFlags", byref(self.executable), self.graph, 0) == 0
        assert self._standin.call("hipGraphLaunch", self.executable, self.handle) == 0

    def close(self) -> None:
        if self.executable:
            self._standin.call("hipGraphExecDestroy", self.executable)
        if self.graph:
            self._standin.call("hipGraphDestroy", self.graph)
        self._standin.call("hipStreamDestroy", self.handle)


@pytest.fixture
def theirs(standin: Standin) -> Iterator[Theirs]:
    theirs = Theirs(standin)
    yield theirs
    theirs.close()


ASKED_FOR = ("wait_for_the_device", "load_and_unload")
"""What waits for whole devices: that costs any capture, and is done for those alone who ask for it."""

CASES = [(action, thread) for action in ACTIONS if action not in ASKED_FOR for thread in ("their own", "another")]
CASES.remove(("capture_another", "their own"))  # a thread of the stand-in captures one stream at a time


@pytest.mark.sample(6)
@pytest.mark.parametrize(("action", "thread"), CASES)
def test_nothing_costs_the_captures_of_others(scene: Scene, theirs: Theirs, action: str, thread: str) -> None:
    work = getattr(scene, action)
    scene.driver.synchronize_stream(scene.captured)
    with theirs, ThreadPoolExecutor(1) as pool:
        if thread == "another":
            pool.submit(work).result(30)
        else:
            work()
            scene.driver.synchronize_stream(scene.captured)


def test_what_the_driver_tidies_up_costs_no_capture_of_others(scene: Scene, theirs: Theirs, standin: Standin) -> None:
    def names() -> set[str]:
        return {line.partition(" ")[0] for line in standin.calls()}

    names()
    with theirs:
        for _ in range(UNLOADING_COUNT + 1):
            with Loaded(scene.driver, "count"):
                pass
        with standin.failing("hipMalloc", 2):
            scene.driver.free(scene.driver.alloc(0, 8))  # the second time, after all was given back
        given_back = names()
    assert "hipModuleUnload" in given_back
    assert "hipDeviceSynchronize" not in given_back


def test_their_streams_take_work_while_they_capture(scene: Scene, theirs: Theirs) -> None:
    driver, before = scene.driver, scene.driver.create_event(0)
    count, faulty = Loaded(driver, "count"), Loaded(driver, "fault")
    driver.record_event(before, theirs.handle)
    owners = [Owner() for _ in range(2 * OWNERS_PER_POINT)]
    alive = [weakref.ref(owner) for owner in owners]
    driver.fill(scene.place, 0, 8)
    with theirs:
        for owner in owners:
            count.launch("count", scene.place, stream=theirs.handle, owners=owner)
        faulty.launch("fault", scene.spare, 5, 100, block=8, stream=theirs.handle)
        for work, text in (
            (lambda: driver.synchronize_stream(theirs.handle), "cannot wait for stream"),
            (lambda: driver.query_stream(theirs.handle), "cannot ask about stream"),
            (lambda: driver.record_event(before, theirs.handle), "cannot record an event on stream"),
            (lambda: driver.query_event(before), "cannot ask about an event of stream"),
            (lambda: driver.synchronize_event(before), "cannot wait for an event of stream"),
            (lambda: driver.add_callback(theirs.handle, print), "cannot call back from stream"),
        ):
            with pytest.raises(CaptureError, match=f"{text} {theirs.handle}, which another library is capturing"):
                work()
        for loaded in (count, faulty):
            driver.unload_module(loaded.module)
        driver.memory_info(0)
    del owner, owners
    for launches in (1, 2):
        theirs.launch()
        with pytest.raises(KernelFault, match="error code 100"):
            driver.synchronize_stream(theirs.handle)
        found = np.zeros(1, np.int64)
        driver.copy(found.ctypes.data, scene.place, 8)
        assert found[0] == launches * 2 * OWNERS_PER_POINT
    assert all(reference() is not None for reference in alive), "their graph may be launched again"
    assert driver.query_event(before)


def test_streams_that_others_have_destroyed_are_forgotten(scene: Scene, theirs: Theirs, standin: Standin) -> None:
    driver = scene.driver
    with Loaded(driver, "count") as count:
        count.launch("count", scene.place, stream=theirs.handle)
        driver.synchronize_stream(theirs.handle)
    theirs.close()
    standin.calls()
    for _ in range(2):
        driver.memory_info(0)
    driver.synchronize_device(0)  # which unloads the module
    assert [line.partition(" ")[0] for line in standin.calls()].count("hipModuleUnload") == 1
    theirs.open()


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
