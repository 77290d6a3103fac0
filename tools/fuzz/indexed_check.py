"""Runs random kernels with computed indices in plain Python and on the current device, and compares the results."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hip_runtime import config as runtime_config
from tools.fuzz import limit_time
from tools.fuzz.check import LackingError, Mismatch, check_forms, describe, fail
from tools.fuzz.indexed_program import IndexedCase
from tools.fuzz.runs import LACKING, LAUNCH, Form, device_name, load_program

FORMS: tuple[Form, ...] = (
    ("auto", None), ("loop", None), ("regions", None), ("lockstep", None), ("vectors along y", None),
    *(("vectors", width) for width in (None, None, 2, 4, 8, 16, 32, 64)),
)  # fmt: skip
"""What a kernel is tried in: first in ``auto``, then in some others."""


def choose_forms(case: IndexedCase, count: int) -> list[Form]:
    """*count* forms in which *case* is tried."""
    if device_name() != "cpu":
        return [LAUNCH]
    others = [form for form in FORMS[1:] if not (case.waits and form[0] == "loop")]
    return [FORMS[0], *random.Random(case.seed).sample(others, min(count - 1, len(others)))]


def check_indexed(case: IndexedCase, count: int = 3) -> list[str]:
    """The forms, *count* of them, in which the kernel of *case* gave what plain Python gives; otherwise `Mismatch` with
    a reduced program."""
    return check_forms(case, choose_forms(case, count), _run)


@contextmanager
def _scopes(form: Form) -> Iterator[None]:
    name, _, axis = form[0].partition(" along ")
    with ExitStack() as stack:
        if name == "lockstep":
            stack.enter_context(runtime_config.cpu_lockstep.scope(True))
        elif name not in ("auto", LAUNCH[0]):
            stack.enter_context(runtime_config.cpu_form.scope(name))
        stack.enter_context(runtime_config.cpu_lanes.scope(axis or "auto"))
        stack.enter_context(runtime_config.cpu_width.scope(form[1]))
        stack.enter_context(runtime_config.verify_passes.scope(True))
        yield


def _run(case: IndexedCase, forms: Sequence[Form]) -> list[str]:
    """The forms in which *case* ran; `Mismatch` if a launch gave something else than plain Python."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            program = load_program(Path(directory) / f"indexed_{case.seed}.py", case.importing_text)
            made = [program["make_launch"](number) for number in range(len(case.launches))]
            with limit_time():
                expected = [program["expect"](program["reference"], one, case.block, case.wave) for one in made]
            if not case.checked and any(error for _, error in expected):
                raise IndexError("only kernels that check indices may have some that are out of range")
        except Exception as error:
            raise fail(case, "plain Python", error) from error
        taken, guarded = [], device_name() == "cpu"
        for form in forms:
            try:
                for number, (one, right) in enumerate(zip(made, expected, strict=True)):
                    behind = (number + case.seed) % 2 == 0
                    with _scopes(form), limit_time():
                        told = program["compare"](
                            program["kernel"], right, program["NAMES"], one, case.block, behind, guarded
                        )
                    if told:
                        where = f"# seed {case.seed}, {describe(form)}, launch {number}"
                        raise Mismatch(f"{where}: {'; '.join(told[:5])}\n{case.text}", form, told[0].split("[")[0])
            except Mismatch:
                raise
            except LACKING as error:
                if form[0] in ("auto", LAUNCH[0]):
                    raise LackingError(f"{type(error).__name__}: {error}") from error
                continue  # not every kernel can be run in every form
            except Exception as error:
                raise fail(case, describe(form), error, form) from error
            taken.append(f"{case.block}: {form[0].replace(' ', '-')} (asked for)")
        return taken
