"""Runs random kernels on the current device: on the CPU device in each of its forms, elsewhere as they are launched."""

from __future__ import annotations

import runpy
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numba import hip

from hip_devicelib import errors as devicelib_errors
from hip_runtime import config as runtime_config
from hip_runtime import current_device
from hip_runtime import errors as runtime_errors
from numba_hip import config
from numba_hip.arguments.argument_types import argument_type
from numba_hip.arguments.packing import packers
from tools.fuzz import limit_time
from tools.fuzz.case import Case
from tools.fuzz.program import TypedCase

Arrays = list[np.ndarray[Any, Any]]
Form = tuple[str, int | None]

FORMS: tuple[Form, ...] = (
    ("auto", None), ("loop", None), ("regions", None),
    ("vectors", None), ("vectors", 2), ("vectors", 4), ("vectors", 64),
)  # fmt: skip
"""Each form of the CPU device, with how many threads it runs at a time."""

LAUNCH: Form = ("launch", None)
"""The only way in which other devices run a kernel."""

SIMULATOR = "simulator"

LACKING = (devicelib_errors.UnsupportedError, devicelib_errors.NotFoundError, runtime_errors.UnsupportedError)
"""What is raised for that which a device, or this machine for it, does not have."""


def device_name() -> str:
    """Where kernels run."""
    return SIMULATOR if config.simulator() else current_device().target


def wave_sizes() -> tuple[int, ...]:
    """How many lanes a wave may have there."""
    return (32, 64) if device_name() in (SIMULATOR, "cpu") else (current_device().attributes.wave_size,)


def forms_of(case: Case | TypedCase) -> list[Form]:
    """The forms that *case* can be asked for: ``loop`` refuses kernels with barriers."""
    if device_name() != "cpu":
        return [LAUNCH]
    return [form for form in FORMS if form[0] != "loop" or not case.waits]


class CompiledCase:
    """The kernel of a case, through Numba once, to be made into machine code once for each form."""

    def __init__(self, program: dict[str, Any], case: Case | TypedCase) -> None:
        self.case, self.arrays = case, list(program["make_arrays"]())
        self.kernel = program["kernel"]
        if device_name() == "cpu":
            values = (*map(hip.to_device, self.arrays), case.number)
            self.code = self.kernel.compile(tuple(argument_type(value, "argument") for value in values))

    def run(self, form: str, width: int | None) -> tuple[Arrays, str]:
        """What the kernel leaves in its arrays in *form* with *width*, and the form that it took, with the reason."""
        on_device = [hip.to_device(array) for array in self.arrays]
        with limit_time():
            if form == LAUNCH[0]:
                self.kernel[self.case.blocks, self.case.block](*on_device, self.case.number)
                told = f"{self.case.block}: {device_name()} (it has one form only)"
            else:
                told = self._run_form(form, width, on_device)
            return [array.copy_to_host() for array in on_device], told

    def _run_form(self, form: str, width: int | None, on_device: list[Any]) -> str:
        with ExitStack() as stack:
            stack.enter_context(runtime_config.cpu_form.scope(form))
            stack.enter_context(runtime_config.cpu_width.scope(width))
            function = current_device().load(self.code.code_object).function(self.code.name)
            values = (*on_device, self.case.number)
            kinds = [argument_type(value, "argument") for value in values]
            packing = packers(kinds, self.code.parameters, ["argument"] * len(kinds))
            packed = b"".join(pack(value) for pack, value in zip(packing, values, strict=True))
            function.launch(self.case.blocks, self.case.block, packed, owners=on_device)
            return str(function.form)


def load_program(path: Path, text: str) -> dict[str, Any]:
    """The names that the program *text* defines, written to *path*, where messages say that its lines are."""
    path.write_text(text)
    return runpy.run_path(str(path), run_name="fuzz_case")
