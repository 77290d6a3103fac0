"""Conversions between floats and integers of 64 bits, of which processors without AVX-512 make one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.vectorize import integer_division, long_conversions, widen

BLOCK, COUNT = 64, 150
"""Threads of a block, and those that do something: the last gang is not full."""

FLOATS = {"double": np.float64, "float": np.float32}
EDGES = [31, 32, 51, 52, 53, 62]
"""Numbers of bits near which integers are converted in different ways, or rounded."""

CONVERSIONS = {
    "sitofp": "sitofp i64 {value} to {kind}",
    "uitofp": "uitofp i64 {value} to {kind}",
    "fptosi": "fptosi {kind} {value} to i64",
    "saturating": "call i64 @llvm.fptosi.sat.i64.{mangled}({kind} {value})",
}


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor converts one at a time."""
    for module in (long_conversions, integer_division):
        monkeypatch.setattr(module, "converts_long_integers", lambda: False)


def converting(conversion: str, kind: str, *, consecutive: bool, masked: bool) -> str:
    """A kernel that converts ``x``, or ``begin`` plus the index of the thread, to ``y``; *masked*: where ``chosen``."""
    source, result = ("i64", kind) if conversion.endswith("tofp") else (kind, "i64")
    value = "%number" if consecutive else "%loaded"
    text = CONVERSIONS[conversion].format(value=value, kind=kind, mangled="f64" if kind == "double" else "f32")
    choice = "%is.chosen" if masked else "true"
    return f"""
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare i64 @llvm.fptosi.sat.i64.f32(float)
define void @k(ptr noalias %item, ptr %x, ptr %y, ptr %chosen, i64 %begin, i64 %n) {{
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %choice.place = getelementptr i8, ptr %chosen, i64 %i
  %choice = load i8, ptr %choice.place
  %is.chosen = icmp ne i8 %choice, 0
  br i1 {choice}, label %convert, label %out
convert:
  %x.place = getelementptr {source}, ptr %x, i64 %i
  %loaded = load {source}, ptr %x.place
  %number = add i64 %begin, %i
  %result = {text}
  %y.place = getelementptr {result}, ptr %y, i64 %i
  store {result} %result, ptr %y.place
  br label %out
out:
  ret void
}}
"""


PARAMETERS = [("x", "ptr"), ("y", "ptr"), ("chosen", "ptr"), ("begin", "i64"), ("n", "i64")]


