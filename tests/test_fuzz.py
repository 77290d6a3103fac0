"""Random kernels of the fuzzer, a few of them; ``nox -s fuzz`` tries many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.fuzz.check import CompiledCase, Mismatch, check_case, check_typed, forms_of
from tools.fuzz.generator import make_case
from tools.fuzz.typed import make_typed_case

PLAIN, WAITING = 5, 4
KEPT = sorted((Path(__file__).parents[1] / "tools" / "fuzz" / "kept").glob("*.py"))
"""Programs that failed once."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [PLAIN, WAITING])
def test_a_random_kernel_gives_the_same_in_each_form_and_in_python(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    case = make_case(seed)
    assert make_case(seed) == case
    assert case.waits is (seed == WAITING)
    assert len(check_case(case)) == len(forms_of(case))


def test_a_difference_is_told_with_seed_form_and_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    run = CompiledCase.run

    def run_wrong(self: CompiledCase, form: str, width: int | None) -> object:
        arrays, told = run(self, form, width)
        if form == "regions":
            arrays[2][0, 0] += np.int64(1)
        return arrays, told

    monkeypatch.setattr(CompiledCase, "run", run_wrong)
    case = make_case(PLAIN)
    with pytest.raises(Mismatch) as told:
        check_case(case)
    message = str(told.value)
    assert message.startswith(f"# seed {PLAIN}, form regions")
    assert "'rows' differs" in message
    assert case.text in message


@pytest.mark.parametrize(("seed", "waits", "njit"), [(27, False, True), (28, True, False)])
def test_a_typed_kernel_gives_what_its_reference_gives(seed: int, waits: bool, njit: bool) -> None:
    case = make_typed_case(seed)
    assert (case.waits, case.compares_with_njit) == (waits, njit)
    assert len(check_typed(case)) == 4


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_a_kernel_that_failed_once(path: Path) -> None:
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


@pytest.mark.long
def test_what_is_left_of_a_typed_kernel_that_fails_shows_it_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = CompiledCase.run

    def run_wrong(self: CompiledCase, form: str, width: int | None) -> tuple[list[np.ndarray], str]:
        arrays, told = run(self, form, width)
        names = list(self.case.arrays)
        if any("own_uint8[g, 0" in line for line in self.case.text.splitlines()):
            arrays[names.index("own_uint8")].flat[0] ^= np.uint8(5)
        return arrays, told

    monkeypatch.setattr(CompiledCase, "run", run_wrong)
    case = make_typed_case(42)
    assert "own_uint8[g, 0" in case.text
    with pytest.raises(Mismatch, match="form .*own_uint8 differs at 1 places") as told:
        check_typed(case, 1)
    _, _, text = str(told.value).partition("\n")
    assert text.count("\n") < case.text.count("\n")
    program = tmp_path / "program.py"
    program.write_text(text)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr  # the kernel is right: what was wrong was added here
