"""Copies between layouts on HIP devices, against NumPy; how many calls they take; that gaps are not written to."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import hip_standin
import numpy as np
import pytest
from hip_standin import Standin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hip_runtime.driver import DEFAULT_STREAM, Strided
from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.drivers.hip.strided_copies import plan_copy

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def standin() -> Standin:
    return hip_standin.standin()


@pytest.fixture(scope="module")
def driver(standin: Standin) -> Iterator[HipDriver]:
    before = standin.live()
    driver = HipDriver()
    yield driver
    gc.collect()
    driver.close()
    assert standin.live() == before


class Place:
    """An array on the device that is a copy of *base*, the whole memory under a NumPy view."""

    def __init__(self, driver: HipDriver, base: Array) -> None:
        self.driver, self.base = driver, base
        self.address = driver.alloc(0, base.nbytes)
        driver.copy(self.address, base.ctypes.data, base.nbytes)

    def of(self, view: Array) -> Strided:
        return Strided(self.address + view.ctypes.data - self.base.ctypes.data, view.strides)

    def read(self) -> Array:
        back = np.empty_like(self.base)
        self.driver.copy(back.ctypes.data, self.address, back.nbytes)
        self.driver.free(self.address)
        return back


def host(view: Array) -> Strided:
    return Strided(view.ctypes.data, view.strides)


@st.composite
def views(draw: st.DrawFn) -> tuple[Array, Array]:
    """An array and a view of it: any steps, directions and order of axes; elements of 1 to 12 bytes."""
    ndim = draw(st.integers(0, 4))
    dtype = draw(st.sampled_from(["u1", "u2", "u4", "u8", "V3", "V12"]))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=ndim, max_size=ndim)))
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    base = np.random.default_rng(nbytes).integers(0, 255, nbytes, dtype=np.uint8).view(dtype).reshape(shape)
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in shape]
    view = base[(*(slice(None, None, step) for step in steps), ...)]
    return base, view.transpose(draw(st.permutations(range(ndim))))


@pytest.mark.long
@given(views(), st.sampled_from(["to device", "to host", "on device"]), st.booleans(), st.randoms())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_layout_to_any_other(
    driver: HipDriver, pair: tuple[Array, Array], direction: str, own_stream: bool, random: Any
) -> None:
    base, view = pair
    axes = list(range(view.ndim))
    random.shuffle(axes)
    # The other side has the same shape, with its axes in another order in memory, spread out, some of them backwards.
    inverse = [axes.index(axis) for axis in range(view.ndim)]
    spread = [random.choice([1, 1, 2, -1, -3]) for _ in axes]
    memory = np.zeros([abs(step) * view.shape[axis] for step, axis in zip(spread, axes, strict=True)], view.dtype)
    picked = (*(slice(None, None, step) for step in spread), ...)
    other = memory[picked].transpose(inverse)
    expected = memory.copy()
    expected[picked].transpose(inverse)[...] = view

    stream = driver.create_stream(0) if own_stream else DEFAULT_STREAM
    source = Place(driver, base) if direction != "to device" else None
    target = Place(driver, memory) if direction != "to host" else None
    driver.copy_strided(
        target.of(other) if target else host(other),
        source.of(view) if source else host(view),
        view.shape,
        view.itemsize,
        stream,
        (other, view),
    )
    driver.synchronize_stream(stream)
    if source:
        source.read()
    assert (target.read() if target else memory).tobytes() == expected.tobytes()
    if own_stream:
        driver.destroy_stream(stream)


@pytest.mark.parametrize("step", [1, -1, 2])
def test_copies_that_overlap(driver: HipDriver, step: int) -> None:
    data = np.arange(400, dtype=np.int32).reshape(20, 20)
    place = Place(driver, data)
    into, found = data[1:, ::step][:, :10], data[:-1, 10:]
    place.driver.copy_strided(place.of(into), place.of(found), into.shape, 4)
    expected = data.copy()
    expected[1:, ::step][:, :10] = data[:-1, 10:]
    np.testing.assert_array_equal(place.read(), expected)


CASES = {
    "rows of a matrix": (np.s_[:, 2:8], np.s_[:, :6], ["hipMemcpy2DAsync 24 x 20"]),
    "whole rows": (np.s_[5:9], np.s_[:4], ["hipMemcpyAsync 320"]),
    "every other row, backwards": (np.s_[::-2], np.s_[:10], ["hipMemcpyAsync 800", "hipMemcpy2DAsync 80 x 10"]),
    "a column": (np.s_[:, 3], np.s_[:, 4], ["hipMemcpy2DAsync 4 x 20"]),
}


@pytest.mark.parametrize("case", CASES)
def test_how_many_calls_a_copy_takes(driver: HipDriver, standin: Standin, case: str) -> None:
    target, source, expected = CASES[case]
    data = np.arange(400, dtype=np.int32).reshape(20, 20)
    place = Place(driver, np.zeros_like(data))
    view, from_host = place.base[target], data[source]
    standin.calls()
    driver.copy_strided(place.of(view), host(from_host), view.shape, 4)
    copies = [call.split(" pitch")[0].split(" kind")[0] for call in standin.calls() if "Memcpy" in call]
    assert copies == expected
    place.base[target] = from_host
    expected_array = place.base.copy()
    place.base[...] = 0
    np.testing.assert_array_equal(place.read(), expected_array)


def test_a_transpose_goes_through_the_host_at_once(driver: HipDriver, standin: Standin) -> None:
    data = np.arange(200 * 300, dtype=np.float64).reshape(200, 300)
    source, target = Place(driver, data), Place(driver, np.zeros((300, 200)))
    standin.calls()
    driver.copy_strided(target.of(target.base), source.of(data.T), (300, 200), 8)
    assert sum("Memcpy" in call for call in standin.calls()) == 2
    source.read()
    np.testing.assert_array_equal(target.read(), data.T)


def test_elements_far_apart_are_not_read_with_all_between_them(driver: HipDriver, standin: Standin) -> None:
    data = np.arange(100_000, dtype=np.int64).reshape(100, 1000)
    source = Place(driver, data)
    view = data[::-10, ::-500]
    target = np.zeros_like(view, order="F")
    standin.calls()
    driver.copy_strided(host(target), source.of(view), view.shape, 8)
    rectangles = [call.split() for call in standin.calls() if call.startswith("hipMemcpy2DAsync ")]
    sizes = [int(width) * int(height) for _, width, _, height, *_ in rectangles]
    assert 0 < sum(sizes) <= 2 * view.nbytes, "to the host, and into its order there"
    np.testing.assert_array_equal(target, view)
    source.read()


def test_a_pitch_that_hip_cannot_have_is_split() -> None:
    far = 1 << 32
    plan = plan_copy(Strided(0, (far, 8)), Strided(0, (16, 8)), (3, 2), 8)
    rectangles = list(plan.rectangles())
    assert [(target, source) for target, _, source, _, _, _ in rectangles] == [(0, 0), (far, 16), (2 * far, 32)]
    assert [(width, height) for *_, width, height in rectangles] == [(16, 1)] * 3


def test_nothing_to_copy_is_no_call(driver: HipDriver, standin: Standin) -> None:
    standin.calls()
    driver.copy(1, 2, 0)
    driver.fill(1, 2, 0)
    driver.copy_strided(Strided(1, (4, 4)), Strided(2, (4, 4)), (0, 5), 4)
    assert standin.calls() == []
