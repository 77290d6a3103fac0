"""Elements of constant tuples at indices that threads compute, and chains of ``elif``: tables, if they are large."""

import numpy as np
import pytest

import numba_hip as hip

THREADS = 200
SMALL = (1.5, -2.5, 3.0, 0.25)
LARGE = tuple(np.random.default_rng(3).random(40).tolist())
BYTES = tuple(map(np.uint8, range(7, 250, 11)))


@hip.jit(device=True)
def large(i):
    return LARGE[i]


def chain(count):
    """A kernel with *count* cases, each with a number of its own."""
    cases = "".join(f"    {'el' if q else ''}if x == {q}:\n        y = {q * q % 17}.5\n" for q in range(count))
    names = {"hip": hip}
    code = f"def kernel(values, out):\n    i = hip.grid(1)\n    x = values[i]\n{cases}    else:\n        y = -1.0\n"
    exec(code + "    out[i] = y\n", names)
    return hip.jit(names["kernel"])


def is_table(kernel):
    return "@switch.table" in next(iter(kernel.inspect_llvm().values()))


@pytest.mark.parametrize("name", ["SMALL", "LARGE", "BYTES"])
def test_elements_of_constant_tuples(name):
    constants = globals()[name]

    @hip.jit
    def kernel(places, out):
        i = hip.grid(1)
        out[i] = constants[places[i]]

    places = np.random.default_rng(4).integers(-len(constants), len(constants), THREADS)
    out = np.zeros(THREADS)
    kernel[2, THREADS // 2](places, out)
    np.testing.assert_array_equal(out, np.array(constants)[places])
    if hip.get_current_device().target == "cpu":
        assert is_table(kernel) == (name != "SMALL")


def test_a_function_that_chooses():
    @hip.jit
    def kernel(places, out):
        i = hip.grid(1)
        total = 0.0
        for step in range(3):
            total += large((places[i] + step) % 40)
        out[i] = total

    places = np.random.default_rng(5).integers(0, 1000, THREADS)
    out = np.zeros(THREADS)
    kernel[2, THREADS // 2](places, out)
    expected = sum(np.array(LARGE)[(places + step) % 40] for step in range(3))
    np.testing.assert_allclose(out, expected, rtol=1e-15)
    if hip.get_current_device().target == "cpu":
        assert is_table(kernel)


@pytest.mark.parametrize("count", [5, 30])
def test_chains_of_elif(count):
    kernel = chain(count)
    values = np.random.default_rng(6).integers(-2, count + 3, THREADS)
    out = np.zeros(THREADS)
    kernel[2, THREADS // 2](values, out)
    np.testing.assert_array_equal(out, np.where((values >= 0) & (values < count), values * values % 17 + 0.5, -1.0))
    if hip.get_current_device().target == "cpu":
        assert is_table(kernel) == (count == 30)


def test_an_index_out_of_range():
    @hip.jit(debug=True, opt=False)
    def kernel(places, out):
        i = hip.grid(1)
        out[i] = LARGE[places[i]]

    with pytest.raises(IndexError, match="out of range"):
        kernel[1, 4](np.array([0, 1, 40, 3]), np.zeros(4))
