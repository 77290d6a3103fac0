"""The launch frame: what the dispatcher, the workers and the code of a kernel share during one launch.

It lives on the stack of the thread that launches, so that any number of threads can launch at once.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR, Struct

SEMAPHORE = ir.ArrayType(I64, 4)
MUTEX = ir.ArrayType(I64, 6)
"""Room for a ``sem_t`` and a ``pthread_mutex_t``: 32 bytes and 40 to 48 with glibc and musl on 64-bit machines, from
their ``bits/semaphore.h`` and ``bits/pthreadtypes-arch.h``."""

FRAME = Struct(
    next_block=I64,  # taken from atomically, a chunk at a time
    fault_taken=I32,  # set to 1 by the first thread that faults
    fault=ir.ArrayType(I32, 7),  # see FAULT_FIELDS
    block_count=I64,
    chunk=I64,
    arguments=PTR,
    grid=ir.ArrayType(I32, 3),
    program=PTR,
    worker=PTR,
    # what follows belongs to the pool, and is touched under its lock only
    next_job=PTR,
    tickets=I32,  # helpers that may still join
    active=I32,  # helpers that joined and have not left; read without the lock as a hint
    waiting=I32,  # whether the launching thread sleeps on ``done``
    done=SEMAPHORE,
)

FAULT_FIELDS = ("code", "block x", "block y", "block z", "thread x", "thread y", "thread z")
"""Meaning of the 32-bit words of a fault."""

PROGRAM = Struct(worker=PTR, cost=ir.DoubleType(), code_start=I64, code_end=I64, name=PTR, serial=I32)
"""What finalised code consists of: its worker, and how many nanoseconds a block took last time, below 0 at first. Where
its machine code lies and the name of the kernel are known, and set, once it is loaded. Whether the launching thread has
to run all blocks itself, one after another."""

UNKNOWN_COST = -1.0


WORKER_TYPE = ir.FunctionType(I64, [PTR, PTR])
"""Type of a worker: it is given the frame, and the address of its `NOTES`. It returns when no blocks are left to take,
with how many it ran."""

NOTES = Struct(chunk=I64, memory=PTR, states=PTR)
"""What a worker notes for whoever finds that it did not return: the first block of the chunk that it took, memory of
the heap that is to be freed, and where it keeps what each thread of the block waits for, or null."""
