"""Patterns that LLVM's code generator for x86-64 miscompiles do not reach it, and their replacements are equivalent."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import product

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code import host_machine
from hip_runtime.drivers.cpu.passes.codegen_workarounds import avoid_miscompiled_patterns

SPECIAL = np.array(
    [-60920304090223328, -1, 0, 255, -(2**63), 2**63 - 1, 128, -129, 0x7FFF, 0x8000, 0xFFFF, 2**31, -(2**31),
     2**32 - 1, 65, -3], np.int64,
)  # fmt: skip
"""Numbers of which each narrower type keeps another part."""

SCATTERED = np.random.default_rng(3).integers(-(2**63), 2**63, 64)
"""Numbers of which no part is 0."""

CASTS = [(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)]
PARAMETERS = [("out", "ptr"), ("inp", "ptr"), ("n", "i64")]


@pytest.fixture
def scratch() -> Iterator[LlvmContext]:
    with LlvmContext() as found:
        yield found


def run(scratch: LlvmContext, text: str, out: np.ndarray, *arrays: np.ndarray) -> None:
    """Run ``f`` of the module *text*, with the words changed, for the addresses of *out* and *arrays*."""
    machine = host_machine.target_machine.__wrapped__()
    printed = scratch.read_text(text)
    printed.triple, printed.data_layout = machine.triple, str(machine.target_data)
    module = scratch.read_text(avoid_miscompiled_patterns(str(printed)))
    module.verify()
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        pointers = [array.ctypes.data for array in (out, *arrays)]
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(engine.get_function_address("f"))(*pointers)


def shift_and_mask(shift: str, amounts: str, before: str = "") -> str:
    """Two groups of four numbers, of which the last is masked and the others are shifted by *amounts*."""
    group = """
  %x{0} = load <4 x i64>, ptr %in{0}, align 8
  %o{0} = or <4 x i64> %x{0}, <i64 0, i64 0, i64 0, i64 3>
  %a{0} = {1} <4 x i64> %o{0}, {2}
  %b{0} = and <4 x i64> %o{0}, <i64 poison, i64 poison, i64 poison, i64 255>
  %c{0} = shufflevector <4 x i64> %a{0}, <4 x i64> %b{0}, <4 x i32> <i32 0, i32 1, i32 2, i32 7>
  store <4 x i64> %c{0}, ptr %out{0}, align 8"""
    groups = "".join(group.format(number, shift, amounts) for number in (0, 1))
    return f"""define void @f(ptr %out0, ptr %in0, ptr %n) {{
  %in1 = getelementptr i8, ptr %in0, i64 32
  %out1 = getelementptr i8, ptr %out0, i64 32{before}{groups}
  ret void
}}"""


@pytest.mark.parametrize("shift", ["ashr", "lshr", "shl", "ashr exact", "lshr exact", "shl nuw nsw"])
@pytest.mark.parametrize("last", [17, 64, 255])
def test_lanes_that_are_masked_keep_nothing_of_a_shift(scratch: LlvmContext, shift: str, last: int) -> None:
    numbers = np.array([1 << 40, 3 << 40, 5 << 40, -60920304090223325] * 2)
    if shift.startswith("shl"):
        numbers[[0, 1, 2, 4, 5, 6]] >>= 30
    out = np.zeros(8, np.int64)
    text = shift_and_mask(shift, f"<i64 8, i64 9, i64 10, i64 {last}>")
    run(scratch, text, out, numbers, numbers)
    three = numbers[:3] << [8, 9, 10] if shift.startswith("shl") else numbers[:3] >> [8, 9, 10]
    np.testing.assert_array_equal(out, [*three, numbers[3] & 255] * 2)


@pytest.mark.parametrize("by_shuffle", [False, True])
def test_a_number_that_is_known_only_at_run_time_is_shifted_by_as_it_is(scratch: LlvmContext, by_shuffle: bool) -> None:
    put = "  %first = insertelement <4 x i64> <i64 poison, i64 9, i64 10, i64 255>, i64 %by, i64 0"
    if by_shuffle:
        put = """  %one = insertelement <4 x i64> poison, i64 %by, i64 0
  %first = shufflevector <4 x i64> <i64 0, i64 9, i64 10, i64 255>, <4 x i64> %one,
           <4 x i32> <i32 4, i32 1, i32 2, i32 3>"""
    text = shift_and_mask("ashr", "%first", f"\n  %by = load i64, ptr %n\n{put}")
    numbers, out = np.array([1 << 40, -3 << 40, 5 << 40, -60920304090223325] * 2), np.zeros(8, np.int64)
    run(scratch, text, out, numbers, np.array([8]))
    np.testing.assert_array_equal(out, [*(numbers[:3] >> [8, 9, 10]), numbers[3] & 255] * 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ashr <4 x i64> %x, <i64 1, i64 2, i64 63, i64 poison>", None),
        ("lshr exact <4 x i64> %x, splat (i64 5)", None),
        ("ashr <4 x i64> %x, <i64 1, i64 2, i64 3, i64 64>", "ashr <4 x i64> %x, <i64 1, i64 2, i64 3, i64 1>"),
        ("lshr <4 x i8> %y, <i8 poison, i8 2, i8 3, i8 -1>", "lshr <4 x i8> %y, <i8 poison, i8 2, i8 3, i8 2>"),
        ("shl nuw nsw <4 x i64> %x, <i64 1, i64 2, i64 3, i64 4>", "shl <4 x i64> %x, <i64 1, i64 2, i64 3, i64 4>"),
    ],
)  # fmt: skip
def test_shifts_are_changed_where_that_is_needed(scratch: LlvmContext, first: str, second: str | None) -> None:
    template = 'define void @f(<4 x i64> %x, <4 x i8> %y) {{\n  %"a, b" = {}, !n !0\n  ret void\n}}\n\n!0 = !{{}}\n'
    text = template.format(first)
    scratch.read_text(text).verify()
    assert avoid_miscompiled_patterns(text) == template.format(second or first)


LESSER = """define void @f(ptr %out, ptr %in, ptr %divisors) {
  %float = load <32 x double>, ptr %in, align 1
  %first = fptoui <32 x double> %float to <32 x i64>
  %byte = call <32 x i8> @llvm.masked.load.v32i8.p0(ptr align 1 %divisors,
    <32 x i1> <MASK>, <32 x i8> undef)
  %second = zext <32 x i8> %byte to <32 x i64>
  %lesser = call <32 x i64> @llvm.umin.v32i64(<32 x i64> %first, <32 x i64> %second)
  %narrow = trunc nuw nsw <32 x i64> %lesser to <32 x i16>
  %divisor = load <32 x i16>, ptr %divisors, align 1
  %ratio = udiv <32 x i16> %narrow, %divisor
  %one = extractelement <32 x i16> %ratio, i64 0
  store i16 %one, ptr %out, align 1
  ret void
}
declare <32 x i8> @llvm.masked.load.v32i8.p0(ptr, <32 x i1>, <32 x i8>)
declare <32 x i64> @llvm.umin.v32i64(<32 x i64>, <32 x i64>)
""".replace("MASK", ", ".join(["i1 true", *["i1 false"] * 31]))
"""The lesser of a converted number and one that is loaded by one lane alone, divided."""


def test_the_lesser_of_a_converted_number_and_one_of_a_single_lane(scratch: LlvmContext) -> None:
    program = LESSER
    if llvm.llvm_version_info[0] < 22:  # where the alignment of a masked access is an operand
        program = LESSER.replace("ptr align 1 %divisors,", "ptr %divisors, i32 1,").replace(
            "p0(ptr, <32", "p0(ptr, i32, <32"
        )
    text = str(scratch.read_text(program))
    assert "= freeze <32 x i64>" in avoid_miscompiled_patterns(text)  # else the process would end
    divisors = np.full(32, 7, np.uint16)
    for number in (0.0, 3.5, 7.0, 15.0):
        divisors[0] = 3
        out = np.zeros(1, np.uint16)
        run(scratch, program, out, np.full(32, number), divisors)
        assert out[0] == min(int(number), 3) // 3


@pytest.mark.parametrize(
    ("operation", "is_changed"),
    [
        ("call <4 x i64> @llvm.umin.v4i64(<4 x i64> %c, <4 x i64> %x)", True),
        ("call <4 x i64> @llvm.umin.v4i64(<4 x i64> %x, <4 x i64> %c)", True),
        ("icmp ult <4 x i64> %c, %x", True),
        ("icmp ult <4 x i64> %x, %c", True),
        ("call <4 x i64> @llvm.umin.v4i64(<4 x i64> %c, <4 x i64> splat (i64 255))", False),
        ("call <4 x i64> @llvm.umin.v4i64(<4 x i64> %x, <4 x i64> %y)", False),
        ("add <4 x i64> %c, %x", False),
    ],
)
def test_conversions_are_frozen_where_that_is_needed(scratch: LlvmContext, operation: str, is_changed: bool) -> None:
    template = """define void @f(<4 x double> %d, <4 x i64> %x, <4 x i64> %y) {{
  {}
  %r = {}
  ret void
}}

