"""Maxima and minima of floats in memory that leave it as it is where a number is NaN, compared with Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel, launch
from spmd_kernels import code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.errors import ModuleLoadError

FORMS = ("auto", "vectors", "regions")
KINDS = {"float": np.float32, "double": np.float64}
THREADS, BLOCKS, PLACES = 75, 40, 23

DECLARATION = "declare {kind} @spmd.atomic.{name}.{kind}(ptr, {kind})\n"

START = """
  %pb = getelementptr i32, ptr %a1, i32 %i
  %bin = load i32, ptr %pb
  %pv = getelementptr {kind}, ptr %a2, i32 %i
  %v = load {kind}, ptr %pv
  %po = getelementptr {kind}, ptr %a3, i32 %i
  %taken = icmp sge i32 %bin, 0
  br i1 %taken, label %in, label %end
in:
"""

END = """
  br label %end
end:
  ret void
"""

SCATTERED = """
  %place = getelementptr {kind}, ptr %a0, i32 %bin
  %old = call {kind} @spmd.atomic.{name}.{kind}(ptr %place, {kind} %v)
"""
ONE = """
  %place = getelementptr {kind}, ptr %a0, i32 3
  %old = call {kind} @spmd.atomic.{name}.{kind}(ptr %place, {kind} %v)
"""
APART = """
  %place = getelementptr {kind}, ptr %a0, i32 %bin
  call void @apart(ptr %place, {kind} %v)
"""
"""By a function that stays one."""

FUNCTION = """
define void @apart(ptr %place, {kind} %v) noinline {{
  %old = call {kind} @spmd.atomic.{name}.{kind}(ptr %place, {kind} %v)
  ret void
}}
"""
KEPT = "  store {kind} %old, ptr %po\n"


def make_numbers(dtype: Any, count: int, seed: int) -> Any:
    """Numbers of which some are NaN, infinite, zeros of either sign, or denormal."""
    random = np.random.default_rng(seed)
    numbers = (random.standard_normal(count) * 100).astype(dtype)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).smallest_subnormal]
    chosen = random.integers(0, 60, count)
    for number, value in enumerate(special):
        numbers[chosen == number] = value
    return numbers


def combine(name: str, start: Any, values: Any) -> Any:
    """What is left of *start*."""
    for value in values:
        if (value > start) if name == "max" else (value < start):
            start = value
    return start


def run(device: Device, body: str, functions: str, arrays: list[Any], form: str) -> list[Any]:
    there = [to_device(array) for array in arrays]
    parameters = [(f"a{number}", "ptr") for number in range(len(arrays))]
    with config.cpu_form.scope(form):
        launch(device, kernel(body, parameters, functions), BLOCKS, THREADS, *(array.address for array in there))
    return [array.copy_to_host() for array in there]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("body", [SCATTERED, ONE, APART], ids=["scattered", "one", "apart"])
@pytest.mark.sample(3)
def test_nothing_is_lost(device: Device, body: str, name: str, kind: str, form: str) -> None:
    total, dtype = BLOCKS * THREADS, KINDS[kind]
    bins = np.random.default_rng(3).integers(-2, PLACES, total).astype(np.int32)
    bins[100:300] = 5  # lanes of a gang that all update one element
    values, start = make_numbers(dtype, total, 4), make_numbers(dtype, PLACES, 5)
    start[3], start[7] = 0, np.nan
    meets = "  call void @spmd.barrier(ptr %item)\n" if form == "regions" else ""
    text = (meets + START + body + END).format(name=name, kind=kind)
    functions = (DECLARATION + (FUNCTION if body is APART else "")).format(name=name, kind=kind)
    found, *_ = run(device, text, functions, [start, bins, values, values], form)
    for place in range(PLACES):
        here = (bins >= 0) & (place == 3) if body is ONE else bins == place
        np.testing.assert_array_equal(found[place], combine(name, start[place], values[here]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("body", [SCATTERED, ONE], ids=["scattered", "one"])
@pytest.mark.sample(2)
def test_each_thread_finds_what_was_there(device: Device, body: str, name: str, form: str) -> None:
    """Where results are used, they are the numbers that improved an element, and the first one."""
    total = BLOCKS * THREADS
    bins = np.random.default_rng(6).integers(0, 4, total).astype(np.int32)
    values, start = np.random.default_rng(7).permutation(total).astype(np.float32), np.full(4, 1000, np.float32)
    text = (START + body + KEPT + END).format(name=name, kind="float")
    functions = DECLARATION.format(name=name, kind="float")
    found, _, _, olds = run(device, text, functions, [start, bins, values, values], form)
    best = np.maximum if name == "max" else np.minimum
    for place in range(4):
        here = np.full(total, place == 3) if body is ONE else bins == place
        improved = best(olds[here], values[here]) != olds[here]
        steps = dict(zip(olds[here][improved], values[here][improved], strict=True))
        assert len(steps) == improved.sum()
        seen = [start[place]]
        while seen[-1] in steps:
            seen.append(steps[seen[-1]])
        assert len(seen) == len(steps) + 1
        assert seen[-1] == found[place] == best.reduce([start[place], *values[here]])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sample(1)
def test_in_shared_memory(device: Device, form: str) -> None:
    """Each block finds the greatest number of its own."""
    body = """
  %s = call ptr @spmd.shared.s.4.4(ptr %item)
  %pv = getelementptr float, ptr %a0, i32 %i
  %v = load float, ptr %pv
  %is.first = icmp eq i32 %t, 0
  br i1 %is.first, label %begin, label %begun
begin:
  store float 0xFFF0000000000000, ptr %s
  br label %begun
begun:
  call void @spmd.barrier(ptr %item)
  call float @spmd.atomic.max.float(ptr %s, float %v)
  call void @spmd.barrier(ptr %item)
  br i1 %is.first, label %finish, label %end
finish:
  %most = load float, ptr %s
  %po = getelementptr float, ptr %a1, i32 %b
  store float %most, ptr %po
  br label %end
end:
  ret void
"""
    values = make_numbers(np.float32, BLOCKS * THREADS, 8)
    there = [to_device(array) for array in (values, np.zeros(BLOCKS, np.float32))]
    functions = "declare ptr @spmd.shared.s.4.4(ptr)\n" + DECLARATION.format(name="max", kind="float")
    made = kernel(body, [("a0", "ptr"), ("a1", "ptr")], functions, shared_bytes=4)
    with config.cpu_form.scope(form):
        launch(device, made, BLOCKS, THREADS, *(array.address for array in there))
    rows = values.reshape(BLOCKS, THREADS)
    np.testing.assert_array_equal(there[1].copy_to_host(), [combine("max", -np.inf, row) for row in rows])


def test_another_signature_is_an_error(device: Device) -> None:
    text = """
    declare i32 @spmd.atomic.max.float(ptr, i32)
    define void @k(ptr noalias %item, ptr %x) {
      %r = call i32 @spmd.atomic.max.float(ptr %x, i32 3)
      ret void
    }"""
    x = to_device(np.zeros(8, np.int32), device=device)
    function = device.load(code(text, "k", [("x", "ptr")])).function("k")
    with pytest.raises(ModuleLoadError, match="spmd.atomic.max.float"):
        function.launch(1, 1, pack(function.kernel, x.address))
