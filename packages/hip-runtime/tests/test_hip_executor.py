"""What runs machine code behind the stand-in for the HIP runtime: what it is told, and what becomes of its answers."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

import hip_kernels
import hip_standin
import pytest
import spmd_kernels
from hip_standin import Order, Standin

from hip_devicelib import read_kernels
from hip_devicelib.codeobject import Kernel
from hip_runtime.driver import DEFAULT_STREAM
from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.drivers.hip.errors import DeviceFailure
from hip_runtime.errors import ModuleLoadError, SymbolError

TABLE = 24
"""Bytes of the variable `table` of the modules."""


class Recorder:
    """An executor that notes what it is asked; memory for its modules is a buffer each."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.unloaded: list[int] = []
        self.answer = 0
        self.images: dict[int, tuple[ctypes.Array[ctypes.c_char], dict[str, Kernel]]] = {}

    def load(self, image: bytes) -> int:
        if self.answer:
            return 0
        memory = ctypes.create_string_buffer(1 << 16)
        base = ctypes.addressof(memory)
        self.images[base] = memory, {kernel.name: kernel for kernel in read_kernels(image)}
        return base

    def unload(self, base: int) -> None:
        self.unloaded.append(base)

    def describe(self, base: int, name: str) -> list[tuple[int, int]] | None:
        kernel = self.images[base][1].get(name)
        return None if kernel is None or self.answer else [(part.offset, part.size) for part in kernel.parameters]

    def execute(self, base: int, order: Order) -> int:
        assert base in self.images
        self.orders.append(order)
        return self.answer


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    standin = hip_standin.standin()
    executor = Recorder()
    standin.attach(executor)
    yield executor
    standin.attach(None)
    standin.recover()


@pytest.fixture
def driver(recorder: Recorder) -> Iterator[HipDriver]:
    driver = HipDriver()
    yield driver
    driver.close()


def load(driver: HipDriver, *names: str) -> tuple[int, dict[str, tuple[int, Kernel]]]:
    code = hip_kernels.code(*names)
    module = driver.load_module(0, code)
    return module, {name: (driver.get_function(module, code.kernel(name)), code.kernel(name)) for name in names}


@pytest.mark.parametrize("cooperative", [False, True])
def test_launches_are_executed_with_their_arguments(driver: HipDriver, recorder: Recorder, cooperative: bool) -> None:
    module, functions = load(driver, "mixed")
    function, kernel = functions["mixed"]
    values = (-1, -2, 1.5, 1 << 40, 0x1234, 2.5, 0.5)
    arguments = spmd_kernels.pack(kernel, *values)
    driver.launch(function, (3, 2, 1), (4, 1, 5), 48, DEFAULT_STREAM, arguments, cooperative=cooperative)
    driver.synchronize_device(0)
    driver.unload_module(module)
    (order,) = recorder.orders
    assert (order.name, order.grid, order.block, order.shared) == ("mixed", (3, 2, 1), (4, 1, 5), 48)
    assert (order.cooperative, order.device) == (cooperative, 0)
    assert struct.unpack_from("<bxhfqQde", order.arguments) == values


def test_globals_lie_where_the_executor_put_the_module(driver: HipDriver, recorder: Recorder) -> None:
    module, _ = load(driver, "empty")
    ((base, (memory, _)),) = recorder.images.items()
    place, size = driver.get_global(module, "table")
    assert size == TABLE
    assert base <= place <= base + len(memory) - TABLE
    driver.unload_module(module)
    driver.close()
    assert recorder.unloaded == [base]


def test_an_executor_may_refuse(driver: HipDriver, recorder: Recorder) -> None:
    recorder.answer = 1
    with pytest.raises(ModuleLoadError):
        driver.load_module(0, hip_kernels.code("empty"))
    recorder.answer = 0
    code = hip_kernels.code("empty")
    module = driver.load_module(0, code)
    recorder.answer = 1
    with pytest.raises(SymbolError, match="empty"):
        driver.get_function(module, code.kernel("empty"))
    driver.unload_module(module)


@pytest.mark.parametrize("answer", [700, 719])
def test_a_failure_stays_with_the_device(driver: HipDriver, recorder: Recorder, answer: int) -> None:
    module, functions = load(driver, "empty")
    function, _ = functions["empty"]
    recorder.answer = answer
    driver.launch(function, (1, 1, 1), (1, 1, 1), 0, DEFAULT_STREAM, b"")
    with pytest.raises(DeviceFailure):
        driver.synchronize_device(0)
    driver.launch(function, (1, 1, 1), (1, 1, 1), 0, DEFAULT_STREAM, b"")
    with pytest.raises(DeviceFailure):
        driver.synchronize_stream(DEFAULT_STREAM)
    assert len(recorder.orders) == 1
    hip_standin.standin().recover()
    recorder.answer = 0
    driver.synchronize_device(0)
    driver.unload_module(module)


def test_memory_that_kernels_may_use(driver: HipDriver) -> None:
    standin: Standin = hip_standin.standin()
    place = driver.alloc(0, 1000)
    assert (place, 1000) in standin.ranges()
    driver.free(place)
    driver.close()
    assert place not in dict(standin.ranges())