declare <4 x i64> @llvm.umin.v4i64(<4 x i64>, <4 x i64>)
"""
    conversion = "fptoui <4 x double> %d to <4 x i64>"
    text = template.format(f"%c = {conversion}", operation)
    frozen = template.format(f"%rewritten.0 = {conversion}\n  %c = freeze <4 x i64> %rewritten.0", operation)
    scratch.read_text(text).verify()
    assert avoid_miscompiled_patterns(text) == (frozen if is_changed else text)


def test_what_needs_no_change_is_not_copied() -> None:
    text = "define i64 @f(i64 %x) {\n  %y = shl nuw i64 %x, 64\n  ret i64 %y\n}\n"
    assert avoid_miscompiled_patterns(text) is text


def masked_store(lanes: int, wide: int, narrow: int, mask: list[bool], spelt: str) -> str:
    """A store of *lanes* numbers that are narrowed, under *mask*, as one that is masked or one of a choice."""
    bits = ", ".join(f"i1 {str(lane).lower()}" for lane in mask)
    kind, lane_mask = f"<{lanes} x i{narrow}>", f"<{lanes} x i1> <{bits}>"
    name = f"@llvm.masked.store.v{lanes}i{narrow}.p0"
    store = f"call void {name}({kind} %c, ptr %out, i32 {narrow // 8}, {lane_mask})"
    if spelt == "choice":
        store = f"""%old = load {kind}, ptr %out, align 1
  %new = select {lane_mask}, {kind} %c, {kind} %old
  store {kind} %new, ptr %out, align 1"""
    return f"""declare void {name}({kind}, ptr, i32, <{lanes} x i1>)
