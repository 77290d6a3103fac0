"""Floats as integers: without their fraction, the nearest that the type has, and 0 for NaN; whatever the way."""

import math
import re

import numpy as np
import pytest
from numba import float32, int8, int16, int32, int64, uint8, uint16, uint32, uint64

import numba_hip as hip
from hip_runtime import config as runtime_config
from numba_hip import config as hip_config

on_the_cpu = pytest.mark.cpu_device("an AMD GPU has no forms")

KINDS = [np.dtype(name) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]
SOURCES = [np.float16, np.float32, np.float64]
FORMS = ["auto", "loop", "regions", "vectors"]


def values_of(source):
    """Zeros, fractions, subnormal numbers, infinities, NaN, and the limits of all types with what is next to them."""
    limits = [0.0, *(float(limit) for kind in KINDS for limit in (np.iinfo(kind).min, np.iinfo(kind).max))]
    powers = [sign * 2.0**power for power in (7, 8, 15, 16, 24, 31, 32, 53, 62, 63, 64, 100) for sign in (1, -1)]
    others = [0.5, 0.999, 1.5, 2.5, 127.5, 128.5, 255.5, 300.0, 65504.0, 1e10, 1e19, 1e30, 5e-324, 1e-40, math.inf]
    with np.errstate(over="ignore"):
        exact = np.array([*limits, *powers, *others, *(-other for other in others), math.nan, -0.0]).astype(source)
        near = [np.nextafter(exact, source(end)) for end in (-math.inf, math.inf)]
    return np.unique(np.concatenate([exact, *near, np.array([math.nan, -0.0], source)]))


def nearest(value, kind):
    limits = np.iinfo(kind)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return limits.max if value > 0 else limits.min
    return min(max(math.trunc(value), limits.min), limits.max)


def expected(values, kind):
    return np.array([nearest(float(value), kind) for value in values], kind)


def store(x, a, b, c, d, e, f, g, h):
    i = hip.grid(1)
    if i < x.size:
        v = x[i]
        a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i] = v, v, v, v, v, v, v, v


def convert(x, a, b, c, d, e, f, g, h):
    i = hip.grid(1)
    if i < x.size:
        v = x[i]
        a[i], b[i], c[i], d[i] = int8(v), int16(v), int32(v), int64(v)
        e[i], f[i], g[i], h[i] = uint8(v), uint16(v), uint32(v), uint64(v)


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", [store, convert])
@pytest.mark.parametrize(
    ("source", "form"), [*((source, "auto") for source in SOURCES), *((np.float32, form) for form in FORMS[1:])]
)
@on_the_cpu
def test_every_pair_of_types(source, form, function):
    values = values_of(source)
    results = [np.full(values.size, 77, kind) for kind in KINDS]
    with runtime_config.cpu_form.scope(form):
        hip.jit(function)[5, 61](values, *results)
    for kind, result in zip(KINDS, results, strict=True):
        np.testing.assert_array_equal(result, expected(values, kind), f"{kind}")


@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_pythons_functions_give_integers_of_64_bits(source):
    def whole(x, out):
        i = hip.grid(1)
        out[i, 0], out[i, 1], out[i, 2] = int(x[i]), round(x[i]), math.trunc(x[i])
        out[i, 3], out[i, 4] = math.floor(x[i]), math.ceil(x[i])

    values, kind = values_of(source), np.dtype("i8")
    out = np.full((values.size, 5), 77)
    hip.jit(whole)[1, values.size](values, out)
    rounded = [values, np.rint(values), values, np.floor(values), np.ceil(values)]
    np.testing.assert_array_equal(out, np.stack([expected(column, kind) for column in rounded], axis=1))


def test_truth_is_being_other_than_zero():
    def truth(x, out):
        i = hip.grid(1)
        out[i] = x[i]

    for source in SOURCES:
        values = values_of(source)
        out = np.zeros(values.size, np.bool_)
        hip.jit(truth)[1, values.size](values, out)
        np.testing.assert_array_equal(out, values != 0)


def test_bfloat16():
    def narrow(x, out, small):
        i = hip.grid(1)
        out[i, 0], out[i, 1] = int(hip.bfloat16(x[i])), hip.bfloat16(x[i])
        small[i] = hip.bfloat16(x[i])

    values = np.array([1.0, -1.5, 127.0, 300.0, -300.0, 1e30, -1e30, np.inf, -np.inf, np.nan, -0.0], np.float32)
    out, small = np.full((values.size, 2), 77), np.full(values.size, 77, np.int8)
    hip.jit(narrow)[1, values.size](values, out, small)
    np.testing.assert_array_equal(out[:, 0], expected(values, np.dtype("i8")))
    np.testing.assert_array_equal(out[:, 1], expected(values, np.dtype("i8")))
    np.testing.assert_array_equal(small, expected(values, np.dtype("i1")))


@on_the_cpu
def test_hips_functions_agree():
    def by_name(x, single, wide):
        i = hip.grid(1)
        y = float32(x[i])
        single[i, 0], single[i, 1] = hip.__float2int_rz(y), hip.__double2int_rz(x[i])
        single[i, 2], single[i, 3] = hip.__float2uint_rz(y), hip.__double2uint_rz(x[i])
        wide[i, 0], wide[i, 1] = hip.__float2ll_rz(y), hip.libdevice.double2ll_rz(x[i])

    values = values_of(np.float32).astype(np.float64)
    single, wide = np.full((values.size, 4), 77), np.full((values.size, 2), 77)
    hip.jit(by_name)[1, values.size](values, single, wide)
    kinds = [np.dtype(name) for name in ("i4", "i4", "u4", "u4")]
    np.testing.assert_array_equal(single, np.stack([expected(values, kind) for kind in kinds], axis=1))
    np.testing.assert_array_equal(wide, np.stack([expected(values, np.dtype("i8"))] * 2, axis=1))