def convert(
    device: Device, conversion: str, kind: str, values: np.ndarray, *, begin: int | None = None, masked: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """What a kernel makes of *values*, or of the numbers from *begin* on, and which of them it converts."""
    random = np.random.default_rng(len(values))
    chosen = random.integers(0, 2, COUNT, np.int8) if masked else np.ones(COUNT, np.int8)
    result = np.zeros(COUNT, FLOATS[kind] if conversion.endswith("tofp") else np.int64)
    arrays = [to_device(array, device=device) for array in (values, result, chosen)]
    text = converting(conversion, kind, consecutive=begin is not None, masked=masked)
    function = device.load(code(text, "k", PARAMETERS)).function("k")
    function.launch(3, BLOCK, pack(function.kernel, *(array.address for array in arrays), begin or 0, COUNT))
    return arrays[1].copy_to_host(), chosen.astype(bool)


def make_integers(most: int = 63) -> np.ndarray:
    """Integers of up to so many bits and a sign, and those next to a limit."""
    random = np.random.default_rng(3)
    numbers = [side * (1 << bits) + step for bits in EDGES for side in (-1, 1) for step in (-1, 0, 1)]
    numbers += [-(1 << most), (1 << most) - 1, 0, -1, 1]
    rest = [
        int(random.integers(-(1 << 62), 1 << 62)) >> int(random.integers(max(62 - most, 0), 62)) for _ in range(COUNT)
    ]
    fitting = [number for number in [*numbers, *rest] if -(1 << most) <= number < 1 << most]
    return np.resize(np.array(fitting[:COUNT], np.int64), COUNT)


def as_float(number: int, kind: str) -> np.floating:
    """*number* as a float, rounded once: what is below the 40 digits that become a float32 makes their last one odd."""
    if kind == "double" or abs(number) < 1 << 53:
        return FLOATS[kind](number)
    shift = number.bit_length() - 40
    odd = number >> shift << shift | (1 << shift if number & ((1 << shift) - 1) else 0)
    return FLOATS[kind](float(odd))


def check_integers(device: Device, conversion: str, kind: str, masked: bool) -> None:
    for most in (31, 36, 63):
        numbers = make_integers(most)
        found, chosen = convert(device, conversion, kind, numbers, masked=masked)
        unsigned = numbers if conversion == "sitofp" else numbers.view(np.uint64)
        wanted = np.array([as_float(int(number), kind) for number in unsigned])
        np.testing.assert_array_equal(found, np.where(chosen, wanted, 0), str(most))


def check_consecutive(device: Device, conversion: str, kind: str) -> None:
    begins = [0, -70, (1 << 31) - 40, -(1 << 31) - 40, (1 << 53) + 1, -(1 << 63), (1 << 63) - 60, (1 << 32) - 3]
    for begin in begins:
        found, _ = convert(device, conversion, kind, make_integers(), begin=begin)
        numbers = [(begin + lane) % (1 << 64) for lane in range(COUNT)]
        if conversion == "sitofp":
            numbers = [number - (1 << 64) if number >> 63 else number for number in numbers]
        np.testing.assert_array_equal(found, [as_float(number, kind) for number in numbers], str(begin))


def make_floats(kind: str, largest: float) -> np.ndarray:
    """Floats up to *largest* or, if that is infinite, of any size, and those next to a limit."""
    random = np.random.default_rng(5)
    edges = [side * 2.0**bits + step for bits in EDGES for side in (-1, 1) for step in (-1, -0.5, 0, 0.5, 1)]
    edges += [0.0, -0.0, 0.99, -0.99, 1e-300, -2.5]
    if largest == np.inf:
        edges += [np.inf, -np.inf, np.nan, 2.0**63, -(2.0**63), 1e300, -1e300]
    rest = random.uniform(-1, 1, COUNT) * 2.0 ** random.integers(0, 60, COUNT)
    with np.errstate(over="ignore", under="ignore"):
        floats = np.array([*edges, *rest], FLOATS[kind])
    return np.array([number for number in floats if not abs(number) > largest][:COUNT], FLOATS[kind])


def as_integer(number: float) -> int:
    """*number* without its fraction; the closest integer of 64 bits, and zero for NaN."""
    if np.isnan(number):
        return 0
    if abs(number) < 2.0**63:
        return int(number)
    return (1 << 63) - 1 if number > 0 else -(1 << 63)


def check_floats(device: Device, conversion: str, kind: str, masked: bool) -> None:
    for largest in (2.0**50, 2.0**62, *([np.inf] if conversion == "saturating" else [])):
        floats = make_floats(kind, largest)
        floats = np.resize(floats, COUNT)
        found, chosen = convert(device, conversion, kind, floats, masked=masked)
        wanted = np.array([as_integer(float(number)) for number in floats], np.int64)
        np.testing.assert_array_equal(found, np.where(chosen, wanted, 0), str(largest))


@pytest.mark.parametrize("width", [4, 16, 32])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("conversion", ["sitofp", "uitofp"])
@pytest.mark.sample(4)
def test_integers_of_any_size(device: Device, conversion: str, kind: str, masked: bool, width: int) -> None:
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        check_integers(device, conversion, kind, masked)


@pytest.mark.parametrize("width", [4, 16, 32])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("conversion", ["sitofp", "uitofp"])
@pytest.mark.sample(4)
def test_consecutive_integers(device: Device, conversion: str, kind: str, width: int) -> None:
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        check_consecutive(device, conversion, kind)


@pytest.mark.parametrize("width", [4, 16, 32])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("conversion", ["fptosi", "saturating"])
@pytest.mark.sample(4)
def test_floats(device: Device, conversion: str, kind: str, masked: bool, width: int) -> None:
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        check_floats(device, conversion, kind, masked)


@pytest.mark.parametrize("converts", [False, True])
def test_processors_that_convert_vectors_do(device: Device, monkeypatch: pytest.MonkeyPatch, converts: bool) -> None:
    written: list[object] = []
    write = widen.write_long_conversion
    monkeypatch.setattr(widen, "write_long_conversion", lambda *all: written.append(all) or write(*all))
    monkeypatch.setattr(long_conversions, "converts_long_integers", lambda: converts)
    with config.cpu_form.scope("vectors"):
        check_integers(device, "sitofp", "double", masked=True)
    assert bool(written) == (not converts)


ROWS = f"""
define void @k(ptr noalias %item, ptr %x, ptr %y, ptr %rows, i64 %begin, i64 %n) {{
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %row = call i32 @spmd.thread_idx.y(ptr %item)
  %column = zext i32 %t to i64
  %number = add i64 %begin, %column
  %place = sitofp i64 %number to float
  %part = fdiv float 1.0, %place
  %wide = zext i32 %row to i64
  %own = add i64 %number, %wide
  %of.row = sitofp i64 %own to float
  %both = fadd float %part, %of.row
  %first = mul i64 %wide, {BLOCK}
  %i = add i64 %first, %column
  %y.place = getelementptr float, ptr %y, i64 %i
  store float %both, ptr %y.place
  ret void
}}
"""


@pytest.mark.parametrize("begin", [1, (1 << 31) - 30])
def test_rows_share_what_they_have_in_common(device: Device, begin: int) -> None:
    """Rows that run at once convert the number of a column once, and that of a row each for itself."""
    y = to_device(np.zeros((4, BLOCK), np.float32), device=device)
    with config.cpu_form.scope("vectors"):
        function = device.load(code(ROWS, "k", PARAMETERS)).function("k")
        function.launch(1, (BLOCK, 4), pack(function.kernel, y.address, y.address, y.address, begin, 0))
    columns, rows = np.arange(begin, begin + BLOCK), np.arange(4)[:, None]
    wanted = np.float32(1) / columns.astype(np.float32) + (columns + rows).astype(np.float32)
    np.testing.assert_array_equal(y.copy_to_host(), wanted)


@pytest.mark.parametrize("begin", [0, 2**40])
@pytest.mark.parametrize("kind", FLOATS)
def test_numbers_that_are_converted_have_other_uses(device: Device, kind: str, begin: int) -> None:
    """A vector of consecutive numbers that a branch of the conversion takes serves what follows, too."""
    text = f"""
define void @k(ptr noalias %item, ptr %x, ptr %y, i64 %begin, i64 %n) {{
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %number = add i64 %begin, %i
  %float = sitofp i64 %number to {kind}
  %mixed = xor i64 %number, 64
  %x.place = getelementptr {kind}, ptr %x, i64 %i
  store {kind} %float, ptr %x.place
  %y.place = getelementptr i64, ptr %y, i64 %i
  store i64 %mixed, ptr %y.place
  br label %out
out:
  ret void
}}
"""
    x, y = to_device(np.zeros(COUNT, FLOATS[kind])), to_device(np.zeros(COUNT, np.int64))
    parameters = [("x", "ptr"), ("y", "ptr"), ("begin", "i64"), ("n", "i64")]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(text, "k", parameters)).function("k")
        function.launch(-(-COUNT // BLOCK), BLOCK, pack(function.kernel, x.address, y.address, begin, COUNT))
    numbers = begin + np.arange(COUNT)
    np.testing.assert_array_equal(x.copy_to_host(), numbers.astype(FLOATS[kind]))
    np.testing.assert_array_equal(y.copy_to_host(), numbers ^ 64)
