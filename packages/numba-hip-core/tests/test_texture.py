"""Arrays read as textures: against the formulas of HIP's textures, in NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from numba_hip import texture
from numba_hip.errors import TextureError

PADDING = {"clamp": "edge", "wrap": "wrap", "mirror": "symmetric", "border": "constant"}
RING = 20


def expected(image, x, y, interpolate, address):
    """Of points less than `RING` outside: by the image with a ring around it."""
    ringed = np.pad(image, RING, PADDING[address])
    if not interpolate:
        return ringed[np.floor(y).astype(int) + RING, np.floor(x).astype(int) + RING]
    wide = ringed.astype(np.float64)
    across, down = x - 0.5, y - 0.5
    column, row = np.floor(across).astype(int), np.floor(down).astype(int)
    right, below = across - column, down - row
    column, row = column + RING, row + RING
    upper = wide[row, column] * (1 - right) + wide[row, column + 1] * right
    lower = wide[row + 1, column] * (1 - right) + wide[row + 1, column + 1] * right
    return upper * (1 - below) + lower * below


def points(image):
    random = np.random.default_rng(4)
    rows, columns = image.shape
    x, y = random.uniform(-12, columns + 12, 500), random.uniform(-12, rows + 12, 500)
    x[:60], y[:60] = np.rint(x[:60] * 2) / 2, np.rint(y[:60] * 2) / 2  # between elements, and in the middle of one
    return x.astype(np.float32).astype(float), y.astype(np.float32).astype(float)


IMAGES = {
    "clamp": np.random.default_rng(3).random((8, 16)),
    "wrap": np.random.default_rng(3).random((7, 5), np.float32),
    "mirror": np.random.default_rng(3).integers(0, 255, (4, 9), np.uint8),
    "border": np.random.default_rng(3).integers(-1000, 1000, (9, 4), np.int32),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("address", PADDING)
def test_points_inside_and_outside(address):
    @hip.jit
    def kernel(image, x, y, found):
        i = hip.grid(1)
        if i < x.size:
            rows, columns = image.shape
            found[0, i] = texture.sample(image, x[i], y[i], address=address)
            found[1, i] = texture.sample(image, x[i], y[i], True, address)
            u, v = x[i] / columns, y[i] / rows
            found[2, i] = hip.texture.sample(image, u, v, interpolate=True, address=address, normalized=True)

    image = IMAGES[address]
    x, y = points(image)
    found = np.zeros((3, x.size))
    kernel.forall(x.size)(image, x, y, found)
    near, between = (expected(image, x, y, way, address) for way in (False, True))
    np.testing.assert_array_equal(found[0], near)
    error = 1e-12 if np.result_type(image, np.float32) == np.float64 else 2e-5
    close = {"rtol": error, "atol": error * float(image.max())}
    np.testing.assert_allclose(found[1], between, **close)
    np.testing.assert_allclose(found[2], between, **close)
    on_host = [texture.sample(image, *point, True, address) for point in zip(x[:50], y[:50], strict=True)]
    np.testing.assert_allclose(on_host, between[:50], **close)


def test_far_away_and_nowhere():
    @hip.jit
    def kernel(image, x, found):
        i = hip.grid(1)
        found[0, i] = texture.sample(image, x[i], x[i])
        found[1, i] = texture.sample(image, x[i], x[i], True)
        found[2, i] = texture.sample(image, x[i], x[i], True, "border")

    image = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
    x = np.array([-np.inf, -1e30, 1e30, np.inf, np.nan])
    found = np.zeros((3, 5))
    kernel[1, 5](image, x, found)
    np.testing.assert_array_equal(found[:2, :4], [[1, 1, 6, 6]] * 2)
    np.testing.assert_array_equal(found[2, :4], 0)
    assert found[0, 4] == 1


AFTER_AN_ERROR = """
import numpy as np
import numba_hip as hip

def wrong(x):
    x.no_such_name(3)

try:
    hip.compile(wrong, "(float64[::1],)", target="cpu")
except Exception as error:
    print(type(error).__name__)

def right(image, out):
    out[0] = hip.texture.sample(image, 0.5, 0.5)

hip.compile(right, "(float64[:, ::1], float64[::1])", target="cpu")
print("compiled")
"""


def test_a_kernel_is_the_first_to_name_it():
    found = subprocess.run([sys.executable, "-c", AFTER_AN_ERROR], capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["TypingError", "compiled"], found.stderr


def test_for_amd_gpus():
    def kernel(image, x, out):
        i = hip.grid(1)
        out[i] = texture.sample(image, x[i], x[i + 1], True)

    code, _ = hip.compile(kernel, "(float32[:, ::1], float32[::1], float32[::1])", target="gfx942", output="asm")
    assert "global_load_dword" in code
    assert "_f64" not in code


def test_what_is_no_texture():
    with pytest.raises(TypingError, match="image has to be a two-dimensional array of numbers, not array.float64, 1d"):
        hip.compile(lambda a: texture.sample(a, 0, 0), "(float64[::1],)", target="cpu")
    with pytest.raises(TypingError, match="address is 'edge'; it can be 'clamp', 'wrap', 'mirror', 'border'"):
        hip.compile(lambda a: texture.sample(a, 0, 0, address="edge"), "(float64[:, ::1],)", target="cpu")
    with pytest.raises(TypingError, match="interpolate is None; it has to be True or False, written as such"):
        hip.compile(lambda a, way: texture.sample(a, 0, 0, way), "(float64[:, ::1], boolean)", target="cpu")
    with pytest.raises(TypingError, match="x has to be a number, not a complex128"):
        hip.compile(lambda a: texture.sample(a, 1j, 0), "(float64[:, ::1],)", target="cpu")
    with pytest.raises(TextureError, match="not an array of complex128 with 2 dimensions"):
        texture.sample(np.zeros((2, 2), complex), 0, 0)
    with pytest.raises(TextureError, match="normalized is 1; it has to be True or False"):
        texture.sample(np.zeros((2, 2)), 0, 0, normalized=1)
    with pytest.raises(TextureError, match="y is 'a'; it has to be a number"):
        texture.sample(np.zeros((2, 2)), 0, "a")


@pytest.mark.parametrize("address", ["clamp", "wrap", "mirror", "border"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0)])
@pytest.mark.parametrize("interpolate", [False, True])
@pytest.mark.sample(6)
def test_an_empty_image_is_zero_everywhere(address, shape, interpolate):
    @hip.jit
    def look(image, out):
        out[0] = hip.texture.sample(image, 1.5, -2.5, interpolate, address)

    out = np.ones(1, np.float32)
    look[1, 1](np.zeros(shape, np.float32), out)
    assert out[0] == 0 == hip.texture.sample(np.zeros(shape, np.float32), 1.5, -2.5, interpolate, address)
