"""Attributes of dtypes in kernels, and views of arrays by another dtype."""

import numpy as np
import pytest

import numba_hip as hip

WHOLE, RECORD = np.dtype(np.int32), np.dtype([("x", np.int32), ("y", np.float64)])
PART = np.dtype((np.int32, (2, 3)))
CHAR, NAME, TEXT, ORDER = WHOLE.char, WHOLE.name, WHOLE.str, WHOLE.byteorder


def attributes(halves, out):
    out[0], out[1], out[2] = WHOLE.itemsize, WHOLE.num, WHOLE.alignment
    out[3], out[4], out[5] = WHOLE.hasobject, WHOLE.isnative, WHOLE.isbuiltin
    out[6], out[7] = WHOLE.char == CHAR, WHOLE.name == NAME
    out[8], out[9] = WHOLE.str == TEXT, WHOLE.byteorder == ORDER
    out[10], out[11] = WHOLE.base.itemsize, len(WHOLE.shape)
    out[12], out[13] = WHOLE.names is None, RECORD.names is None
    out[14], out[15] = RECORD.names[0] == "x", RECORD.names[1] == "x"
    out[16], out[17], out[18] = PART.shape[0], PART.shape[1], RECORD.itemsize
    out[19], out[20] = halves.dtype.itemsize, halves.dtype.name == "float16"


def test_attributes():
    out = np.zeros(21, np.int64)
    hip.jit(attributes)[1, 1](np.zeros(1, np.float16), out)
    expected = [4, WHOLE.num, 4, 0, 1, 1, 1, 1, 1, 1, 4, 0, 1, 0, 1, 0, 2, 3, 12, 2, 1]
    assert out.tolist() == expected
    hip.compile(attributes, "(float16[::1], int64[::1])", target="gfx942", output="object")


@hip.jit(exceptions=True)
def columns(a, b, out):
    shorter, longer = a.view(np.int32), b.view(np.int64)
    out[0], out[1], out[2] = shorter.shape[0], shorter.shape[1], shorter.size
    out[3], out[4], out[5] = longer.shape[0], longer.shape[1], longer.size
    out[6], out[7] = shorter[3, 2], longer[0, 1]


def test_views_of_columns_change_the_first_axis():
    a = np.asfortranarray(np.arange(8).reshape(2, 4) << 32)
    b = np.asfortranarray(np.arange(8, dtype=np.int32).reshape(2, 4))
    out = np.zeros(8, np.int64)
    columns[1, 1](a, b, out)
    assert out.tolist() == [4, 4, 16, 1, 4, 4, 6, int(b[0, 1]) + (int(b[1, 1]) << 32)]
    with pytest.raises(ValueError, match="their size has to divide that of the first axis"):
        columns[1, 1](a, np.asfortranarray(b[:1].repeat(3, axis=0)), out)
