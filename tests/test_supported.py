"""The rows of the guide's page on what Python and NumPy may say in kernels: each is compiled, run and compared."""

from __future__ import annotations

import numpy as np
import pytest
from numba import hip, typeof
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from tools.supported import __main__ as supported
from tools.supported.model import ROWS, Row, expected_of, kernel_of


def test_the_page_is_current() -> None:
    assert supported.PAGE.read_text() == supported.page(), "python -m tools.supported"


@pytest.mark.sample(3)
@pytest.mark.parametrize("row", [one for one in ROWS if not one.refused], ids=lambda one: one.what)
def test_a_row_runs_as_in_python(row: Row) -> None:
    kernel, expected = kernel_of(row), expected_of(row)
    results = np.zeros_like(expected)
    kernel[1, row.inputs.size](row.inputs, results)
    if row.close:
        np.testing.assert_allclose(results, expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(results, expected)
    code, _ = hip.compile(kernel, (typeof(row.inputs), typeof(results)), target="gfx942", output="asm")
    assert "s_endpgm" in code


@pytest.mark.sample(2)
@pytest.mark.parametrize("row", [one for one in ROWS if one.refused], ids=lambda one: one.what)
def test_what_is_refused_says_so(row: Row) -> None:
    with pytest.raises((NumbaError, UnsupportedBytecodeError), match=row.refused):
        kernel_of(row)[1, row.inputs.size](row.inputs, np.zeros(row.inputs.size))
