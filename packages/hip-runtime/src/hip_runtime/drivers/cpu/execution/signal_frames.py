"""For each machine, the offsets of the interrupted code's registers in a signal handler's context, and system call
numbers.

Offsets into ``ucontext_t`` and ``siginfo_t`` and the numbers are those of Linux: ``asm/ucontext.h``,
``asm/sigcontext.h``, ``asm-generic/siginfo.h`` and ``asm/unistd.h`` of each machine.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """One kind of processor, with Linux on it."""

    program_counter: int
    """Offset of the program counter in a ``ucontext_t``, as the others."""
    stack_pointer: int
    first_argument: int
    registers: tuple[int, int]
    """Where the general registers begin, and how many there are that tell what code works with."""
    vectors: tuple[int, int] | None
    """Where the address of the state of the vector registers is, and where they begin there; ``None`` where that is not
    known."""
    return_address: int | None
    """Offset of the register with the return address of a function that was just called; ``None`` where a call leaves
    it at the stack pointer."""
    entry_misalignment: int
    """Bytes by which the stack pointer is off its alignment of 16 where a function begins."""
    get_thread_id: int
    """Number of the system call, as the next."""
    send_signal: int


_MACHINES = {
    "x86_64": Machine(
        program_counter=168, stack_pointer=160, first_argument=104, registers=(40, 15), vectors=(224, 160),
        return_address=None, entry_misalignment=8, get_thread_id=186, send_signal=234, ), "aarch64": Machine(
        program_counter=440, stack_pointer=432, first_argument=184, registers=(184, 31), vectors=None,
        return_address=424, entry_misalignment=0, get_thread_id=178, send_signal=131, ), }  # fmt: skip

SIGNAL_CODE = 8
"""Offset of ``si_code`` in a ``siginfo_t``: above 0 where the processor found something."""

SIGNAL_ADDRESS = 16
"""Offset of ``si_addr``, the address of an access that failed."""


def this_machine() -> Machine | None:
    """The current machine; ``None`` if its signal contexts are not known, so that kernels can neither be interrupted
    within a block nor survive an invalid memory access."""
    return _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
