"""The SPMD contract: the functions that bitcode for the CPU device may call; see docs/design/spmd-bitcode.md.

The compiler writes calls of these functions, and the CPU device defines them. Names, signatures, properties of the
functions, the layout of shared memory and the limits are defined here for both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hip_devicelib.errors import CodeObjectError

PREFIX = "spmd."
"""The prefix of all functions of the contract. Bitcode must not define functions with it."""

AXES = ("x", "y", "z")


def thread_idx(axis: str) -> str:
    """The index of the thread in its block."""
    return f"spmd.thread_idx.{axis}"


def block_idx(axis: str) -> str:
    """The index of the block in the grid."""
    return f"spmd.block_idx.{axis}"


def block_dim(axis: str) -> str:
    """The number of threads in a block."""
    return f"spmd.block_dim.{axis}"


def grid_dim(axis: str) -> str:
    """The number of blocks in the grid."""
    return f"spmd.grid_dim.{axis}"


LANE = "spmd.lane"
WAVE_SIZE = "spmd.wave_size"
BARRIER = "spmd.barrier"
BARRIER_COUNT = "spmd.barrier_count"
GRID_BARRIER = "spmd.grid_barrier"
WAVE_BARRIER = "spmd.wave_barrier"
ACTIVE_LANES = "spmd.active_lanes"
BALLOT = "spmd.ballot"
SHUFFLE = "spmd.shuffle."
"""Followed by one of `SHUFFLED`."""
SHARED = "spmd.shared."
"""Followed by ``<name>.<bytes>.<alignment>``."""
DYNAMIC_SHARED = "spmd.dynamic_shared"
DYNAMIC_SHARED_BYTES = "spmd.dynamic_shared_bytes"
FAULT = "spmd.fault"
STACK_IS_LOW = "spmd.stack_is_low"
OBSERVE = "spmd.observe"

DOT_BF16 = "spmd.dot.bf16"
DOT_U8_I8 = "spmd.dot.u8.i8"
"""Products of vectors whose elements are two bfloat16, or four bytes, added to sums. They take no work item."""

ATOMIC_MAX = "spmd.atomic.max."
ATOMIC_MIN = "spmd.atomic.min."
"""Followed by one of `EXTREME`: the greater, or the lesser, of the number at an address and another one. They take no
work item."""

EXTREME = ("float", "double")
"""The types of numbers that have them."""

PLACE = "spmd.place"
"""The metadata of calls at which threads wait, with their place in the source: a node with one string."""

SHUFFLED = ("i32", "i64", "float", "double")
"""The types of values that lanes can exchange."""

SHARED_BYTES = 65536
"""The bytes of shared memory that a block can have: as much as the LDS of AMD's GPUs."""

PRIVATE_BYTES = 1 << 30
"""The bytes of private arrays that a thread can have. An AMD GPU has room for 128 KiB."""

LARGEST_SHARED_ALIGNMENT = 4096

DEVICE_FAULTS = -(1 << 30)
"""Fault codes below this are reserved for the device."""

BLOCK_WIDE = frozenset({BARRIER, BARRIER_COUNT})
"""Operations that all threads of a block must execute together."""

WAVE_WIDE = frozenset({WAVE_BARRIER, ACTIVE_LANES, BALLOT, *(SHUFFLE + kind for kind in SHUFFLED)})
"""Operations among the active lanes of a wave."""

SYNCHRONISING = BLOCK_WIDE | WAVE_WIDE | {GRID_BARRIER}
"""Operations at which threads wait for each other."""

_OF_THREAD = frozenset({LANE, *map(thread_idx, AXES)})
_OF_BLOCK = frozenset(
    {WAVE_SIZE, DYNAMIC_SHARED, DYNAMIC_SHARED_BYTES}
    | {name(axis) for name in (block_idx, block_dim, grid_dim) for axis in AXES}
)

_SIGNATURES = {
    **dict.fromkeys(_OF_THREAD | _OF_BLOCK, ("i32", ())),
    DYNAMIC_SHARED: ("ptr", ()),
    DYNAMIC_SHARED_BYTES: ("i64", ()),
    BARRIER: ("void", ()),
    BARRIER_COUNT: ("i32", ("i1",)),
    GRID_BARRIER: ("void", ()),
    WAVE_BARRIER: ("void", ()),
    ACTIVE_LANES: ("i64", ()),
    BALLOT: ("i64", ("i1",)),
    **{SHUFFLE + kind: (kind, (kind, "i32")) for kind in SHUFFLED},
    FAULT: ("void", ("i32",)),
    STACK_IS_LOW: ("i1", ()),
    OBSERVE: ("void", ("i32", "i32", "ptr", "i64", "i64")),
}


def is_known(name: str) -> bool:
    """Whether the function *name* belongs to the contract."""
    return name in _SIGNATURES or name.startswith(SHARED)


def signature(name: str) -> tuple[str, tuple[str, ...]]:
    """The result type of the function *name*, and the types of its parameters after the work item, in LLVM's spelling;
    `CodeObjectError` for a name that is not in the contract."""
    if name.startswith(SHARED):
        return "ptr", ()
    if name not in _SIGNATURES:
        raise CodeObjectError(f"{name!r} is no function of the SPMD contract")
    return _SIGNATURES[name]


def is_uniform(name: str) -> bool:
    """Whether the function has the same result in all threads of a block."""
    return name in _OF_BLOCK or name.startswith(SHARED)


def is_pure(name: str) -> bool:
    """Whether the function always has the same result in a thread, and no side effects."""
    return name in _OF_THREAD or is_uniform(name)


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array of shared memory: the function that gives its address, its size in bytes and its alignment."""

    symbol: str
    nbytes: int
    align: int


def read_shared_array(symbol: str) -> SharedArray:
    """Parse ``spmd.shared.<name>.<bytes>.<align>``; `CodeObjectError` if the values are not possible."""
    parts = symbol.removeprefix(SHARED).rsplit(".", 2)
    if len(parts) != 3 or not parts[0] or not (parts[1].isdecimal() and parts[2].isdecimal()):
        raise CodeObjectError(
            f"the bitcode calls {symbol!r}; an array of shared memory is called {SHARED}<name>.<bytes>.<align>"
        )
    nbytes, align = int(parts[1]), int(parts[2])
    if align < 1 or align & (align - 1) or align > LARGEST_SHARED_ALIGNMENT:
        raise CodeObjectError(
            f"the array of shared memory {symbol!r} has alignment {align}; it must be a power of two up to "
            f"{LARGEST_SHARED_ALIGNMENT}"
        )
    return SharedArray(symbol, nbytes, align)


def lay_out_shared(symbols: Iterable[str]) -> int:
    """The bytes that the arrays of shared memory among the functions *symbols* take together.

    They are placed in order of descending alignment, as on AMD GPUs, which leaves the fewest gaps.
    """
    end = 0
    arrays = (read_shared_array(symbol) for symbol in symbols if symbol.startswith(SHARED))
    for array in sorted(arrays, key=lambda array: (-array.align, array.symbol)):
        end = -(-end // array.align) * array.align + array.nbytes
    return end
