"""Pages behind allocations of the CPU device, which instructions under masks reach over, are in place."""

from __future__ import annotations

import ctypes

import pytest

from hip_runtime.drivers.cpu.memory.heap import CpuHeap
from hip_runtime.drivers.cpu.memory.pages import HUGE_BYTES, MARGIN, PAGE


def _is_in_place(address: int) -> bool:
    """Whether the page of *address* exists and has memory."""
    found = ctypes.create_string_buffer(1)
    mincore = ctypes.CDLL(None, use_errno=True).mincore
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    return mincore(address // PAGE * PAGE, PAGE, found) == 0 and bool(found.raw[0] & 1)


@pytest.mark.parametrize("nbytes", [1, 800, PAGE - 1, PAGE, 3 * PAGE - 300, 10 * PAGE])
def test_what_is_behind_an_allocation_is_in_place(nbytes: int) -> None:
    heap = CpuHeap(1 << 30)
    for _ in range(20):  # allocations start at different places in their pages
        address = heap.allocate(nbytes)
        ctypes.memset(address, 1, nbytes)
        assert _is_in_place(address + nbytes)
        assert _is_in_place(address + nbytes + MARGIN - 1)


def test_memory_that_is_used_again_has_its_margin() -> None:
    heap = CpuHeap(1 << 30)
    places = [heap.allocate(1) for _ in range(16)]
    for address in places:
        heap.release(heap.take(address))
    again = [heap.allocate(PAGE) for _ in range(16)]
    assert set(again) == set(places)
    for address in again:
        ctypes.memset(address, 1, PAGE)
        assert _is_in_place(address + PAGE + MARGIN - 1)


def test_large_blocks_have_no_margin() -> None:
    """Nothing is behind them that an instruction would reach over again and again."""
    heap = CpuHeap(1 << 30)
    address = heap.allocate(HUGE_BYTES)
    assert address % PAGE == 0
    assert heap.find(address + HUGE_BYTES - 1) == (address, HUGE_BYTES)
