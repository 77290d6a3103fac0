import re
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest
from cpu_function_loops import Loops, numpy_type, samples
from cpu_function_references import expect, widen_bfloat

from hip_devicelib import NotFoundError, UnsupportedError, load_reference
from hip_devicelib.cpu import functions

POINTERS = ("pointer", "reference")
BY_VALUE = [
    function
    for function in functions.FUNCTIONS.values()
    if not any(parameter.type.kind in POINTERS for parameter in function.parameters)
]


def names(function):
    return function.symbol.removeprefix("hipdl_")


BY_ADDRESS = [function for function in functions.FUNCTIONS.values() if function not in BY_VALUE]


@pytest.fixture(autouse=True)
def _quiet():
    """NumPy warns of what special numbers give."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def loops():
    return Loops()


def wrong(got, expected, units):
    """Which of *got* differ from *expected* by more than *units* in the last place."""
    if got.dtype.kind != "f":
        bits = 8 * got.dtype.itemsize
        return np.array([(int(g) - int(e)) % (1 << bits) != 0 for g, e in zip(got, expected, strict=True)])
    known = (
        np.array([value is not None for value in expected])
        if getattr(expected, "dtype", np.dtype("f8")).kind == "O"
        else True
    )
    exact = np.array([np.nan if value is None else value for value in expected], np.longdouble)
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        if units == 0:
            word = f"u{got.dtype.itemsize}"
            return (got.view(word) != rounded.view(word)) & ~(np.isnan(got) & np.isnan(rounded))
        step = np.spacing(abs(np.where(np.isfinite(rounded), rounded, np.finfo(got.dtype).max))).astype(np.longdouble)
        error = abs(got.astype(np.longdouble) - exact) / step
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    same |= (got == 0) & (rounded == 0)
    at_the_end = np.isinf(got) & (abs(rounded) == np.finfo(got.dtype).max)
    return known & ~(same | at_the_end | (error <= units))


def test_enough_functions_have_a_body():
    assert len(BY_VALUE) >= 700
    assert len(functions.FUNCTIONS) >= 840


def test_every_declaration_has_a_body_or_a_reason():
    both = {**functions.FUNCTIONS, **functions.ABSENT}
    assert len(both) == len(functions.FUNCTIONS) + len(functions.ABSENT)
    assert set(both) == set(load_reference().by_symbol)
    assert all(len(reason) > 20 for reason in functions.ABSENT.values())
    assert "the CPU device has no body for it" not in functions.ABSENT.values()


def test_types_are_those_of_the_declarations():
    module = llvm.parse_bitcode(functions.bitcode_of(functions.FUNCTIONS), llvm.create_context())
    module.verify()
    for symbol, function in functions.FUNCTIONS.items():
        defined = module.get_function(symbol)
        assert not defined.is_declaration
        assert str(defined.global_value_type) == function.llvm_type


@pytest.mark.parametrize("function", BY_VALUE, ids=lambda function: function.symbol.removeprefix("hipdl_"))
def test_values(loops, function):
    arrays = samples([parameter.type for parameter in function.parameters])
    if function.name in ("jn", "jnf", "yn", "ynf"):  # the C library takes as many steps as the order says
        arrays[0] %= 20
    got = loops.call(function, *arrays)
    expected, units = expect(function, arrays)
    if function.result.kind == "bfloat16":
        got, expected = widen_bfloat(got), widen_bfloat(np.asarray(expected, np.uint16))
    bad = wrong(got, expected, units)
    rows = [(*(array[i] for array in arrays), "got", got[i], "expected", expected[i]) for i in np.flatnonzero(bad)[:5]]
    assert not bad.any(), f"{function}: {bad.sum()} of {len(got)}: {rows}"


FORMULAS = re.compile(
    r"(sinpi|cospi|normcdf|normcdfinv|erfcx|erfinv|erfcinv|cyl_bessel_i[01]|rcbrt|r?hypot|r?norm[34]d|pow|powi|fma|"
    r"sin|cos|tan|exp|log|erf|cbrt|h(sin|cos|exp|log)|__fma(f?)_rn)f?"
)


@pytest.fixture(scope="module")
def loops_without_fma():
    return Loops(fused=False)


@pytest.mark.parametrize("function", [f for f in BY_VALUE if FORMULAS.fullmatch(f.name)], ids=names)
@pytest.mark.sample(12)
def test_values_without_fma(loops_without_fma, function):
    """Functions that use a fused multiply-add where the processor has one, and HIP's own one."""
    test_values(loops_without_fma, function)


