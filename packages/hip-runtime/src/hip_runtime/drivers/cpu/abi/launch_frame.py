"""The launch frame: the state that the block scheduler, the workers and a kernel's code share during one launch.

It lives on the launching thread's stack, so that any number of threads can launch at once.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR, Struct

SEMAPHORE = ir.ArrayType(I64, 4)
"""Room for a ``sem_t``: 32 bytes with glibc and musl on 64-bit machines, from their ``bits/semaphore.h``."""

FRAME = Struct(
    next_block=I64,  # the first of the blocks to run, which are counted along the axes of the program
    fault_taken=I32,  # set to 1 by the first thread that faults
    fault=ir.ArrayType(I32, 7),  # see FAULT_FIELDS
    block_count=I64,  # the number behind the last one to run
    arguments=PTR,
    grid=ir.ArrayType(I32, 3),
    program=PTR,
    worker=PTR,
    launch=PTR,  # the frame of the launch: each of its threads has one of its own, for a chunk of the blocks
    chunk=I64,  # how many blocks a thread takes at a time
    ranges=PTR,  # which are left, see `execution.block_ranges`
    range_count=I64,
    spent=I64,  # nanoseconds that the launching thread took for blocks of its own range
    spent_on=I64,  # and how many these are
    # the rest belongs to the pool
    place=PTR,  # on the board, null without helpers
    wanted=I32,  # how many tickets there were
    active=I32,  # helpers that have not left, once it is known how many joined; before, less those that have left
    done=SEMAPHORE,
)

FAULT_FIELDS = ("code", "block x", "block y", "block z", "thread x", "thread y", "thread z")
"""Meaning of the 32-bit words of a fault."""

PROGRAM = Struct(
    worker=PTR, cost=ir.DoubleType(), code_start=I64, code_end=I64, name=PTR, limit=PTR, serial=I32, length=I32,
    parts=I32, words=I32, together=I32, axis=I32, alone=ir.DoubleType(), helped=ir.DoubleType(), helped_blocks=I64,
    seen=I32, untimed=I32, pause=I32, patience=I32,
)  # fmt: skip
"""A finalised kernel: its worker; the nanoseconds that a block took in the last launch, negative before the first; the
range of its machine code and the kernel's name, which are set when it is loaded; what tells how many blocks have to
run, of type `LIMIT_TYPE`, null if that is all; whether the launching thread has to run all blocks itself, one after
another; the threads of a block along x, for code that runs blocks of several lengths; into how many chunks the blocks
of a launch are divided for each thread of the processor, which kernels with tables learn from the last launch; at which
byte of the arguments the address of the blocks' words is, if they wait for the grid, else `NO_WORDS`; how many blocks
along which axis have to be in a chunk, so that their threads fill a gang; and for `execution.helper_gain` the
nanoseconds for each block that a launch took without helpers and with them, how many blocks it had, how many launches
were helped before any was timed without helpers, how many are still to be timed so, how many go without them from now
on, and how many after the next that is not faster with them, or `NEVER_ALONE`."""

NO_WORDS = -1

NEVER_ALONE = -1
"""For kernels whose blocks may wait for others that have to run at the same time."""

FIRST_PAUSE, TIMED_ALONE = 8, 2
"""The first *patience* of other kernels, and of how many launches it is learnt what they take alone."""

CHUNKS_PER_THREAD = 8
"""Into how many chunks the blocks of a launch are divided for each thread: more balance better, fewer cost less."""

CHUNKS_WITH_TABLES = 1
"""The same where workers keep large tables: each worker does what is in its tables in the end, which takes longer than
threads wait for each other."""

UNKNOWN_COST = -1.0


WORKER_TYPE = ir.FunctionType(I64, [PTR, PTR])
"""Type of a worker: it takes the frame and the address of its `WORKER_RECORD`, runs the frame's blocks, of which there
is at least one, and returns how many these are."""

LIMIT_TYPE = ir.FunctionType(I64, [PTR])
"""Type of the function that takes the frame of a launch and returns how many blocks have to run, 1 at least: the others
do nothing."""

WORKER_RECORD = Struct(chunk=I64, memory=PTR, states=PTR, kept=PTR)
"""What a worker records for whoever has to clean up after it if it does not return: the first block of its current
chunk, heap memory to free, and the address of the thread states (`thread_states`), or null. It is given where its CPU
thread has *kept* memory, see `kept_memory`."""
