"""A random kernel with numbers of all sizes as a program: the kernel, and a reference for one thread with the same
meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SEMANTICS = (Path(__file__).parent / "semantics.py").read_text()

HEAD = '''"""Random kernel {seed}: run it for what differs from plain Python. NUMBA_HIP_CPU_FORM
and NUMBA_HIP_CPU_WIDTH choose the form of its code on the CPU device."""

import math
import os

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from numba import hip

BLOCKS, BLOCK, WAVE, N = {blocks}, {block}, {wave}, {number}
THREADS, WIDTH = {threads}, {width}
ROWS = BLOCKS * THREADS
'''

TAIL = """

def make_arrays():
    generator = np.random.default_rng({seed})
    return [
{arrays}    ]


NAMES = {names}
WAITS = {waits}

if __name__ == "__main__":
    right, found = make_arrays(), make_arrays()
    run_reference(reference, right, N, BLOCKS, THREADS, WAVE, WAITS)
    kernel[BLOCKS, BLOCK](*found, N)
    failed = False
    for name, one, other in zip(NAMES, right, found):
        for place in zip(*np.nonzero(differ(one, other))):
            failed = True
            print(f"{{name}}[{{', '.join(map(str, place))}}] is {{other[place]!r}}, must be {{one[place]!r}}")
    raise SystemExit(failed)
"""


class Text(NamedTuple):
    """A piece of the kernel's source, and of the reference's."""

    hip: str
    plain: str


@dataclass(frozen=True)
class Line:
    """A line with the lines nested in it; without a text, a group of lines that need each other.

    A *held* line is not removed from the line around it: a loop would not end without it."""

    text: Text
    body: tuple[Line, ...] = ()
    other: tuple[Line, ...] = ()
    held: bool = False

    @property
    def is_group(self) -> bool:
        """Whether the lines stay together."""
        return not self.text.hip

    def write(self, depth: int, which: int) -> Iterator[str]:
        """The lines of the kernel or, with 1 for *which*, of the reference."""
        if self.is_group:
            for line in self.body:
                yield from line.write(depth, which)
            return
        yield "    " * depth + self.text[which]
        for line in self.body:
            yield from line.write(depth + 1, which)
        if self.other:
            yield "    " * depth + "else:"
            for line in self.other:
                yield from line.write(depth + 1, which)


@dataclass(frozen=True)
class TypedCase:
    """A kernel and its reference; *arrays* are the parameters, with the expressions that create them."""

    seed: int
    block: tuple[int, int]
    blocks: int
    wave: int
    number: int
    waits: bool
    fast: bool
    arrays: dict[str, str]
    lines: tuple[Line, ...]

    @property
    def compares_with_njit(self) -> bool:
        """Whether ``njit`` can compile the reference."""
        return not self.waits and not any("float16" in name for name in self.arrays)

    @property
    def text(self) -> str:
        """The stand-alone program."""
        return self._write(SEMANTICS)

    @property
    def importing_text(self) -> str:
        """The program, with the semantics of operations imported from here, so that ``njit`` compiles them once for all
        programs."""
        return self._write("from tools.fuzz.semantics import *\n")

    def _write(self, semantics: str) -> str:
        threads = self.block[0] * self.block[1]
        head = HEAD.format(
            seed=self.seed, blocks=self.blocks, block=self.block, wave=self.wave, number=self.number, threads=threads,
            width=self.block[0],
        )  # fmt: skip
        names = ", ".join([*self.arrays, "n"])
        options = f"wave_size={self.wave}" + (", fastmath=True" if self.fast else "")
        parts = [head + "\n" + semantics, "", f"@hip.jit({options})", f"def kernel({names}):"]
        parts += [line for one in self.lines for line in one.write(1, 0)]
        parts += ["", "", f"def reference(block, t, shared, {names}):"]
        parts += [line for one in self.lines for line in one.write(1, 1)]
        made = "".join(f"        {expression},\n" for expression in self.arrays.values())
        tail = TAIL.format(seed=self.seed, arrays=made, names=list(self.arrays), waits=self.waits)
        return "\n".join(parts) + "\n" + tail


WAIT = Line(Text("hip.syncthreads()", 'yield "barrier"'))


def both(template: str, *parts: Text) -> Text:
    """The same source around *parts* in kernel and reference."""
    return Text(template.format(*(part.hip for part in parts)), template.format(*(part.plain for part in parts)))


def same(text: str) -> Text:
    """A piece of source that is the same in both."""
    return Text(text, text)


def wrapping_type(kind: str, operation: str) -> str | None:
    """The type in which *operation* wraps around, if it does not for integers of type *kind*. Signed sums, differences
    and products that wrap around are undefined; narrower integers do not wrap around in Numba, which computes in 64
    bits."""
    return "uint64" if kind == "int64" and operation in "+-*" else None


def arithmetic(kind: str, operation: str, one: Text, two: Text) -> Text:
    """An operation on two integers of type *kind*, with a result of that type."""
    unsigned = wrapping_type(kind, operation)
    if unsigned is None:
        return both(f"np.{kind}({{}} {operation} {{}})", one, two)
    return both(f"np.{kind}(np.{unsigned}({{}}) {operation} np.{unsigned}({{}}))", one, two)


def group(*lines: Line) -> Line:
    """*lines* that stay together."""
    return Line(Text("", ""), lines)
