"""Random kernels of the fuzzer, a few of them; ``nox -s fuzz`` tries many."""

from __future__ import annotations

import numpy as np
import pytest

from tools.fuzz.check import CompiledCase, Mismatch, check_case, forms_of
from tools.fuzz.generator import make_case

PLAIN, WAITING = 5, 4


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
