# %% [markdown]
# # Blocks, shared memory and barriers
#
# Threads of a block share fast memory (LDS), and wait for each other at barriers. Here each block sums its part of an
# array in a tree.

# %%
import warnings

import numpy as np
from numba import float64, hip
from numba.hip import algorithms

THREADS = 128


@hip.jit
def sum_blocks(values, sums):
    partial = hip.shared.array(THREADS, float64)
    thread = hip.threadIdx.x
    i = hip.grid(1)
    partial[thread] = values[i] if i < values.size else 0.0
    width = THREADS // 2
    while width > 0:
        hip.syncthreads()
        if thread < width:
            partial[thread] += partial[thread + width]
        width //= 2
    if thread == 0:
        sums[hip.blockIdx.x] = partial[0]


values = np.arange(1000.0)
sums = np.zeros(-(-values.size // THREADS))
sum_blocks[sums.size, THREADS](values, sums)
sums.sum(), values.sum()

# %% [markdown]
# Without the barrier, threads read what others have not written yet. On the CPU device, `debug="race"` finds that, with
# both lines:


# %%
@hip.jit(debug="race")
def neighbours(values, out):
    tile = hip.shared.array(THREADS, float64)
    thread = hip.threadIdx.x
    tile[thread] = values[thread]
    out[thread] = tile[(thread + 1) % THREADS]  # nobody waited


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        neighbours[1, THREADS](np.arange(float(THREADS)), np.zeros(THREADS))
    except Exception as error:
        told = str(error)
    else:
        told = str(caught[0].message)
print("race" in told, "tile" in told)

# %% [markdown]
# Reductions, scans and sorts of whole arrays, and of blocks within kernels, need not be written:

# %%
on_device = hip.to_device(np.array([5, 3, 9, 1, 7]))
print(algorithms.reduce(on_device), algorithms.inclusive_scan(on_device), algorithms.sort(on_device))