define void @f(ptr %out, ptr %in) {{
  %a = load <{lanes} x i{wide}>, ptr %in, align 1
  %c = trunc <{lanes} x i{wide}> %a to {kind}
  {store}
  ret void
}}"""


@pytest.mark.parametrize("spelt", ["store", "choice"])
@pytest.mark.parametrize(
    ("lanes", "wide", "narrow"), [(2, 64, 8), (2, 64, 32), (4, 64, 32), (8, 64, 16), (8, 32, 8), (16, 16, 8)]
)
@pytest.mark.sample(8)
def test_one_lane_is_stored_as_narrow_as_it_is(
    scratch: LlvmContext, lanes: int, wide: int, narrow: int, spelt: str
) -> None:
    numbers = np.resize(SPECIAL, lanes).astype(f"i{wide // 8}")
    for lane in (0, lanes // 2, lanes - 1):
        for one in (True, False):
            mask = [(place == lane) is one for place in range(lanes)]
            out = np.full(lanes + 64, 85, f"i{narrow // 8}")
            run(scratch, masked_store(lanes, wide, narrow, mask, spelt), out, numbers)
            expected = np.where(mask, numbers.astype(out.dtype), np.int8(85))
            np.testing.assert_array_equal(out, [*expected, *[85] * 64])


def test_stores_of_one_lane_keep_what_is_said_of_them(scratch: LlvmContext) -> None:
    text = """@g = global [4 x i16] zeroinitializer