def old_and_new(name, old, operand):
    """What an atomic returns and leaves behind."""
    with np.errstate(all="ignore"):
        new = {
            "Add": lambda: old + operand,
            "Sub": lambda: old - operand,
            "Exch": lambda: operand,
            "Min": lambda: np.minimum(old, operand),
            "Max": lambda: np.maximum(old, operand),
            "And": lambda: old & operand,
            "Or": lambda: old | operand,
            "Xor": lambda: old ^ operand,
            "Inc": lambda: np.where(old >= operand, 0, old + 1),
            "Dec": lambda: np.where((old == 0) | (old > operand), operand, old - 1),
        }[name]()
    return new.astype(old.dtype)


ATOMICS = [f for f in BY_ADDRESS if "tomic" in f.name and "CAS" not in f.name]
EXCHANGES = [f for f in BY_ADDRESS if "CAS" in f.name]
LOADS = [f for f in BY_ADDRESS if f.name.startswith("__ld")]
LENGTHS = [f for f in BY_ADDRESS if f.name.removesuffix("f") in ("norm", "rnorm")]
RESULTS = [f for f in BY_ADDRESS if f not in [*ATOMICS, *EXCHANGES, *LOADS, *LENGTHS]]


def without_nan(values):
    return np.where(np.isnan(values), values.dtype.type(2), values) if values.dtype.kind == "f" else values


@pytest.mark.parametrize("function", ATOMICS, ids=names)
def test_atomics(loops, function):
    kind = function.parameters[1].type
    memory, operand = (without_nan(values) for values in samples([kind, kind]))
    old = memory.copy()
    got = loops.call(function, memory, operand)
    if function.result.kind != "void":
        np.testing.assert_array_equal(got.view(old.dtype), old)
    word = function.name.replace("_noret_f32", "").replace("atomic_add", "AtomicAdd").split("tomic")[1]
    expected = old_and_new(word.removesuffix("_system").removesuffix("NoRet"), old, operand)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("function", EXCHANGES, ids=names)
def test_compare_and_exchange(loops, function):
    kind = function.parameters[1].type
    memory, value = samples([kind, kind])
    old = memory.copy()
    compare = np.where(np.arange(len(old)) % 2 == 0, old, old[::-1])
    got = loops.call(function, memory, compare, value)
    word = f"u{old.dtype.itemsize}"
    same = compare.view(word) == old.view(word)
    assert same.any()
    assert not same.all()
    np.testing.assert_array_equal(got.view(word), old.view(word))
    np.testing.assert_array_equal(memory.view(word), np.where(same, value.view(word), old.view(word)))


@pytest.mark.parametrize("function", LOADS, ids=names)
def test_loads(loops, function):
    (values,) = samples([function.result])
    np.testing.assert_array_equal(loops.call(function, values), values)


@pytest.mark.parametrize("function", LENGTHS, ids=names)
def test_lengths_of_arrays(loops, function):
    """Each call has the address of another element, and takes as many from there as the first argument says."""
    dtype = numpy_type(function.result)
    values = np.concatenate([np.random.default_rng(1).normal(size=60), [0, 0, 0, -3]]).astype(dtype)
    values[:9] *= np.finfo(dtype).max / 8
    counts = np.append(np.arange(59) % 5, [2, 1]).astype(np.int32)
    got = loops.call(function, counts, values[: len(counts)])
    wide = values.astype(np.longdouble)
    expected = np.array([np.sqrt((wide[i : i + n] ** 2).sum()) for i, n in enumerate(counts)])
    with np.errstate(divide="ignore", over="ignore"):
        expected = 1 / expected.astype(dtype).astype(np.longdouble) if function.name.startswith("r") else expected
    assert not wrong(got, expected, 3).any()


