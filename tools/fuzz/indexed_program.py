"""A random kernel with computed indices as a program: the kernel, the same for one thread in plain Python, and the
arrays of each launch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tools.fuzz.program import Line

HERE = Path(__file__).parent
PARTS = "\n".join((HERE / name).read_text() for name in ("placement.py", "threads.py"))
IMPORTS = """import numpy as np
from tools.fuzz.placement import *
from tools.fuzz.threads import *
"""

HEAD = '''"""Random kernel {seed} with computed indices: run it for what differs from plain Python.
NUMBA_HIP_CPU_FORM and NUMBA_HIP_CPU_WIDTH choose the form of its code on the CPU device."""

import os

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

import math

from numba import hip

BLOCK, WAVE = {block}, {wave}
LAUNCHES = {launches}
'''

TAIL = """

def make_launch(number):
    h, w, blocks = LAUNCHES[number]
    n, threads = h * w, BLOCK[0] * BLOCK[1] * BLOCK[2] * blocks[0] * blocks[1] * blocks[2]
    generator = np.random.default_rng(({seed}, number))
    return [
{arrays}    ], blocks, (*map(np.{numbers}, (n, h, w)), np.int32(w))


NAMES = {names}

if __name__ == "__main__":
    failed = False
    for number in range(len(LAUNCHES)):
        made = make_launch(number)
        expected = expect(reference, made, BLOCK, WAVE)
        for told in compare(kernel, expected, NAMES, made, BLOCK, number % 2 == 0):
            failed = True
            print(f"launch {{number}}: {{told}}")
    raise SystemExit(failed)
"""


class Launch(NamedTuple):
    """The numbers of rows and columns, and of blocks along each axis."""

    rows: int
    columns: int
    blocks: tuple[int, int, int]


class Made(NamedTuple):
    """An array: the expression that creates its values, and its layout."""

    values: str
    layout: str


@dataclass(frozen=True)
class IndexedCase:
    """A kernel for several launches. If it is *checked*, indices out of range raise an error, in the reference too."""

    seed: int
    block: tuple[int, int, int]
    wave: int
    checked: bool
    numbers: str
    """The type of the sizes that the kernel is given."""
    launches: tuple[Launch, ...]
    arrays: dict[str, Made]
    lines: tuple[Line, ...]

    @property
    def waits(self) -> bool:
        """Whether threads wait for each other, or do something together."""
        return "yield" in "".join(text for line in self.lines for text in line.write(0, 1))

    @property
    def text(self) -> str:
        """The stand-alone program."""
        return self._write(PARTS)

    @property
    def importing_text(self) -> str:
        """The program, with what is the same in all programs imported from here."""
        return self._write(IMPORTS)

    def _write(self, parts: str) -> str:
        launches = [tuple(launch) for launch in self.launches]
        head = HEAD.format(seed=self.seed, block=self.block, wave=self.wave, launches=launches)
        names = ", ".join([*self.arrays, "n", "h", "w", "w32"])
        options = f"wave_size={self.wave}" + (", boundscheck=True" if self.checked else "")
        lines = [head + "\n" + parts, "", f"@hip.jit({options})", f"def kernel({names}):"]
        lines += [text for line in self.lines for text in line.write(1, 0)]
        lines += ["", "", f"def reference(at, {names}):"]
        lines += [text for line in self.lines for text in line.write(1, 1)]
        made = "".join(f"        Placed(generator, {one.values}, {one.layout!r}),\n" for one in self.arrays.values())
        return (
            "\n".join(lines)
            + "\n"
            + TAIL.format(seed=self.seed, arrays=made, numbers=self.numbers, names=list(self.arrays))
        )
