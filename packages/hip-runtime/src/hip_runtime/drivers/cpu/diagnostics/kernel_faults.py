"""Faults of kernels: where they happened, from what native code has recorded."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.fault_codes import TRAP_CODE, make_fault
from hip_runtime.drivers.cpu.diagnostics.source_lines import describe_lines
from hip_runtime.drivers.cpu.execution.block_scheduler import take_fault
from hip_runtime.drivers.cpu.memory.heap import CpuHeap
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.errors import KernelFault, MemoryFaultError, TrapError


def read_fault(
    kernel: str,
    program: Program,
    grid: Dim3,
    record: int,
    heap: CpuHeap,
    describe: Callable[[Any], BaseException] | None,
) -> KernelFault:
    """The fault at the address *record*, which is freed, of a launch of *kernel* over *grid*."""
    code, *indices = take_fault(record)
    block, thread = tuple(indices[:3]), tuple(indices[3:])
    fault = make_fault(kernel, code, block, thread, program.locations, grid)  # type: ignore[arg-type]
    fault.describe = describe
    if isinstance(fault, TrapError):
        fault.find_line = partial(describe_lines, program, [fault.instruction])
    if isinstance(fault, MemoryFaultError) and fault.address:
        fault.nearby = heap.describe_nearest(fault.address)
    return fault


def find_place(program: Program, describe: Callable[[Any], BaseException], addresses: Sequence[int]) -> str:
    """The source lines of the code of *program* at *addresses*, as far as *describe*, which explains the kernel's
    faults, knows them."""
    fault = TrapError(program.kernel_name, TRAP_CODE, (0, 0, 0), (0, 0, 0), signal.SIGSEGV, 0, 0)
    fault.find_line = partial(describe_lines, program, addresses)
    found = describe(fault)
    return found.place if isinstance(found, TrapError) else ""
