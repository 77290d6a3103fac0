"""Configurations that were used before are found quickly, by the objects or by what is in them, and nothing else is."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from numba import hip

from hip_runtime import Stream
from hip_runtime.errors import LaunchError
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.dispatch.launch import ConfiguredKernel, LaunchConfig


def fresh() -> Dispatcher:
    @hip.jit
    def number(out):
        x, y = hip.grid(2)
        if x < out.shape[1] and y < out.shape[0]:
            out[y, x] += hip.gridDim.x * 1000 + hip.gridDim.y * 100 + hip.blockDim.x * 10 + hip.blockDim.y

    return number


def shown(configured: ConfiguredKernel) -> float:
    out = hip.to_device(np.zeros((1, 1)))
    configured(out)
    if configured.stream is not None:
        configured.stream.synchronize()
    return float(out.copy_to_host()[0, 0])


def test_the_same_objects_and_equal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, grid, block = fresh(), (2, 3), (4, 5)
    first = kernel[grid, block]
    monkeypatch.setattr(LaunchConfig, "of", lambda given: pytest.fail("looked at again"))
    assert kernel[grid, block] is first
    assert kernel[tuple(map(int, "23")), tuple(map(int, "45"))] is first
    assert kernel[grid, block] is first
    assert shown(first) == 2345


def test_by_turns() -> None:
    kernel, grid, block, other = fresh(), (2, 3), (4, 5), (1, 2)
    for _ in range(3):
        assert shown(kernel[grid, block]) == 2345
        assert shown(kernel[other, block]) == 1245
        assert shown(kernel[7, block]) == 7145
        assert shown(kernel[3, 2]) == 3121
        assert shown(kernel[grid, other]) == 2312
        assert shown(kernel[grid, block, 0, 64]) == 2345
        assert kernel[grid, block, 0, 64].sharedmem == 64
        assert kernel[grid, block].sharedmem == kernel[grid, block, 0].sharedmem == 0


def test_each_stream_has_its_launches() -> None:
    kernel, grid, block = fresh(), (2, 3), (4, 5)
    streams = [hip.stream(), hip.stream(), None, 0, hip.default_stream()]
    for _ in range(2):
        for given in ((grid, block), (3, 2)):
            for stream in streams:
                configured = kernel[(*given, stream)]
                assert configured.stream is (stream if isinstance(stream, Stream) else None)
                assert shown(configured) == (2345 if given[0] is grid else 3121)
            assert kernel[given].stream is None


def test_no_stream_is_kept() -> None:
    kernel, grid, block = fresh(), (2, 3), (4, 5)
    stream: Any = hip.stream()
    gone = weakref.ref(stream)
    for _ in range(3):
        shown(kernel[grid, block, stream])
    del stream
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("wrong", ["no stream", 1.5, object()])
def test_what_is_no_stream_is_an_error_each_time(wrong: Any) -> None:
    kernel, grid, block = fresh(), (2, 3), (4, 5)
    said = set()
    for _ in range(3):
        with pytest.raises(Exception, match="stream") as caught:
            kernel[grid, block, wrong]
        said.add((type(caught.value), str(caught.value)))
        assert shown(kernel[grid, block]) == 2345
    assert len(said) == 1


def test_equal_values_of_other_types_are_looked_at() -> None:
    kernel, block = fresh(), (4, 5)
    assert shown(kernel[(1, 3), block]) == 1345
    for wrong in ((1.0, 3), (1, 3.0), (np.float64(1), 3)):
        with pytest.raises(LaunchError, match="griddim"):
            kernel[wrong, block]
    assert shown(kernel[(np.int64(1), 3), block]) == 1345


def test_lists_are_looked_at_each_time() -> None:
    kernel, grid, block = fresh(), [2, 3], (4, 5)
    assert shown(kernel[grid, block]) == 2345
    grid[0] = 6
    assert shown(kernel[grid, block]) == 6345
    assert shown(kernel[grid, block, hip.stream()]) == 6345


def test_nothing_is_found_when_its_code_is_gone() -> None:
    kernel, grid, block = fresh(), (2, 3), (4, 5)
    before = kernel[grid, block]
    assert shown(before) == 2345
    kernel.recompile()
    assert kernel[grid, block] is not before
    assert shown(kernel[grid, block]) == 2345
