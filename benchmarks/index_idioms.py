"""Every usual way in which a thread finds its element of an array, times what it does with it, beside ``njit``.

``python -m benchmarks.index_idioms [--above RATIO] [--dimensions 2] [--values float32] [WORK ...]`` generates the
kernels, checks what they compute, and prints which take more than so many times the processor time of nested loops, in
one thread each. A grid, blocks and indices are the kernel's; the loops go through the array in the order of memory.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import hip, njit

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Extents = tuple[int, ...]

BLOCKS_2D = ((16, 16), (32, 8), (8, 32), (1, 128), (128, 1), (4, 4), (1, 1))
BLOCKS_3D = ((8, 8, 8), (4, 4, 4), (1, 8, 32), (32, 8, 1), (16, 16, 1), (1, 1, 64), (64, 1, 1), (1, 1, 1))
ROUNDS = 5
SECONDS = 0.01
"""Of a round, at least."""


@dataclass(frozen=True)
class Idiom:
    """*lines* that compute the indices, or end in loops over them, of the threads of *grid* and *block*. Unless
    *is_bounded*, each index is compared with its extent."""

    name: str
    lines: str
    grid: Extents
    block: Extents
    is_bounded: bool = False


WORK_2D = {
    "copy": "out[i, j] = a[i, j]",
    "by-row-and-column": "out[i, j] = a[i, j] * row[j] + column[i]",
    "sine-of-row": "out[i, j] = a[i, j] * math.sin(column[i])",
    "branch": "if a[i, j] > 4:\n    out[i, j] = a[i, j] - 4\nelse:\n    out[i, j] = 0",
    "next-in-row": "if j + 1 < a.shape[1]:\n    out[i, j] = a[i, j + 1] - a[i, j]",
    "next-row": "if i + 1 < a.shape[0]:\n    out[i, j] = a[i + 1, j] - a[i, j]",
    "five-points": "if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:\n"
    "    out[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]",
    "window": "s = a[i, j] * 0\nfor k in range(5):\n    s += a[i, min(j + k, a.shape[1] - 1)]\nout[i, j] = s",
    "in-place": "out[i, j] += a[i, j]",
}
WORK_3D = {
    "copy": "out[i, j, k] = a[i, j, k] + 1",
    "seven-points": "if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1 and 0 < k < a.shape[2] - 1:\n"
    "    out[i, j, k] = (a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]\n"
    "                    + a[i, j, k - 1] + a[i, j, k + 1])",
    "window": "s = a[i, j, k] * 0\nfor q in range(3):\n    s += a[i, j, min(k + q, a.shape[2] - 1)]\nout[i, j, k] = s",
}


def idioms(shape: Shape) -> Iterator[Idiom]:
    """Those for arrays of *shape*, of two or three axes."""
    yield from _idioms_2d(*shape) if len(shape) == 2 else _idioms_3d(*shape)


def _idioms_2d(height: int, width: int) -> Iterator[Idiom]:
    size = height * width
    for block in BLOCKS_2D:
        yield Idiom(f"i, j = grid(2), {block}", "i, j = hip.grid(2)", _cover((height, width), block), block)
        yield Idiom(f"j, i = grid(2), {block}", "j, i = hip.grid(2)", _cover((width, height), block), block)
    x, y = "hip.blockIdx.x", "hip.blockIdx.y"
    across = "hip.blockIdx.y * hip.blockDim.x + hip.threadIdx.x"
    yield Idiom("column by block", f"i = hip.grid(1)\nj = {y}", (_up(height, 128), width), (128,))
    yield Idiom("row by block", f"j = hip.grid(1)\ni = {y}", (_up(width, 128), height), (128,))
    yield Idiom("row by block along x", f"i = {x}\nj = {across}", (height, _up(width, 128)), (128,))
    quotient = ("i = p // a.shape[1]\nj = p % a.shape[1]", "i = p // a.shape[1]\nj = p - i * a.shape[1]",
                f"i = p // {width}\nj = p % {width}")  # fmt: skip
    for name, lines in zip(("quotient", "quotient, less", "quotient by constant"), quotient, strict=True):
        yield Idiom(name, f"p = hip.grid(1)\n{lines}", (_up(size, 256),), (256,))
    stride = "for p in range(hip.grid(1), a.size, hip.gridsize(1)):\n"
    yield Idiom("steps of the grid", stride + _indented(quotient[0]), (64,), (256,))
    steps = "\nfor i in range({0}0, a.shape[0], s{0}):\n    for j in range({1}0, a.shape[1], s{1}):"
    yield Idiom("steps, i along x", "x0, y0 = hip.grid(2)\nsx, sy = hip.gridsize(2)" + steps.format("x", "y"),
                (8, 8), (16, 16))  # fmt: skip
    yield Idiom("steps, j along x", "x0, y0 = hip.grid(2)\nsx, sy = hip.gridsize(2)" + steps.format("y", "x"),
                (8, 8), (16, 16))  # fmt: skip
    yield Idiom("thread by row", "i = hip.grid(1)\nfor j in range(a.shape[1]):", (_up(height, 64),), (64,))
    yield Idiom("thread by column", "j = hip.grid(1)\nfor i in range(a.shape[0]):", (_up(width, 64),), (64,))
    strided = "for j in range(hip.threadIdx.x, a.shape[1], hip.blockDim.x):"
    yield Idiom("block by row", f"i = {x}\n{strided}", (height,), (128,))
    along = "for i in range(hip.threadIdx.x, a.shape[0], hip.blockDim.x):"
    yield Idiom("block by column", f"j = {x}\n{along}", (width,), (128,))
    yield Idiom("quotient, columns first", "p = hip.grid(1)\nj = p // a.shape[0]\ni = p % a.shape[0]",
                (_up(size, 256),), (256,))  # fmt: skip
    wave = "p = hip.grid(1)\ni = p // 32\nfor j in range(p % 32, a.shape[1], 32):"
    yield Idiom("wave by row", wave, (_up(height, 4),), (128,))
    yield Idiom(
        "rows of the block", f"i = {x} * hip.blockDim.y + hip.threadIdx.y\n{strided}", (_up(height, 8),), (32, 8)
    )


def _idioms_3d(depth: int, height: int, width: int) -> Iterator[Idiom]:
    extents = {"i": depth, "j": height, "k": width}
    for order in ("ijk", "kji", "jik", "kij"):
        for block in BLOCKS_3D:
            names = ", ".join(order)
            grid = _cover(tuple(extents[name] for name in order), block)
            yield Idiom(f"{names} = grid(3), {block}", f"{names} = hip.grid(3)", grid, block)
    for order in ("kji", "ijk", "jki"):
        first, second, third = order
        grid = (*_cover((extents[first], extents[second]), (16, 16)), extents[third])
        lines = f"{first}, {second} = hip.grid(2)\n{third} = hip.blockIdx.z"
        yield Idiom(f"{first}, {second} = grid(2), {third} by block", lines, grid, (16, 16))
    size, plane = depth * height * width, "(a.shape[1] * a.shape[2])"
    quotients = (
        "k = p % a.shape[2]\nt = p // a.shape[2]\nj = t % a.shape[1]\ni = t // a.shape[1]",
        f"i = p // {plane}\nj = p // a.shape[2] % a.shape[1]\nk = p % a.shape[2]",
        f"i = p // {plane}\nr = p % {plane}\nj = r // a.shape[2]\nk = r % a.shape[2]",
        f"i = p // {height * width}\nj = p // {width} % {height}\nk = p % {width}",
    )
    for name, lines in zip(("rows", "all", "planes", "constants"), quotients, strict=True):
        yield Idiom(f"quotients, {name}", f"p = hip.grid(1)\n{lines}", (_up(size, 256),), (256,))
    stride = "for p in range(hip.grid(1), a.size, hip.gridsize(1)):\n"
    yield Idiom("steps of the grid", stride + _indented(quotients[0]), (64,), (256,))
    numbers = {
        "rows": f"t = p // {width}\nk = p % {width}\ni, j = t // {height}, t % {height}",
        "rest": f"i, r = p // {height * width}, p % {height * width}\nj, k = r // {width}, r % {width}",
        "written out": f"i = p // {height * width}\nr = p - i * {height * width}\n"
        f"j = r // {width}\nk = r - j * {width}",
        "as C's": f"i = int(p / {height * width})\nr = p - i * {height * width}\n"
        f"j = int(r / {width})\nk = r - j * {width}",
    }  # fmt: skip
    for name, lines in numbers.items():
        guarded = f"p = hip.grid(1)\nif p < {size}:\n{_indented(lines)}"
        yield Idiom(f"numbers, {name}", guarded, (_up(size, 256),), (256,), is_bounded=True)
    for order in ("ijk", "jki", "kji"):
        first, second, third = order
        lines = f"{first}, {second} = hip.grid(2)\nfor {third} in range(a.shape[{'ijk'.index(third)}]):"
        grid = _cover((extents[first], extents[second]), (16, 16))
        yield Idiom(f"{first}, {second} = grid(2), loop over {third}", lines, grid, (16, 16))
    lines = "p = hip.grid(1)\ni = p // a.shape[1]\nj = p % a.shape[1]\nfor k in range(a.shape[2]):"
    yield Idiom("quotient, loop over k", lines, (_up(depth * height, 128),), (128,))


def _up(size: int, by: int) -> int:
    return -(-size // by)


def _cover(extents: Extents, block: Extents) -> Extents:
    return tuple(_up(extent, threads) for extent, threads in zip(extents, block, strict=True))


def _indented(text: str, by: int = 4) -> str:
    return "\n".join(" " * by + line for line in text.split("\n"))


@dataclass(frozen=True)
class Case:
    """Work on arrays of *shape* by the threads of *idiom*."""

    work: str
    idiom: Idiom
    shape: Shape

    @property
    def kernel(self) -> Callable[..., None]:
        """What the threads run, in Python."""
        names = "ijk"[: len(self.shape)]
        inside = " and ".join(f"{name} < a.shape[{axis}]" for axis, name in enumerate(names))
        *_, last = self.idiom.lines.split("\n")
        depth = len(last) - len(last.lstrip()) + (4 if last.endswith(":") else 0)
        work = _work(self.shape)[self.work]
        body = _indented(work if self.idiom.is_bounded else f"if {inside}:\n{_indented(work)}", depth)
        return _define(f"{self.idiom.lines}\n{body}")

    def launch(self, *arguments: Any) -> Callable[[], None]:
        """What launches it on *arguments*."""
        configured = hip.jit(self.kernel)[self.idiom.grid, self.idiom.block]
        return lambda: configured(*arguments)


def peer(work: str, shape: Shape) -> Callable[..., None]:
    """Nested loops that do *work*."""
    lines = _work(shape)[work]
    before = ""
    if "math.sin(column[i])" in lines:  # what a good user moves out of the loop over columns
        before, lines = "    factor = math.sin(column[i])\n", lines.replace("math.sin(column[i])", "factor")
    for axis in reversed(range(len(shape))):
        lines = f"for {'ijk'[axis]} in range(a.shape[{axis}]):\n{before if axis == 0 else ''}{_indented(lines)}"
    compiled: Callable[..., None] = njit(error_model="numpy")(_define(lines))
    return compiled


def _work(shape: Shape) -> dict[str, str]:
    return WORK_2D if len(shape) == 2 else WORK_3D


def _define(lines: str) -> Callable[..., None]:
    names: dict[str, Any] = {"hip": hip, "math": math}
    exec(f"def work(a, row, column, out):\n{_indented(lines)}", names)
    function: Callable[..., None] = names["work"]
    return function


def arrays(shape: Shape, dtype: str) -> tuple[Array, Array, Array]:
    """An array of small numbers, its first row and its first column."""
    values = np.random.default_rng(7).integers(0, 9, shape).astype(dtype)
    return values, values.reshape(-1, shape[-1])[0].copy(), values.reshape(shape[0], -1)[:, 0].copy()


def cases(shape: Shape, chosen: Sequence[str] = ()) -> Iterator[Case]:
    """All for arrays of *shape*, of the *chosen* kinds of work if any are."""
    for work in _work(shape):
        if not chosen or work in chosen:
            for idiom in idioms(shape):
                yield Case(work, idiom, shape)


def check(case: Case, dtype: str = "float32") -> None:
    """Compare what the kernel of *case* computes with what loops do."""
    given = arrays(case.shape, dtype)
    expected = np.zeros_like(given[0])
    peer(case.work, case.shape)(*given, expected)
    out = hip.to_device(np.zeros_like(expected))
    case.launch(*map(hip.to_device, given), out)()
    np.testing.assert_allclose(out.copy_to_host(), expected, rtol=1e-6, atol=1e-6, err_msg=case.idiom.name)


def _seconds(run: Callable[[], object]) -> float:
    """The least processor time of *run* in some rounds."""

    def measure(count: int) -> float:
        start = time.process_time()
        for _ in range(count):
            run()
        hip.synchronize()
        return (time.process_time() - start) / count

    run()
    count = max(1, int(SECONDS / max(measure(1), 1e-6)))
    return min(measure(count) for _ in range(ROUNDS))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the cases that take longer than they may."""
    parser = argparse.ArgumentParser(prog="benchmarks.index_idioms", description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("work", nargs="*", help="the kinds of work; by default all")
    parser.add_argument("--above", type=float, default=1.5, help="the ratio from which on a case is printed")
    parser.add_argument("--dimensions", type=int, choices=(2, 3), default=2)
    parser.add_argument("--values", default="float32", help="the dtype of the arrays")
    chosen = parser.parse_args(arguments)
    shape = (700, 500) if chosen.dimensions == 2 else (60, 70, 90)
    loops: dict[str, float] = {}
    ratios = []
    given = arrays(shape, chosen.values)
    passed = [hip.to_device(array) for array in (*given, np.zeros_like(given[0]))]
    for case in cases(shape, chosen.work):
        check(case, chosen.values)
        if case.work not in loops:
            compiled, out = peer(case.work, shape), np.zeros_like(given[0])
            loops[case.work] = _seconds(lambda run=compiled, out=out: run(*given, out))  # type: ignore[misc]
        ratio = _seconds(case.launch(*passed)) / loops[case.work]
        ratios.append(ratio)
        if ratio > chosen.above:
            print(f"{ratio:6.2f}  {case.work}: {case.idiom.name}", flush=True)
    print(f"{len(ratios)} cases, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


if __name__ == "__main__":
    if os.environ.get("NUMBA_HIP_CPU_THREADS") != "1":
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.index_idioms", *sys.argv[1:]],
                  {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_THREADS": "1"})  # fmt: skip
    main()
