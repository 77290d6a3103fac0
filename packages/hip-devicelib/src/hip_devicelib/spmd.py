"""The SPMD contract: what bitcode for the CPU device may call, and what that means; see docs/design/spmd-bitcode.md.

The compiler writes calls of these functions, the CPU device defines them. Names, signatures, what a function depends
on, the layout of shared memory and the limits stand here once, for both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hip_devicelib.errors import CodeObjectError

PREFIX = "spmd."
"""What the names of all functions of the contract start with; no bitcode defines such a function."""

AXES = ("x", "y", "z")


def thread_idx(axis: str) -> str:
    """Index of the thread in its block."""
    return f"spmd.thread_idx.{axis}"


def block_idx(axis: str) -> str:
    """Index of the block in the grid."""
    return f"spmd.block_idx.{axis}"


def block_dim(axis: str) -> str:
    """Threads of a block."""
    return f"spmd.block_dim.{axis}"


def grid_dim(axis: str) -> str:
    """Blocks of the grid."""
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

PLACE = "spmd.place"
"""Name of the metadata that says where in the source a call stands at which threads wait: a node of one string."""

SHUFFLED = ("i32", "i64", "float", "double")
"""Types of values that lanes exchange."""

SHARED_BYTES = 65536
"""Shared memory that a block can have: what the LDS of AMD's GPUs has."""

PRIVATE_BYTES = 1 << 30
"""Bytes of private arrays that a thread can have. An AMD GPU has room for 128 KiB."""

LARGEST_SHARED_ALIGNMENT = 4096

DEVICE_FAULTS = -(1 << 30)
"""Codes of faults below this one are the device's own."""

BLOCK_WIDE = frozenset({BARRIER, BARRIER_COUNT})
"""Operations that all threads of a block come to together."""

WAVE_WIDE = frozenset({WAVE_BARRIER, ACTIVE_LANES, BALLOT, *(SHUFFLE + kind for kind in SHUFFLED)})
"""Operations among the lanes of a wave that are active."""

SYNCHRONISING = BLOCK_WIDE | WAVE_WIDE | {GRID_BARRIER}
"""Operations at which threads wait for one another."""

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
    """Whether the function *name* is one of the contract."""
    return name in _SIGNATURES or name.startswith(SHARED)


def signature(name: str) -> tuple[str, tuple[str, ...]]:
    """The type that the function *name* gives, and those that it takes behind the work item, as LLVM spells them;
    `CodeObjectError` for a name that is not of the contract."""
    if name.startswith(SHARED):
        return "ptr", ()
    if name not in _SIGNATURES:
        raise CodeObjectError(f"{name!r} is no function of the SPMD contract")
    return _SIGNATURES[name]


def is_uniform(name: str) -> bool:
    """Whether the function gives all threads of a block the same."""
    return name in _OF_BLOCK or name.startswith(SHARED)


def is_pure(name: str) -> bool:
    """Whether the function gives a thread the same whenever it is called, and does nothing else."""
    return name in _OF_THREAD or is_uniform(name)


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array of shared memory: the function that gives its address, its bytes and their alignment."""

    symbol: str
    nbytes: int
    align: int


def read_shared_array(symbol: str) -> SharedArray:
    """What ``spmd.shared.<name>.<bytes>.<align>`` says; `CodeObjectError` where it says something impossible."""
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
    """Bytes that the arrays of shared memory among the functions *symbols* take together.

    Each lies at its alignment, those that are aligned to most first, as on AMD GPUs: that leaves the fewest gaps.
    """
    end = 0
    arrays = (read_shared_array(symbol) for symbol in symbols if symbol.startswith(SHARED))
    for array in sorted(arrays, key=lambda array: (-array.align, array.symbol)):
        end = -(-end // array.align) * array.align + array.nbytes
    return end
