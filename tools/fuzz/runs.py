"""Runs random kernels on the current device: on the CPU device in each of its forms, on others normally."""

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
"""Each form of the CPU device, with the number of threads that it runs at a time."""

ALONG_Y: Form = ("vectors along y", None)
"""The form ``vectors`` of threads that are neighbours along y."""

LAUNCH: Form = ("launch", None)
"""The only form on other devices."""

SIMULATOR = "simulator"

LACKING = (devicelib_errors.UnsupportedError, devicelib_errors.NotFoundError, runtime_errors.UnsupportedError)
"""The errors for features that a device, or this machine, lacks."""


def device_name() -> str:
    """The device that runs kernels."""
    return SIMULATOR if config.simulator() else current_device().target


def wave_sizes() -> tuple[int, ...]:
    """The wave sizes of the device."""
    return (32, 64) if device_name() in (SIMULATOR, "cpu") else (current_device().attributes.wave_size,)


def forms_of(case: Case | TypedCase) -> list[Form]:
    """The forms that are possible for *case*: ``loop`` rejects kernels with barriers."""
    if device_name() != "cpu":
        return [LAUNCH]
    forms = [form for form in FORMS if form[0] != "loop" or not case.waits]
    return [*forms, ALONG_Y] if isinstance(case, Case) and case.block[1] > 1 else forms


class CompiledCase:
    """A case's kernel, compiled by Numba once, and finalised once for each form."""

    def __init__(self, program: dict[str, Any], case: Case | TypedCase) -> None:
        self.case, self.arrays = case, list(program["make_arrays"]())
        self.kernel = program["kernel"]
        if device_name() == "cpu":
            values = (*map(hip.to_device, self.arrays), case.number)
            self.code = self.kernel.compile(tuple(argument_type(value, "argument") for value in values))

    def run(self, form: str, width: int | None) -> tuple[Arrays, str]:
        """The arrays after the kernel ran in *form* with *width*, and the form that was used, with the reason."""
        on_device = [hip.to_device(array) for array in self.arrays]
        with limit_time():
            if form == LAUNCH[0]:
                self.kernel[self.case.blocks, self.case.block](*on_device, self.case.number)
                told = f"{self.case.block}: {device_name()} (it has one form only)"
            else:
                told = self._run_form(form, width, on_device)
            return [array.copy_to_host() for array in on_device], told

    def _run_form(self, form: str, width: int | None, on_device: list[Any]) -> str:
        form, _, axis = form.partition(" along ")
        with ExitStack() as stack:
            stack.enter_context(runtime_config.cpu_form.scope(form))
            stack.enter_context(runtime_config.cpu_lanes.scope(axis or "auto"))
            stack.enter_context(runtime_config.cpu_width.scope(width))
            function = current_device().load(self.code.code_object).function(self.code.name)
            values = (*on_device, self.case.number)
            kinds = [argument_type(value, "argument") for value in values]
            packing = packers(kinds, self.code.parameters, ["argument"] * len(kinds))
            packed = b"".join(pack(value) for pack, value in zip(packing, values, strict=True))
            function.launch(self.case.blocks, self.case.block, packed, owners=on_device)
            return str(function.form)


def load_program(path: Path, text: str) -> dict[str, Any]:
    """The names that the program *text* defines. It is written to *path*, so that messages can show its lines."""
    path.write_text(text)
    return runpy.run_path(str(path), run_name="fuzz_case")