declare void @llvm.masked.store.v2i16.p0(<2 x i16>, ptr, i32, <2 x i1>)
define void @f(<2 x i16> %v) {
  tail call void @llvm.masked.store.v2i16.p0(<2 x i16> %v, ptr getelementptr inbounds nuw (i8, ptr @g, i64 4), i32 2,
    <2 x i1> <i1 false, i1 true>) #0, !nontemporal !0
  ret void
}
attributes #0 = { nounwind }
!0 = !{i32 1}
"""
    changed = scratch.read_text(avoid_miscompiled_patterns(str(scratch.read_text(text))))
    changed.verify()
    *_, store, _ = next(iter(changed.get_function("f").blocks)).instructions
    assert "store i16 %rewritten.0, ptr %rewritten.1, align 2, !nontemporal" in str(store)


def launch(device: Device, body: str, inp: np.ndarray, out: np.ndarray, grid: int, block: int, n: int) -> np.ndarray:
    function = device.load(kernel(body, PARAMETERS)).function("k")
    place, source = to_device(out), to_device(inp)
    function.launch(grid, block, pack(function.kernel, place.address, source.address, n))
    return place.copy_to_host()


def narrowing(bits: int, chosen: str) -> str:
    """The eighth of every fifth of 64 numbers as one of *bits* bits, by the threads of which *chosen* says so."""
    return f"""  %tx64 = zext i32 %tx to i64
  %b64 = zext i32 %b to i64
  %dx64 = zext i32 %dx to i64
  %before = mul i64 %b64, %dx64
  %k = add i64 %before, %tx64
  {chosen}
  br i1 %chosen, label %do, label %end
do:
  %five = mul i64 %k, 5
  %j = and i64 %five, 63
  %p = getelementptr i64, ptr %inp, i64 %j
  %v = load i64, ptr %p
  %high = ashr i64 %v, 3
  %w = trunc i64 %high to i{bits}
  %q = getelementptr i{bits}, ptr %out, i64 %k
  store i{bits} %w, ptr %q
  br label %end
end:
  ret void
