"""The machine behind the project's stand-in for the HIP runtime: answers the calls of its hook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Protocol

from hip_devicelib.errors import CodeObjectError
from tools.amd_executor.decoding import UnknownInstruction
from tools.amd_executor.images import ImageError
from tools.amd_executor.initial_state import Launch
from tools.amd_executor.machine import EndlessError, ExecutionError, Machine, MemoryFault

_ILLEGAL_ADDRESS, _TIMEOUT, _LAUNCH_FAILURE, _NOT_SUPPORTED = 700, 702, 719, 801

_WORD = 4
"""Allocations end at a multiple of this many bytes, as an atomic operation on the last half accesses its whole word."""


class Order(Protocol):
    """A launch as the stand-in describes it."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cooperative: bool
    arguments: bytes


class StandinExecutor:
    """Executes the stand-in's modules and launches. *ranges* gives the memory that kernels may use."""

    def __init__(self, ranges: Callable[[], list[tuple[int, int]]]) -> None:
        self.ranges = ranges
        self.machines: dict[int, Machine] = {}
        self.launches = 0
        self.instructions = 0
        self.errors: list[str] = []
        self.lock = threading.Lock()

    def load(self, image: bytes) -> int:
        """Load a code object into memory; returns its address, or 0 if it cannot be executed."""
        try:
            machine = Machine(image)
        except (ImageError, CodeObjectError) as error:
            self.note(error)
            return 0
        self.machines[machine.image.base] = machine
        return machine.image.base

    def unload(self, base: int) -> None:
        self.machines.pop(base, None)

    def describe(self, base: int, name: str) -> list[tuple[int, int]] | None:
        kernel = self.machines[base].image.kernels.get(name)
        return None if kernel is None else [(part[".offset"], part[".size"]) for part in kernel.arguments()]

    def execute(self, base: int, order: Order) -> int:
        """Run a launch; returns the device's HIP error code afterwards."""
        launch = Launch(order.grid, order.block, order.shared, order.arguments, order.cooperative)
        with self.lock:
            machine = self.machines[base]
            ranges = [(start, (size + _WORD - 1) // _WORD * _WORD) for start, size in self.ranges()]
            ranges += [(other.image.base, other.image.size) for other in self.machines.values() if other is not machine]
            try:
                machine.execute(order.name, launch, ranges)
            except (UnknownInstruction, ImageError) as error:
                return self.note(error, _NOT_SUPPORTED)
            except EndlessError as error:
                return self.note(error, _TIMEOUT)
            except MemoryFault as error:
                return self.note(error, _ILLEGAL_ADDRESS)
            except ExecutionError as error:
                return self.note(error, _LAUNCH_FAILURE)
            finally:
                self.launches += 1
                self.instructions += machine.instructions
        return 0

    def summary(self) -> str:
        """Counts of what was executed."""
        return f"{self.launches} launches, {self.instructions} instructions of waves"

    def note(self, error: Exception, code: int = 0) -> int:
        """Record and print an error, for which HIP only has a number."""
        message = f"{type(error).__name__}: {error}"
        self.errors.append(message)
        print(f"amd_executor: {message}", file=sys.stderr, flush=True)
        return code
