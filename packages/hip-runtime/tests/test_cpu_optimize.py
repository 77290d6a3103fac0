"""LLVM's SLP vectoriser is left out for kernels for which it would confuse signed and unsigned integers."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu import finalise
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code import host_machine
from hip_runtime.drivers.cpu.passes.optimize import is_slp_safe, optimise

WORKER = """define internal i64 @spmd.worker(ptr noalias %.1) {
  %.40 = zext i32 %grid to i64
  %.41 = sext i32 %grid to i64
  ret i64 %.40
}

"""
SIGNED, UNSIGNED = "  %a = sext i16 %x to i32", "  %b = zext i8 %y to i32"
KNOWN, TRUTH, MANY = "  %b = zext nneg i8 %y to i32", "  %b = zext i1 %y to i32", "  %b = zext <4 x i8> %y to <4 x i32>"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([SIGNED, UNSIGNED], False),
        ([UNSIGNED, SIGNED], False),
        ([SIGNED], True),
        ([UNSIGNED], True),
        ([SIGNED, KNOWN], True),
        ([SIGNED, TRUTH, MANY], True),
    ],
)
def test_neighbours_are_joined_where_numbers_are_widened_in_one_way(lines: list[str], expected: bool) -> None:
    for before, after in (("", ""), (WORKER, ""), ("", WORKER)):
        text = "\n".join([f"{before}define void @k() {{", *lines, "  ret void\n}\n", after])
        assert is_slp_safe(text) is expected


def sum_of_larger(count: int, narrow: int, wide: int, predicate: str) -> str:
    """The lowest bits of every second number on the left, as far as they compare so with those on the right, summed."""
    kind, lines = f"i{wide}", []
    for place in range(count):
        lines += [
            f"%p.{place} = getelementptr i{narrow}, ptr %left, i64 {2 * place}",
            f"%q.{place} = getelementptr i{narrow}, ptr %right, i64 {place % 3}",
            f"%v.{place} = load i{narrow}, ptr %p.{place}", f"%w.{place} = load i{narrow}, ptr %q.{place}",
            f"%x.{place} = zext i{narrow} %v.{place} to {kind}", f"%y.{place} = sext i{narrow} %w.{place} to {kind}",
            f"%c.{place} = icmp {predicate} {kind} %x.{place}, %y.{place}",
            f"%z.{place} = zext i1 %c.{place} to {kind}", f"%m.{place} = and {kind} %x.{place}, %z.{place}",
            f"%s.{place} = add {kind} {f'%s.{place - 1}' if place else '0'}, %m.{place}",
        ]  # fmt: skip
    lines += [f"store {kind} %s.{count - 1}, ptr %out", "ret void"]
    return "define void @f(ptr noalias %out, ptr %left, ptr %right) {\n" + "\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("processor", ["x86-64", "x86-64-v3", "here"])
@pytest.mark.parametrize(("narrow", "wide"), [(8, 16), (8, 64), (16, 32), (32, 64)])
@pytest.mark.sample(5)
def test_numbers_with_and_without_signs_are_compared_as_what_they_are(processor: str, narrow: int, wide: int) -> None:
    here = host_machine.target_machine.__wrapped__()
    machine = here
    if processor != "here":
        if not here.triple.startswith("x86_64"):
            pytest.skip("needs an x86-64 processor")
        machine = llvm.Target.from_triple(here.triple).create_target_machine(cpu=processor, features="", opt=3)
    left = np.random.default_rng(7).integers(0, 2**narrow, 32).astype(f"u{narrow // 8}")
    right = np.array([2 ** (narrow - 2), -1, -(2 ** (narrow - 1))], f"i{narrow // 8}")
    for predicate, compare in (("sge", np.greater_equal), ("slt", np.less), ("ne", np.not_equal)):
        for count in (9, 16):
            x, y = (numbers.astype(f"i{wide // 8}") for numbers in (left[::2][:count], np.resize(right, count)))
            out = np.zeros(1, x.dtype)
            with LlvmContext() as scratch:
                module = scratch.read_text(sum_of_larger(count, narrow, wide, predicate))
                module.triple, module.data_layout = here.triple, str(here.target_data)
                optimise(module, machine)
                with llvm.create_mcjit_compiler(module, host_machine.target_machine.__wrapped__()) as engine:
                    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(engine.get_function_address("f"))
                    function(out.ctypes.data, left.ctypes.data, right.ctypes.data)
            assert out[0] == (x & compare(x, y)).sum(dtype=x.dtype)


NEIGHBOURS = """define void @f(ptr noalias %out, ptr noalias %left, ptr noalias %right) {
%x.0 = load double, ptr %left
%y.0 = load double, ptr %right
%s.0 = fadd double %x.0, %y.0
store double %s.0, ptr %out
%p.1 = getelementptr double, ptr %left, i64 1
%q.1 = getelementptr double, ptr %right, i64 1
%o.1 = getelementptr double, ptr %out, i64 1
%x.1 = load double, ptr %p.1
%y.1 = load double, ptr %q.1
%s.1 = fadd double %x.1, %y.1
store double %s.1, ptr %o.1
ret void
}
"""


def test_neighbours_are_joined_in_threads_that_run_one_after_another() -> None:
    machine = host_machine.target_machine()
    for as_vectors in (False, True):
        with LlvmContext() as scratch:
            module = scratch.read_text(NEIGHBOURS)
            module.triple, module.data_layout = machine.triple, str(machine.target_data)
            optimise(module, machine, as_vectors=as_vectors)
            assert ("<2 x double>" in str(module)) is not as_vectors


def test_gangs_leave_that_vectoriser_out(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def note(module: Any, machine: Any, *, as_vectors: bool) -> None:
        seen.append((as_vectors, gc.isenabled()))
        optimise(module, machine, as_vectors=as_vectors)

    monkeypatch.setattr(finalise, "optimise", note)
    code = kernel("store i32 %i, ptr %out\nret void\n", [("out", "ptr")])
    out = to_device(np.zeros(1, np.int32))
    for form in ("loop", "regions", "vectors"):
        with config.cpu_form.scope(form):
            function = device.load(code).function("k")
            function.launch(1, 1 if form == "loop" else 8, pack(function.kernel, out.address))
    assert [as_vectors for as_vectors, _ in seen] == [False, False, True]
    assert not any(collects for _, collects in seen)  # the collector pauses
    assert gc.isenabled()


def test_only_what_the_worker_calls_is_optimised(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def note(module: Any, machine: Any, *, as_vectors: bool) -> None:
        seen.append({function.name for function in module.functions if not function.is_declaration})
        optimise(module, machine, as_vectors=as_vectors)

    monkeypatch.setattr(finalise, "optimise", note)
    code = kernel("store i32 %i, ptr %out\nret void\n", [("out", "ptr")])
    out = to_device(np.zeros(1, np.int32))
    function = device.load(code).function("k")
    for form in ("loop", "vectors"):
        with config.cpu_form.scope(form):
            function.launch(1, 8 if form == "loop" else 16, pack(function.kernel, out.address))
    in_loop, in_vectors = seen
    assert {"spmd.worker", "k"} <= in_loop
    assert "spmd.worker" in in_vectors
    assert "k" not in in_vectors
    assert {"spmd.lane", "spmd.grid_dim.x", "spmd.dynamic_shared"}.isdisjoint(in_loop | in_vectors)


def test_a_kernel_that_widens_numbers_in_both_ways_runs(device: Device) -> None:
    """An unsigned number is less than a signed one, in each of four neighbours."""
    body = ["%k = zext i32 %i to i64", "%four = mul i64 %k, 4"]
    for lane in range(4):
        body += [
            f"%at.{lane} = add i64 %four, {lane}", f"%p.{lane} = getelementptr i8, ptr %left, i64 %at.{lane}",
            f"%q.{lane} = getelementptr i8, ptr %right, i64 %at.{lane}", f"%v.{lane} = load i8, ptr %p.{lane}",
            f"%w.{lane} = load i8, ptr %q.{lane}", f"%x.{lane} = zext i8 %v.{lane} to i32",
            f"%y.{lane} = sext i8 %w.{lane} to i32", f"%c.{lane} = icmp slt i32 %x.{lane}, %y.{lane}",
            f"%n.{lane} = zext i1 %c.{lane} to i8",
        ]  # fmt: skip
    for lane in range(4):
        body += [f"%o.{lane} = getelementptr i8, ptr %out, i64 %at.{lane}", f"store i8 %n.{lane}, ptr %o.{lane}"]
    left = np.random.default_rng(1).integers(0, 256, 40, np.uint8)
    right = np.random.default_rng(2).integers(-128, 128, 40, np.int8)
    code = kernel("\n".join([*body, "ret void\n"]), [("out", "ptr"), ("left", "ptr"), ("right", "ptr")])
    for form in ("auto", "loop", "regions", "vectors"):
        arrays = [to_device(array) for array in (np.zeros(40, np.uint8), left, right)]
        with config.cpu_form.scope(form):
            function = device.load(code).function("k")
            function.launch(2, 5, pack(function.kernel, *[array.address for array in arrays]))
        np.testing.assert_array_equal(arrays[0].copy_to_host(), left.astype(int) < right)
