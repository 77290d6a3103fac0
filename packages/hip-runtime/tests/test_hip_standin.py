"""What the stand-in for the HIP runtime refuses, and how: as HIP's own tests (ROCm/hip-tests, catch/unit) expect it.

A stand-in that took more than HIP does would let mistakes of the driver pass.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from typing import Any

import hip_kernels
import numpy as np
import pytest
from hip_standin import Standin
from test_hip_driver import standin

__all__ = ["standin"]

VALUE, CONFIGURATION, PITCH, DEVICE, CONTEXT, NO_BINARY, HANDLE, STATE, UNKNOWN = 1, 9, 12, 101, 201, 209, 400, 401, 500
ENABLED, NOT_ENABLED, GONE, LAUNCH_FAILURE = 704, 705, 709, 719
UNSUPPORTED, INVALIDATED, ISOLATION, IMPLICIT, CAPTURED, WRONG_THREAD = 900, 901, 905, 906, 907, 908
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
DEFAULT = 4
"""``hipMemcpyDefault``"""

BYTES = 1000


class Hip:
    """HIP's functions as they are, of the stand-in: they answer their error."""

    def __init__(self, standin: Standin) -> None:
        self._standin = standin
        self._made: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._standin.call(name, *arguments)

    def make(self, function: str, undo: str, *arguments: Any) -> int:
        """What *function* makes, given back at the end."""
        place = c_void_p()
        assert self._standin.call(function, byref(place), *arguments) == 0
        self._made.append((undo, place.value or 0))
        return place.value or 0

    def close(self) -> None:
        for undo, handle in reversed(self._made):
            assert self._standin.call(undo, handle) == 0

    def memory(self) -> int:
        return self.make("hipMalloc", "hipFree", BYTES)

    def stream(self, flags: int = 0) -> int:
        return self.make("hipStreamCreateWithPriority", "hipStreamDestroy", flags, 0)

    def event(self) -> int:
        return self.make("hipEventCreateWithFlags", "hipEventDestroy", 0)

    def module(self, threads: int = 1024) -> int:
        image = hip_kernels.code("count", "empty", threads=threads).image
        return self.make("hipModuleLoadData", "hipModuleUnload", image)

    def function(self, module: int, name: bytes = b"count") -> int:
        place = c_void_p()
        assert self.hipModuleGetFunction(byref(place), module, name) == 0
        return place.value or 0

    def gone_stream(self) -> int:
        place = c_void_p()
        self.hipStreamCreateWithPriority(byref(place), 0, 0)
        assert self.hipStreamDestroy(place.value) == 0
        return place.value or 0

    def end_capture(self, stream: int) -> int:
        place = c_void_p()
        code: int = self.hipStreamEndCapture(stream, byref(place))
        assert bool(place.value) == (code == 0)
        if place.value:
            self.hipGraphDestroy(place.value)
        return code


@pytest.fixture
def hip(standin: Standin) -> Iterator[Hip]:
    before = standin.live()
    hip = Hip(standin)
    hip.hipSetDevice(0)
    yield hip
    hip.close()
    hip.hipGetLastError()
    assert standin.live() == before


@pytest.fixture
def host() -> Any:
    return np.zeros(2 * BYTES, np.uint8)


def test_copies_stay_within_their_allocations(hip: Hip, host: Any) -> None:
    place, other, pageable = hip.memory(), hip.memory(), host.ctypes.data
    for copy, more in ((hip.hipMemcpy, ()), (hip.hipMemcpyAsync, (hip.stream(),))):
        assert copy(place, pageable, BYTES, DEFAULT, *more) == 0
        assert copy(place, pageable, BYTES + 1, DEFAULT, *more) == VALUE
        assert copy(pageable, place + 8, BYTES - 7, DEFAULT, *more) == VALUE
        assert copy(pageable, place + 8, BYTES - 8, DEFAULT, *more) == 0
        assert copy(place, other, BYTES + 1, DEFAULT, *more) == VALUE
        assert copy(0, pageable, 8, DEFAULT, *more) == VALUE
        assert copy(pageable, place, 0, DEFAULT, *more) == 0


