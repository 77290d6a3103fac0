# %% [markdown]
# # The Mandelbrot set
#
# A grid of two dimensions: one thread for each pixel. Threads do very different amounts of work, and call a function of
# their own.

# %%
import numpy as np
from matplotlib import pyplot
from numba import hip


@hip.jit(device=True)
def escape(re, im, limit):
    x = y = 0.0
    for step in range(limit):
        if x * x + y * y > 4.0:
            return step
        x, y = x * x - y * y + re, 2.0 * x * y + im
    return limit


@hip.jit
def mandelbrot(image, left, top, scale, limit):
    column, row = hip.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        image[row, column] = escape(left + column * scale, top - row * scale, limit)


# %%
def render(left, top, width, shape=(400, 600), limit=200):
    image = hip.device_array(shape, np.int32)
    block = 32, 8
    grid = -(-shape[1] // block[0]), -(-shape[0] // block[1])
    mandelbrot[grid, block](image, left, top, width / shape[1], limit)
    return image.copy_to_host()


whole = render(-2.4, 1.2, 3.6)
figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
axes.imshow(np.log1p(whole), cmap="inferno")
axes.set_axis_off()

# %% [markdown]
# Closer to the edge the numbers of steps grow; the limit is an argument like any other.

# %%
part = render(-0.7463, 0.1117, 0.01, limit=2000)
figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
axes.imshow(np.log1p(part), cmap="inferno")
axes.set_axis_off()
int(whole.max()), int(part.min()) > int(whole.min())
