"""Dates and durations that a kernel writes down: ``np.datetime64("2020-01-01")``, ``np.timedelta64(n, "h")``."""

from __future__ import annotations

import numpy as np
import pytest
from numba import hip
from numba.core.errors import TypingError


@hip.jit
def within(dates, out, hours):
    i = hip.grid(1)
    out[i, 0] = np.datetime64("2020-01-01") <= dates[i] < np.datetime64("2021-01-01")
    out[i, 1] = (dates[i] - np.datetime64(18000, "D")) / np.timedelta64(1, "D")
    out[i, 2] = dates[i] + np.timedelta64(hours, "h") > np.datetime64("2020-05-01T10", "m")
    out[i, 3] = np.isnat(np.datetime64("NaT"))


def test_in_a_kernel():
    dates = np.array(["2019-05-01", "2020-05-01", "2021-01-01"], "datetime64[D]")
    out = np.zeros((3, 4))
    within[1, 3](dates, out, 11)
    days = dates.astype(np.int64) - 18000
    np.testing.assert_array_equal(out, np.stack([[0, 1, 0], days, [0, 1, 1], [1, 1, 1]], axis=1))
    signature = "(NPDatetime('D')[::1], float64[:,::1], int64)"
    assert hip.compile(within, signature, target="gfx942", output="object")[0][:4] == b"\x7fELF"


def test_results():
    @hip.jit
    def kernel(dates, spans):
        dates[0] = np.datetime64("2020-02-29T12:00:00")
        dates[1] = np.datetime64("2020", "s") + np.timedelta64(1, "s")
        spans[0] = np.timedelta64(5, "m")
        spans[1] = np.timedelta64(-3, "m") - spans[0]

    dates, spans = np.zeros(2, "datetime64[s]"), np.zeros(2, "timedelta64[m]")
    kernel[1, 1](dates, spans)
    np.testing.assert_array_equal(dates, np.array(["2020-02-29T12:00:00", "2020-01-01T00:00:01"], "datetime64[s]"))
    np.testing.assert_array_equal(spans, np.array([5, -8], "timedelta64[m]"))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("np.datetime64('whenever')", "Error parsing datetime string"),
        ("np.datetime64(n, 'fortnights')", "np.datetime64.*fortnights"),
        ("np.datetime64(n, '7s')", "counts in steps of several units, and kernels in one"),
        ("np.datetime64(5)", r"np.datetime64\(number, unit\) takes a unit, as text in quotes"),
        ("np.datetime64(1.5, 's')", r"takes text in quotes and whole numbers, as in np.datetime64\('2020-01-01'\)"),
        ("np.timedelta64()", r"as in np.timedelta64\(5, 's'\); this call passes \(\)"),
        ("np.datetime64('2020-01-01')", r"counts in another unit: .*array.astype\('datetime64\[D\]'\) gives"),
    ],
)
def test_what_is_no_date(value, says):
    space = {"np": np}
    exec(f"def kernel(dates, n):\n    dates[0] = {value}\n", space)
    with pytest.raises(TypingError, match=says):
        hip.jit(space["kernel"])[1, 1](np.zeros(1, "datetime64[s]"), 7)
