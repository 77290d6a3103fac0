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

FRAME_FIELDS: tuple[tuple[str, ir.Type], ...] = (
    ("next_block", I64),  # taken from atomically, a chunk at a time
    ("fault_taken", I32),  # set to 1 by the first thread that faults
    ("fault_code", I32),
    ("fault_block", ir.ArrayType(I32, 3)),
    ("fault_thread", ir.ArrayType(I32, 3)),
    ("block_count", I64),
    ("chunk", I64),
    ("arguments", PTR),
    ("grid", ir.ArrayType(I32, 3)),
    ("worker", PTR),  # void (ptr frame)
    ("next_job", PTR),  # the rest is the pool's
    ("tickets", I32),
    ("active", I32),
    ("blocks_done", I64),
)
FRAME = ir.LiteralStructType([kind for _, kind in FRAME_FIELDS])
_INDEX = {name: index for index, (name, _) in enumerate(FRAME_FIELDS)}

FAULT_FIELDS = ("code", "block x", "block y", "block z", "thread x", "thread y", "thread z")
"""Meaning of the seven 32-bit words of a fault, as they lie in the frame from ``fault_code`` on."""


def field(builder: ir.IRBuilder, frame: ir.Value, name: str, element: int | None = None) -> ir.Value:
    """Address of a field of *frame*, or of one element of an array field."""
    indices = [I32(0), I32(_INDEX[name])]
    if element is not None:
        indices.append(I32(element))
    return builder.gep(frame, indices, inbounds=True, source_etype=FRAME)


def load(builder: ir.IRBuilder, frame: ir.Value, name: str, element: int | None = None) -> ir.Value:
    """Value of a field of *frame*."""
    kind = dict(FRAME_FIELDS)[name]
    if element is not None:
        kind = kind.element
    return builder.load(field(builder, frame, name, element), typ=kind, name=name)


def allocate(builder: ir.IRBuilder, kind: ir.Type, name: str = "") -> ir.Value:
    """Stack memory for a value of *kind*. llvmlite gives it a typed pointer, which LLVM no longer reads."""
    place = builder.alloca(kind, name=name)
    place.type = PTR
    return place


class Callee:
    """A function known by its address only, as something that ``builder.call`` takes."""

    def __init__(self, address: ir.Value, function_type: ir.FunctionType) -> None:
        self.type = PTR
        self.function_type = function_type
        self._address = address

    def get_reference(self) -> str:
        """The operand as LLVM spells it."""
        return str(self._address.get_reference())


WORKER_TYPE = ir.FunctionType(VOID, [PTR])
"""Type of a worker: it is given the frame and returns when no blocks are left to take."""
