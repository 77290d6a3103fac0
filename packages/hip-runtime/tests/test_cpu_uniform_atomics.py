"""Atomic operations of many threads on one address, which gangs do once for all of their lanes."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes

INTEGERS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "max": np.maximum, "min": np.minimum,
    "umax": lambda old, value: np.maximum(_unsigned(old), _unsigned(value)).view(value.dtype),
    "umin": lambda old, value: np.minimum(_unsigned(old), _unsigned(value)).view(value.dtype),
}  # fmt: skip
FLOATS: dict[str, Any] = {"fadd": np.add, "fsub": np.subtract, "fmax": np.fmax, "fmin": np.fmin}
NUMPY = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "float": np.float32, "double": np.float64}
PARAMETERS = [("cells", "ptr"), ("values", "ptr"), ("olds", "ptr"), ("n", "i64")]
THREADS = 200
"""Of three blocks of 75: gangs are full, partial, and partly out of bounds."""


def _unsigned(value: Any) -> Any:
    return value.view(f"u{value.dtype.itemsize}")


def update_cells(kind: str, operations: list[str]) -> CodeObject:
    """A kernel whose threads update two cells for each operation: two in three of them one with a number of their own,
    and all of them one with the first number."""
    lines = []
    for number in range(len(operations)):
        lines.append(f"  %c{number} = getelementptr {kind}, ptr %cells, i64 {2 * number}")
        lines.append(f"  %d{number} = getelementptr {kind}, ptr %cells, i64 {2 * number + 1}")
    updates = "\n".join(
        f"  %o{number} = atomicrmw {operation} ptr %c{number}, {kind} %v monotonic"
        for number, operation in enumerate(operations)
    )
    same = "\n".join(
        f"  %s{number} = atomicrmw {operation} ptr %d{number}, {kind} %w monotonic"
        for number, operation in enumerate(operations)
    )
    text = f"""
define void @k(ptr noalias %item, ptr %cells, ptr %values, ptr %olds, i64 %n) {{
entry:
{GLOBAL_X}
{chr(10).join(lines)}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %p = getelementptr {kind}, ptr %values, i64 %i
  %v = load {kind}, ptr %p
  %w = load {kind}, ptr %values
{same}
  %left = sub i64 %n, %i
  %third = urem i64 %left, 3
  %chosen = icmp ne i64 %third, 0
  br i1 %chosen, label %update, label %out
update:
{updates}
  br label %out
out:
  ret void
}}
"""
    return code(text, "k", PARAMETERS)


def take_places(operation: str) -> CodeObject:
    """A kernel whose threads each take as many places as they have values, but for those with 7, and keep the first."""
    text = f"""
