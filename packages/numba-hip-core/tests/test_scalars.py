"""Numbers that a signature has no room for: refused by name, or cut off with a warning where that is asked for."""

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import NumbaWarning

import numba_hip as hip
from numba_hip import config
from numba_hip.bfloat import bfloat16
from numba_hip.errors import KernelArgumentError


def keep(out, number):
    out[0] = number


def compiled_for(kind, of="float64"):
    kinds = [getattr(types, kind) if isinstance(kind, str) else kind for kind in (of, kind)]
    return hip.jit((kinds[0][::1], kinds[1]))(keep)


def passed(kernel, number, kind=np.float64):
    out = np.full(1, 77, kind)
    kernel[1, 1](out, number)
    return out[0]


@pytest.fixture(scope="module")
def kernels():
    """One kernel for each type of integers, which writes to an array of that type."""
    names = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]
    return {name: compiled_for(name, name) for name in names}


@pytest.mark.filterwarnings("ignore:In future, it will be an error for 'np.bool_':DeprecationWarning")  # NumPy 1.26
@pytest.mark.parametrize("name", [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)])
def test_every_type_of_integers_takes_what_it_has(kernels, name):
    kind, limits = np.dtype(name).type, np.iinfo(name)
    fitting = [limits.min, limits.max, 0, 1, True, np.bool_(True), np.int8(7), 2.0, np.float32(3)]
    for number in fitting:
        assert passed(kernels[name], number, kind) == int(number), number
    says = rf"argument 'number' is .*compiled for {name} there, .* whole numbers from {limits.min} to {limits.max}:"
    beyond = [
        limits.min - 1,
        limits.max + 1,
        -(2**63),
        2**64 - 1,
        2.9,
        -0.5,
        1e30,
        np.inf,
        -np.inf,
        np.nan,
        np.float32(0.1),
    ]
    for number in beyond:
        if isinstance(number, int) and (limits.min <= number <= limits.max or not -(2**63) <= number < 2**64):
            continue
        out = np.full(1, 77, kind)
        with pytest.raises(KernelArgumentError, match=says):
            kernels[name][1, 1](out, number)
        assert out[0] == 77


def test_the_message_has_the_number_and_its_type(kernels):
    with pytest.raises(KernelArgumentError, match=r"argument 'number' is 1099511627781 \(int\); .*int32"):
        passed(kernels["int32"], 2**40 + 5, np.int32)
    with pytest.raises(KernelArgumentError, match=r"argument 'number' is 300 \(uint16\); .*uint8 .*from 0 to 255"):
        passed(kernels["uint8"], np.uint16(300), np.uint8)


@pytest.mark.parametrize(
    ("kind", "most", "beyond"),
    [("float32", 3.4028235e38, 3.5e38), ("float16", 65519, 65520), (bfloat16, 3.38e38, 3.4e38)],
)
def test_floats_round_and_refuse_what_would_become_infinite(kind, most, beyond):
    kernel = compiled_for(kind)
    for number in (0.1, 1, -most, most, np.inf, -np.inf):
        assert passed(kernel, number) == pytest.approx(number, rel=0.01)
    assert np.isnan(passed(kernel, np.nan))
    for number in (beyond, -beyond, *([70000] if kind == "float16" else [])):
        with pytest.raises(KernelArgumentError, match=r"argument 'number' is .* numbers from -[^ ]* to "):
            passed(kernel, number)


def test_complex_numbers_are_looked_at_in_both_parts():
    kernel = hip.jit("(complex128[::1], complex64)")(keep)
    assert passed(kernel, 2 - 3j, np.complex128) == 2 - 3j
    for number in (1e300, 1 + 1e300j):
        with pytest.raises(KernelArgumentError, match="argument 'number' is 1e.300"):
            passed(kernel, number, np.complex128)
    with pytest.raises(KernelArgumentError, match="compiled for .* only"):
        passed(compiled_for("int32"), 1j)


def test_a_boolean_is_the_truth_of_any_number():
    kernel = compiled_for("boolean")
    assert [passed(kernel, number) for number in (0, 5, 0.0, 0.5, True, np.bool_(False))] == [0, 1, 0, 1, 1, 0]


def test_members_of_tuples_are_looked_at():
    @hip.jit("(int64[::1], UniTuple(uint8, 2))")
    def pair(out, pair):
        out[0] = pair[0] * 1000 + pair[1]

    assert passed(pair, (200, 7), np.int64) == 200007
    for wrong in ((1, 256), (1, 2.5)):
        with pytest.raises(KernelArgumentError, match="argument 'pair' is .* from 0 to 255"):
            passed(pair, wrong, np.int64)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**200])
def test_integers_that_no_type_has(number):
    for kernel in (hip.jit(keep), compiled_for("int32")):
        with pytest.raises(
            KernelArgumentError, match=rf"argument 'number' is {number:#x}; .* from -2\*\*63 to 2\*\*64 - 1"
        ):
            passed(kernel, number)


def test_without_a_signature_every_number_has_a_type():
    kernel = hip.jit(keep)
    numbers = [2**40 + 5, 2**63, 2.9, 300, True, np.uint8(200), np.float16(0.5), np.int64(-3), 1e300]
    assert [passed(kernel, number) for number in numbers] == [float(number) for number in numbers]


def test_truncation_with_a_warning(kernels):
    cut = [("int32", 2**40 + 5, 5), ("uint8", 300, 44), ("uint8", -1, 255), ("int8", np.int64(128), -128)]
    with config.truncate_arguments.scope(True):
        for name, number, instead in cut:
            says = rf"argument 'number' is {number} .*compiled for {name} .*; -?\d+ is passed instead"
            with pytest.warns(NumbaWarning, match=says) as told:
                assert passed(kernels[name], number, np.dtype(name).type) == instead
            assert told[0].filename == __file__
        with pytest.warns(NumbaWarning, match="argument 'number' is 1e.300 .*; inf is passed instead"):
            assert passed(compiled_for("float32"), 1e300) == np.inf
        with pytest.raises(KernelArgumentError, match="argument 'number' is 2.9"):  # as Numba CUDA
            passed(kernels["int32"], 2.9, np.int32)
