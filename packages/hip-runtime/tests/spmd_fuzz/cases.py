"""Runs a program in a form of the CPU device and compares what it leaves in memory with its evaluation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from spmd_kernels import pack

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.abi.block_lengths import is_row, lengths_like
from hip_runtime.drivers.cpu.strategies.form_choice import MIN_LANES
from spmd_fuzz.evaluation import Memory, evaluate, make_memory, modulus
from spmd_fuzz.limits import limit_time
from spmd_fuzz.nodes import WAITING, Program
from spmd_fuzz.writer import compile_program, parameters, size_of

Form = tuple[str, int | None] | tuple[str, int | None, str]
"""A form, how many threads it runs at a time where that is said, and along which axis of the block."""

Block = tuple[int, int, int]

WIDTHS = (1, 2, 4, 8, 16, 32, 64)


def forms_of(program: Program) -> list[Form]:
    """The forms that *program* can be asked for: ``loop`` refuses kernels whose threads wait."""
    forms: list[Form] = [("auto", None), ("regions", None), *(("vectors", width) for width in WIDTHS)]
    return forms if program.kinds() & WAITING or _clears_shared(program) else [("loop", None), *forms]


def _clears_shared(program: Program) -> bool:
    return any(node.kind == "slot" or node.words[1:2] == ("slot",) for node in program.walk())


def lanes_of(form: Form) -> str:
    """Along which axis of the block threads run together."""
    return form[2] if len(form) > 2 else "auto"


def choose_forms(program: Program, seed: int, count: int | None) -> list[Form]:
    """*count* of the forms, or all, chosen by *seed*; the first is ``auto``, and half of the others are ``vectors``."""
    choose = random.Random(seed)
    forms = [form for form in forms_of(program) if form[0] != "auto"]
    weights = [1 if form[1] else len(WIDTHS) / 2 for form in forms]
    others = sorted(forms, key=lambda form: choose.random() ** (1 / weights[forms.index(form)]), reverse=True)
    if program.block[1:] != (1, 1):
        others = [(form[0], form[1], choose.choice("xyz")) for form in others]
    return [("auto", None), *others][:count]


@dataclass(frozen=True)
class Mismatch:
    """What a form gave that is wrong: the array, and the elements that differ; or the *error* it ended in, for which
    there are none."""

    form: Form
    told: str
    array: str = ""
    places: tuple[int, ...] = ()
    expected: Any = None
    found: Any = None
    error: str = ""

    @property
    def cause(self) -> str:
        """What a smaller program must fail with, too: an array, or the name of an error."""
        return self.error or self.array

    def __str__(self) -> str:
        asked, width = self.form[:2]
        shown = self.places[:6]
        what = f"form {asked}{f', width {width}' if width else ''}, lanes along {lanes_of(self.form)} ({self.told})"
        if self.error:
            return what
        return (
            f"{what}: {self.array} differs at "
            f"{len(self.places)} places, at {', '.join(map(str, shown))}: expected "
            f"{self.expected[list(shown)].tolist()}, got {self.found[list(shown)].tolist()}"
        )


def arguments_of(program: Program, memory: Memory) -> list[tuple[str, Any]]:
    """The arguments of the kernel by name; arrays stand for their addresses."""
    found: list[tuple[str, Any]] = []
    for name, kind in parameters(program):
        if kind == "ptr":
            found.append((name, memory[name]))
        elif name in ("n", "size"):
            found.append((name, program.n if name == "n" else modulus(program)))
        else:
            axis, of = name.split("_")
            layout = program.layouts[of]
            found.append((name, (layout.rows if axis == "rows" else layout.columns) * size_of(of)))
    return found


def find_mismatch(device: Device, program: Program, seed: int, forms: Sequence[Form]) -> Mismatch | None:
    """The first of *forms* that does not give what the evaluation does, or an error, on the numbers of *seed*."""
    memory = make_memory(program, seed)
    expected = {name: array.copy() for name, array in memory.items()}
    evaluate(program, expected)
    code = compile_program(program)
    for form in forms:
        try:
            with limit_time():
                found, told = run_form(device, code, program, memory, form)
        except Exception as error:
            return Mismatch(form, f"{type(error).__name__}: {error}", error=type(error).__name__)
        for name, array in found.items():
            places = np.flatnonzero(differ(expected[name], array))
            if len(places):
                return Mismatch(form, told, name, tuple(map(int, places)), expected[name], array)
    return None


def run_form(device: Device, code: CodeObject, program: Program, memory: Memory, form: Form) -> tuple[Memory, str]:
    """What the kernel leaves of *memory* in *form*, and the form that it took, with the reason."""
    with ExitStack() as stack:
        stack.enter_context(config.cpu_form.scope(form[0]))
        stack.enter_context(config.cpu_width.scope(form[1]))
        stack.enter_context(config.cpu_lanes.scope(lanes_of(form)))
        arguments = arguments_of(program, memory)
        arrays = {name: to_device(value, device=device) for name, value in arguments if isinstance(value, np.ndarray)}
        function = device.load(code).function("k")
        values = [arrays[name].address if name in arrays else value for name, value in arguments]
        function.handle.worker(block_alike(program.block))
        function.launch(program.blocks, program.block, pack(function.kernel, *values))
        return {name: array.copy_to_host() for name, array in arrays.items()}, function.form


def block_alike(block: Block) -> Block:
    """A row of another length whose machine code should serve for *block*, too, if that is a row of threads."""
    length = block[0]
    if not is_row(block):
        return block
    least, most = lengths_like(length, MIN_LANES)
    if length % least == 0 and most > 2 * least:
        return (2 * least if length == least else least, 1, 1)
    return (length + 1 if length < most else length - 1, 1, 1)


def differ(expected: Any, found: Any) -> Any:
    """Where bits differ, but for those of NaN, which are up to the processor."""
    kind = expected.dtype
    if kind.kind != "f":
        return expected != found
    bits = np.dtype(f"u{kind.itemsize}")
    return (expected.view(bits) != found.view(bits)) & ~(np.isnan(expected) & np.isnan(found))
