"""Runs one random kernel in plain Python and in each form of the CPU device, and compares what it wrote."""

from __future__ import annotations

import random
import runpy
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import hip

from hip_runtime import config as runtime_config
from hip_runtime import current_device
from numba_hip import config
from numba_hip.dispatch.arguments import argument_type, packers
from tools.fuzz.generator import Case
from tools.fuzz.typed import Line, TypedCase

Arrays = list[np.ndarray[Any, Any]]

NAMES = ("words", "numbers", "rows", "reals", "totals", "total", "walked")

FORMS: tuple[tuple[str, int | None], ...] = (
    ("auto", None), ("loop", None), ("regions", None),
    ("vectors", None), ("vectors", 2), ("vectors", 4), ("vectors", 64),
)  # fmt: skip
"""Each form, with how many threads it runs at a time."""


class Mismatch(AssertionError):
    """A *form* that did not give what plain Python gives, in the array *name*; the message holds the program."""

    def __init__(self, message: str, form: tuple[str, int | None] | None = None, name: str = "") -> None:
        super().__init__(message)
        self.form, self.name = form, name


def forms_of(case: Case | TypedCase) -> list[tuple[str, int | None]]:
    """The forms that *case* can be asked for: ``loop`` refuses kernels with barriers."""
    return [form for form in FORMS if form[0] != "loop" or not case.waits]


