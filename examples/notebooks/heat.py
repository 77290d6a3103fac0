# %% [markdown]
# # Heat in a plate
#
# Each step needs the whole of the one before: either a launch for each, or one launch in which the whole grid waits.

# %%
import numpy as np
from matplotlib import pyplot
from numba import hip


@hip.jit
def diffuse(old, new, steps, rate):
    column = hip.grid(1)
    for _ in range(steps):
        for row in range(1 + hip.blockIdx.y, old.shape[0] - 1, hip.gridDim.y):
            if 0 < column < old.shape[1] - 1:
                around = old[row - 1, column] + old[row + 1, column] + old[row, column - 1] + old[row, column + 1]
                new[row, column] = old[row, column] + rate * (around - 4 * old[row, column])
        hip.cg.this_grid().sync()
        old, new = new, old


# %%
size = 192
plate = np.zeros((size, size))
plate[60:90, 40:80] = 100.0
plate[-50:-20, -60:-30] = 70.0
old, new = hip.to_device(plate), hip.to_device(plate)
pictures = [plate]
for _ in range(3):
    diffuse[(-(-size // 64), 2), 64](old, new, 400, 0.2)
    pictures.append(old.copy_to_host())

figure, axes = pyplot.subplots(1, 4, figsize=(9, 2.5), layout="constrained")
for number, (place, picture) in enumerate(zip(axes, pictures, strict=True)):
    place.imshow(picture, cmap="inferno", vmin=0, vmax=60)
    place.set_title(f"{400 * number} steps")
    place.set_axis_off()
assert pictures[-1].max() < plate.max()
float(pictures[0].max())
