"""Our kernels that `tools.rocprim_report` compares with those of rocPRIM, by what they are compared as."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

import numba_hip as hip
from numba_hip.algorithms.histograms import _block_kernel, _even_bin
from numba_hip.algorithms.radix_blocks import columns_of, count_by_block, move_by_block
from numba_hip.algorithms.radix_sort import _digit_of
from numba_hip.algorithms.reductions import column_kernel
from numba_hip.algorithms.tiled_scan import BY_VOTES, prefix_kernel, total_kernel
from numba_hip.cooperative import values
from numba_hip.cooperative.ordered_bits import ordering

THREADS = 256
KEYS = np.dtype(np.uint32)
REALS, NUMBERS, COUNTS, SIZE = "float32[::1]", "uint32[::1]", "int64[::1]", "int64"

block_sum_of: Any = hip.block.make_sum(np.float32, THREADS)
block_scan_of: Any = hip.block.make_inclusive_sum(np.uint32, THREADS)
block_sort_of: Any = hip.block.make_radix_sort_keys(np.uint32, THREADS, 4)


add_numbers: Any = values.combining(operator.add, types.uint32)


@hip.jit(launch_bounds=THREADS)
def block_sum(values: Any, sums: Any) -> None:
    total = block_sum_of(values[hip.grid(1)])
    if hip.threadIdx.x == 0:
        sums[hip.blockIdx.x] = total


@hip.jit(launch_bounds=THREADS)
def block_scan(values: Any) -> None:
    values[hip.grid(1)] = block_scan_of(values[hip.grid(1)])


@hip.jit(launch_bounds=THREADS)
def block_sort(values: Any) -> None:
    items = hip.local.array(4, np.uint32)
    first = hip.grid(1) * 4
    for k in range(4):
        items[k] = values[first + k]
    block_sort_of(items)
    for k in range(4):
        values[first + k] = items[k]


@hip.jit
def wave_sum(values: Any, sums: Any) -> None:
    total = hip.wave.reduce(values[hip.grid(1)], operator.add)
    if hip.threadIdx.x == 0:
        sums[hip.blockIdx.x] = total


@hip.jit
def wave_scan(array: Any) -> None:
    array[hip.grid(1)] = hip.wave.inclusive_scan(array[hip.grid(1)], add_numbers)  # Numba's sum has 64 bits


class Pair(NamedTuple):
    """A kernel of ours, the types of its arguments, and a part of the mangled name of rocPRIM's that does the same: of
    several the longest, as the others are for other sizes."""

    name: str
    kernel: Any
    signature: str
    theirs: str


def pairs(lanes: int) -> list[Pair]:
    """The kernels for waves of so many *lanes*."""
    real, number = values.read_leaf(0), values.read_leaf(0)
    add_reals = values.combining(operator.add, types.float32)
    counts = values.combining(operator.add, types.int64)
    store = values.write_leaf(1)
    digit, columns = _digit_of(ordering(KEYS, descending=False), 8), columns_of([KEYS])
    tiles = ", ".join([SIZE] * 3)
    return [
        Pair(
            "reduce", column_kernel(real, add_reals, store, ahead=True),
            f"({tiles}, {REALS}, {REALS})", "19block_reduce_kernelILb1ELb0ELj1E",
        ),
        Pair(
            "scan, totals", total_kernel(number, add_numbers, store, ahead=True),
            f"({tiles}, {NUMBERS}, {NUMBERS})", "",
        ),
        Pair(
            "scan", prefix_kernel(number, add_numbers, values.read_leaf(1), _store_through, ahead=True),
            f"({tiles}, {NUMBERS}, {NUMBERS}, {NUMBERS})", "20lookback_scan_kernel",
        ),
        Pair(
            "select", prefix_kernel(_is_large, counts, values.read_leaf(1), _store_large, BY_VOTES, ahead=True),
            f"({tiles}, {NUMBERS}, {COUNTS}, {NUMBERS})", "16partition_kernel",
        ),
        Pair(
            "sort, counting", count_by_block(digit, 2),
            f"({tiles}, {SIZE}, {NUMBERS}, {NUMBERS}, {COUNTS})", "26onesweep_histograms_kernel",
        ),
        Pair(
            "sort, moving", move_by_block(digit, columns, 2, lanes),
            f"({tiles}, {SIZE}, {NUMBERS}, {NUMBERS}, {COUNTS})", "25onesweep_iteration_kernel",
        ),
        Pair(
            "histogram", _block_kernel(number, _even_bin(1, 2, 3, 4), 5, 256),
            f"({SIZE}, {NUMBERS}, float64, float64, float64, {SIZE}, {COUNTS})", "23histogram_shared_kernel",
        ),
        Pair("block.make_sum", block_sum, f"({REALS}, {REALS})", "block_sum"),
        Pair("block.make_inclusive_sum", block_scan, f"({NUMBERS},)", "block_scan"),
        Pair("block.make_radix_sort_keys", block_sort, f"({NUMBERS},)", "block_sort"),
        Pair("wave.reduce", wave_sum, f"({REALS}, {REALS})", "wave_sum"),
        Pair("wave.inclusive_scan", wave_scan, f"({NUMBERS},)", "wave_scan"),
    ]  # fmt: skip


@hip.jit(device=True)
def _store_through(leaves: Any, i: Any, before: Any, through: Any) -> None:
    leaves[2][i] = through


@hip.jit(device=True)
def _is_large(leaves: Any, i: Any) -> Any:
    return types.int64(leaves[0][i] > 500)


@hip.jit(device=True)
def _store_large(leaves: Any, i: Any, before: Any, through: Any) -> None:
    if leaves[0][i] > 500:
        leaves[2][before] = leaves[0][i]