define void @k(ptr noalias %item, ptr %cells, ptr %values, ptr %olds, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %p = getelementptr i64, ptr %values, i64 %i
  %v = load i64, ptr %p
  %chosen = icmp ne i64 %v, 7
  br i1 %chosen, label %update, label %out
update:
  %old = atomicrmw {operation} ptr %cells, i64 %v monotonic
  %q = getelementptr i64, ptr %olds, i64 %i
  store i64 %old, ptr %q
  br label %out
out:
  ret void
}}
"""
    return code(text, "k", PARAMETERS)


def run(device: Device, made: CodeObject, first: Any, values: Any, form: str, width: int | None) -> tuple[Any, Any]:
    """What is in the cells and in ``olds`` afterwards."""
    cells, given, olds = (to_device(part, device=device) for part in (first, values, np.zeros_like(values)))
    with config.cpu_form.scope(form), config.cpu_width.scope(width):
        function = device.load(made).function("k")
        function.launch(3, 75, pack(function.kernel, cells.address, given.address, olds.address, THREADS))
    return cells.copy_to_host(), olds.copy_to_host()


FORMS = [("vectors", 4), ("vectors", 32), ("auto", None)]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("form", "width"), FORMS)
@pytest.mark.parametrize("kind", NUMPY)
def test_operations_are_done_for_all_lanes(device: Device, kind: str, form: str, width: int | None) -> None:
    table = INTEGERS if kind[0] == "i" else FLOATS
    rng = np.random.default_rng(5)
    values = rng.integers(-100, 100, THREADS).astype(NUMPY[kind])
    first = rng.integers(-100, 100, 2 * len(table)).astype(NUMPY[kind])
    found, _ = run(device, update_cells(kind, list(table)), first, values, form, width)
    active = values[(THREADS - np.arange(THREADS)) % 3 != 0]
    expected = first.copy()
    with np.errstate(over="ignore"):
        for number, operation in enumerate(table.values()):
            expected[2 * number] = reduce(operation, active, first[2 * number])
            expected[2 * number + 1] = reduce(operation, np.repeat(values[:1], THREADS), first[2 * number + 1])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("first", "value"), [(-0.0, -0.0), (np.nan, 3.0), (3.0, np.nan), (-np.inf, -np.inf)])
@pytest.mark.sample(2)
def test_special_numbers(device: Device, first: float, value: float) -> None:
    cells, values = np.full(8, first, np.float32), np.full(THREADS, value, np.float32)
    found, _ = run(device, update_cells("float", list(FLOATS)), cells, values, "vectors", 16)
    with np.errstate(invalid="ignore"):
        expected = [reduce(operation, values, cells[0]) for operation in FLOATS.values() for _ in range(2)]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(expected[:2]))


@pytest.mark.sample(3)
@pytest.mark.parametrize(("form", "width"), FORMS)
@pytest.mark.parametrize(("operation", "sign"), [("add", 1), ("sub", -1)])
def test_results_are_as_if_lanes_came_one_after_another(
    device: Device, operation: str, sign: int, form: str, width: int | None
) -> None:
    values = np.random.default_rng(6).integers(1, 20, THREADS)
    cells, olds = run(device, take_places(operation), np.full(1, 1000), values, form, width)
    chosen = values != 7
    order = np.argsort(sign * olds[chosen])
    steps = np.concatenate([[1000], 1000 + sign * np.cumsum(values[chosen][order])])
    np.testing.assert_array_equal(olds[chosen][order], steps[:-1])
    assert cells[0] == steps[-1]
    assert not olds[~chosen].any()


def test_gangs_that_wait_for_places_have_twice_as_many_lanes(device: Device) -> None:
    """A gang takes the places of all of its lanes at once, and the next gang waits for it."""
    cells, given, olds = (to_device(np.ones(size, np.int64), device=device) for size in (1, 128, 128))
    function = device.load(take_places("add")).function("k")
    function.launch(1, 128, pack(function.kernel, cells.address, given.address, olds.address, 128))
    assert function.form is not None
    assert f"; {2 * default_lanes()} threads at a time" in function.form
    np.testing.assert_array_equal(np.sort(olds.copy_to_host()), np.arange(1, 129))


def test_operations_on_an_address_that_no_lane_may_touch(device: Device) -> None:
    text = update_cells("float", ["fadd"])
    values = np.ones(THREADS, np.float32)
    function = device.load(text).function("k")
    given = to_device(values, device=device)
    with config.cpu_form.scope("vectors"):
        function.launch(3, 75, pack(function.kernel, 0, given.address, 0, 0))  # no thread is within bounds
    np.testing.assert_array_equal(given.copy_to_host(), values)


def test_number_that_all_lanes_read_is_loaded_once(device: Device) -> None:
    text = f"""
define void @k(ptr noalias %item, ptr %cells, ptr %values, ptr %olds, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %out
do:
  %p = getelementptr i64, ptr %values, i64 %i
  %v = load i64, ptr %p
  %chosen = icmp sgt i64 %v, 7
  br i1 %chosen, label %read, label %out
read:
  %now = load atomic i64, ptr %cells monotonic, align 8
  %sum = add i64 %now, %v
  %q = getelementptr i64, ptr %olds, i64 %i
  store i64 %sum, ptr %q
  br label %out
out:
  ret void
}}
"""
    made = code(text, "k", PARAMETERS)
    values = np.random.default_rng(8).integers(0, 20, THREADS)
    _, olds = run(device, made, np.full(1, 1000), values, "vectors", 16)
    np.testing.assert_array_equal(olds, np.where(values > 7, values + 1000, 0))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        optimised, _ = list_kernel(made, made.kernels[0], (64, 1, 1))
    assert 0 < optimised.count("load atomic i64, ptr %cells") < 16
