"""Gangs begin at multiples of their width: what is above and below a power of two in an index is known of them."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_regions import kernel, launch

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.alignments import align_gangs
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function

SHAPE = """
declare i32 @spmd.thread_idx.x(ptr)
declare i32 @spmd.thread_idx.y(ptr)
declare i32 @spmd.block_idx.x(ptr)
define void @k(ptr %item, i32 %n) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %row = call i32 @spmd.thread_idx.y(ptr %item)
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %first = shl i32 %b, 6
  %i = add i32 %first, %t
  %odd = add i32 %i, 1
  %twice = shl i32 %t, 1
  %n32 = shl i32 %n, 5
  {body}
  br label %end
end:
  ret void
}}
"""

FOUND = {
    "the number of a wave": ("%v = lshr i32 %i, 5", 0),
    "with a sign": ("%v = ashr i32 %i, 5", 0),
    "the place in a wave": ("%v = and i32 %i, 31", 1),
    "the first of a wave": ("%v = and i32 %i, -32", 0),
    "in a quarter": ("%v = and i32 %i, 7", VARYING),
    "of a quarter": ("%v = lshr i32 %i, 3", VARYING),
    "of two waves": ("%v = lshr i32 %i, 6", 0),
    "bits with a gap": ("%v = and i32 %i, 23", VARYING),
    "a gap above the lanes": ("%v = and i32 %i, 223", 1),
    "bits above the lanes'": ("%v = and i32 %i, 95", 1),
    "from one on": ("%v = lshr i32 %odd, 5", VARYING),
    "another way round": ("%v = xor i32 %i, 64", 1),
    "reversed": ("%v = xor i32 %i, 31", VARYING),
    "with a bit": ("%v = or i32 %i, 32", 1),
    "with all bits": ("%v = or i32 %i, 31", 0),
    "with a row": ("%r = shl i32 %row, 5 \n %v = or i32 %i, %r", 1),
    "of a row": ("%r = shl i32 %row, 4 \n %v = and i32 %i, %r", VARYING),
    "every second": ("%v = and i32 %twice, 63", 2),
    "every second halved": ("%v = lshr i32 %twice, 1", 1),
    "every second, a quarter": ("%v = lshr i32 %twice, 2", VARYING),
    "a quotient": ("%v = udiv i32 %i, 96", 0),
    "a remainder": ("%v = urem i32 %i, 96", 1),
    "a quotient by a multiple": ("%v = udiv i32 %i, %n32", 0),
    "a remainder of a multiple": ("%v = urem i32 %i, %n32", 1),
    "another quotient": ("%v = udiv i32 %i, 48", VARYING),
    "by any": ("%v = udiv i32 %i, %n", VARYING),
    "by lanes": ("%v = udiv i32 %n32, %i", VARYING),
    "rounded to 0": ("%v = sdiv i32 %i, 32", VARYING),
    "below": ("%v = icmp ult i32 %i, 64", 0),
    "not below": ("%v = icmp sge i32 %i, 64", 0),
    "above": ("%v = icmp ugt i32 %i, 63", 0),
    "not above": ("%v = icmp sle i32 %i, 31", 0),
    "above, turned": ("%v = icmp sgt i32 64, %i", 0),
    "below, turned": ("%v = icmp slt i32 64, %i", VARYING),
    "above a start": ("%v = icmp ugt i32 %i, 64", VARYING),
    "below no multiple": ("%v = icmp ult i32 %i, 48", VARYING),
    "below a multiple": ("%v = icmp slt i32 %i, %n32", 0),
    "equal": ("%v = icmp eq i32 %i, 64", VARYING),
    "widened": ("%v = zext i32 %i to i64", 1),
    "widened with a sign": ("%v = sext i32 %i to i64", 1),
    "widened from one on": ("%v = zext i32 %odd to i64", VARYING),
    "a byte": ("%v = trunc i32 %i to i8", 1),
    "few bits": ("%w = trunc i32 %i to i4 \n %v = zext i4 %w to i32", VARYING),
    "a choice": ("%c = icmp ult i32 %n, 9 \n %w = select i1 %c, i32 %t, i32 %i \n %v = lshr i32 %w, 5", 0),
    "a product": ("%r = mul i32 %row, 32 \n %w = add i32 %i, %r \n %v = lshr i32 %w, 5", 0),
    "no product": ("%r = mul i32 %row, 40 \n %w = add i32 %i, %r \n %v = lshr i32 %w, 5", VARYING),
}
"""Instructions with the stride of their result in gangs of 32."""


def shapes_of(text: str, width: int, extent: int = 1024) -> dict[str, int | None]:
    """The strides of the instructions of *text* by name."""
    graph = read_function(PrintedModule(llvm.parse_assembly(text)), "k", ir.Context())
    aligned = align_gangs(width, "x", extent, False)
    shapes = VectorShapes(graph, {}, lambda stored: 4, lambda alloca: 4, False, "x", aligned)
    return {value.name: shapes.at_definition(value) for value in graph.instructions()}


@pytest.mark.parametrize("name", FOUND)
def test_shape(name: str) -> None:
    body, expected = FOUND[name]
    assert shapes_of(SHAPE.format(body=body), 32)["v"] == expected


def test_loops_keep_what_all_their_steps_keep() -> None:
    loop = """br label %head