def check_case(case: Case) -> list[str]:
    """The forms that the kernel of *case* took, all with the right results; raises `Mismatch`."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"case_{case.seed}.py"
        path.write_text(case.text)
        try:
            expected = _simulate(path, case)
            compiled = CompiledCase(path, case)
        except Exception as error:
            raise Mismatch(f"# seed {case.seed} fails: {type(error).__name__}: {error}\n{case.text}") from error
        taken = []
        for form, width in forms_of(case):
            asked = f"form {form}" + (f", width {width}" if width else "")
            try:
                found, told = compiled.run(form, width)
            except Exception as error:
                raise Mismatch(f"# seed {case.seed}, {asked}: {type(error).__name__}: {error}\n{case.text}") from error
            _compare(case, f"{asked} ({told})", expected, found)
            taken.append(told)
        return taken


def _simulate(path: Path, case: Case) -> Arrays:
    with config.simulator.scope(True):
        program = runpy.run_path(str(path), run_name="fuzz_case")
        arrays: Arrays = list(program["make_arrays"]())
        program["kernel"][case.blocks, case.block](*arrays, case.number)
    return arrays


class CompiledCase:
    """The kernel of a case, through Numba once, to be made into machine code once for each form."""

    def __init__(self, path: Path, case: Case | TypedCase) -> None:
        program = runpy.run_path(str(path), run_name="fuzz_case")
        self.case = case
        self.arrays: Arrays = list(program["make_arrays"]())
        kernel = program["kernel"]
        on_device = [hip.to_device(array) for array in self.arrays]
        kernel[case.blocks, case.block](*on_device, case.number)
        (self.code,) = kernel.overloads.values()

    def run(self, form: str, width: int | None) -> tuple[Arrays, str]:
        """What the kernel leaves in its arrays in *form* with *width*, and the form that it took, with the reason."""
        with ExitStack() as stack:
            stack.enter_context(runtime_config.cpu_form.scope(form))
            stack.enter_context(runtime_config.cpu_width.scope(width))
            on_device = [hip.to_device(array) for array in self.arrays]
            function = current_device().load(self.code.code_object).function(self.code.name)
            values = (*on_device, self.case.number)
            kinds = [argument_type(value, "argument") for value in values]
            packing = packers(kinds, self.code.parameters, ["argument"] * len(kinds))
            packed = b"".join(pack(value) for pack, value in zip(packing, values, strict=True))
            function.launch(self.case.blocks, self.case.block, packed, owners=on_device)
            return [array.copy_to_host() for array in on_device], function.form


def _compare(case: Case, asked: str, expected: Arrays, found: Arrays) -> None:
    for name, right, other in zip(NAMES, expected, found, strict=True):
        try:
            np.testing.assert_array_equal(other, right)
        except AssertionError as error:
            raise Mismatch(f'# seed {case.seed}, {asked}: {name!r} differs\n{case.text}\n_ = """{error}"""') from None


# Typed cases, which bring a reference of their own.


def check_typed(case: TypedCase, count: int = 4) -> list[str]:
    """The forms that the kernel of *case* took, *count* of them, with the results of plain Python, which are compared
    with those of ``njit`` where it can compile the reference; `Mismatch` with a smaller program else."""
    forms = choose_forms(case, count)
    try:
        return _run_typed(case, forms)
    except Mismatch as error:
        if error.form is None:
            raise
        small = _reduce(case, error)
        try:
            _run_typed(small, [error.form])
        except Mismatch as smaller:
            raise smaller from None
        raise


def choose_forms(case: TypedCase, count: int) -> list[tuple[str, int | None]]:
    """*count* of the forms that *case* can be asked for, ``auto`` among them."""
    _, *others = forms_of(case)
    return [FORMS[0], *random.Random(case.seed).sample(others, min(count - 1, len(others)))]


def _run_typed(case: TypedCase, forms: Sequence[tuple[str, int | None]]) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"typed_{case.seed}.py"
        path.write_text(case.text)
        try:
            program = runpy.run_path(str(path), run_name="fuzz_case")
            expected = _expect(program, case)
            compiled = CompiledCase(path, case)
        except Exception as error:
            raise Mismatch(f"# seed {case.seed} fails: {type(error).__name__}: {error}\n{case.text}") from error
        taken = []
        for form in forms:
            found, told = compiled.run(*form)
            for name, right, other in zip(program["NAMES"], expected, found, strict=True):
                _compare_bits(program, case, f"form {form} ({told})", name, right, other, form)
            taken.append(told)
        return taken


def _expect(program: dict[str, Any], case: TypedCase) -> Arrays:
    """What plain Python leaves in the arrays; ``njit`` must leave the same."""
    shape = (case.blocks, case.block[0] * case.block[1])
    arrays: Arrays = list(program["make_arrays"]())
    program["run_reference"](program["reference"], arrays, case.number, *shape, case.wave, case.waits)
    if case.compares_with_njit:
        others: Arrays = list(program["make_arrays"]())
        program["run_with_njit"](program["reference"], others, case.number, *shape)
        for name, right, other in zip(program["NAMES"], arrays, others, strict=True):
            _compare_bits(program, case, "njit", name, right, other, None)
    return arrays


def _compare_bits(
    program: dict[str, Any], case: TypedCase, asked: str, name: str, right: Any, found: Any,
    form: tuple[str, int | None] | None,
) -> None:  # fmt: skip
    places = np.argwhere(program["differ"](right, found))
    if len(places):
        shown = [tuple(map(int, place)) for place in places[:5]]
        told = ", ".join(f"{place}: {found[place]!r} instead of {right[place]!r}" for place in shown)
        message = f"# seed {case.seed}, {asked}: {name} differs at {len(places)} places: {told}\n{case.text}"
        raise Mismatch(message, form, name)


def _reduce(case: TypedCase, error: Mismatch, attempts: int = 60) -> TypedCase:
    """A case with fewer lines that fails in the same form and array."""
    while True:
        for lines in _shorter(case.lines):
            attempts -= 1
            if attempts < 0:
                return case
            tried = replace(case, lines=lines)
            try:
                _run_typed(tried, [error.form or FORMS[0]])
            except Mismatch as found:
                if (found.form, found.name) == (error.form, error.name):
                    case = tried
                    break
            except Exception:  # lines that need one another were parted
                continue
        else:
            return case


def _shorter(lines: tuple[Line, ...]) -> Iterator[tuple[Line, ...]]:
    """*lines* without some of them, and with less inside of them."""
    for size in (len(lines) // 2, len(lines) // 4, 1):
        for first in range(len(lines) - size, -1, -size) if size else ():
            yield lines[:first] + lines[first + size :]
    for place, line in enumerate(lines):
        rest = lines[place + 1 :]
        if line.other:
            yield (*lines[:place], replace(line, other=()), *rest)
        for body in _shorter(line.body) if line.body else ():
            if body:
                yield (*lines[:place], replace(line, body=body), *rest)
