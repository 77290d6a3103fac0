"""Runs one random kernel in plain Python and in each form of the CPU device, and compares what it wrote."""

from __future__ import annotations

import runpy
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numba import hip

from hip_runtime import config as runtime_config
from hip_runtime import current_device
from numba_hip import config
from numba_hip.dispatch.arguments import argument_type, packers
from tools.fuzz.generator import Case

Arrays = list[np.ndarray[Any, Any]]

NAMES = ("words", "numbers", "rows", "reals", "totals", "total", "walked")

FORMS: tuple[tuple[str, int | None], ...] = (
    ("auto", None), ("loop", None), ("regions", None),
    ("vectors", None), ("vectors", 2), ("vectors", 4), ("vectors", 64),
)  # fmt: skip
"""Each form, with how many threads it runs at a time."""


class Mismatch(AssertionError):
    """A form that did not give what plain Python gives; the message holds the program."""


def forms_of(case: Case) -> list[tuple[str, int | None]]:
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

    def __init__(self, path: Path, case: Case) -> None:
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
            packing = packers(kinds, self.code.parameters)
            packed = b"".join(pack(value) for pack, value in zip(packing, values, strict=True))
            function.launch(self.case.blocks, self.case.block, packed, owners=on_device)
            return [array.copy_to_host() for array in on_device], function.form


def _compare(case: Case, asked: str, expected: Arrays, found: Arrays) -> None:
    for name, right, other in zip(NAMES, expected, found, strict=True):
        try:
            np.testing.assert_array_equal(other, right)
        except AssertionError as error:
            raise Mismatch(f"# seed {case.seed}, {asked}: {name!r} differs\n{case.text}\n{error}") from None