def test_rectangles_stay_within_their_allocations(hip: Hip, host: Any) -> None:
    place, pageable, stream = hip.memory(), host.ctypes.data, hip.stream()
    for copy, more in ((hip.hipMemcpy2D, ()), (hip.hipMemcpy2DAsync, (stream,))):
        assert copy(place, 100, pageable, 50, 50, 10, DEFAULT, *more) == 0
        assert copy(place, 100, pageable, 50, 50, 11, DEFAULT, *more) == VALUE
        assert copy(place + 51, 100, pageable, 50, 50, 10, DEFAULT, *more) == VALUE
        assert copy(pageable, 50, place, 200, 50, 6, DEFAULT, *more) == VALUE
        assert copy(place, 40, pageable, 50, 50, 2, DEFAULT, *more) == PITCH
    hip.hipStreamSynchronize(stream)


def test_fills_stay_within_their_allocations(hip: Hip, host: Any) -> None:
    place, stream = hip.memory(), hip.stream()
    for fill, more in ((hip.hipMemset, ()), (hip.hipMemsetAsync, (stream,))):
        assert fill(place, 1, BYTES, *more) == 0
        assert fill(place, 1, BYTES + 1, *more) == VALUE
        assert fill(place + 1, 1, BYTES, *more) == VALUE
        assert fill(host.ctypes.data, 1, 8, *more) == VALUE, "HIP fills no pageable memory"
        assert fill(0, 1, 8, *more) == VALUE
    hip.hipStreamSynchronize(stream)


def test_pageable_memory_is_filled_when_the_call_returns(hip: Hip, host: Any) -> None:
    place, stream = hip.memory(), hip.stream(1)
    for value in range(1, 20):
        hip.hipMemsetAsync(place, value, BYTES, stream)
        hip.hipMemcpyAsync(host.ctypes.data, place, BYTES, DEFAULT, stream)
        assert (host[:BYTES] == value).all()


def test_addresses_that_the_runtime_does_not_know(hip: Hip, host: Any) -> None:
    place, pageable = hip.memory(), host.ctypes.data
    start, size, device, there = c_void_p(), c_size_t(), c_int(), c_void_p()
    assert hip.hipMemGetAddressRange(byref(start), byref(size), place + 8) == 0
    assert (start.value, size.value) == (place, BYTES)
    assert hip.hipMemGetAddressRange(byref(start), byref(size), pageable) == UNKNOWN
    assert hip.hipMemGetAddressRange(byref(start), byref(size), place + BYTES) == UNKNOWN
    assert hip.hipPointerGetAttribute(byref(device), 9, pageable) == VALUE
    assert hip.hipHostGetDevicePointer(byref(there), pageable, 0) == VALUE
    assert hip.hipFree(place + 8) == VALUE
    assert hip.hipHostFree(place) == VALUE


def test_ipc_handles(hip: Hip, host: Any) -> None:
    place, there = hip.memory(), c_void_p()
    handle = (ctypes.c_char * 64)()
    assert hip.hipIpcGetMemHandle(byref(handle), host.ctypes.data) == VALUE
    assert hip.hipIpcGetMemHandle(byref(handle), place) == 0

    class Handle(ctypes.Structure):
        _fields_ = (("reserved", ctypes.c_char * 64),)

    given = Handle.from_buffer_copy(handle)
    assert hip.hipIpcOpenMemHandle(byref(there), given, c_uint(1)) == CONTEXT, "in the process that made it"
    assert hip.hipIpcOpenMemHandle(byref(there), given, c_uint(0)) == VALUE


def test_streams_that_were_destroyed(hip: Hip, host: Any) -> None:
    gone, event, place, number = hip.gone_stream(), hip.event(), hip.memory(), c_uint()
    for answer in (
        hip.hipStreamDestroy(gone),
        hip.hipStreamQuery(gone),
        hip.hipStreamSynchronize(gone),
        hip.hipStreamGetFlags(gone, byref(number)),
        hip.hipStreamGetDevice(gone, byref(number)),
        hip.hipEventRecord(event, gone),
        hip.hipMemcpyAsync(place, host.ctypes.data, 8, DEFAULT, gone),
        hip.hipStreamBeginCapture(gone, GLOBAL),
        hip.end_capture(gone),
    ):
        assert answer == GONE
    assert hip.hipStreamWaitEvent(gone, event, 0) == HANDLE
    assert hip.hipStreamGetFlags(0, byref(number)) == VALUE


