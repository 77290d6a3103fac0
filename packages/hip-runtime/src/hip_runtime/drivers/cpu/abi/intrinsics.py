"""The functions of docs/design/spmd-bitcode.md that a kernel calls, by their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hip_runtime.errors import ModuleLoadError

BARRIER = "spmd.barrier"
BARRIER_COUNT = "spmd.barrier_count"
GRID_BARRIER = "spmd.grid_barrier"
WAVE_BARRIER = "spmd.wave_barrier"
ACTIVE_LANES = "spmd.active_lanes"
BALLOT = "spmd.ballot"
SHUFFLE = "spmd.shuffle."
SHARED = "spmd.shared."
DYNAMIC_SHARED = "spmd.dynamic_shared"
DYNAMIC_SHARED_BYTES = "spmd.dynamic_shared_bytes"
FAULT = "spmd.fault"
STACK_IS_LOW = "spmd.stack_is_low"
OBSERVE = "spmd.observe"

BLOCK_WIDE = frozenset({BARRIER, BARRIER_COUNT})
"""Operations that all threads of a block come to together."""

WAVE_WIDE = frozenset(
    {WAVE_BARRIER, ACTIVE_LANES, BALLOT, *(SHUFFLE + kind for kind in "i32 i64 float double".split())}
)
"""Operations among the lanes of a wave that are active."""

SYNCHRONISING = BLOCK_WIDE | WAVE_WIDE | {GRID_BARRIER}
"""Operations at which threads wait for one another."""

YIELD = "spmd.yield"
"""A place at which a thread waits until the others of its block had their turn; not of the contract, see
`spin_loops`."""

NUMBER = "spmd.number"
"""Gives the number of the thread in the block; not of the contract, but of code that groups threads in that order."""

_AXES = ("x", "y", "z")
_OF_THREAD = frozenset({"spmd.lane", *(f"spmd.thread_idx.{axis}" for axis in _AXES)})
_OF_BLOCK = frozenset(
    {
        "spmd.wave_size", DYNAMIC_SHARED, DYNAMIC_SHARED_BYTES,
        *(f"spmd.{what}.{axis}" for what in ("block_idx", "block_dim", "grid_dim") for axis in _AXES),
    }
)  # fmt: skip


def is_uniform(name: str) -> bool:
    """Whether the function gives all threads of a block the same."""
    return name in _OF_BLOCK or name.startswith(SHARED)


def is_pure(name: str) -> bool:
    """Whether the function gives a thread the same whenever it is called, and does nothing else."""
    return name in _OF_THREAD or name == NUMBER or is_uniform(name)


def matters(name: str) -> bool:
    """Whether the work item, or the form of the code, depends on whether a kernel calls the function."""
    return name in SYNCHRONISING or is_uniform(name) or name in (STACK_IS_LOW, OBSERVE)


def is_known(name: str) -> bool:
    """Whether the function, whose name starts with ``spmd.``, is one of the contract."""
    return (is_pure(name) and name != NUMBER) or name in SYNCHRONISING or name in (FAULT, STACK_IS_LOW, OBSERVE)


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array of shared memory: the function that gives its address, its bytes and their alignment."""

    symbol: str
    nbytes: int
    align: int


def read_shared_array(symbol: str) -> SharedArray:
    """What ``spmd.shared.<name>.<bytes>.<align>`` says; `ModuleLoadError` where it says something impossible."""
    parts = symbol.removeprefix(SHARED).rsplit(".", 2)
    if len(parts) != 3 or not parts[0] or not (parts[1].isdecimal() and parts[2].isdecimal()):
        raise ModuleLoadError(
            f"the bitcode calls {symbol!r}; an array of shared memory is called {SHARED}<name>.<bytes>.<align>"
        )
    nbytes, align = int(parts[1]), int(parts[2])
    if align < 1 or align & (align - 1) or align > 4096:
        raise ModuleLoadError(
            f"the array of shared memory {symbol!r} has alignment {align}; it must be a power of two up to 4096"
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
