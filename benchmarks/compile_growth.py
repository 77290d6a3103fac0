"""``python -m benchmarks.compile_growth [KIND ...]``: how compile time grows with the size of a kernel, compared with
``njit``.

Each line is a kind of kernel in two sizes, the second four times the first: seconds of processor time for both, and the
ratio, which is 4 if time grows in proportion. Every measurement has a separate process.
"""

from __future__ import annotations

import argparse
import linecache
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numba import hip, njit


@dataclass(frozen=True)
class Source:
    """The source of a kernel of some size."""

    body: str
    parameters: tuple[str, ...] = ()
    """Further array parameters."""
    functions: tuple[str, ...] = ()
    """Functions that the body calls."""
    elements: int = 0
    """The number of elements in an array ``TABLE``, which the body refers to."""


def _lines(count: int) -> Source:
    return Source("".join(f"    a = a * {number % 7}.5 + b\n    b -= a * 0.5\n" for number in range(count // 2)))


def _branches(count: int) -> Source:
    test = "    if a > {0}.0:\n        b += math.sin(a * {0}.5)\n    else:\n        b -= math.exp(a)\n"
    return Source("".join(test.format(number) for number in range(count)))


def _wrapped(count: int) -> Source:
    return Source(_branches(count).body.replace("math.", "hip."))


def _loops(count: int) -> Source:
    return Source("".join(f"    for j in range(n):\n        b += a * j + {number}.5\n" for number in range(count)))


def _nested(count: int) -> Source:
    loops = "".join(f"{'    ' * (depth + 1)}for j{depth} in range(n):\n" for depth in range(count))
    return Source(f"{loops}{'    ' * (count + 1)}b += a * j0 + j{count - 1}\n")


def _calls(count: int) -> Source:
    functions = (
        f"def function_{number}(a, b):\n    if a > b:\n        return math.sqrt(a) * {number}.5\n    return a - b\n"
        for number in range(count)
    )
    return Source("".join(f"    b += function_{number}(a, b)\n" for number in range(count)), functions=tuple(functions))


def _arguments(count: int) -> Source:
    names = tuple(f"y{number}" for number in range(count))
    return Source("".join(f"    b += {name}[i]\n" for name in names), parameters=names)


def _captured(count: int) -> Source:
    return Source("    b += TABLE[x.size]\n", elements=count)


KINDS: dict[str, tuple[Callable[[int], Source], int, int]] = {
    "lines": (_lines, 750, 3000), "branches": (_branches, 15, 60), "wrapped": (_wrapped, 15, 60),
    "loops": (_loops, 40, 160), "nested": (_nested, 2, 8), "calls": (_calls, 30, 120),
    "arguments": (_arguments, 50, 200), "captured": (_captured, 750_000, 3_000_000),
}  # fmt: skip
"""For each kind, the function that writes a kernel, and its two sizes."""


def define(text: str, names: dict[str, Any]) -> None:
    """Execute *text* with *names*, so that its lines can be found, as Numba requires."""
    file = f"<growth {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)


def make_kernel(source: Source, index: str, decorate: Callable[[Any], Any], wrappers: Any) -> tuple[Any, list[Any]]:
    """The Python function of a kernel made of *source*, which works at *index*, and its arguments. Functions that it
    calls are decorated; names of ``hip`` come from *wrappers*."""
    names: dict[str, Any] = {"hip": wrappers, "math": math, "TABLE": np.arange(float(source.elements))}
    for number, function in enumerate(source.functions):
        define(function, names)
        names[f"function_{number}"] = decorate(names[f"function_{number}"])
    parameters = ", ".join(("x", "n", *source.parameters))
    start = f"def kernel({parameters}):\n    i = {index}\n    a = x[i]\n    b = a + 1.0\n"
    define(f"{start}{source.body}    x[i] = a + b\n", names)
    return names["kernel"], [np.ones(64), 2, *(np.ones(64) for _ in source.parameters)]


def first_run(source: Source, ours: bool) -> float:
    """Seconds of processor time of the first run of *source*."""
    if ours:
        kernel, arguments = make_kernel(source, "hip.grid(1)", hip.jit(device=True), hip)
        run = hip.jit(kernel)[1, 64]
    else:
        kernel, arguments = make_kernel(source, "0", njit, math)
        run = njit(kernel)
    began = time.process_time()
    run(*arguments)
    return time.process_time() - began


def compile_once(kind: str, size: int, ours: bool) -> float:
    """The seconds of processor time that compiling takes in a process that has compiled before."""
    first_run(Source("    b += math.sin(a)\n"), ours)
    return first_run(KINDS[kind][0](size), ours)


def measure(kinds: list[str]) -> Iterator[tuple[str, list[float]]]:
    """For each of *kinds*, ours in both sizes and then ``njit``, each in a separate process."""
    for kind in kinds:
        tasks = [(kind, size, ours) for ours in (True, False) for size in KINDS[kind][1:]]
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            yield kind, pool.starmap(compile_once, tasks, chunksize=1)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_growth", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all by default")
    kinds = parser.parse_args(arguments).kinds or list(KINDS)
    if unknown := sorted(set(kinds) - set(KINDS)):
        parser.error(f"{', '.join(unknown)}: no kind; there are {', '.join(KINDS)}")
    print(f"{'':10}{'sizes':>19}{'hip':>8}{'larger':>8}{'ratio':>7}{'njit':>8}{'larger':>8}{'ratio':>7}")
    for kind, (a, b, c, d) in measure(kinds):
        least, most = KINDS[kind][1:]
        sizes = f"{least:,} {most:,}"
        print(f"{kind:10}{sizes:>19}{a:8.2f}{b:8.2f}{b / a:7.1f}{c:8.2f}{d:8.2f}{d / c:7.1f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