def test_events(hip: Hip) -> None:
    event, stream, time = c_void_p(), hip.stream(), ctypes.c_float()
    hip.hipEventCreateWithFlags(byref(event), 0)
    assert hip.hipEventQuery(event) == 0, "never recorded"
    assert hip.hipEventElapsedTime(byref(time), event, event) == HANDLE
    assert hip.hipEventRecord(event, stream) == 0
    hip.hipEventSynchronize(event)
    assert hip.hipEventElapsedTime(byref(time), event, event) == 0
    assert hip.hipEventDestroy(event) == 0
    assert hip.hipEventDestroy(event) == GONE


def test_modules(hip: Hip) -> None:
    module, function, place, size = hip.module(), c_void_p(), c_void_p(), c_size_t()
    assert hip.hipModuleGetFunction(byref(function), module, b"nothing") == UNKNOWN
    assert hip.hipModuleGetGlobal(byref(place), byref(size), module, b"nothing") == UNKNOWN
    assert hip.hipModuleGetGlobal(byref(place), byref(size), module, b"primes") == 0
    assert np.ctypeslib.as_array((c_int * 4).from_address(place.value or 0)).tolist() == [2, 3, 5, 7]
    assert hip.hipMemset(place.value, 0, size.value + 1) == VALUE, "of the variable"
    assert hip.hipModuleUnload(12345) == UNKNOWN
    assert hip.hipModuleGetFunction(byref(function), 12345, b"count") == UNKNOWN


@pytest.mark.parametrize(
    ("grid", "block", "shared", "expected"),
    [
        ((0, 1, 1), (1, 1, 1), 0, VALUE),
        ((1, 1, 0), (1, 1, 1), 0, VALUE),
        ((1, 1, 1), (1, 0, 1), 0, VALUE),
        ((1, 1, 1), (1025, 1, 1), 0, VALUE),
        ((1, 1, 1), (32, 32, 2), 0, VALUE),
        ((1 << 31, 1, 1), (1, 1, 1), 0, VALUE),
        ((1, 65537, 1), (1, 1, 1), 0, VALUE),
        ((1 << 22, 1, 1), (1024, 1, 1), 0, CONFIGURATION),
        ((1, 1, 1), (1, 1, 1), 65537, VALUE),
        ((1, 1, 1), (1, 1, 1), 65536, 0),
    ],
)
def test_launches_that_no_gpu_does(
    hip: Hip, grid: tuple[int, ...], block: tuple[int, ...], shared: int, expected: int
) -> None:
    function, place = c_void_p(), hip.memory()
    hip.hipMemset(place, 0, 8)
    hip.hipModuleGetFunction(byref(function), hip.module(), b"count")
    arguments, size = c_void_p(place), c_size_t(8)
    extra = (c_void_p * 5)(1, ctypes.addressof(arguments), 2, ctypes.addressof(size), 3)
    launched = [hip.hipModuleLaunchKernel(function, *grid, *block, shared, handle, None, extra) for handle in (0, 1)]
    assert launched == [expected, GONE]
    hip.hipSetDevice(1)
    assert hip.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, extra) == DEVICE, "another's code"
    hip.hipSetDevice(0)
    hip.hipDeviceSynchronize()


def test_the_versions(hip: Hip) -> None:
    for name in ("hipRuntimeGetVersion", "hipDriverGetVersion"):
        version = c_int()
        assert getattr(hip, name)(byref(version)) == 0
        assert version.value // 10_000_000 == 6
        assert getattr(hip, name)(None) == VALUE


def test_arguments_of_a_launch_come_in_one_of_two_ways(hip: Hip) -> None:
    place, found = hip.memory(), np.zeros(1, np.int64)
    hip.hipMemset(place, 0, 8)
    module, argument, size = hip.module(), c_void_p(place), c_size_t(8)
    count, empty = hip.function(module), hip.function(module, b"empty")
    parameters = (c_void_p * 1)(ctypes.addressof(argument))
    extra = (c_void_p * 5)(1, ctypes.addressof(argument), 2, ctypes.addressof(size), 3)
    wrong = (c_void_p * 5)(1, ctypes.addressof(argument), 7, ctypes.addressof(size), 3)

    def launch(function: int, *given: Any) -> int:
        code: int = hip.hipModuleLaunchKernel(function, 2, 1, 1, 8, 1, 1, 0, None, *given)
        return code

    assert [launch(count, parameters, None), launch(count, None, extra), launch(empty, None, None)] == [0, 0, 0]
    hip.hipMemcpy(found.ctypes.data, place, 8, DEFAULT)
    assert found[0] == 32
    refused = [launch(count, parameters, extra), launch(count, None, None), launch(count, None, wrong)]
    assert refused == [VALUE] * 3
    assert launch(0, parameters, None) == HANDLE


