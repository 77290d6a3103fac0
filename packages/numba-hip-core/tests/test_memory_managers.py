"""Memory managers of others: what they give is what arrays use, and what they get back."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import hip

import hip_runtime
from hip_runtime import config as runtime_config
from hip_runtime.errors import ArrayError
from numba_hip.host.contexts import set_memory_manager
from numba_hip.host.memory_managers import GetIpcHandleMixin, HostOnlyMemoryManager, MemoryManagerError, MemoryPointer
from numba_hip.host.memory_pointers import DeadMemoryError, MemoryInUseError

pytestmark = pytest.mark.cpu_device("the plugin gives memory of the host")

LIMIT = 1 << 20


class Counting(GetIpcHandleMixin, HostOnlyMemoryManager):
    """A plugin that gives memory of ctypes, and knows what is out."""

    living: dict[int, int] = {}
    initialised = total = 0

    def initialize(self) -> None:
        type(self).initialised += 1

    def memalloc(self, size: int) -> MemoryPointer:
        if size > LIMIT:
            raise MemoryError(f"{size} bytes of {LIMIT}")
        memory = ctypes.create_string_buffer(max(1, size))
        address = ctypes.addressof(memory)
        self.living[address] = size
        type(self).total += size
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
    Counting.total = 0
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


class Handing(Counting):
    """A plugin with handles of its own."""

    def get_ipc_handle(self, memory: Any) -> Any:
        return f"{memory.size} bytes at {memory.device_pointer_value}"


def test_handles_are_those_of_the_plugin() -> None:
    context = hip.current_context()
    context.memory_manager = Handing(context)
    try:
        array = hip.to_device(np.arange(4.0))
        assert context.get_ipc_handle(array.gpu_data) == f"32 bytes at {array.address}"
        handle = array[1:].get_ipc_handle()
        assert handle.memory == f"24 bytes at {array.address + 8}"
        with pytest.raises(ArrayError, match="a str as its handle"):
            handle.open()
    finally:
        set_memory_manager(None)


def test_handles_are_those_of_the_driver_by_default() -> None:
    array = hip.to_device(np.arange(6))
    context = hip.current_context()
    handle = pickle.loads(pickle.dumps(context.get_ipc_handle(array[2:].gpu_data)))
    assert isinstance(handle, hip.IpcHandle)
    assert (handle.base, handle.size, handle.offset, len(handle.handle.reserved)) == (None, 32, 16, 64)
    opened = handle.open_array(context, 2, np.int64, strides=(16,))
    assert opened.copy_to_host().tolist() == [2, 4]
    for use in (handle.open, handle.open_direct, handle.open_staged):
        with pytest.raises(ArrayError, match="IpcHandle is already opened"):
            use(context)
    opened[0] = 7
    handle.close()
    assert array.copy_to_host().tolist() == [0, 1, 7, 3, 4, 5]
    memory = handle.open(context)
    assert (memory.nbytes, isinstance(memory, hip.MemoryPointer)) == (32, True)
    with pytest.raises(MemoryInUseError, match="or close the handle, and it is freed"):
        memory.free()
    handle.close()
    with pytest.raises(DeadMemoryError, match="32 bytes at 0x[0-9a-f]+, freed> must not be used"):
        memory.memset(0)
    for wrong in ({"shape": 5}, {"shape": 2, "strides": (-8,)}):
        with pytest.raises(ArrayError, match="does not fit"):
            handle.open_array(context, dtype=np.int64, **wrong)
    with pytest.raises(ArrayError, match="not open"):
        handle.close()


def test_a_context_has_the_manager_of_its_device(plugin: type[Counting]) -> None:
    context = hip.current_context()
    usual, resets = context.memory_manager, []
    assert isinstance(usual, Counting)
    usual.reset = lambda: resets.append(1)  # type: ignore[method-assign]
    context.reset()
    assert resets == [1]
    set_memory_manager(None)
    driver = context.memory_manager
    free = driver.get_memory_info().free
    memory = driver.memalloc(100)
    assert driver.get_memory_info().free < free
    part = memory.own().view(10, 30)
    assert (part.size, part.device_ctypes_pointer.value) == (20, memory.device_pointer_value + 10)
    with pytest.raises(ArrayError, match="bytes 5 to 101"):
        memory.view(5, 101)
    del memory
    assert driver.get_memory_info().free < free, "the part keeps it"
    del part
    assert driver.get_memory_info().free == free
    context.memory_manager = usual
    hip.to_device(np.arange(2.0))
    assert plugin.total == 16
    context.memory_manager = driver
    hip.to_device(np.arange(2.0))
    assert plugin.total == 16
    for wrong in (Old(context), 3):
        with pytest.raises(MemoryManagerError, match="version 1 required"):
            context.memory_manager = wrong
    assert context.memory_manager.interface_version == 1


def test_what_is_pending_can_be_given_back() -> None:
    context = hip.current_context()
    context.deallocations.clear()
    with runtime_config.pending_releases.scope(3):
        hip.to_device(np.arange(3))
        assert len(context.deallocations) == 1
        context.reset()
        assert len(context.memory_manager.deallocations) == 0  # type: ignore[attr-defined]
        with hip.defer_cleanup():
            hip.to_device(np.arange(3))
            context.deallocations.clear()
            assert len(context.deallocations) == 1
    assert len(context.deallocations) == 0


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
    [(Old, MemoryManagerError, "version 0; version 1 required"), (Broken, OSError, "no pool"), (3, TypeError, "None")],
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
        with pytest.raises(MemoryManagerError, match=r"memalloc\(8\) gave only 7 bytes"):
            hip.device_array(1)
        with pytest.raises(MemoryManagerError, match="gave a str"):
            hip.device_array(5, np.int8)
    finally:
        set_memory_manager(None)
    assert Counting.living == {}
