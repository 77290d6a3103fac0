"""What happens at edges and by rules: a window that is reflected at both ends, cells whose next state is told by an
``if`` for each state, and views whose rows are apart."""

from __future__ import annotations

import numpy as np
from numba import float32, hip, uint8

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 256
RADIUS = 3


@hip.jit
def sum_reflected(values, out):
    i = hip.grid(1)
    n = values.size
    if i < n:
        total = float32(0)
        for k in range(-RADIUS, RADIUS + 1):
            j = abs(i + k)
            if j >= n:
                j = 2 * n - 2 - j
            total += values[j]
        out[i] = total


@peer
def sum_reflected_by_loop(values, out):
    n = values.size
    for i in range(RADIUS, n - RADIUS):
        total = np.float32(0)
        for k in range(-RADIUS, RADIUS + 1):
            total += values[i + k]
        out[i] = total
    for i in range(2 * RADIUS):
        i = i if i < RADIUS else n - 2 * RADIUS + i
        total = np.float32(0)
        for k in range(-RADIUS, RADIUS + 1):
            j = abs(i + k)
            total += values[j if j < n else 2 * n - 2 - j]
        out[i] = total


@kernel("window-reflected")
def REFLECTED(quick: bool) -> UserKernel:
    """sums of seven float32, reflected at both ends"""
    values = np.random.default_rng(951).random(1000 if quick else 50_000).astype(np.float32)
    return UserKernel(
        {"values": values, "out": np.zeros_like(values)},
        ("out",),
        lambda on: sum_reflected[blocks(on.values.size, THREADS), THREADS](on.values, on.out),
        lambda on: sum_reflected_by_loop(on.values, on.out),
        rtol=1e-5,
        expected=lambda on: {
            "out": np.convolve(np.pad(on.values, RADIUS, mode="reflect"), np.ones(2 * RADIUS + 1), mode="valid")
        },
    )


EMPTY, HEAD, TAIL, WIRE = range(4)


@hip.jit
def step_wires(cells, after):
    x, y = hip.grid(2)
    height, width = cells.shape
    if y < height and x < width:
        cell = cells[y, x]
        if cell == HEAD:
            found = TAIL
        elif cell == TAIL:
            found = WIRE
        elif cell == WIRE:
            heads = 0
            for dy in range(-1, 2):
                for dx in range(-1, 2):
                    heads += cells[(y + dy) % height, (x + dx) % width] == HEAD
            found = HEAD if heads == 1 or heads == 2 else WIRE
        else:
            found = EMPTY
        after[y, x] = found


@peer
def step_wires_by_loop(cells, after):
    height, width = cells.shape
    for y in range(height):
        for x in range(width):
            heads = 0
            for dy in range(-1, 2):
                row = (y + dy) % height
                for dx in range(-1, 2):
                    heads += cells[row, (x + dx) % width] == HEAD
            cell = cells[y, x]
            charged = HEAD if heads == 1 or heads == 2 else WIRE
            after[y, x] = TAIL if cell == HEAD else WIRE if cell == TAIL else charged if cell == WIRE else EMPTY


@kernel("wires")
def WIRES(quick: bool) -> UserKernel:
    """a step of electrons in wires, bytes on a torus, an ``if`` for each state"""
    size = 40 if quick else 300
    cells = np.random.default_rng(952).choice(4, (size, size), p=(0.3, 0.1, 0.1, 0.5)).astype(np.uint8)
    grid = (blocks(size, 16), blocks(size, 16))
    return UserKernel(
        {"cells": cells, "after": np.zeros_like(cells)},
        ("after",),
        lambda on: step_wires[grid, (16, 16)](on.cells, on.after),
        lambda on: step_wires_by_loop(on.cells, on.after),
    )


@hip.jit
def grade(marks, grades):
    i = hip.grid(1)
    if i < marks.size:
        mark = marks[i]
        if mark == 0:
            found = uint8(5)
        elif mark == 1:
            found = uint8(2)
        elif mark == 2:
            found = uint8(3)
        else:
            found = uint8(mark ^ 7)
        grades[i] = found


@peer
def grade_by_loop(marks, grades):
    for i in range(marks.size):
        mark = marks[i]
        grades[i] = 5 if mark == 0 else 2 if mark == 1 else 3 if mark == 2 else mark ^ 7


@kernel("choices-of-bytes")
def CHOICES(quick: bool) -> UserKernel:
    """one of four bytes for each byte, by ``if`` and ``elif``"""
    marks = np.random.default_rng(953).integers(0, 9, 1000 if quick else 500_000).astype(np.uint8)
    return UserKernel(
        {"marks": marks, "grades": np.zeros_like(marks)},
        ("grades",),
        lambda on: grade[blocks(on.marks.size, THREADS), THREADS](on.marks, on.grades),
        lambda on: grade_by_loop(on.marks, on.grades),
    )


@hip.jit
def double_in_steps(table, out):
    height, width = table.shape
    for place in range(hip.grid(1), height * width, hip.gridsize(1)):
        row, column = place // width, place % width
        out[row, column] = table[row, column] * float32(2)


@peer
def double_by_rows(table, out):
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            out[row, column] = table[row, column] * np.float32(2)


@kernel("views-in-steps")
def VIEWS(quick: bool) -> UserKernel:
    """every second row of a table, in steps of the grid by quotient and remainder"""
    table = np.random.default_rng(954).random((40, 50) if quick else (2000, 500)).astype(np.float32)
    return UserKernel(
        {"table": table, "out": np.zeros_like(table)},
        ("out",),
        lambda on: double_in_steps[16, THREADS](on.table[::2], on.out[::2]),
        lambda on: double_by_rows(on.table[::2], on.out[::2]),
    )
