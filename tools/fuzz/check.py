"""Runs random kernels in plain Python and on the current device, and compares the results."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from numba_hip import config
from tools.fuzz import limit_time
from tools.fuzz.case import PARAMETERS, Case
from tools.fuzz.indexed_program import IndexedCase
from tools.fuzz.program import TypedCase
from tools.fuzz.reduction import AnyCase, reduce_case
from tools.fuzz.runs import LACKING, SIMULATOR, Arrays, CompiledCase, Form, device_name, forms_of, load_program


class LackingError(Exception):
    """The device lacks a feature that a kernel needs."""


class Mismatch(AssertionError):
    """A *form* whose result differs from plain Python's: in the array *name*, or by raising an error of that name. The
    message has the program."""

    def __init__(self, message: str, form: Form | None = None, name: str = "") -> None:
        super().__init__(message)
        self.form, self.name = form, name


def describe(form: Form) -> str:
    """The part of the program that was checked."""
    return f"form {form[0]}" + (f", width {form[1]}" if form[1] else "")


def compile_case(program: dict[str, Any], case: Case | TypedCase) -> CompiledCase:
    """The kernel of *case*; raises `LackingError` or `Mismatch`."""
    try:
        return CompiledCase(program, case)
    except LACKING as error:
        raise LackingError(f"{type(error).__name__}: {error}") from error
    except Exception as error:
        raise fail(case, "compiling", error) from error


def run_case(compiled: CompiledCase, form: Form) -> tuple[Arrays, str]:
    """The contents of its arrays, and the form in which it ran; raises `LackingError` or `Mismatch`."""
    try:
        return compiled.run(*form)
    except LACKING as error:
        raise LackingError(f"{type(error).__name__}: {error}") from error
    except Exception as error:
        raise fail(compiled.case, describe(form), error, form) from error


def fail(case: Case | TypedCase | IndexedCase, asked: str, error: Exception, form: Form | None = None) -> Mismatch:
    """The *error* that *case* ended with, in *form* or in what was *asked* for."""
    told = " ".join(f"{type(error).__name__}: {error}".split("\n"))
    return Mismatch(f"# seed {case.seed}, {asked}: {told}\n{case.text}", form, type(error).__name__)


def check_case(case: Case) -> list[str]:
    """The forms in which the kernel of *case* ran, all with correct results; raises `LackingError`, or `Mismatch` with
    a reduced program."""
    if device_name() == SIMULATOR:
        raise LackingError("the simulator is what other devices are compared with")
    return check_forms(case, forms_of(case), _run_branching)


def _run_branching(case: Case, forms: Sequence[Form]) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"case_{case.seed}.py"
        try:
            expected = _simulate(path, case)
        except Exception as error:
            raise fail(case, "the simulator", error) from error
        compiled = compile_case(load_program(path, case.text), case)
        taken = []
        for form in forms:
            found, told = run_case(compiled, form)
            _compare(case, f"{describe(form)} ({told})", expected, found, form)
            taken.append(told)
        return taken


def _simulate(path: Path, case: Case) -> Arrays:
    with config.simulator.scope(True), limit_time():
        program = load_program(path, case.text)
        arrays: Arrays = list(program["make_arrays"]())
        program["kernel"][case.blocks, case.block](*arrays, case.number)
    return arrays


def _compare(case: Case, asked: str, expected: Arrays, found: Arrays, form: Form) -> None:
    for name, right, other in zip(PARAMETERS.split(", "), expected, found, strict=True):
        try:
            np.testing.assert_array_equal(other, right)
        except AssertionError as error:
            told = " ".join(str(error).split())
            raise Mismatch(f"# seed {case.seed}, {asked}: {name!r} differs: {told}\n{case.text}", form, name) from None


# Typed cases, which have their own reference.


def check_typed(case: TypedCase, count: int = 4) -> list[str]:
    """The forms, *count* of them, in which the kernel of *case* ran with the results of plain Python, which are also
    compared with ``njit`` if that can compile the reference. Otherwise `Mismatch` with a reduced program."""
    return check_forms(case, choose_forms(case, count), _run_typed)


def check_forms(case: AnyCase, forms: Sequence[Form], run: Callable[[AnyCase, Sequence[Form]], list[str]]) -> list[str]:
    """The results of *run* for *case*; `Mismatch` with a reduced program if a form is wrong."""
    try:
        return run(case, forms)
    except Mismatch as error:
        if error.form is None:
            raise
        small = reduce_failure(case, error, run)
        try:
            run(small, [error.form])
        except Mismatch as smaller:
            raise smaller from None
        raise


def choose_forms(case: TypedCase, count: int) -> list[Form]:
    """*count* of the forms that are possible for *case*, including the first."""
    first, *others = forms_of(case)
    return [first, *random.Random(case.seed).sample(others, min(count - 1, len(others)))]


def reduce_failure(
    case: AnyCase, failed: Mismatch, run: Callable[[AnyCase, Sequence[Form]], list[str]]
) -> AnyCase:  # fmt: skip
    """A case with fewer lines that fails in the same form and array, or with the same error."""

    def fails(tried: AnyCase) -> bool:
        try:
            run(tried, [failed.form] if failed.form else [])
        except Mismatch as found:
            return (found.form, found.name) == (failed.form, failed.name)
        except LackingError:
            return False
        return False

    return reduce_case(case, fails)


def _run_typed(case: TypedCase, forms: Sequence[Form]) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        try:
            program = load_program(Path(directory) / f"typed_{case.seed}.py", case.importing_text)
            with limit_time():
                expected = _expect(program, case)
        except Mismatch:
            raise
        except Exception as error:
            raise fail(case, "plain Python", error) from error
        compiled = compile_case(program, case)
        taken = []
        for form in forms:
            found, told = run_case(compiled, form)
            for name, right, other in zip(program["NAMES"], expected, found, strict=True):
                _compare_bits(program, case, f"{describe(form)} ({told})", name, right, other, form)
            taken.append(told)
        return taken


def _expect(program: dict[str, Any], case: TypedCase) -> Arrays:
    """The arrays after plain Python ran the kernel; ``njit`` must give the same."""
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
    program: dict[str, Any], case: TypedCase, asked: str, name: str, right: Any, found: Any, form: Form | None
) -> None:
    places = np.argwhere(program["differ"](right, found))
    if len(places):
        shown = [tuple(map(int, place)) for place in places[:5]]
        told = ", ".join(f"{place}: {found[place]!r} instead of {right[place]!r}" for place in shown)
        message = f"# seed {case.seed}, {asked}: {name} differs at {len(places)} places: {told}\n{case.text}"
        raise Mismatch(message, form, name)