@pytest.mark.parametrize("function", RESULTS, ids=names)
def test_results_behind_pointers(loops, function):
    values = [p.type for p in function.parameters if p.type.kind != "pointer"]
    arrays = samples(values)
    x, count = arrays[0], len(arrays[0])
    outs = [np.zeros(count, numpy_type(p.type.element)) for p in function.parameters[len(values) :]]
    got = loops.call(function, *arrays, *outs)
    name = function.name.strip("_").removesuffix("f")
    wide = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        if name == "frex":  # of frexpf
            name = "frexp"
        if name == "frexp":
            fraction, exponent = np.frexp(x)
            regular = np.isfinite(x)
            assert not wrong(got, fraction, 0).any()
            np.testing.assert_array_equal(outs[0][regular], exponent[regular])
        elif name in ("mod", "modf"):
            fraction, whole = np.modf(x)
            assert not wrong(got, fraction, 0).any()
            assert not wrong(outs[0], whole, 0).any()
        elif name == "remquo":
            expected, _ = expect(next(f for f in BY_VALUE if f.name == "remainder"), arrays)
            assert not wrong(got, np.asarray(expected, x.dtype), 0).any()
            near = np.isfinite(x) & (arrays[1] != 0) & (abs(wide / arrays[1]) < 1e6)
            quotient = np.rint(wide / arrays[1])[near].astype(np.int64)
            np.testing.assert_array_equal(abs(outs[0][near]) % 8, abs(quotient) % 8)
        else:
            assert name in ("sincos", "sincospi")
            parts = ("sin", "cos") if name == "sincos" else ("sinpi", "cospi")
            references = [next(f for f in BY_VALUE if f.name == part and f.result.bits == 64) for part in parts]
            for out, reference in zip(outs, references, strict=True):
                expected, units = expect(reference, arrays)
                assert not wrong(out, expected, units).any()


def test_a_function_without_a_body():
    with pytest.raises(
        UnsupportedError, match=r"the CPU device does not have int __shfl\(int var, .*: it works across"
    ):
        functions.bitcode_of(["hipdl___shfl__i32_i32_i32"])


def test_an_unknown_function():
    with pytest.raises(NotFoundError, match="no wrapper 'hipdl_sine'"):
        functions.bitcode_of(["hipdl_sine"])


def test_math_that_wrappers_call_often_is_not_inlined():
    symbol, sine = "hipdl_sinpi__f64", "__hip_cpu_sin_f64"
    assert functions.math_calls(symbol) == {sine: 1, "__hip_cpu_cos_f64": 1}
    assert functions.math_calls("hipdl_rnorm3d__f64_f64_f64") == {"__hip_cpu_hypot_f64": 2}
    assert not functions.math_calls("hipdl___popc__u32")
    with pytest.raises(NotFoundError, match="no wrapper 'hipdl_sine'"):
        functions.math_calls("hipdl_sine")
    module = llvm.parse_bitcode(functions.bitcode_of([symbol], [sine]), llvm.create_context())
    words = {function.name: b" ".join(function.attributes).split() for function in module.functions}
    assert b"noinline" in words[sine]
    assert b"alwaysinline" not in words[sine]
    assert b"alwaysinline" in words[symbol]
    assert b"alwaysinline" in words["__hip_cpu_cos_f64"]
    assert "noinline" not in str(llvm.parse_bitcode(functions.bitcode_of([symbol]), llvm.create_context()))


def test_a_module_holds_what_is_asked_for():
    symbols = ["hipdl_sinf__f32", "hipdl___popc__u32"]
    bitcode = functions.bitcode_of(symbols)
    module = llvm.parse_bitcode(bitcode, llvm.create_context())
    defined = {f.name for f in module.functions if not f.is_declaration}
    assert defined == {*symbols, "__hip_cpu_sin_f32"}
    code = "import sys, hashlib; from hip_devicelib.cpu import functions as f; " + (
        "print(hashlib.sha256(f.bitcode_of(sys.argv[1:])).hexdigest())"
    )
    digests = {
        subprocess.run([sys.executable, "-c", code, *order], capture_output=True, text=True, check=True).stdout
        for order in (symbols, symbols[::-1])
    }
    assert len(digests) == 1, "the same in every process"
