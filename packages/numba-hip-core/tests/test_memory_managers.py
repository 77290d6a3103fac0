"""Memory managers of others: what they give is what arrays use, and what they get back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import hip

import hip_runtime
from hip_runtime.errors import UnsupportedError
from numba_hip.memory_managers import (
    GetIpcHandleMixin,
    HostOnlyMemoryManager,
    MemoryManagerError,
    MemoryPointer,
    set_memory_manager,
)

pytestmark = pytest.mark.skipif(not hip_runtime.current_device().is_cpu, reason="the plugin gives memory of the host")

LIMIT = 1 << 20


class Counting(GetIpcHandleMixin, HostOnlyMemoryManager):
    """A plugin that gives memory of ctypes, and knows what is out."""

    living: dict[int, int] = {}
    initialised = 0

    def initialize(self) -> None:
        type(self).initialised += 1

    def memalloc(self, size: int) -> MemoryPointer:
        if size > LIMIT:
            raise MemoryError(f"{size} bytes of {LIMIT}")
        memory = ctypes.create_string_buffer(max(1, size))
        address = ctypes.addressof(memory)
        self.living[address] = size
        return MemoryPointer(
            self.context, ctypes.c_uint64(address), size, owner=memory, finalizer=lambda: self.living.pop(address)
        )

    def get_memory_info(self) -> hip.MemoryInfo:
        return hip.MemoryInfo(free=LIMIT - sum(self.living.values()), total=LIMIT)

    @property
    def interface_version(self) -> int:
        return 1


@pytest.fixture
def plugin() -> Iterator[type[Counting]]:
    Counting.living.clear()
    set_memory_manager(Counting)
    yield Counting
    set_memory_manager(None)


def test_arrays_lie_in_memory_of_the_plugin(plugin: type[Counting]) -> None:
    @hip.jit
    def double(values: Any) -> None:
        values[hip.grid(1)] *= 2

    array = hip.to_device(np.arange(4.0))
    assert plugin.living == {array.address: 32}
    double[1, 4](array)
    assert array.copy_to_host().tolist() == [0, 2, 4, 6]
    assert hip.current_context().get_memory_info() == (LIMIT - 32, LIMIT)
    part = array[1:]
    del array
    assert len(plugin.living) == 1, "a view keeps it"
    del part
    assert plugin.living == {}
    host = np.ones(4)
    double[1, 4](host)
    assert host.tolist() == [2, 2, 2, 2]
    assert plugin.living == {}


def test_memory_of_the_host_comes_from_the_driver(plugin: type[Counting]) -> None:
    hip.pinned_array(4)[:] = 1
    hip.mapped_array(4)[:] = 1
    manager = hip.current_context().device.memory_manager.plugin
    for mapped in (False, True):
        memory = manager.memhostalloc(64, mapped=mapped)
        ctypes.memset(memory.device_pointer_value, 1, 64)
        memory.free()
    assert plugin.living == {}


def test_cleanup_is_deferred(plugin: type[Counting]) -> None:
    with hip.defer_cleanup():
        hip.to_device(np.arange(4.0))
        assert len(plugin.living) == 1
    assert plugin.living == {}


def test_a_plugin_that_runs_out_leaks_nothing(plugin: type[Counting]) -> None:
    with pytest.raises(MemoryError, match=str(LIMIT)):
        hip.device_array(LIMIT, np.float64)
    assert plugin.living == {}


def test_handles_are_those_of_the_driver(plugin: type[Counting]) -> None:
    manager = hip.current_context().device.memory_manager.plugin
    with pytest.raises(UnsupportedError):
        manager.get_ipc_handle(manager.memalloc(8))


def test_memory_goes_back_to_where_it_came_from() -> None:
    before = hip.to_device(np.arange(3.0))
    Counting.living.clear()
    set_memory_manager(Counting)
    between = hip.to_device(np.arange(3.0))
    del before
    set_memory_manager(None)
    after = hip.to_device(np.arange(3.0))
    assert list(Counting.living) == [between.address]
    del between, after
    assert Counting.living == {}


class Old(Counting):
    @property
    def interface_version(self) -> int:
        return 0


class Broken(Counting):
    def initialize(self) -> None:
        raise OSError("no pool")


@pytest.mark.parametrize(
    ("manager", "error", "message"),
    [(Old, MemoryManagerError, "version 0; it has to be 1"), (Broken, OSError, "no pool"), (3, TypeError, "None")],
)
def test_plugins_that_cannot_be_used_change_nothing(manager: Any, error: type[Exception], message: str) -> None:
    before = hip_runtime.current_device().memory_manager
    with pytest.raises(error, match=message):
        set_memory_manager(manager)
    assert hip_runtime.current_device().memory_manager is before


class Short(Counting):
    def memalloc(self, size: int) -> Any:
        return super().memalloc(size - 1) if size != 5 else "five"


def test_wrong_answers_are_refused() -> None:
    Counting.living.clear()
    set_memory_manager(Short)
    try:
        with pytest.raises(MemoryManagerError, match=r"memalloc\(8\) gave 7 bytes"):
            hip.device_array(1)
        with pytest.raises(MemoryManagerError, match="gave a str"):
            hip.device_array(5, np.int8)
    finally:
        set_memory_manager(None)
    assert Counting.living == {}
