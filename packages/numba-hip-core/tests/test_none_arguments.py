"""Kernels that are launched with None for an argument: what they do then is decided when they are compiled."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba import hip

from numba_hip.errors import KernelArgumentError, KernelSignatureError


@hip.jit
def weighted(values, weights, offset=None):
    i = hip.grid(1)
    if i < values.size:
        if weights is not None:
            values[i] *= weights[i]
        if offset is not None:
            values[i] += offset


@pytest.mark.parametrize("place", [np.asarray, hip.to_device])
def test_an_argument_that_may_be_left_out(place):
    ones = np.ones(5)
    weights = place(np.arange(5.0))
    for rest, expected in (
        ((weights, 2.0), np.arange(5.0) + 2),
        ((weights, None), np.arange(5.0)),
        ((None, 2), ones + 2),
        ((None,), ones),
        ((None, None), ones),
    ):
        for _ in range(2):
            values = hip.to_device(ones)
            weighted[1, 32](values, *rest)
            np.testing.assert_array_equal(values.copy_to_host(), expected)


def test_by_name_in_tuples_and_by_a_signature():
    Line = namedtuple("Line", "slope offset")

    @hip.jit
    def along(line, out):
        out[0] = line.slope
        if line.offset is None:  # of a member both branches are compiled, as in njit
            out[0] += 1

    out = np.zeros(1)
    along[1, 1](Line(2.0, None), out)
    assert out[0] == 3
    along[1, 1](line=Line(2.0, 1.0), out=out)
    assert out[0] == 2

    @hip.jit(["(float64[::1], none)", "(float64[::1], float64)"])
    def both(out, number):
        out[0] += 100 if number is None else number

    both[1, 1](out, None)
    both[1, 1](out, 5.0)
    assert out[0] == 107
    with pytest.raises(KernelArgumentError, match=r"compiled for \(array.*\) only; the launch passes .*none"):
        hip.jit("(float64[::1], float64)")(lambda out, number: None)[1, 1](out, None)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_for_amd_gpus(target):
    code, _ = hip.compile(weighted, "(float64[::1], none, none)", target=target, output="object")
    assert code[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("optional(float64)", "is OptionalType.float64. in the signature.*two signatures, with none and with float64"),
        ("unicode_type", "is unicode_type in the signature; kernels take numbers, arrays and tuples of them"),
        ("DictType(int64, int64)", "is DictType.* in the signature; kernels take"),
    ],
)
def test_types_of_signatures_that_no_argument_has(kind, says):
    with pytest.raises(KernelSignatureError, match=f"parameter 'number' of kernel <lambda> {says}"):
        hip.jit(f"(float64[::1], {kind})")(lambda out, number: None)
