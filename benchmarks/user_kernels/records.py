"""Matrices of records, as surfaces and pictures are: a thread for each by ``i, j = hip.grid(2)``, with rows along x."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import Arrays, Launch, UserKernel, blocks, kernel, peer

BLOCK = (16, 16)
CELL = np.dtype([(name, np.float32) for name in ("height", "speed", "stiffness", "damping", "force")])


def on_rows(jitted: Any, *names: str) -> Launch:
    """Launches a kernel on the arrays called *names*, with a thread for each record of the first."""

    def launch(on: Arrays) -> None:
        arrays = [getattr(on, name) for name in names]
        rows, columns = arrays[0].shape[:2]
        jitted[(blocks(rows, BLOCK[0]), blocks(columns, BLOCK[1])), BLOCK](*arrays)

    return launch


@hip.jit
def move(cells):
    i, j = hip.grid(2)
    if i < cells.shape[0] and j < cells.shape[1]:
        cell = cells[i, j]
        pull = cell.force - cell.stiffness * cell.height - cell.damping * cell.speed
        cell.speed += float32(0.01) * pull
        cell.height += float32(0.01) * cell.speed


@peer
def move_by_loop(cells):
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            cell = cells[i, j]
            pull = cell.force - cell.stiffness * cell.height - cell.damping * cell.speed
            cell.speed += float32(0.01) * pull
            cell.height += float32(0.01) * cell.speed


@kernel("surface-records")
def SURFACE(quick: bool) -> UserKernel:
    """a step of a surface whose cells are records of five float32, of which two change"""
    shape = (33, 50) if quick else (300, 400)
    cells = np.zeros(shape, CELL)
    for name, values in zip(CELL.names or (), np.random.default_rng(711).random((5, *shape), np.float32), strict=True):
        cells[name] = values

    def moved(on: Arrays) -> dict[str, np.ndarray]:
        cells, step = on.cells, np.float32(0.01)
        pull = cells["force"] - cells["stiffness"] * cells["height"] - cells["damping"] * cells["speed"]
        cells["speed"] += step * pull
        cells["height"] += step * cells["speed"]
        return {"cells": cells}

    return UserKernel(
        {"cells": cells},
        ("cells",),
        on_rows(move, "cells"),
        lambda on: move_by_loop(on.cells),
        rtol=1e-5,
        expected=moved,
    )


@hip.jit("void(float32[:, :, :], float32[:, :, :])")
def premultiply(image, result):
    i, j = hip.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        alpha = image[i, j, 3]
        result[i, j, 0] = image[i, j, 0] * alpha
        result[i, j, 1] = image[i, j, 1] * alpha
        result[i, j, 2] = image[i, j, 2] * alpha
        result[i, j, 3] = alpha


@peer
def premultiply_by_loop(image, result):
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            alpha = image[i, j, 3]
            for colour in range(3):
                result[i, j, colour] = image[i, j, colour] * alpha
            result[i, j, 3] = alpha


@kernel("rows-of-four")
def FOUR(quick: bool) -> UserKernel:
    """colours of float32 times their alpha, rows of four, with a signature of ``float32[:, :, :]``"""
    image = np.random.default_rng(712).random((33, 50, 4) if quick else (300, 400, 4), np.float32)
    return UserKernel(
        {"image": image, "result": np.zeros_like(image)},
        ("result",),
        on_rows(premultiply, "image", "result"),
        lambda on: premultiply_by_loop(on.image, on.result),
        expected=lambda on: {"result": on.image * np.where(np.arange(4) < 3, on.image[..., 3:], np.float32(1))},
    )


@hip.jit
def differences(image, result):
    i, j = hip.grid(2)
    if 0 < i < image.shape[0] - 1 and 0 < j < image.shape[1] - 1:
        here = image[i, j]
        result[i, j, 0] = image[i - 1, j - 1] - here
        result[i, j, 1] = image[i - 1, j] - here
        result[i, j, 2] = image[i - 1, j + 1] - here
        result[i, j, 3] = image[i, j - 1] - here
        result[i, j, 4] = image[i, j + 1] - here
        result[i, j, 5] = image[i + 1, j - 1] - here
        result[i, j, 6] = image[i + 1, j] - here
        result[i, j, 7] = image[i + 1, j + 1] - here


@peer
def differences_by_loop(image, result):
    for i in range(1, image.shape[0] - 1):
        for j in range(1, image.shape[1] - 1):
            here = image[i, j]
            result[i, j, 0] = image[i - 1, j - 1] - here
            result[i, j, 1] = image[i - 1, j] - here
            result[i, j, 2] = image[i - 1, j + 1] - here
            result[i, j, 3] = image[i, j - 1] - here
            result[i, j, 4] = image[i, j + 1] - here
            result[i, j, 5] = image[i + 1, j - 1] - here
            result[i, j, 6] = image[i + 1, j] - here
            result[i, j, 7] = image[i + 1, j + 1] - here


AROUND = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if (di, dj) != (0, 0)]


@kernel("eight-neighbours")
def NEIGHBOURS(quick: bool) -> UserKernel:
    """differences of each pixel to the eight around it, inner pixels only, in rows of eight float32"""
    image = np.random.default_rng(713).random((33, 50) if quick else (300, 400), np.float32)

    def found(on: Arrays) -> dict[str, np.ndarray]:
        parts = [np.roll(on.image, (-di, -dj), (0, 1)) - on.image for di, dj in AROUND]
        on.result[1:-1, 1:-1] = np.stack(parts, axis=-1)[1:-1, 1:-1]
        return {"result": on.result}

    return UserKernel(
        {"image": image, "result": np.zeros((*image.shape, 8), np.float32)},
        ("result",),
        on_rows(differences, "image", "result"),
        lambda on: differences_by_loop(on.image, on.result),
        expected=found,
    )


@hip.jit
def list_monomials(result):
    i, j = hip.grid(2)
    if i < result.shape[0] and j < result.shape[1]:
        y, x = float32(i), float32(j)
        result[i, j, 0] = 1
        result[i, j, 1] = x
        result[i, j, 2] = y
        result[i, j, 3] = x * x
        result[i, j, 4] = x * y
        result[i, j, 5] = y * y
        result[i, j, 6] = x * x * y
        result[i, j, 7] = x * y * y


@peer
def list_monomials_by_loop(result):
    for i in range(result.shape[0]):
        for j in range(result.shape[1]):
            y, x = float32(i), float32(j)
            result[i, j, 0] = 1
            result[i, j, 1] = x
            result[i, j, 2] = y
            result[i, j, 3] = x * x
            result[i, j, 4] = x * y
            result[i, j, 5] = y * y
            result[i, j, 6] = x * x * y
            result[i, j, 7] = x * y * y


@kernel("fields-of-eight")
def EIGHT(quick: bool) -> UserKernel:
    """eight monomials of each pixel's place, as a fit by least squares needs them, float32"""
    shape = (33, 50) if quick else (256, 512)

    def monomials(on: Arrays) -> dict[str, np.ndarray]:
        y, x = np.indices(shape, np.float32)
        return {"result": np.stack([np.ones_like(x), x, y, x * x, x * y, y * y, x * x * y, x * y * y], axis=-1)}

    return UserKernel(
        {"result": np.zeros((*shape, 8), np.float32)},
        ("result",),
        on_rows(list_monomials, "result"),
        lambda on: list_monomials_by_loop(on.result),
        expected=monomials,
    )
