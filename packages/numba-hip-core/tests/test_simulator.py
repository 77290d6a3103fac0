"""Kernels run by Python give what compiled ones give, and can be watched."""

from __future__ import annotations

import math
import pickle
import sys
import threading
import time
import traceback
from typing import Any

import numpy as np
import pytest
from numba import hip
from numba.core import types

from hip_runtime.errors import LaunchError
from numba_hip import config
from numba_hip.bfloat import bfloat16
from numba_hip.errors import KernelSignatureError
from numba_hip.simulator.schedule import Grid


def both(function: Any, grid: Any, block: Any, *args: Any, shared: int = 0) -> list[np.ndarray[Any, Any]]:
    """Run *function* simulated and compiled; the arrays after it, which have to be the same."""
    results = []
    for simulated in (False, True):
        copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        with config.simulator.scope(simulated):
            hip.jit(function)[grid, block, 0, shared](*copies)
        results.append([copy for copy in copies if isinstance(copy, np.ndarray)])
    for compiled, interpreted in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, interpreted)
    return results[1]


def test_threads_blocks_and_grids() -> None:
    def kernel(out: Any) -> None:
        x, y = hip.grid(2)
        if x < out.shape[0] and y < out.shape[1]:
            out[x, y] = 100 * x + y + 1000 * hip.blockIdx.x + 5 * hip.threadIdx.y + hip.gridsize(1) + hip.blockDim.y

    (out,) = both(kernel, (2, 2), (3, 2), np.zeros((5, 4)))
    assert out[4, 3] == 400 + 3 + 1000 + 5 + 6 + 2


def test_barriers_in_a_loop_and_shared_memory() -> None:
    def total(values: Any, sums: Any) -> None:
        part = hip.shared.array(64, types.float64)
        i = hip.threadIdx.x
        part[i] = values[hip.grid(1)]
        hip.syncthreads()
        step = 32
        while step:
            if i < step:
                part[i] += part[i + step]
            hip.syncthreads()
            step //= 2
        if i == 0:
            sums[hip.blockIdx.x] = part[0]

    _, sums = both(total, 2, 64, np.arange(128.0), np.zeros(2))
    assert sums.tolist() == [sum(range(64)), sum(range(64, 128))]


def test_threads_that_returned_are_not_waited_for() -> None:
    def kernel(out: Any) -> None:
        i = hip.grid(1)
        if i >= 5:
            return
        out[i] = hip.syncthreads_count(i < 3) + 10 * hip.syncthreads_or(i == 4) + 100 * hip.syncthreads_and(i < 4)

    (out,) = both(kernel, 1, 8, np.zeros(8))
    assert out.tolist() == [13] * 5 + [0] * 3


def test_dynamic_shared_memory_and_atomics() -> None:
    def kernel(out: Any, counts: Any) -> None:
        one = hip.shared.array(0, types.int32)
        i = hip.threadIdx.x
        one[i] = i
        hip.syncthreads()
        out[i] = one[one.size - 1 - i]
        hip.atomic.add(counts, i % 2, 1)
        hip.atomic.max(counts, 2, i)
        hip.atomic.inc(counts, 3, 5)

    out, counts = both(kernel, 1, 8, np.zeros(8), np.zeros(4, np.int32), shared=32)
    assert out.tolist() == list(range(8))[::-1]
    assert counts.tolist() == [4, 4, 7, 2]