def test_blocks_are_no_larger_than_the_code_was_made_for(hip: Hip) -> None:
    argument = c_void_p(hip.memory())
    count, parameters = hip.function(hip.module(threads=64)), (c_void_p * 1)(ctypes.addressof(argument))
    for name, given in (
        ("hipModuleLaunchKernel", (parameters, None)),
        ("hipModuleLaunchCooperativeKernel", (parameters,)),
    ):
        codes = [getattr(hip, name)(count, 1, 1, 1, *block, 0, None, *given) for block in ((64, 1, 1), (13, 5, 1))]
        assert codes == [0, LAUNCH_FAILURE], name
    hip.hipDeviceSynchronize()


@pytest.mark.parametrize("target", ["gfx1100", "gfx90a:sramecc-", "gfx90a:xnack+", "gfx9-generic"])
def test_code_for_another_gpu(hip: Hip, target: str) -> None:
    place = c_void_p()
    assert hip.hipModuleLoadData(byref(place), hip_kernels.code("empty", target=target).image) == NO_BINARY


def test_code_that_leaves_features_open_or_names_those_of_the_gpu(hip: Hip) -> None:
    for target in ("gfx90a", "gfx90a:sramecc+:xnack-"):
        hip.make("hipModuleLoadData", "hipModuleUnload", hip_kernels.code("empty", target=target).image)


def test_peers(hip: Hip, monkeypatch: pytest.MonkeyPatch) -> None:
    possible = c_int()
    assert hip.hipDeviceCanAccessPeer(byref(possible), 0, 7) == DEVICE
    assert hip.hipDeviceEnablePeerAccess(0, 0) == DEVICE
    assert hip.hipDeviceEnablePeerAccess(1, 1) == VALUE
    assert hip.hipDeviceDisablePeerAccess(1) in (0, NOT_ENABLED)
    assert hip.hipDeviceDisablePeerAccess(1) == NOT_ENABLED
    assert [hip.hipDeviceEnablePeerAccess(1, 0) for _ in range(2)] == [0, ENABLED]
    assert hip.hipDeviceDisablePeerAccess(1) == 0
    monkeypatch.setenv("STANDIN_NO_PEERS", "1")
    assert hip.hipDeviceEnablePeerAccess(1, 0) == DEVICE
    assert hip.hipDeviceCanAccessPeer(byref(possible), 0, 1) == 0
    assert possible.value == 0


def test_graphs_that_are_none(hip: Hip) -> None:
    for name, given in (
        ("hipGraphDestroy", (0,)),
        ("hipGraphExecDestroy", (0,)),
        ("hipGraphLaunch", (0, 0)),
        ("hipGraphInstantiateWithFlags", (byref(c_void_p()), 0, 0)),
    ):
        assert getattr(hip, name)(*given) == VALUE, name


# captures


