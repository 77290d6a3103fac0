"""Random kernels whose threads take steps in shared memory and in arrays - they read neighbours, wait, and write - of
which barriers may be missing or too many, against generators in Python that yield at barriers."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numba import hip, int32, int64

from hip_runtime import config

THREADS = (1, 7, 32, 37, 64, 100, 128)
MARGIN = 12
"""Elements before the one of the first thread, and behind that of the last."""

Array = np.ndarray[Any, Any]

NAMES = "x, y, out, n, k"
CONDITIONS = (
    "t < n - step", "step < n - t", "t + step < n", "t <= n - step", "n - step > t", "n - t >= step", "t >= step",
    "t < n", "n > t", "t % 3 == 0", "s[t + 12] % 2 == 0", "t == 0", "t < 20", "step <= t", "k - step > t", "n >= t",
)  # fmt: skip


class Kernel:
    """A random kernel of blocks of *threads*; `source` writes it for the device, or as a generator in Python."""

    def __init__(self, seed: int, threads: int) -> None:
        self._choose = random.Random(seed)
        self._threads = threads
        self._lines = self._write()

    def source(self, *, on_device: bool) -> str:
        size = self._threads + 2 * MARGIN
        start = [f"def kernel({NAMES}):", "    t, b = hip.threadIdx.x, hip.blockIdx.x"] if on_device else []
        start += [f"    {name} = hip.shared.array({size}, {kind})" for name, kind in (("s", "int32"), ("u", "int64"))
                  if on_device]  # fmt: skip
        start = start or [f"def kernel(t, b, s, u, {NAMES}):"]
        wait = "hip.syncthreads()" if on_device else "yield"
        return "\n".join([*start, *(f"    {line.replace('WAIT', wait)}" for line in self._lines)])

    def _write(self) -> list[str]:
        size = self._threads + 2 * MARGIN
        fill = [f"for j in range(t, {size}, {self._threads}):", "    s[j] = x[j] % 50", "    u[j] = x[j + 3] % 41"]
        lines = ["step = 0", *fill, "WAIT", "v = x[t]"]
        for _ in range(self._choose.randrange(1, 4)):
            lines += self._loop() if self._choose.random() < 0.6 else self._steps()
        return [*lines, "WAIT", "out[b, t] = s[t + 12] + 3 * u[t + 12] + 7 * v"]

    def _loop(self) -> list[str]:
        head = self._choose.choice(("range(3)", "range(k)", "range(1, n)", "range(20)", "range(k, 0, -1)"))
        return [f"for step in {head}:", *(f"    {line}" for line in self._steps())]

    def _steps(self) -> list[str]:
        lines = []
        for _ in range(self._choose.randrange(1, 3)):
            condition = self._choose.choice(CONDITIONS)
            lines += self._under(condition, self._read())
            lines += ["WAIT"] * (self._choose.random() < 0.9)
            if self._choose.random() < 0.2:
                condition = self._choose.choice(CONDITIONS)
            lines += self._under(condition, self._store())
            lines += ["WAIT"] * (self._choose.random() < 0.85)
        return lines

    def _under(self, condition: str, lines: list[str]) -> list[str]:
        if self._choose.random() < 0.2:
            return lines
        otherwise = ["else:", "    v = step"] if lines[0].startswith("v") and self._choose.random() < 0.3 else []
        return [f"if {condition}:", *(f"    {line}" for line in lines), *otherwise]

    def _read(self) -> list[str]:
        terms = [f"{number + 2} * {self._element(own=False)}" for number in range(self._choose.randrange(1, 4))]
        return [f"v = (v + {' + '.join(terms)}) % 1009"]

    def _store(self) -> list[str]:
        return [f"{self._element(own=True)} = v" for _ in range(self._choose.randrange(1, 3))]

    def _element(self, own: bool) -> str:
        choose = self._choose
        array = choose.choice(("s", "s", "s", "u", "x", "y"))
        shift = choose.choice((0, 0, 1) if own else (0, 0, 1, 1, 2, -1, -2))
        index = "t" if array in "su" and choose.random() < 0.9 else "t // 2" if choose.random() < 0.3 else "t"
        far = "" if own or choose.random() < 0.8 else choose.choice((" + step % 3", " - step % 3"))
        return f"{array}[{index} + {MARGIN + shift}{far}]"


@dataclass
class Accesses:
    """What the threads of a block access from one barrier to the next."""

    thread: int = 0
    races: bool = False
    readers: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    writers: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))

    def wait(self) -> None:
        """All threads are at a barrier."""
        for place, writers in self.writers.items():
            self.races |= len(writers | self.readers[place]) > 1
        self.readers.clear()
        self.writers.clear()


@dataclass
class Watched:
    """An array as threads see it: elements of the memory *name* from *start* on."""

    name: str
    memory: Array
    start: int
    accesses: Accesses

    def __getitem__(self, index: int) -> int:
        self.accesses.readers[self.name, self.start + index].add(self.accesses.thread)
        return int(self.memory[self.start + index])

    def __setitem__(self, index: int, value: int) -> None:
        self.accesses.writers[self.name, self.start + index].add(self.accesses.thread)
        self.memory[self.start + index] = value


def run_in_python(source: str, threads: int, arguments: dict[str, Any]) -> bool:
    """Run *source* for one block; whether its threads race."""
    names: dict[str, Any] = {}
    exec(source, names)
    seen = Accesses()
    x, y = arguments["x"], arguments["y"]
    shared = [Watched(name, np.zeros(threads + 2 * MARGIN, np.int64), 0, seen) for name in "su"]
    arrays = [Watched("x", x, 0, seen), Watched("y", y, 0, seen) if y.base is None else
              Watched("x", x, x.size - y.size, seen)]  # fmt: skip
    rest = [arguments[name] for name in ("out", "n", "k")]
    running: list[Iterator[None]] = [names["kernel"](t, 0, *shared, *arrays, *rest) for t in range(threads)]
    going = True
    while going:
        for seen.thread, thread in enumerate(running):
            going = next(thread, thread) is None
        seen.wait()
    return seen.races


def make_arguments(seed: int, threads: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    choose = random.Random(seed)
    x = rng.integers(0, 1000, threads + 4 * MARGIN)
    apart = rng.integers(0, 1000, threads + 4 * MARGIN)
    y = choose.choice((apart, apart, x[:], x[1:], x[3:]))
    n = choose.choice((0, 1, 3, 5, threads - 1, threads, threads + 7, -2))
    return {"x": x, "y": y, "out": np.zeros((1, threads), np.int64), "n": n, "k": choose.choice((0, 2, 9, threads))}


def _launch(kernel: Any, threads: int, arguments: dict[str, Any]) -> None:
    """Run *kernel* on arrays of the device, of which two overlap where those of *arguments* do."""
    x, y = arguments["x"], arguments["y"]
    on_device = {name: hip.to_device(arguments[name]) for name in ("x", "out")}
    on_device["y"] = hip.to_device(y) if y.base is None else on_device["x"][x.size - y.size :]
    hip.jit(kernel)[1, threads](*{**arguments, **on_device}.values())
    for name, array in on_device.items():
        array.copy_to_host(arguments[name])


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.sample(3)
def test_steps(seed: int) -> None:
    choose = random.Random(seed)
    threads = choose.choice(THREADS)
    kernel = Kernel(seed, threads)
    expected = make_arguments(seed, threads)
    if run_in_python(kernel.source(on_device=False), threads, expected):
        return
    arguments = make_arguments(seed, threads)
    names: dict[str, Any] = {"hip": hip, "int32": int32, "int64": int64}
    exec(kernel.source(on_device=True), names)
    with config.cpu_width.scope(choose.choice((None, None, 4, 8, 16))):
        _launch(names["kernel"], threads, arguments)
    for name in ("out", "x", "y"):
        np.testing.assert_array_equal(arguments[name], expected[name], kernel.source(on_device=True))
