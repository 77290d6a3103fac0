"""A random kernel of `generator`, and the stand-alone program that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tools.fuzz.program import Line, group, same

INTEGERS = {"i0": "int32", "i1": "int32", "l0": "int64", "l1": "int64", "u0": "uint32", "w0": "uint64"}
FLOATS = {"f0": "float32", "f1": "float32", "d0": "float64", "d1": "float64"}
VARIABLES = INTEGERS | FLOATS

CELLS = ("add", "max", "min", "and_", "or_", "xor")
"""The atomic operation for each index of the array of totals. Operations of one kind commute."""


@dataclass(frozen=True)
class Case:
    """A program that defines ``kernel`` and launches it; *waits* tells whether it has barriers. *functions* are the
    sources of device functions by name, *lines* those of the kernel."""

    seed: int
    block: tuple[int, int]
    blocks: int
    number: int
    waits: bool
    functions: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The stand-alone program."""
        threads = self.block[0] * self.block[1]
        text = HEAD.format(seed=self.seed, blocks=self.blocks, block=self.block, number=self.number, threads=threads)
        kernel = "\n".join(line for one in self.lines for line in one.write(1, 0)) or "    pass"
        called, wanted = kernel, list[str]()
        for name, function in reversed(self.functions):  # each only calls earlier ones
            if name in called:
                called, wanted = called + function, [function, *wanted]
        text += "".join(f"\n\n{function}" for function in wanted)
        text += f"\n\n@hip.jit\ndef kernel({PARAMETERS}, n):\n{kernel}\n"
        counts = {"integers": len(INTEGERS), "floats": len(FLOATS), "cells": len(CELLS)}
        return text + TAIL.format(seed=self.seed, names=PARAMETERS.split(", "), **counts)


PARAMETERS = "words, numbers, rows, reals, totals, total, walked, picture"
"""The array parameters of a kernel."""

HEAD = '''"""Random kernel {seed}: run it for what differs from the simulator. NUMBA_HIP_CPU_FORM
and NUMBA_HIP_CPU_WIDTH choose the form of its code on the CPU device."""

import os
import subprocess
import sys
import tempfile

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

import numpy as np
from numba import hip
from numba.core.types import float32, float64, int32, int64, uint32, uint64

BLOCKS, BLOCK, N = {blocks}, {block}, {number}
THREADS = {threads}
STEP = BLOCKS * THREADS
'''

TAIL = """

def make_arrays():
    generator = np.random.default_rng({seed})
    words = generator.integers(-(2**63), 2**63 - 1, BLOCKS * THREADS, np.int64)
    words[::3] >>= np.int64(56)
    numbers = generator.integers(-64, 64, BLOCKS * THREADS) / 4
    rows, reals = np.zeros((BLOCKS * THREADS, {integers}), np.int64), np.zeros((BLOCKS * THREADS, {floats}))
    walked = np.resize(words, 4 * STEP + 5)
    width, height = BLOCKS * BLOCK[0] - 1, max(BLOCK[1] - 1, 1)
    picture = generator.integers(0, 40, (height, max(width, 1)), np.int32)
    return words, numbers, rows, reals, np.zeros({cells}, np.int64), np.zeros(1), walked, picture


NAMES = {names}

if __name__ == "__main__":
    found = make_arrays()
    kernel[BLOCKS, BLOCK](*found, N)
    if len(sys.argv) > 1:  # in the simulator, for the program that started this one
        np.savez(sys.argv[1], *found)
        raise SystemExit
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "right.npz")
        subprocess.run([sys.executable, __file__, path], env=os.environ | {{"NUMBA_HIP_SIMULATOR": "1"}}, check=True)
        right = list(np.load(path).values())
    failed = False
    for name, one, other in zip(NAMES, right, found):
        for place in zip(*np.nonzero((one != other) & ~((one != one) & (other != other)))):
            failed = True
            print(f"{{name}}[{{', '.join(map(str, place))}}] is {{other[place]!r}}, must be {{one[place]!r}}")
    raise SystemExit(failed)
"""


class Emitted(NamedTuple):
    """A line from the generator, at nesting level *depth*. Lines with the same *group* other than 0 stay together."""

    depth: int
    text: str
    held: bool
    group: int


def make_lines(emitted: Sequence[Emitted]) -> tuple[Line, ...]:
    """The same lines, nested."""
    lines: list[Line] = []
    place = 0
    while place < len(emitted):
        first = emitted[place]
        end = place + 1
        if first.group:
            while end < len(emitted) and emitted[end].group == first.group:
                end += 1
            lines.append(group(*make_lines([line._replace(group=0) for line in emitted[place:end]])))
        else:
            while end < len(emitted) and emitted[end].depth > first.depth:
                end += 1
            body = make_lines(emitted[place + 1 : end])
            if first.text == "else:":
                lines[-1] = replace(lines[-1], other=body)
            else:
                lines.append(Line(same(first.text), body, held=first.held))
        place = end
    return tuple(lines)
