"""Atomic operations on one number of the launch, which are collected for each chunk of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS, GLOBAL_X, code, pack

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.abi.worker_memory import MOST_TOTALS
from hip_runtime.drivers.cpu.analyses.chunk_totals import find_totals
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function

NUMPY = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "float": np.float32, "double": np.float64}
INTEGER_PAIRS = [("add", "sub"), ("and", "or"), ("xor", "max"), ("min", "umax"), ("umin", "add")]
FLOAT_PAIRS = [("fadd", "fsub"), ("fmax", "fmin")]
EXPECTED: dict[str, Callable[..., Any]] = {
    "add": lambda first, values: first + values.sum(dtype=values.dtype),
    "sub": lambda first, values: first - values.sum(dtype=values.dtype),
    "and": lambda first, values: np.bitwise_and.reduce(values, initial=first),
    "or": lambda first, values: np.bitwise_or.reduce(values, initial=first),
    "xor": lambda first, values: np.bitwise_xor.reduce(values, initial=first),
    "max": lambda first, values: max(first, values.max()),
    "min": lambda first, values: min(first, values.min()),
    "umax": lambda first, values: _without_sign(max, first, values),
    "umin": lambda first, values: _without_sign(min, first, values),
    "fmax": lambda first, values: max(first, values.max()),
    "fmin": lambda first, values: min(first, values.min()),
}  # fmt: skip
EXPECTED |= {"fadd": EXPECTED["add"], "fsub": EXPECTED["sub"]}
COUNT = 2900
"""Of 40 blocks of 75 threads: the last blocks are partly and wholly out of bounds."""

FORMS = [("vectors", 4), ("vectors", 32), ("regions", None), ("loop", None), ("auto", None)]


def _without_sign(choose: Any, first: Any, values: Any) -> Any:
    kind = f"u{values.dtype.itemsize}"
    return choose([first, *values], key=lambda number: int(np.array(number).view(kind)))


def total_kernel(kind: str, pair: tuple[str, str]) -> CodeObject:
    """Two totals of each of *pair*: of the numbers of two in three threads, and of one number of all threads."""
    updates = [
        f"  %c{place} = getelementptr {kind}, ptr %cells, i64 {place}\n"
        f"  %o{place} = atomicrmw {operation} ptr %c{place}, {kind} {operand} monotonic"
        for place, (operation, operand) in enumerate(
            [(pair[0], "%v"), (pair[1], "%v"), (pair[0], "%w"), (pair[1], "%w")]
        )
    ]
    text = f"""