head:
  %v = phi i32 [ %t, %entry ], [ %next, %head ]
  %wave = lshr i32 %v, 4
  %next = add i32 %v, {step}
  %on = icmp ult i32 %wave, %n
  br i1 %on, label %head, label %end"""
    for step, expected in ((16, 0), (48, 0), (8, VARYING)):
        text = SHAPE.format(body=loop.format(step=step)).replace("\n  br label %end\nend:", "\nend:")
        assert shapes_of(text, 16)["wave"] == expected, step


WAVES = f"""
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, i64 %n, i64 %columns) {{
entry:
{GLOBAL_X}
  %row = lshr i64 %i, POWER
  %column = and i64 %i, MASK
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %go, label %end
go:
  %line = mul i64 %row, %columns
  %at = add i64 %line, %column
  %p = getelementptr i32, ptr %x, i64 %at
  %v = load i32, ptr %p
  %turned = xor i64 %i, EVEN
  %low = trunc i64 %turned to i32
  %sum = add i32 %v, %low
  %large = icmp ult i64 %column, HALF
  br i1 %large, label %more, label %store
more:
  %product = mul i32 %sum, 3
  br label %store
store:
  %w = phi i32 [ %sum, %go ], [ %product, %more ]
  %q = getelementptr i32, ptr %out, i64 %at
  store i32 %w, ptr %q
  br label %end
end:
  ret void
}}
"""
"""Adds to each element of rows the number of its thread with a bit turned, and triples the first half of each row."""


def waves(power: int) -> str:
    """`WAVES` with ``1 << power`` threads for each row."""
    numbers = {"POWER": power, "MASK": (1 << power) - 1, "EVEN": 1 << power, "HALF": 1 << power >> 1}
    text = WAVES
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text


@pytest.mark.parametrize("block", [32, 48, 64, 100, 256])
@pytest.mark.parametrize("power", [2, 4, 5, 6])
@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.sample(4)
def test_rows_of_a_wave_each(device: Device, block: int, power: int, width: int) -> None:
    columns, blocks = (1 << power) + 3, 5
    n = block * blocks - 7
    rng = np.random.default_rng(power)
    x = rng.integers(0, 1000, (-(-n >> power) + 1, columns), np.int32)
    i = np.arange(n)
    expected = np.zeros_like(x)
    row, column = i >> power, i & (1 << power) - 1
    expected[row, column] = (x[row, column] + (i ^ 1 << power)) * np.where(column < 1 << power >> 1, 3, 1)
    parameters = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("columns", "i64")]
    out, given = to_device(np.zeros_like(x)), to_device(x)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(waves(power), "k", parameters)).function("k")
        function.launch(blocks, block, pack(function.kernel, out.address, given.address, n, columns))
    np.testing.assert_array_equal(out.copy_to_host(), expected)


class Accesses:
    """The forms in which whole gangs load and store."""

    def __init__(self) -> None:
        self.forms: set[str] = set()

    def began(self, function: str, width: int, rows: int) -> None:
        """A gang function is written."""

    def wrote(
        self, function: str, partial: bool, instruction: Instruction, form: str, masked: bool, depth: int, stride: int
    ) -> None:  # fmt: skip
        """An instruction was written."""
        if instruction.opcode in ("load", "store") and not partial:
            self.forms.add(form)

    def placed(self, name: str, nbytes: int, on_heap: bool) -> None:
        """Storage was placed."""


def form_of_accesses(device: Device, text: str, form: str, block: int, width: int | None) -> set[str]:
    """The forms of the loads and stores of whole gangs of *text*, a kernel like `WAVES`."""
    parameters = [("out", "ptr"), ("x", "ptr"), ("n", "i64"), ("columns", "i64")]
    out, told = to_device(np.zeros(8192, np.int32)), Accesses()
    with config.cpu_form.scope(form), config.cpu_width.scope(width), remarks.listening(told):
        function = device.load(code(text, "k", parameters)).function("k")
        function.launch(1, block, pack(function.kernel, out.address, out.address, block, 64))
    return told.forms


@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.parametrize(("power", "width", "contiguous"), [(5, 32, True), (5, 16, True), (3, 16, False)])
def test_rows_of_a_gang_each_are_contiguous(
    device: Device, form: str, power: int, width: int, contiguous: bool
) -> None:
    forms = form_of_accesses(device, waves(power), form, 256, width)
    assert forms == ({remarks.CONTIGUOUS} if contiguous else {remarks.GATHERED})


def test_first_rows_of_blocks_of_any_length_are_not_known(device: Device) -> None:
    """48 is no multiple of 32: the second block begins within a row."""
    assert form_of_accesses(device, waves(5), "vectors", 48, 32) == {remarks.GATHERED}
    assert form_of_accesses(device, waves(4), "vectors", 48, 16) == {remarks.CONTIGUOUS}


TILE = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %line.of = lshr i32 %t, 5
  %place = and i32 %t, 31
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %line = mul i32 %line.of, 33
  %at = add nuw nsw i32 %line, %place
  %own = getelementptr i32, ptr %s, i32 %at
  store i32 %v, ptr %own
  call void @spmd.barrier(ptr %item)
  %other = xor i32 %line.of, 1
  %line2 = mul i32 %other, 33
  %at2 = add nuw nsw i32 %line2, %place
  %q = getelementptr i32, ptr %s, i32 %at2
  %w = load i32, ptr %q
  %r = getelementptr i32, ptr %out, i32 %t
  store i32 %w, ptr %r
  ret void
"""
"""Exchanges neighbouring rows of 32 through a tile with a column more."""


