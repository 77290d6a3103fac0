"""The launch frame: what the dispatcher, the workers and the code of a kernel share during one launch.

It lives on the stack of the thread that launches, so that any number of threads can launch at once.
"""

from __future__ import annotations

from llvmlite import ir

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
VOID = ir.VoidType()
PTR = ir.PointerType()


class Struct:
    """A struct of LLVM whose fields have names."""

    def __init__(self, **fields: ir.Type) -> None:
        self.fields = fields
        self.type = ir.LiteralStructType(list(fields.values()))
        self._index = {name: index for index, name in enumerate(fields)}

    def field(self, builder: ir.IRBuilder, base: ir.Value, name: str, element: int | None = None) -> ir.Value:
        """Address of a field of the struct at *base*, or of one element of an array field."""
        indices = [I32(0), I32(self._index[name])] + ([] if element is None else [I32(element)])
        return builder.gep(base, indices, inbounds=True, source_etype=self.type)

    def load(self, builder: ir.IRBuilder, base: ir.Value, name: str, element: int | None = None) -> ir.Value:
        """Value of a field of the struct at *base*, or of one element of an array field."""
        kind = self.fields[name] if element is None else self.fields[name].element
        return builder.load(self.field(builder, base, name, element), typ=kind, name=name)

    def store(
        self, builder: ir.IRBuilder, value: ir.Value, base: ir.Value, name: str, element: int | None = None
    ) -> None:
        """Set a field of the struct at *base*, or one element of an array field."""
        builder.store(value, self.field(builder, base, name, element))

    def load_atomic(self, builder: ir.IRBuilder, base: ir.Value, name: str) -> ir.Value:
        """Value of a field that other threads or signal handlers write to meanwhile."""
        kind = self.fields[name]
        return builder.load_atomic(self.field(builder, base, name), "monotonic", _bytes_of(kind), name=name, typ=kind)

    def store_atomic(self, builder: ir.IRBuilder, value: ir.Value, base: ir.Value, name: str) -> None:
        """Set a field that other threads or signal handlers read meanwhile."""
        store_atomic(builder, value, self.field(builder, base, name))


def store_atomic(builder: ir.IRBuilder, value: ir.Value, place: ir.Value) -> None:
    """Store *value* at *place* in one piece. llvmlite's builder does this only where pointers have types."""
    builder._insert(ir.instructions.StoreAtomicInstr(builder.block, value, place, "monotonic", _bytes_of(value.type)))


def _bytes_of(kind: ir.Type) -> int:
    return kind.width // 8 if isinstance(kind, ir.IntType) else 8


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


def allocate(builder: ir.IRBuilder, kind: ir.Type, name: str = "") -> ir.Value:
    """Stack memory for a value of *kind*. llvmlite gives it a typed pointer, which LLVM no longer reads."""
    place = builder.alloca(kind, name=name)
    place.type = PTR
    return place


def function_address(function: ir.Function) -> ir.Value:
    """Address of a function of the same module, as a value."""
    return ir.FormattedConstant(PTR, function.get_reference())


def allocate_at_entry(builder: ir.IRBuilder, kind: ir.Type, name: str = "") -> ir.Value:
    """Stack memory that is taken once for each call of the function, also where *builder* writes a loop."""
    with builder.goto_entry_block():
        return allocate(builder, kind, name)


class Callee:
    """A function known by its address only, as something that ``builder.call`` takes."""

    def __init__(self, address: ir.Value, function_type: ir.FunctionType) -> None:
        self.type = PTR
        self.function_type = function_type
        self._address = address

    def get_reference(self) -> str:
        """The operand as LLVM spells it."""
        return str(self._address.get_reference())


WORKER_TYPE = ir.FunctionType(I64, [PTR, PTR])
"""Type of a worker: it is given the frame, and the address of its `NOTES`. It returns when no blocks are left to take,
with how many it ran."""

NOTES = Struct(chunk=I64, memory=PTR, states=PTR)
"""What a worker notes for whoever finds that it did not return: the first block of the chunk that it took, memory of
the heap that is to be freed, and where it keeps what each thread of the block waits for, or null."""
