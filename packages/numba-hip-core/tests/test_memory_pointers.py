"""Pointers to memory: what `memalloc` of a context and ``gpu_data`` of arrays give."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime.errors import ArrayError
from numba_hip.host.memory_pointers import DeadMemoryError, MemoryInUseError, MemoryPointer, pointer_to


def free_bytes() -> int:
    hip.current_context().deallocations.clear()
    return hip.current_context().get_memory_info().free


def test_memory_is_owned_by_its_pointer() -> None:
    context = hip.current_context()
    before = free_bytes()
    memory = context.memalloc(1 << 22)
    assert isinstance(memory, hip.MemoryPointer)
    assert (memory.size, memory.nbytes, memory.context, memory.is_managed, memory.refct) == (
        1 << 22,
        1 << 22,
        context,
        True,
        1,
    )
    assert memory.handle == memory.device_pointer == memory.device_pointer_value == memory.address
    assert memory.device_pointer.value == memory.device_ctypes_pointer.value == memory.address
    assert memory.own() is memory is memory.owner
    assert free_bytes() < before
    assert context.allocations[memory.address] is memory
    address = memory.address
    del memory
    assert free_bytes() == before
    assert address not in context.allocations


def test_freed_memory_is_not_used_again() -> None:
    before = free_bytes()
    memory = hip.current_context().memalloc(1 << 22)
    part, address = memory.view(8, 16), memory.address
    memory.free()
    assert free_bytes() == before
    assert memory.is_freed
    assert part.is_freed
    assert address not in hip.current_context().allocations
    uses: list[Any] = [
        memory.free, memory.own, memory.as_buffer, lambda: memory.view(8), lambda: memory.memset(0), part.free,
        lambda: memory.device_pointer, lambda: part.device_ctypes_pointer, lambda: memory.handle,
        lambda: hip.current_context().get_ipc_handle(memory),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(
            DeadMemoryError, match=r"<MemoryPointer to \d+ bytes at 0x[0-9a-f]+, freed> must not be used"
        ):
            use()


def test_views_keep_the_whole() -> None:
    memory = hip.current_context().memalloc(64)
    first = memory.view(8)
    second = first.view(8, 24)
    assert (second.address - memory.address, second.size) == (16, 16)
    assert first.owner is second.owner is memory
    assert (memory.refct, first.is_managed) == (3, False)
    with pytest.raises(MemoryInUseError, match=r"is a part of .* which is freed as a whole: owner\.free\(\)"):
        first.free()
    del second
    assert memory.refct == 2
    with pytest.raises(ArrayError, match="bytes 8 to 65 are not within the 64 of this memory"):
        memory.view(8, 65)


def test_equal_pointers_are_to_the_same_bytes() -> None:
    memory, other = (hip.current_context().memalloc(64) for _ in range(2))
    assert memory == memory.view(0)
    assert hash(memory) == hash(memory.view(0))
    assert memory != other
    assert memory != memory.view(8)
    assert memory != 64


def test_memory_of_arrays() -> None:
    array = hip.to_device(np.arange(12, dtype=np.int32))
    memory = array.gpu_data
    assert isinstance(memory, MemoryPointer)
    assert memory == array.gpu_data == array.as_cuda_arg() == array.view(np.float32).gpu_data
    assert (memory.context, memory.is_managed, memory.owner) == (hip.current_context(), True, memory)
    part = array[2:4].gpu_data
    assert (part.address - memory.address, part.size) == (8, 8)
    part.memset(0)
    assert array.copy_to_host()[:5].tolist() == [0, 1, 0, 0, 4]
    with pytest.raises(MemoryInUseError, match=r"belongs to an array or an IPC handle: delete the array"):
        memory.free()
    del array
    gc.collect()
    assert memory.view(0, 4).device_pointer, "a pointer keeps the memory of an array that is gone"


def test_memory_that_arrays_use_is_not_freed() -> None:
    memory = hip.current_context().memalloc(64)
    buffer = memory.as_buffer()
    assert memory.refct == 2
    assert pointer_to(hip.current_context(), buffer) is memory
    assert pointer_to(hip.current_context(), buffer.view(8, 16)) == memory.view(8, 16)
    with pytest.raises(MemoryInUseError, match=r"is used by arrays: delete them and their views \(del\)"):
        memory.free()
    del buffer
    memory.free()


def test_memory_of_others_is_theirs_to_free() -> None:
    calls: list[int] = []
    theirs = hip.MemoryPointer(hip.current_context(), ctypes.c_void_p(0xDEADBEEF), 40)
    theirs.free()
    assert (theirs.device_pointer_value, theirs.is_managed, theirs.is_freed) == (0xDEADBEEF, False, False)
    ours = hip.MemoryPointer(hip.current_context(), ctypes.c_void_p(0xDEADBEEF), 40, finalizer=lambda: calls.append(1))
    owned = ours.own()
    del owned
    assert not calls
    ours.free()
    with pytest.raises(DeadMemoryError):
        ours.free()
    del ours
    assert calls == [1]


@pytest.mark.parametrize("kind", ["pinned", "mapped", "managed"])
def test_memory_of_the_host(kind: str) -> None:
    context = hip.current_context()
    memory: Any = (
        context.memallocmanaged(64) if kind == "managed" else context.memhostalloc(64, mapped=kind == "mapped")
    )
    words = np.ndarray(16, np.uint32, buffer=memory)
    words[:] = range(16)
    assert isinstance(memory, {"pinned": hip.PinnedMemory, "mapped": hip.MappedMemory}.get(kind, hip.MemoryPointer))
    assert (memory.size, memory.context, memory.is_managed, memory.refct) == (64, context, True, 1)
    assert memory.own() is memory.owner is memory.owned is memory
    assert memory.handle == memory.host_pointer == memory.device_pointer == memory.ctypes.data == memory.address
    assert memory.device_pointer_value == memory.device_ctypes_pointer.value == memory.ctypes.data
    part = memory.view(4, 12)
    assert (part.size, part.host_pointer - memory.host_pointer) == (8, 4)
    part.memset(0)
    context.synchronize()
    assert words[:4].tolist() == [0, 0, 0, 3]
    numbers = memory.view(np.uint32)
    assert numbers.tolist() == words.tolist()
    assert not isinstance(numbers, hip.MemoryPointer)
    with pytest.raises(ArrayError, match="bytes 4 to 65 are not within the 64 of this memory"):
        memory.view(4, 65)
    with pytest.raises(MemoryInUseError, match=r"64 bytes at 0x[0-9a-f]+ are an array of NumPy: delete it"):
        memory.free()