define void @k(ptr noalias %item, ptr %cells, ptr %values, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %p = getelementptr {kind}, ptr %values, i64 %i
  %v = load {kind}, ptr %p
  %w = load {kind}, ptr %values
  %left = sub i64 %n, %i
  %third = urem i64 %left, 3
  %chosen = icmp ne i64 %third, 0
  br i1 %chosen, label %update, label %same
update:
{chr(10).join(updates[:2])}
  br label %same
same:
{chr(10).join(updates[2:])}
  br label %out
out:
  ret void
}}
"""
    return code(text, "k", [("cells", "ptr"), ("values", "ptr"), ("n", "i64")])


@pytest.mark.sample(4)
@pytest.mark.parametrize(("form", "width"), FORMS)
@pytest.mark.parametrize(
    ("kind", "pair"),
    [(kind, pair) for kind in NUMPY for pair in (INTEGER_PAIRS if kind[0] == "i" else FLOAT_PAIRS)],
)
def test_totals_of_many_blocks(device: Device, kind: str, pair: tuple[str, str], form: str, width: int | None) -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(-100, 100, COUNT).astype(NUMPY[kind])
    first = rng.integers(-100, 100, 4).astype(NUMPY[kind])
    cells, given = (to_device(part, device=device) for part in (first, values))
    with config.cpu_form.scope(form), config.cpu_width.scope(width):
        function = device.load(total_kernel(kind, pair)).function("k")
        for _ in range(2):  # a program that never ran has chunks of one block
            cells.copy_to_device(first)
            function.launch(40, 75, pack(function.kernel, cells.address, given.address, COUNT))
    chosen = values[(COUNT - np.arange(COUNT)) % 3 != 0]
    everywhere = np.repeat(values[:1], COUNT)
    with np.errstate(over="ignore"):
        expected = [
            EXPECTED[operation](first[place], (chosen, everywhere)[place // 2])
            for place, operation in enumerate([*pair, *pair])
        ]
    np.testing.assert_array_equal(cells.copy_to_host(), np.array(expected, NUMPY[kind]))


UPDATE = "atomicrmw add ptr %cells, i64 %i monotonic"
IN_ORDER = {
    "a": (UPDATE, 1),
    "a sum and what follows it in order": (f"{UPDATE}\n  %o = atomicrmw max ptr %cells, i64 %i monotonic", 2),
    "what is used": (f"%o = {UPDATE}\n  %q = getelementptr i8, ptr %cells, i64 %o\n  store i8 0, ptr %q", 0),
    "what is read again": (f"{UPDATE}\n  %o = load i64, ptr %cells\n  store i64 %o, ptr %values", 0),
    "what is written again": (f"{UPDATE}\n  store i64 7, ptr %values", 0),
    "what was written before": (f"store i64 7, ptr %values\n  {UPDATE}", 1),
    "what a fence orders": (f"{UPDATE}\n  fence seq_cst", 0),
    "what is ordered itself": (UPDATE.replace("monotonic", "acq_rel"), 0),
    "what is volatile": (UPDATE.replace("atomicrmw", "atomicrmw volatile"), 0),
    "an address of each thread": (f"%q = getelementptr i64, ptr %cells, i64 %i\n  {UPDATE.replace('%cells', '%q')}", 0),
    "an address from memory": (f"%q = load ptr, ptr %values\n  {UPDATE.replace('%cells', '%q')}", 0),
    "an address from the arguments": (
        f"%q = getelementptr i64, ptr %cells, i64 %n\n  {UPDATE.replace('%cells', '%q')}", 1,
    ),
    "an operation of another kind": (UPDATE.replace("add", "uinc_wrap"), 0),
    "before an atomic operation with a result": (
        f"{UPDATE}\n  %o = atomicrmw add ptr %values, i64 1 monotonic\n  %q = getelementptr i8, ptr %cells, i64 %o\n"
        "  store i8 0, ptr %q", 0,
    ),
    "behind an atomic operation with a result": (
        "%o = atomicrmw add ptr %values, i64 1 monotonic\n  %q = getelementptr i8, ptr %cells, i64 %o\n"
        f"  store i8 0, ptr %q\n  {UPDATE}", 0,
    ),
    "behind a volatile load": (f"%o = load volatile i64, ptr %values\n  {UPDATE}", 0),
    "before a call": (f"{UPDATE}\n  call void @f(ptr %cells)", 0),
    "before a fault": (f"{UPDATE}\n  call void @spmd.fault(ptr %item, i32 1)", 1),
    "before a barrier": (f"{UPDATE}\n  call void @spmd.barrier(ptr %item)", 1),
    "before a barrier of the grid": (f"{UPDATE}\n  call void @spmd.grid_barrier(ptr %item)", 0),
    "before private memory": (f"%a = alloca i64\n  {UPDATE}\n  store volatile i64 %i, ptr %a", 1),
    "before shared memory": (
        f"%s = call ptr @spmd.shared.s.64.16(ptr %item)\n  {UPDATE}\n  store i64 1, ptr %s", 1,
    ),
}  # fmt: skip
IN_LOOPS = {
    "alone": (UPDATE, 1),
    "with what commutes": (f"{UPDATE}\n  {UPDATE.replace('%cells', '%values')}", 2),
    "with what does not": (f"{UPDATE}\n  atomicrmw max ptr %values, i64 %i monotonic", 0),
    "after a load": (f"%v = load i64, ptr %values\n  {UPDATE.replace('%i', '%v')}", 0),
}


def read(body: str) -> Any:
    text = f"""{DECLARATIONS}
declare void @f(ptr)
declare void @spmd.barrier(ptr)
declare void @spmd.grid_barrier(ptr)
declare ptr @spmd.shared.s.64.16(ptr)
define void @k(ptr noalias %item, ptr %cells, ptr %values, i64 %n) {{
entry:
{GLOBAL_X}
{body}
}}
"""
    return read_function(PrintedModule(llvm.parse_assembly(text)), "k", ir.Context())


@pytest.mark.parametrize(("body", "count"), IN_ORDER.values(), ids=IN_ORDER)
def test_what_is_collected(body: str, count: int) -> None:
    found = find_totals(read(f"  {body}\n  ret void"))
    assert len(found) == count
    assert [update.operation for update in found] == ["add", "max"][:count]


def test_what_is_collected_of_many() -> None:
    assert len(find_totals(read("  " + "\n  ".join([UPDATE] * (MOST_TOTALS + 1)) + "\n  ret void"))) == MOST_TOTALS


@pytest.mark.parametrize(("body", "count"), IN_LOOPS.values(), ids=IN_LOOPS)
def test_what_is_collected_in_loops(body: str, count: int) -> None:
    loop = f"""
  br label %head