def test_lanes_of_a_wave() -> None:
    def kernel(out: Any, bits: Any) -> None:
        i = hip.threadIdx.x
        out[i] = hip.shfl_xor(i, 1) + 100 * hip.shfl_down_sync(-1, i, 4, 8)
        if hip.laneid % 2 == 0:
            bits[i] = hip.ballot_sync(0xFFFF, i > 4)
        else:
            bits[i] = hip.activemask() + hip.match_any(i // 4) * (hip.warpsize > 1)
            bits[i] += hip.match_any_sync(-1, i // 4) + hip.match_all(i // 4)[0]

    both(kernel, 1, 16, np.zeros(16, np.int64), np.zeros(16, np.uint64))


def test_lanes_exchange_their_number_as_it_is() -> None:
    def kernel(out: Any, whole: Any) -> None:
        lane = hip.laneid
        out[lane, 0] = hip.shfl_up(lane, 1)
        out[lane, 1] = hip.shfl_xor_sync(-1, lane, 1)
        out[lane, 2] = hip.readlane(lane, 5) + hip.readfirstlane(hip.laneid)
        out[lane, 3] = hip.match_all_sync(-1, lane)[1]
        out[lane, 4] = hip.match_any(hip.laneid) == hip.lanemask_eq()
        out[lane, 5] = hip.fma(hip.laneid, 2.0, 1.0) + divmod(lane, 3)[1]
        whole[lane] = hip.shfl_down(hip.warpsize, 1) + lane.bit_count()

    out, _ = both(kernel, 1, 8, np.zeros((8, 6), np.int64), np.zeros(8, np.int64))
    assert out[3].tolist() == [2, 2, 5, 0, 1, 7]


NUMBERS = [
    ("void(int64[:], int32)", 0x00100000),
    ("void(int64[:], int32)", np.int64(-3)),
    ("void(int64[:], uint32)", 0x00100001),
    ("void(int64[:], uint8)", True),
    ("void(int64[:], int16)", 7.0),
    ("void(int64[:], int64)", 0x00100000),
    (["void(uint8[:], int64)", "void(int64[:], int16)"], 5),
]


@pytest.mark.parametrize(("signature", "number"), NUMBERS)
def test_integers_are_of_the_types_in_the_signature(signature: Any, number: Any) -> None:
    def kernel(out: Any, x: Any) -> None:
        out[0], out[1], out[2] = hip.clz(x), hip.popc(x), hip.clz(x + 1)
        out[3], out[4] = hip.brev(x) >> 1, hip.ffs(hip.brev(x))
        out[5], out[6] = x - 0x00100001, x * 1000003
        out[7] = (x == out[8]) + 10 * (out[8] > x) + 100 * (out[9] & x)
        out[8], out[9] = x // 3, math.sqrt(abs(x)) * 2

    results = []
    for simulated in (False, True):
        out = np.arange(10)
        with config.simulator.scope(simulated):
            hip.jit(signature)(kernel)[1, 1](out, number)
        results.append(out.tolist())
    assert results[0] == results[1]


def test_other_numbers_are_of_the_types_in_the_signature_too() -> None:
    signature = "void(complex128[:], float32, float64, float16, boolean, complex64)"

    def kernel(out: Any, single: Any, double: Any, half: Any, flag: Any, pair: Any) -> None:
        out[0], out[1], out[2], out[3], out[4] = single, double, half, flag, pair

    results = []
    for simulated in (False, True):
        out = np.zeros(5, np.complex128)
        with config.simulator.scope(simulated):
            hip.jit(signature)(kernel)[1, 1](out, 1 / 3, np.float32(1 / 3), 1 / 3, 5, 1 / 3 + 1j)
        results.append(out.tolist())
    assert results[0] == results[1]
    assert results[1][0] == np.float32(1 / 3)


def test_a_single_float_computes_with_numbers_in_64_bits() -> None:
    def kernel(out: Any, x: Any, single: Any) -> None:
        out[0], out[1], out[2], out[3] = x * 0.1, x / 3, x * single[0], round(x, 3) < 0.3426

    results = np.zeros((2, 4))
    for simulated, out in zip((False, True), results, strict=True):
        with config.simulator.scope(simulated):
            hip.jit("void(float64[:], float32, float32[:])")(kernel)[1, 1](out, 0.3425, np.float32([0.7]))
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":  # where an element computes in 64 bits with a float of Python's
        np.testing.assert_allclose(results[0, 2], results[1, 2], rtol=1e-7)
        results[0, 2] = results[1, 2]
    assert results[0].tolist() == results[1].tolist()


def test_numbers_that_numpy_does_not_have_stay_as_they_are() -> None:
    with config.simulator.scope(True):
        kernel = hip.jit(types.void(types.float64[:], bfloat16))(set_first)
    out = np.zeros(1)
    kernel[1, 1](out, 1.5)
    assert out[0] == 1.5


def set_first(out: Any, x: Any) -> None:
    out[0] = x


def test_numbers_that_do_not_fit_the_signature_are_refused() -> None:
    with config.simulator.scope(True):
        kernel = hip.jit("void(int64[:], int32)")(lambda out, x: None)
    with pytest.raises(TypeError, match=r"argument 'x' is 2147483648 \(int\); .* int32 there"):
        kernel[1, 1](np.zeros(1, np.int64), 2**31)


def test_a_grid_that_waits_as_a_whole_has_a_size() -> None:
    def wait(matrix: Any) -> None:
        hip.cg.this_grid().sync()

    with config.simulator.scope(True):
        kernel = hip.jit(wait)
    kernel[1, 1](np.zeros((2, 2), np.int32))
    overload = kernel.overloads[(types.int32[:, ::1],)]
    assert overload.max_cooperative_grid_blocks(32) == 1
    assert overload.max_cooperative_grid_blocks((4, 4), dynsmemsize=64) == 1
    assert kernel.signatures == []
    assert len(pickle.loads(pickle.dumps(kernel)).overloads) == 0


def test_a_module_has_no_number_of_a_lane_outside_of_kernels() -> None:
    assert hip.laneid is hip.laneid
    assert not isinstance(hip.laneid, int)
    assert "laneid" in dir(hip)


def test_a_barrier_of_the_grid() -> None:
    def kernel(values: Any, out: Any) -> None:
        i = hip.grid(1)
        values[i] = i + 1
        hip.cg.this_grid().sync()
        out[i] = values[values.size - 1 - i]

    _, out = both(kernel, 2, 3, np.zeros(6), np.zeros(6))
    assert out.tolist() == [6, 5, 4, 3, 2, 1]


def test_records_tuples_hints_and_arrays_of_the_device() -> None:
    with config.simulator.scope(True):

        @hip.jit(device=True)
        def twice(x: Any) -> Any:
            return 2 * x

        @hip.jit("void(float64[:])")
        def kernel(records: Any, pair: Any, read: Any, on_device: Any) -> None:
            records[0].a = twice(pair[0][1])
            read[0] = 7
            on_device[0] = records.size

    records = np.zeros(2, [("a", "f8"), ("b", "i4")])
    read, device_array = np.zeros(1), hip.to_device(np.zeros(3))
    kernel[1, 1](records, (np.array([1.0, 4.0]), 1), hip.In(read), device_array[::-1])
    assert records["a"][0] == 8
    assert read[0] == 0
    assert device_array.copy_to_host().tolist() == [0, 0, 2]
    with pytest.raises(TypeError, match="device function"):
        twice(1)


def test_what_the_last_thread_raises_ends_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """They unwind while it does, and none of them looks for another one to run; pytest fails if one of them raises."""

    def fail(grid: Grid, error: BaseException) -> None:
        original(grid, error)
        time.sleep(0.05)

    def kernel(out: Any) -> None:
        if hip.threadIdx.x == 2:
            raise ValueError("the last one")
        hip.syncthreads()
        out[hip.threadIdx.x] = 1

    original = Grid._fail
    monkeypatch.setattr(Grid, "_fail", fail)
    out = np.zeros(3)
    with config.simulator.scope(True), pytest.raises(ValueError, match="the last one"):
        hip.jit(kernel)[1, 3](out)
    assert not out.any()


def test_what_a_thread_raises_reaches_the_host_with_its_frames() -> None:
    with config.simulator.scope(True):

        @hip.jit
        def kernel(out: Any) -> None:
            out[hip.grid(1)] = 1
            hip.syncthreads()
            if hip.grid(1) == 3:
                raise ValueError("three")
            hip.syncthreads()

    out, before = np.zeros(4), threading.active_count()
    with pytest.raises(ValueError, match=r"tid=\[1, 0, 0\] ctaid=\[1, 0, 0\]: three") as caught:
        kernel[2, 2](out)
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.__cause__.__traceback__ is not None
    assert out.tolist() == [0, 0, 0, 0], "nothing is copied back"
    assert threading.active_count() == before


def test_an_index_out_of_range_is_an_index_error() -> None:
    with config.simulator.scope(True):

        @hip.jit
        def kernel(out: Any) -> None:
            out[hip.grid(1)] = 1

    with pytest.raises(IndexError, match=r"tid=\[3, 0, 0\]"):
        kernel[1, 4](np.zeros(3))


def test_barriers_that_not_all_threads_reach_are_told() -> None:
    with config.simulator.scope(True):

        @hip.jit
        def kernel(out: Any) -> None:
            if hip.threadIdx.x < 2:
                hip.syncthreads()
            else:
                hip.syncthreads()

    before = threading.active_count()
    with pytest.raises(ValueError, match=r"2 at .*test_simulator\.py:\d+; 2 at .*test_simulator\.py") as caught:
        kernel[1, 4](np.zeros(1))
    assert "for ever" in str(caught.value)
    assert threading.active_count() == before


def test_a_tracer_sees_the_lines_of_a_kernel() -> None:
    with config.simulator.scope(True):

        @hip.jit
        def kernel(out: Any) -> None:
            i = hip.grid(1)
            out[i] = i

    seen = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is kernel.py_func.__code__ and event == "return":
            seen.append(frame.f_locals["i"])
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        kernel[2, 2](np.zeros(4))
    finally:
        sys.settrace(previous)
    assert seen == [0, 1, 2, 3]


def test_launches_that_cannot_be_are_refused() -> None:
    with config.simulator.scope(True):

        @hip.jit
        def kernel(out: Any) -> None:
            out[0] = 1

    out = np.zeros(1)
    with pytest.raises(ValueError, match="5000"):
        kernel[1, 5000](out)
    with pytest.raises(TypeError, match="takes 1 arguments"):
        kernel[1, 1](out, 2)
    for wrong in (-8, 1 << 20, 8.0):
        with pytest.raises(LaunchError, match=f"dynamic_shared .* {wrong}"):
            kernel[1, 1, 0, wrong](out)
    assert out[0] == 0
    says = "return type int32; it can be void only"
    with config.simulator.scope(True), pytest.raises(KernelSignatureError, match=says):
        hip.jit("int32(int32)")(kernel.py_func)


TABLE = np.arange(3.0)


def test_constants_cannot_be_written_to() -> None:
    with config.simulator.scope(True):

        @hip.jit
        def kernel(out: Any) -> None:
            table = hip.const.array_like(TABLE)
            table[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        kernel[1, 1](np.zeros(1))


def test_what_the_simulator_does_not_know_is_named() -> None:
    with config.simulator.scope(True):

        @hip.jit
        def kernel(out: Any) -> None:
            out[0] = hip.fp16.hsin(out[0])

    with pytest.raises(NotImplementedError, match="fp16.hsin"):
        kernel[1, 1](np.zeros(1, np.float16))


def test_scopes_of_atomics() -> None:
    def kernel(counts: Any) -> None:
        hip.atomic.add(counts, 0, 1, scope="block")
        hip.atomic.cas(counts, 1, 0, 3, scope="system")

    (counts,) = both(kernel, 1, 4, np.zeros(2, np.int64))
    assert counts.tolist() == [4, 3]


MISTAKES = [
    (lambda a: hip.gird(1), AttributeError, "hip has no gird; did you mean 'grid'"),
    (lambda a: hip.atomic.ad(a, 0, 1), AttributeError, "hip.atomic has no ad; did you mean 'add'"),
    (lambda a: hip.threadIdx.w, AttributeError, "Unknown attribute 'w' of hip.threadIdx; there are x, y and z"),
    (lambda a: math.sqroot(a[0]), AttributeError, "math has no sqroot; did you mean 'sqrt'"),
    (lambda a: valeus, NameError, "name 'valeus' is not defined; did you mean 'values'"),  # noqa: F821 - is the mistake
    (lambda a: hip.atomic.add(a, 0), TypeError, r"hip.atomic.add takes \(ary, idx, val, scope\); this call passes"),
    (lambda a: hip.syncthreads(1), TypeError, r"hip.syncthreads takes \(\); this call passes \(1\)"),
    (lambda a: hip.sinf(1.0), NotImplementedError, "the simulator does not have HIP's function hip.sinf"),
    (lambda a: a[9], IndexError, "index 9 is out of bounds for axis 0 with size 4"),
    (lambda a: hip.atomic.add(a, 0, 1, scope="grid"), ValueError, "hip.atomic.add: the scope has to be one of"),
    (lambda a: setattr(hip.threadIdx, "x", 3), AttributeError, "hip.threadIdx.x cannot be set: the launch decides"),
    (lambda a: a[0], KernelSignatureError, r"kernel <lambda> returns .*0.0\)?; a kernel returns nothing"),
]

values = ()


@pytest.mark.parametrize(("mistake", "kind", "says"), MISTAKES)
def test_mistakes_are_told_as_in_compiled_kernels(mistake: Any, kind: type[Exception], says: str) -> None:
    with config.simulator.scope(True):
        kernel = hip.jit(mistake)
    for configured in (kernel[1, 2], kernel[1, 2, hip.stream()]):
        with pytest.raises(kind, match=rf"tid=\[0, 0, 0\] ctaid=\[0, 0, 0\]: {says}") as caught:
            configured(np.zeros(4))
        shown = "".join(traceback.format_exception(kind, caught.value, caught.value.__traceback__))
        assert "mistake(" not in shown
        if sys.version_info >= (3, 11):  # before, the outermost frame stays
            assert "/numba_hip/" not in shown
        assert "<lambda>" in shown, "the line of the kernel"
    with config.full_tracebacks.scope(True), pytest.raises(kind) as caught:
        kernel[1, 2](np.zeros(4))
    assert "/numba_hip/simulator/schedule.py" in "".join(
        traceback.format_exception(kind, caught.value, caught.value.__traceback__)
    )
