"""A product of float16 matrices in matrix cores, which `tools.isa_report` compares with clang's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import numba_hip as hip

SHAPE = (16, 16, 16)


class Nothing:
    """No data: what is compiled is not launched."""

    def __init__(self, *, quick: bool) -> None:
        self.arrays: dict[str, Any] = {}


def product(problem: Nothing, arrays: Any) -> Callable[[], Any]:
    """A launch, whose kernel multiplies a matrix stored by rows by one stored by columns; a wave has 16 x 16 sums."""
    del problem, arrays

    @hip.jit
    def multiply(x: Any, y: Any, out: Any) -> None:
        row, column = hip.blockIdx.y * 16, hip.blockIdx.x * 16
        sums = hip.matrix.fragment("accumulator", SHAPE, np.float32)
        left = hip.matrix.fragment("a", SHAPE, np.float16)
        right = hip.matrix.fragment("b", SHAPE, np.float16)
        hip.matrix.fill(sums, 0)
        for k in range(0, x.shape[1], 16):
            hip.matrix.load(left, x, row, k)
            hip.matrix.load(right, y, k, column)
            hip.matrix.mma(sums, left, right, sums)
        hip.matrix.store(sums, out, row, column)

    def launch() -> Any:
        return multiply

    return launch
