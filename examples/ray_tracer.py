"""Spheres over a chequered floor: each thread follows one ray through up to four reflections."""

import math
from pathlib import Path

import numpy as np
from gallery import command_line, pictures
from numba import hip

SMALL = 48
BLOCK = (16, 16)
FAR = 1e20
FLOOR, SKY = -1, -2
SPHERES = np.array(  # x, y, z, radius, red, green, blue, how much it reflects
    [
        (0.0, 1.0, 6.0, 1.0, 0.9, 0.2, 0.2, 0.35),
        (-2.2, 0.8, 5.0, 0.8, 0.2, 0.7, 0.3, 0.25),
        (1.9, 0.6, 4.2, 0.6, 0.25, 0.4, 0.9, 0.4),
        (0.6, 2.9, 8.0, 1.1, 0.9, 0.8, 0.3, 0.5),
        (-0.7, 0.35, 3.4, 0.35, 0.8, 0.8, 0.8, 0.6),
    ]
)
LIGHT = (0.5, 0.7, -0.5)  # a direction, nearly of length 1


@hip.jit(device=True)
def find_sphere(spheres, ox, oy, oz, dx, dy, dz):
    """Distance and number of the first sphere on a ray, `FAR` and -1 if there is none."""
    nearest, number = FAR, -1
    for s in range(spheres.shape[0]):
        cx, cy, cz = spheres[s, 0] - ox, spheres[s, 1] - oy, spheres[s, 2] - oz
        along = cx * dx + cy * dy + cz * dz
        square = cx * cx + cy * cy + cz * cz - along * along
        radius = spheres[s, 3]
        if along > 0.0 and square < radius * radius:
            distance = along - math.sqrt(radius * radius - square)
            if 1e-6 < distance < nearest:
                nearest, number = distance, s
    return nearest, number


@hip.jit
def trace(image, seen, spheres):
    """One pixel of *image* for each thread; *seen* tells what its ray meets first: a sphere, `FLOOR` or `SKY`."""
    column, row = hip.grid(2)
    height, width = image.shape[0], image.shape[1]
    if row >= height or column >= width:
        return
    dx, dy, dz = (column + 0.5 - width / 2) / height, (height / 2 - row - 0.5) / height, 1.0
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    dx, dy, dz = dx / length, dy / length, dz / length
    ox, oy, oz = 0.0, 1.2, -1.0
    red = green = blue = 0.0
    weight = 1.0
    for bounce in range(4):
        distance, number = find_sphere(spheres, ox, oy, oz, dx, dy, dz)
        floor = -oy / dy if dy < -1e-9 else FAR
        if bounce == 0:
            seen[row, column] = number if distance < floor else FLOOR if floor <= 60.0 else SKY
        if number < 0 and floor > 60.0:  # the sky
            glow = 0.5 + 0.5 * max(dy, 0.0)
            red, green, blue = red + weight * 0.6 * glow, green + weight * 0.75 * glow, blue + weight * glow
            break
        on_floor = floor < distance
        reach = floor if on_floor else distance
        ox, oy, oz = ox + reach * dx, oy + reach * dy, oz + reach * dz
        nx, ny, nz = 0.0, 1.0, 0.0
        mirror = 0.1
        if on_floor:
            shade = 0.85 if (math.floor(ox) + math.floor(oz)) % 2 == 0 else 0.25
            r, g, b = shade, shade, shade
        else:
            radius = spheres[number, 3]
            nx, ny = (ox - spheres[number, 0]) / radius, (oy - spheres[number, 1]) / radius
            nz = (oz - spheres[number, 2]) / radius
            r, g, b, mirror = spheres[number, 4], spheres[number, 5], spheres[number, 6], spheres[number, 7]
        ox, oy, oz = ox + 1e-4 * nx, oy + 1e-4 * ny, oz + 1e-4 * nz
        _, shadow = find_sphere(spheres, ox, oy, oz, LIGHT[0], LIGHT[1], LIGHT[2])
        lit = max(nx * LIGHT[0] + ny * LIGHT[1] + nz * LIGHT[2], 0.0) if shadow < 0 else 0.0
        bright = weight * (1.0 - mirror) * (0.15 + 0.85 * lit)
        red, green, blue = red + bright * r, green + bright * g, blue + bright * b
        weight *= mirror
        back = 2.0 * (dx * nx + dy * ny + dz * nz)
        dx, dy, dz = dx - back * nx, dy - back * ny, dz - back * nz
    image[row, column, 0], image[row, column, 1], image[row, column, 2] = min(red, 1.0), min(green, 1.0), min(blue, 1.0)


def first_things(height, width):
    """What the rays meet first, in NumPy."""
    rows, columns = np.mgrid[:height, :width] + 0.5
    rays = np.stack([(columns - width / 2) / height, (height / 2 - rows) / height, np.ones((height, width))], -1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    centers = SPHERES[:, :3] - (0.0, 1.2, -1.0)
    along = rays @ centers.T
    square = (centers**2).sum(1) - along**2
    hits = (along > 0) & (square < SPHERES[:, 3] ** 2)
    distances = np.where(hits, along - np.sqrt(np.maximum(SPHERES[:, 3] ** 2 - square, 0)), FAR)
    floor = np.full((height, width), FAR)
    np.divide(-1.2, rays[..., 1], out=floor, where=rays[..., 1] < -1e-9)
    ground = np.where(floor <= 60.0, FLOOR, SKY)
    return np.where(distances.min(-1) < floor, np.where(hits.any(-1), distances.argmin(-1), SKY), ground)


def main(size: int = 480, output: Path | None = None) -> None:
    image, seen = np.zeros((size, size * 3 // 2, 3)), np.zeros((size, size * 3 // 2), np.int8)
    grid = -(-image.shape[1] // BLOCK[0]), -(-size // BLOCK[1])
    trace[grid, BLOCK](image, seen, SPHERES)

    different = np.count_nonzero(seen != first_things(*seen.shape))  # on the edge of a sphere one rounding decides
    assert different <= seen.size // 1000, f"{different} rays meet something else than NumPy's"
    assert image.min() >= 0
    assert image.max() <= 1
    assert image.std() > 0.1, "a picture of something"
    pictures.save_image(output, image)
    print(f"ray tracer: {image.shape[1]} x {size} pixels, all but {different} rays meet first what NumPy's do")


if __name__ == "__main__":
    command_line.run(main)