def elsewhere(function: Any, *arguments: Any) -> Any:
    """What it answers in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result(30)


def test_captures_that_do_not_fit(hip: Hip) -> None:
    stream = hip.stream()
    assert hip.end_capture(stream) == STATE
    assert hip.end_capture(0) == STATE
    assert hip.hipStreamBeginCapture(0, GLOBAL) == UNSUPPORTED
    assert hip.hipStreamBeginCapture(stream, 7) == VALUE
    assert hip.hipStreamBeginCapture(stream, THREAD_LOCAL) == 0
    assert hip.hipStreamBeginCapture(stream, THREAD_LOCAL) == STATE
    assert elsewhere(hip.end_capture, stream) == WRONG_THREAD
    assert hip.end_capture(stream) == 0
    assert hip.hipStreamBeginCapture(stream, RELAXED) == 0
    assert elsewhere(hip.end_capture, stream) == 0


def test_what_costs_a_capture(hip: Hip, host: Any) -> None:
    stream, event, place = hip.stream(), hip.event(), hip.memory()
    pageable = host.ctypes.data
    hip.hipEventRecord(event, stream)
    calls = {
        "hipMemcpy": (IMPLICIT, (place, pageable, 8, DEFAULT)),
        "hipMemcpy2D": (IMPLICIT, (place, 8, pageable, 8, 8, 1, DEFAULT)),
        "hipMemset": (IMPLICIT, (place, 0, 8)),
        "hipDeviceSynchronize": (UNSUPPORTED, ()),
        "hipEventQuery": (CAPTURED, (event,)),
        "hipEventSynchronize": (CAPTURED, (event,)),
        "hipStreamQuery": (UNSUPPORTED, (stream,)),
        "hipStreamSynchronize": (UNSUPPORTED, (stream,)),
    }
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        for name, (expected, arguments) in calls.items():
            assert hip.hipStreamBeginCapture(stream, mode) == 0
            answer = elsewhere(getattr(hip, name), *arguments)
            assert answer == (UNSUPPORTED if mode == GLOBAL and expected == CAPTURED else expected), (name, mode)
            assert hip.end_capture(stream) == INVALIDATED, (name, mode)


@pytest.mark.parametrize(
    ("mode", "own_thread", "lost"), [(THREAD_LOCAL, False, 0), (THREAD_LOCAL, True, 1), (GLOBAL, False, 1)]
)
def test_what_costs_captures_of_the_thread_or_in_the_global_mode(
    hip: Hip, mode: int, own_thread: bool, lost: int
) -> None:
    stream, other, made = hip.stream(), hip.stream(1), c_void_p()
    for name, arguments in (("hipMalloc", (byref(made), 8)), ("hipFree", (0,)), ("hipStreamSynchronize", (other,))):
        assert hip.hipStreamBeginCapture(stream, mode) == 0
        call = getattr(hip, name)
        assert (call(*arguments) if own_thread else elsewhere(call, *arguments)) == lost * UNSUPPORTED, name
        assert hip.end_capture(stream) == lost * INVALIDATED, name
    hip.hipFree(made)


def test_the_mode_of_a_thread_says_what_its_calls_cost(hip: Hip) -> None:
    stream, other, mode = hip.stream(), hip.stream(1), c_int()
    for wrong in (None, byref(c_int(-1)), byref(c_int(3))):
        assert hip.hipThreadExchangeStreamCaptureMode(wrong) == VALUE
    for given, own_thread, lost in (
        (RELAXED, False, 0),
        (RELAXED, True, 0),
        (THREAD_LOCAL, False, 0),
        (THREAD_LOCAL, True, 1),
        (GLOBAL, False, 1),
    ):

        def wait(given: int = given) -> int:
            mode = c_int(given)
            assert hip.hipThreadExchangeStreamCaptureMode(byref(mode)) == 0
            assert mode.value == GLOBAL, "what it was before"
            code: int = hip.hipStreamSynchronize(other)
            assert hip.hipThreadExchangeStreamCaptureMode(byref(mode)) == 0
            assert mode.value == given
            return code

        assert hip.hipStreamBeginCapture(stream, GLOBAL) == 0
        assert hip.hipStreamIsCapturing(stream, byref(mode)) == 0
        assert mode.value == 1
        assert (wait() if own_thread else elsewhere(wait)) == lost * UNSUPPORTED
        assert hip.hipStreamIsCapturing(stream, byref(mode)) == 0
        assert mode.value == 1 + lost
        assert hip.hipStreamIsCapturing(0, byref(mode)) == IMPLICIT
        assert hip.end_capture(stream) == lost * INVALIDATED, (given, own_thread)
    assert hip.hipStreamIsCapturing(0, byref(mode)) == 0
    assert mode.value == 0


def test_what_does_not_cost_a_capture(hip: Hip, host: Any) -> None:
    stream, other, event, place = hip.stream(), hip.stream(1), hip.event(), hip.memory()
    hip.hipEventRecord(event, stream)
    hip.hipStreamBeginCapture(stream, THREAD_LOCAL)
    assert elsewhere(hip.hipMemcpyAsync, place, host.ctypes.data, 8, DEFAULT, other) == 0
    assert elsewhere(hip.hipMemsetAsync, place, 0, 8, other) == 0
    assert elsewhere(hip.hipStreamSynchronize, other) == 0
    assert elsewhere(hip.hipStreamSynchronize, 0) == 0
    assert elsewhere(hip.hipStreamWaitEvent, other, event, 0) == ISOLATION, "refused, as it was recorded before"
    assert hip.end_capture(stream) == 0