"""


@pytest.mark.sample(5)
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32, 64])
def test_the_last_thread_of_a_block_stores_no_more_than_its_number(device: Device, width: int, bits: int) -> None:
    """A group of which one lane exists."""
    block, inp = 2 * width + 1, SCATTERED
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        every = narrowing(bits, "%chosen = icmp ne i64 %n, 0")
        out = launch(device, every, inp, np.zeros(3 * block + 16, f"i{bits // 8}"), 3, block, 1)
    read = (inp[np.arange(3 * block) * 5 % 64] >> 3).astype(out.dtype)
    np.testing.assert_array_equal(out, [*read, *[0] * 16])


@pytest.mark.sample(2)
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("form", ["auto", "loop", "vectors", "regions"])
def test_one_thread_stores_no_more_than_its_number(device: Device, form: str, bits: int) -> None:
    """A mask of which one lane is set, wherever that is."""
    inp = SCATTERED
    for lane in (0, 5, 31):
        only = narrowing(bits, f"%chosen = icmp eq i32 %t, {lane}")
        with config.cpu_form.scope(form):
            out = launch(device, only, inp, np.zeros(80, f"i{bits // 8}"), 2, 32, 1)
        expected = np.zeros_like(out)
        for thread in (lane, 32 + lane):
            expected[thread] = (inp[thread * 5 % 64] >> 3).astype(out.dtype)
        np.testing.assert_array_equal(out, expected)


Row = tuple[tuple[int, bool], ...]
"""The casts of numbers that lie side by side."""


def cast_rows(rows: list[Row], bits: int) -> str:
    """Row for row: neighbours are loaded, cast to their types, and stored as numbers of *bits* bits, side by side."""
    lines = ["%k = zext i32 %i to i64"]
    for number, row in enumerate(rows):
        for lane, (narrow, signed) in enumerate(row):
            name = f"{number}.{lane}"
            lines += [
                f"%p.{name} = getelementptr i64, ptr %inp, i64 %k",
                f"%pp.{name} = getelementptr i64, ptr %p.{name}, i64 {lane + number}",
                f"%v.{name} = load i64, ptr %pp.{name}",
                f"%n.{name} = {'trunc' if narrow < 64 else 'bitcast'} i64 %v.{name} to i{narrow}",
                f"%w.{name} = {widen(narrow, bits, signed)} i{narrow} %n.{name} to i{bits}",
            ]
        for lane in range(len(row)):
            name = f"{number}.{lane}"
            lines += [
                f"%r.{name} = mul i64 %n, {number * len(row)}",
                f"%s.{name} = mul i64 %k, {len(row)}",
                f"%m.{name} = add i64 %r.{name}, %s.{name}",
                f"%a.{name} = add i64 %m.{name}, {lane}",
                f"%q.{name} = getelementptr i{bits}, ptr %out, i64 %a.{name}",
                f"store i{bits} %w.{name}, ptr %q.{name}",
            ]
    return "  " + "\n  ".join(lines) + "\n  ret void\n"


def widen(narrow: int, bits: int, signed: bool) -> str:
    if narrow == bits:
        return "bitcast"
    return "trunc" if narrow > bits else "sext" if signed else "zext"


def check_casts(device: Device, rows: list[Row], bits: int) -> None:
    function = device.load(kernel(cast_rows(rows, bits), PARAMETERS)).function("k")
    grid, block = 2, 3
    for inp in (np.full(40, SPECIAL[0]), np.resize(SPECIAL, 40)):
        out, source = to_device(np.zeros((len(rows), grid * block, len(rows[0])), f"i{bits // 8}")), to_device(inp)
        function.launch(grid, block, pack(function.kernel, out.address, source.address, grid * block))
        found = out.copy_to_host()
        for (number, row), thread in product(enumerate(rows), range(grid * block)):
            loaded = inp[thread + number :][: len(row)]
            expected = [
                loaded[lane].astype(f"{'i' if signed else 'u'}{narrow // 8}").astype(out.dtype)
                for lane, (narrow, signed) in enumerate(row)
            ]
            np.testing.assert_array_equal(found[number, thread], expected, str(row))


FORMS = [("auto", None), ("loop", None), ("regions", None), ("vectors", 2), ("vectors", 64)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("cast", CASTS)
def test_neighbours_are_cast_each_to_its_own_type(device: Device, cast: tuple[int, bool]) -> None:
    """Each pair of types in each form, in turns; all of them in the form of which LLVM makes vectors of neighbours."""
    turn = CASTS.index(cast)
    rows = [(cast, other, cast, other) for other in CASTS] + [(cast, cast, cast, other) for other in CASTS]
    form, width = FORMS[turn % len(FORMS)]
    for used, lanes, bits in (("loop", None, 64), (form, width, 64 if turn % 2 else 32)):
        with config.cpu_form.scope(used), config.cpu_width.scope(lanes):
            check_casts(device, rows, bits)


def test_neighbours_of_which_one_is_shifted_and_another_masked(device: Device) -> None:
    """As a pixel is taken apart; without a cast, by numbers known at compile time and not."""
    for by in ("40", "%n"):
        lanes = [f"ashr i64 %v, {by}", "and i64 %v, 255", f"ashr i64 %v, {by}", "and i64 %v, 1023"]
        lines = ["%k = zext i32 %i to i64"]
        for number, (lane, code) in product(range(3), enumerate(lanes)):
            name = f"{number}.{lane}"
            lines += [
                f"%s.{name} = mul i64 %k, 3", f"%r.{name} = add i64 %s.{name}, {number}",
                f"%m.{name} = mul i64 %r.{name}, 4", f"%j.{name} = add i64 %m.{name}, {lane}",
                f"%p.{name} = getelementptr i64, ptr %inp, i64 %j.{name}", f"%v.{name} = load i64, ptr %p.{name}",
                f"%w.{name} = {code.replace('%v', f'%v.{name}')}",
            ]  # fmt: skip
        for name in (f"{number}.{lane}" for number, lane in product(range(3), range(4))):
            lines += [f"%q.{name} = getelementptr i64, ptr %out, i64 %j.{name}", f"store i64 %w.{name}, ptr %q.{name}"]
        inp = np.resize(SPECIAL, 2 * 5 * 12)
        for form in ("auto", "loop", "vectors"):
            with config.cpu_form.scope(form):
                out = launch(device, "  " + "\n  ".join(lines) + "\n  ret void\n", inp, np.zeros_like(inp), 2, 5, 40)
            four = inp.reshape(-1, 4)
            expected = np.stack([four[:, 0] >> 40, four[:, 1] & 255, four[:, 2] >> 40, four[:, 3] & 1023], 1)
            np.testing.assert_array_equal(out, expected.ravel())