def test_tile_of_a_flat_index_is_loaded_in_gangs(device: Device) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 30, 256, np.int32)
    x, out, told = to_device(values), to_device(np.zeros(256, np.int32)), Accesses()
    made = kernel(
        TILE, [("out", "ptr"), ("x", "ptr")], "declare ptr @spmd.shared.s.4096.16(ptr)\n", shared_bytes=4096
    )  # fmt: skip
    with config.cpu_form.scope("auto"), remarks.listening(told):
        function = launch(device, made, 1, 256, out.address, x.address)
    np.testing.assert_array_equal(out.copy_to_host(), values.reshape(4, 2, 32)[:, ::-1].ravel())
    assert "2 of 2 regions run" in function.form
    assert told.forms == {remarks.CONTIGUOUS}


def test_parts_of_a_gang_behind_the_end_of_a_row(device: Device) -> None:
    """Gangs that reach over the end of a row are split, and go on with the rest of their lanes."""
    text = f"""
define void @k(ptr noalias %item, ptr noalias %out, i64 %n, i64 %width) {{{{
entry:
{GLOBAL_X}
  %y = udiv i64 %i, %width
  %c = urem i64 %i, %width
  %lane = and i64 %i, 31
  %line = mul i64 %y, %width
  %at = add i64 %line, %c
  %p = getelementptr i64, ptr %out, i64 %at
  %wave = lshr i64 %i, 5
  %v = mul i64 %wave, %lane
  store i64 %v, ptr %p
  ret void
}}}}
""".replace("{{", "{").replace("}}", "}")
    i = np.arange(512)
    for width in (100, 33, 13):
        out = to_device(np.zeros(512, np.int64))
        with config.cpu_form.scope("vectors"), config.cpu_width.scope(32):
            function = device.load(code(text, "k", [("out", "ptr"), ("n", "i64"), ("width", "i64")])).function("k")
            function.launch(2, 256, pack(function.kernel, out.address, 512, width))
        np.testing.assert_array_equal(out.copy_to_host(), (i >> 5) * (i & 31))
