# %% [markdown]
# # A first kernel
#
# A kernel is a function that many threads run at once. Each asks which one it is, and works on its part of the arrays.
# Without an AMD GPU, it runs on the CPU device: compiled, vectorised, on all cores.

# %%
import numpy as np
from numba import hip


@hip.jit
def saxpy(a, x, y, out):
    i = hip.grid(1)  # the number of this thread in the whole grid
    if i < out.size:  # the last block may have threads to spare
        out[i] = a * x[i] + y[i]


n = 1_000_000
x, y = np.linspace(0, 1, n, dtype=np.float32), np.ones(n, np.float32)
out = np.zeros_like(x)

threads = 256
blocks = -(-n // threads)
saxpy[blocks, threads](np.float32(2), x, y, out)
out[:3], out[-3:]

# %% [markdown]
# The arrays went to the device and back by themselves. Data that several kernels use stays there:

# %%
d_x, d_y = hip.to_device(x), hip.to_device(y)
d_out = hip.device_array_like(d_x)
saxpy[blocks, threads](np.float32(2), d_x, d_y, d_out)
print(d_out)

# %% [markdown]
# What is the kernel compiled to? `inspect_asm` shows the machine code that runs. On the CPU device it works on vectors.

# %%
code = next(iter(saxpy.inspect_asm().values()))
print("vectors" if any(name in code for name in ("zmm", "ymm", "xmm", ".4s", ".2d")) else "single numbers")

# %% [markdown]
# An error in the code is told at its line:


# %%
@hip.jit
def wrong(x):
    i = hip.grid(1)
    x[i] = x.median()


try:
    wrong[1, 32](d_x)
except Exception as error:
    print(str(error).splitlines()[0])
