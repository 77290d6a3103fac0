"""Kernels of `benchmarks.index_idioms`: however a thread finds its element, it computes what loops do."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import index_idioms
from benchmarks.index_idioms import Case, Idiom, cases, check

SHAPES = ((33, 45), (9, 11, 13))
DTYPES = ("float32", "float64", "int32", "uint8")
CASES = [case for shape in SHAPES for case in cases(shape)]


def dtype_of(number: int) -> str:
    """One for each case; the sine of a row is no unsigned number."""
    dtype = DTYPES[number * 7 // 3 % len(DTYPES)]
    return "float32" if dtype == "uint8" and CASES[number].work == "sine-of-row" else dtype


@pytest.mark.sample(12)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_threads_compute_what_loops_do(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    check(CASES[number], dtype_of(number))


def test_a_wrong_element_is_noticed() -> None:
    turned = Idiom("turned", "i, j = hip.grid(2)\ni = a.shape[0] - 1 - i if i == 3 else i", (3, 3), (16, 16))
    with pytest.raises(AssertionError, match="turned"):
        check(Case("by-row-and-column", turned, (33, 45)))


def test_cases_above_a_ratio_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(index_idioms, "SECONDS", 1e-4)
    monkeypatch.setattr(index_idioms, "ROUNDS", 1)
    chosen = [Case("copy", idiom, (700, 500)) for idiom in list(index_idioms.idioms((700, 500)))[:3]]
    monkeypatch.setattr(index_idioms, "cases", lambda shape, work: iter(chosen))
    index_idioms.main(["copy", "--above", "0"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("copy: ")[1] for line in lines[:3]] == [case.idiom.name for case in chosen]
    assert lines[3].startswith("3 cases, geometric mean ")
    assert np.isfinite(float(lines[3].split()[-1]))