def of_constants(out):
    out[0], out[1], out[2] = int(math.inf), int(-math.inf), int(math.nan)
    out[3], out[4], out[5] = int32(1e30), uint8(-1.5), int16(float32(4e4))


CONSTANTS = [2**63 - 1, -(2**63), 0, 2**31 - 1, 0, 2**15 - 1]


def test_constants():
    out = np.full(6, 77)
    hip.jit(of_constants)[1, 1](out)
    assert out.tolist() == CONSTANTS


@on_the_cpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sample(2)
def test_what_lanes_hold_that_are_not_active_does_not_matter(form):
    def choose(x, table, out):
        i = hip.grid(1)
        if x[i] >= 0 and x[i] < table.size:
            out[i] = table[int(x[i])]

    values = np.resize(np.array([1e30, 3.9, -np.inf, np.nan, 0.0, -0.5, 7.99], np.float32), 93)
    table, out = np.arange(8.0) + 10, np.zeros(93)
    with runtime_config.cpu_form.scope(form):
        hip.jit(choose)[1, 93](values, table, out)
    np.testing.assert_array_equal(out, np.resize([0, 13, 0, 0, 10, 0, 17], 93))


def test_the_simulator_says_what_python_and_numpy_say():
    def to_int(x, out):
        out[0] = int(x[0])

    with hip_config.simulator.scope(True):
        with pytest.raises(OverflowError, match="cannot convert float infinity to integer"):
            hip.jit(to_int)[1, 1](np.array([math.inf]), np.zeros(1, np.int64))
        with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
            hip.jit(to_int)[1, 1](np.array([math.nan]), np.zeros(1, np.int64))


def assembly(function, signature, target):
    text, _ = hip.compile(function, signature, target=target, output="asm")
    return text.partition(f"\n{function.__name__}:")[2].partition(".Lfunc_end")[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"])
def test_amd_gpus_convert_what_differs_from_lane_to_lane_and_what_does_not(target):
    def to_int(x, y, out):
        i = hip.grid(1)
        out[i, 0] = x[i]
        out[i, 1] = y[0] + 1

    for source, kind, conversion in [
        ("float32", "int32", "v_cvt_i32_f32"), ("float32", "uint32", "v_cvt_u32_f32"),
        ("float64", "int32", "v_cvt_i32_f64"), ("float64", "uint32", "v_cvt_u32_f64"),
        ("float16", "int32", "v_cvt_i32_f32"), ("float32", "int8", "v_cvt_i32_f32"),
        ("float32", "uint16", "v_cvt_u32_f32"),
    ]:  # fmt: skip
        text = assembly(to_int, f"({source}[::1], {source}[::1], {kind}[:, ::1])", target)
        assert re.search(conversion, text), (source, kind)


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_amd_gpus_are_left_no_conversion_that_llvm_may_take_for_anything(target):
    for source in ("float16", "float32", "float64"):
        signature = f"({source}[::1], {', '.join(f'{kind}[::1]' for kind in KINDS)})"
        text, _ = hip.compile(store, signature, target=target, output="llvm")
        assert ("llvm.fptosi.sat.i32" in text) == (source == "float64")
        cut = set(re.findall(r"(%\S+) = .*call .*@llvm\.amdgcn\.fmed3\.f32", text))
        converted = re.findall(r"= fpto[su]i float (%\S+) to i32", text)
        assert set(converted) <= cut
        assert len(converted) == len(re.findall(r"= fpto[su]i ", text))
        assert bool(converted) == (source != "float64")


@pytest.mark.parametrize("opt", [True, False])
def test_constants_and_numbers_that_were_integers_on_amd_gpus(opt):
    """What LLVM's plain conversion takes for anything, or for the number that there was before."""

    def convert(x, out):
        out[0], out[1], out[2] = int32(float32(1e30)), uint32(float32(-3)), int32(float32(math.nan))
        out[3] = int32(float32(x[0]))

    text, _ = hip.compile(convert, "(uint32[::1], int64[::1])", target="gfx90a", output="llvm", opt=opt)
    if opt:
        assert re.findall(r"store i64 (-?\d+),", text) == [str(2**31 - 1), "0", "0"]
    assert re.search(r"uitofp", text)
    assert len(re.findall(r"= fpto[su]i ", text)) == (1 if opt else 4)
    assert (
        "v_cvt_i32_f32" in hip.compile(convert, "(uint32[::1], int64[::1])", target="gfx90a", output="asm", opt=opt)[0]
    )


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_amd_gpus_cut_a_float_to_narrow_integers_in_one_instruction(target):
    def to_byte(x, out):
        out[hip.grid(1)] = x[hip.grid(1)]

    text = assembly(to_byte, "(float32[::1], uint8[::1])", target)
    assert re.search(r"v_med3_f32 .*\n\s+(s_.*\n\s+)?v_cvt_u32_f32", text)
    assert not re.search(r"v_(cmp|cndmask|min|max)", text)


def test_constants_on_amd_gpus():
    text, _ = hip.compile(of_constants, "(int64[::1],)", target="gfx90a", output="llvm")
    stored = re.findall(r"store i64 (-?\d+),", text)
    assert [int(number) for number in stored[:3]] == CONSTANTS[:3]
