"""``python -m benchmarks.compile_growth``: how the time of compiling grows with a kernel, ours and that of ``njit``.

Each line is a kind of kernel in two sizes, the second four times the first: seconds of processor time for both, and the
ratio, which is 4 where time grows in proportion. Every measurement has a process of its own.
"""

from __future__ import annotations

import linecache
import math
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import numpy as np
from numba import hip, njit


def _lines(count: int) -> str:
    return "".join(f"    a = a * {number % 7}.5 + b\n    b -= a * 0.5\n" for number in range(count // 2))


def _branches(count: int) -> str:
    test = "    if a > {0}.0:\n        b += math.sin(a * {0}.5)\n    else:\n        b -= math.exp(a)\n"
    return "".join(test.format(number) for number in range(count))


def _loops(count: int) -> str:
    return "".join(f"    for j in range(n):\n        b += a * j + {number}.5\n" for number in range(count))


def _captured(count: int) -> str:
    return f"    b += TABLE_{count}[x.size]\n"


KINDS: dict[str, tuple[Callable[[int], str], int]] = {
    "lines": (_lines, 250), "branches": (_branches, 15), "loops": (_loops, 20), "captured": (_captured, 750_000),
}  # fmt: skip
"""For each kind how a body is written, and the smaller of the two sizes."""


def compile_once(kind: str, count: int, ours: bool) -> float:
    """Seconds of processor time that compiling takes, in a process that has compiled before."""

    def first_run(body: str) -> float:
        index = "hip.grid(1)" if ours else "0"
        text = f"def kernel(x, n):\n    i = {index}\n    a = x[i]\n    b = a + 1.0\n{body}    x[i] = a + b\n"
        name = f"<growth {hash(body)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        names: dict[str, Any] = {"hip": hip, "math": math, f"TABLE_{count}": np.arange(float(count))}
        exec(compile(text, name, "exec"), names)
        values = np.ones(64)
        run = hip.jit(names["kernel"])[1, 64] if ours else njit(names["kernel"])
        began = time.process_time()
        run(values, 2)
        return time.process_time() - began

    first_run("    b += math.sin(a)\n")
    return first_run(KINDS[kind][0](count))


def main() -> int:
    """Print a line for each kind."""
    print(f"{'':10}{'hip':>8}{'x 4':>8}{'ratio':>8}{'njit':>8}{'x 4':>8}{'ratio':>8}")
    for kind, (_, least) in KINDS.items():
        tasks = [(kind, count, ours) for ours in (True, False) for count in (least, 4 * least)]
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            a, b, c, d = pool.starmap(compile_once, tasks, chunksize=1)
        print(f"{kind:10}{a:8.2f}{b:8.2f}{b / a:8.1f}{c:8.2f}{d:8.2f}{d / c:8.1f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