head:
  %turn = phi i64 [ 0, %entry ], [ %next, %head ]
  {body}
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %head, label %out
out:
  ret void"""
    assert len(find_totals(read(loop))) == count


@pytest.mark.parametrize("form", ["vectors", "regions"])
def test_operations_of_different_kinds_keep_their_order(device: Device, form: str) -> None:
    text = f"""
define void @k(ptr noalias %item, ptr %cells) {{
{GLOBAL_X}
  %o = atomicrmw add ptr %cells, i64 5 monotonic
  %m = atomicrmw and ptr %cells, i64 1 monotonic
  ret void
}}
"""
    cells = to_device(np.zeros(1, np.int64), device=device)
    with config.cpu_form.scope(form):
        function = device.load(code(text, "k", [("cells", "ptr")])).function("k")
        for _ in range(2):
            cells.copy_to_device(np.full(1, 100))
            function.launch(16, 64, pack(function.kernel, cells.address))
            assert cells.copy_to_host()[0] <= 1


@pytest.mark.parametrize("form", ["vectors", "regions", "auto"])
def test_threads_see_what_they_added(device: Device, form: str) -> None:
    text = f"""
define void @k(ptr noalias %item, ptr %cells, ptr %same, i64 %n) {{
entry:
{GLOBAL_X}
  %mine = icmp eq i64 %i, %n
  br i1 %mine, label %do, label %out
do:
  %o = atomicrmw add ptr %cells, i64 5 monotonic
  %now = load i64, ptr %same
  %twice = mul i64 %now, 2
  store i64 %twice, ptr %same
  br label %out
out:
  ret void
}}
"""
    cells = to_device(np.full(1, 3), device=device)
    with config.cpu_form.scope(form):
        function = device.load(code(text, "k", [("cells", "ptr"), ("same", "ptr"), ("n", "i64")])).function("k")
        function.launch(4, 64, pack(function.kernel, cells.address, cells.address, 70))
    assert cells.copy_to_host()[0] == 16


@pytest.mark.parametrize("form", ["vectors", "regions", "auto"])
def test_sums_of_blocks(device: Device, form: str) -> None:
    text = f"""
declare void @spmd.barrier(ptr)
declare ptr @spmd.shared.s.512.16(ptr)
define void @k(ptr noalias %item, ptr %cells, ptr %values) {{
entry:
{GLOBAL_X}
  %s = call ptr @spmd.shared.s.512.16(ptr %item)
  %p = getelementptr i64, ptr %values, i64 %i
  %v = load i64, ptr %p
  %own = getelementptr i64, ptr %s, i64 %t
  store i64 %v, ptr %own
  call void @spmd.barrier(ptr %item)
  %first = icmp ult i64 %t, 2
  br i1 %first, label %do, label %out
do:
  %rest = sub i64 63, %t
  %q = getelementptr i64, ptr %s, i64 %rest
  %x = load i64, ptr %own
  %y = load i64, ptr %q
  %sum = add i64 %x, %y
  %o = atomicrmw add ptr %cells, i64 %sum monotonic
  br label %out
out:
  ret void
}}
"""
    values = np.random.default_rng(7).integers(-1000, 1000, (50, 64))
    cells, given = (to_device(part, device=device) for part in (np.zeros(1, np.int64), values))
    with config.cpu_form.scope(form):
        function = device.load(code(text, "k", [("cells", "ptr"), ("values", "ptr")], shared_bytes=512)).function("k")
        for _ in range(2):
            cells.copy_to_device(np.zeros(1, np.int64))
            function.launch(50, 64, pack(function.kernel, cells.address, given.address))
            assert cells.copy_to_host()[0] == values[:, [0, 1, 62, 63]].sum()


def test_nothing_is_touched_where_no_thread_adds(device: Device) -> None:
    function = device.load(total_kernel("double", ("fadd", "fmax"))).function("k")
    given = to_device(np.ones(1), device=device)
    for _ in range(2):
        function.launch(40, 75, pack(function.kernel, 0, given.address, 0))
