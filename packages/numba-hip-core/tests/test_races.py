"""Kernels with ``debug="race"``: what races is reported by its lines, and what does not is not reported."""

import inspect
import os
import signal
import sys
import threading
import warnings
from enum import EnumMeta
from pathlib import Path

import numpy as np
import pytest
from numba import float32, float64, int32
from numba.core import entrypoints

import numba_hip as hip
from hip_runtime import config as runtime_config
from hip_runtime.protocols import array_interface
from numba_hip import config
from numba_hip._numba.identity import load_extensions
from numba_hip.errors import OptionError, RaceError, RaceWarning
from numba_hip.races import detector
from numba_hip.races.findings import Access, Finding, merge, races

BLOCK = 64


pytestmark = pytest.mark.cpu_device("the CPU device alone reports races")


@pytest.fixture(autouse=True, scope="module")
def memory_is_watched():
    """What was allocated before the first launch that is watched counts as written, so each test comes after one."""

    @hip.jit(debug="race")
    def nothing():
        pass

    nothing[1, 1]()


def line_of(kernel, mark):
    """The line of *kernel* that ends with the comment *mark*."""
    lines, first = inspect.getsourcelines(kernel.py_func)
    (found,) = (first + number for number, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}"))
    return found


def found_in(launch, *args):
    """What a launch reports: all findings, none where it raises nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            launch(*args)
        except RaceError as error:
            return error.findings
        except RaceWarning as warning:
            return warning.findings
    return ()


def assert_races(kernel, findings, *expected):
    """*findings* are those *expected*: (first mark, second mark, start of what happened)."""
    shown = [(one.lines, one.what) for one in findings]
    for first, second, what in expected:
        lines = line_of(kernel, first), line_of(kernel, second)
        assert any(one[0] == lines and one[1].startswith(what) for one in shown), (lines, what, shown)
    pairs = {(line_of(kernel, first), line_of(kernel, second)) for first, second, _ in expected}
    assert {lines for lines, _ in shown} == pairs


# The two public programs.


@pytest.mark.long
def test_shared_number_that_is_cleared_while_others_read_it():
    @hip.jit(debug="race")
    def kernel(a, out):
        s = hip.shared.array(1, float64)
        i = hip.threadIdx.x
        if i == 0:
            s[0] = a[hip.blockIdx.x]
        hip.syncthreads()
        out[hip.grid(1)] = s[0]  # read
        if i == 0:
            s[0] = 0  # clear
        hip.syncthreads()
        out[hip.grid(1)] += s[0]

    findings = found_in(kernel[2, BLOCK], np.ones(2), np.zeros(2 * BLOCK))
    assert_races(kernel, findings, ("read", "clear", "read and overwritten by another thread between two barriers"))
    (finding,) = findings
    assert (finding.space, finding.array, finding.index, finding.nbytes) == ("shared", "s", (0,), 8)
    assert (finding.kind, finding.relations, finding.count) == ("race", ("wave",), 2 * (BLOCK - 1))
    assert (finding.second.block, finding.second.thread, finding.second.kind) == ((0, 0, 0), (0, 0, 0), "write")
    assert finding.first.thread != (0, 0, 0)
    assert finding.first.file == __file__
    assert "lock step hides it on AMD hardware" in str(finding)


@pytest.mark.long
def test_number_that_all_read_and_then_overwrite():
    @hip.jit(debug="race")
    def kernel(a):
        value = a[0]  # read
        a[0] = value + hip.grid(1)  # write

    a = np.zeros(4)
    findings = found_in(kernel[1, 128], a)
    assert_races(
        kernel,
        findings,
        ("read", "write", "read and overwritten by another thread between two barriers"),
        ("write", "write", "written and overwritten by another thread between two barriers"),
    )
    assert {one.relations for one in findings} == {("block", "wave")}
    assert not a.any()  # as with other errors, host arrays are what they were


# Other programs that race, each with what mends it.


def test_sum_without_atomics():
    @hip.jit(debug="race")
    def bump(a):
        a[0] += 1  # bump

    @hip.jit(debug="race")
    def mended(a):
        hip.atomic.add(a, 0, 1)

    findings = found_in(bump[4, 128], np.zeros(1))
    assert {one.what.split(" by ")[0] for one in findings} == {"read and overwritten", "written and overwritten"}
    for one in findings:
        assert one.lines == (line_of(bump, "bump"),) * 2
        assert one.relations == ("grid", "block", "wave")
        assert (one.array, one.index, one.space) == ("a", (0,), "device")
        assert one.count == 511
    a = np.zeros(1)
    assert found_in(mended[4, 128], a) == ()
    assert a[0] == 512


def test_histogram():
    @hip.jit(debug="race")
    def plain(values, bins):
        i = hip.grid(1)
        if i < values.size:
            bins[values[i]] += 1  # bump

    @hip.jit(debug="race")
    def mended(values, bins):
        own = hip.shared.array(8, int32)
        if hip.threadIdx.x < 8:
            own[hip.threadIdx.x] = 0
        hip.syncthreads()
        i = hip.grid(1)
        if i < values.size:
            hip.atomic.add(own, values[i], 1)
        hip.syncthreads()
        if hip.threadIdx.x < 8:
            hip.atomic.add(bins, hip.threadIdx.x, own[hip.threadIdx.x])

    values = np.random.default_rng(1).integers(0, 8, 500)
    findings = found_in(plain[4, 128], values, np.zeros(8, np.int64))
    assert {one.array for one in findings} == {"bins"}
    assert_races(plain, findings, ("bump", "bump", "read and overwritten"))
    bins = np.zeros(8, np.int64)
    assert found_in(mended[4, 128], values, bins) == ()
    np.testing.assert_array_equal(bins, np.bincount(values, minlength=8))


@pytest.mark.parametrize("missing", ["behind the loads", "behind the sums", "nothing"])
@pytest.mark.sample(2)
def test_product_of_matrices_in_tiles(missing):
    before, after = missing != "behind the loads", missing != "behind the sums"

    @hip.jit(debug="race")
    def product(a, b, c):
        ta, tb = hip.shared.array((4, 4), float32), hip.shared.array((4, 4), float32)
        x, y = hip.threadIdx.x, hip.threadIdx.y
        row, column = hip.grid(2)
        total = float32(0)
        for tile in range(a.shape[1] // 4):
            ta[x, y] = a[row, tile * 4 + y]  # load a
            tb[x, y] = b[tile * 4 + x, column]  # load b
            if before:
                hip.syncthreads()
            for k in range(4):
                total += ta[x, k] * tb[k, y]  # sum
            if after:
                hip.syncthreads()
        c[row, column] = total

    a, b = np.random.default_rng(2).random((2, 8, 8), np.float32)
    c = np.zeros((8, 8), np.float32)
    findings = found_in(product[(2, 2), (4, 4)], a, b, c)
    if missing == "nothing":
        assert findings == ()
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
        return
    assert {one.array for one in findings} == {"ta", "tb"}
    assert_races(product, findings, ("load a", "sum", "written and read"), ("load b", "sum", "written and read"))


def test_reduction_in_shared_memory():
    def make(waits):
        @hip.jit(debug="race")
        def reduce(a, out):
            s = hip.shared.array(128, float64)
            i = hip.threadIdx.x
            s[i] = a[hip.grid(1)]  # load
            if waits:
                hip.syncthreads()
            step = hip.blockDim.x // 2
            while step > 0:
                if i < step:
                    s[i] += s[i + step]  # add
                if waits:
                    hip.syncthreads()
                step //= 2
            if i == 0:
                out[hip.blockIdx.x] = s[0]

        return reduce

    a = np.arange(256.0)
    broken = make(False)
    findings = found_in(broken[2, 128], a, np.zeros(2))
    assert_races(broken, findings, ("load", "add", "written and read"), ("add", "add", "read and overwritten"))
    out = np.zeros(2)
    assert found_in(make(True)[2, 128], a, out) == ()
    np.testing.assert_array_equal(out, a.reshape(2, 128).sum(axis=1))


def test_stencil_in_place():
    @hip.jit(debug="race")
    def stencil(a, out):
        i = hip.grid(1) + 1
        if i < a.size - 1:
            out[i] = (a[i - 1] + a[i] + a[i + 1]) / 3  # stencil

    a = hip.to_device(np.arange(100.0))
    findings = found_in(stencil[2, 64], a, a)
    assert_races(stencil, findings, ("stencil", "stencil", "read and overwritten"))
    assert found_in(stencil[2, 64], a, hip.device_array_like(a)) == ()


def test_sum_of_a_wave_through_shared_memory():
    def make(waits):
        @hip.jit(debug="race", wave_size=32)
        def reduce(a, out):
            s = hip.shared.array(64, float64)
            i = hip.threadIdx.x
            s[i] = a[i]  # load
            for step in (16, 8, 4, 2, 1):
                if waits:
                    hip.syncwarp()
                value = s[i ^ step]
                if waits:
                    hip.syncwarp()
                s[i] += value  # add
            out[i] = s[i]

        return reduce

    a = np.arange(64.0)
    findings = found_in(make(False)[1, 64], a, np.zeros(64))
    assert findings
    assert {one.relations for one in findings} == {("wave",)}
    assert {one.array for one in findings} == {"s"}
    out = np.zeros(64)
    assert found_in(make(True)[1, 64], a, out) == ()
    np.testing.assert_array_equal(out, a.reshape(2, 32).sum(axis=1).repeat(32))


@pytest.mark.long
def test_rows_that_others_store_and_the_next_round_overwrites():
    """Flux differences of the NAS LU benchmark: tiles that overlap, computed row by row, stored element by element."""

    def make(waits):
        def advance(rows):
            s = hip.shared.array(3 * 16, float64)
            i = hip.threadIdx.x
            start = 0
            while start + i < rows.size // 3:
                count = min(rows.size // 3 - start, hip.blockDim.x)
                for part in range(3):
                    s[i + part * count] = rows[3 * start + i + part * count]  # load
                hip.syncthreads()
                if 1 <= i < count - 1:
                    for part in range(3):
                        s[3 * i + part] *= part + 2  # compute
                if waits:
                    hip.syncthreads()
                for part in range(3):
                    rows[3 * start + i + part * count] = s[i + part * count]  # store
                if waits:
                    hip.syncthreads()
                start += hip.blockDim.x - 2

        return advance

    rows = np.arange(1, 27 * 3 + 1, dtype=np.float64)
    expected = rows.reshape(-1, 3).copy()
    expected[1:-1] *= (2, 3, 4)
    racing, mended = (hip.jit(debug="race")(make(waits)) for waits in (False, True))
    assert_races(
        racing,
        found_in(racing[1, 16], rows.copy()),
        ("compute", "store", "written and read by another thread between two barriers"),
        ("load", "compute", "written and"),
        ("load", "store", "read and overwritten by another thread between two barriers"),
    )
    advanced = rows.copy()
    assert found_in(mended[1, 16], advanced) == ()
    np.testing.assert_array_equal(advanced.reshape(-1, 3), expected)
    advanced = rows.copy()
    with runtime_config.cpu_lockstep.scope(True):
        hip.jit(racing.py_func)[1, 16](advanced)
    np.testing.assert_array_equal(advanced.reshape(-1, 3), expected)


def test_waves_of_a_block_are_not_ordered_by_their_own_barriers():
    @hip.jit(debug="race", wave_size=32)
    def kernel(out):
        s = hip.shared.array(64, int32)
        i = hip.threadIdx.x
        s[i] = i  # write
        hip.syncwarp()
        out[i] = s[63 - i]  # read

    findings = found_in(kernel[1, 64], np.zeros(64, np.int32))
    assert_races(kernel, findings, ("write", "read", "written and read by another thread between two barriers"))
    assert findings[0].relations == ("block",)


def test_plain_reads_of_what_atomics_change():
    @hip.jit(debug="race")
    def kernel(bins, out):
        hip.atomic.add(bins, 0, 1)  # add
        out[hip.grid(1)] = bins[0]  # read

    findings = found_in(kernel[2, 32], np.zeros(1, np.int64), np.zeros(64))
    assert_races(kernel, findings, ("add", "read", "changed by an atomic operation, and read without one"))
    assert {findings[0].first.kind, findings[0].second.kind} == {"atomic", "read"}


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_extremes_of_floats_are_atomic(name, dtype):
    update = getattr(hip.atomic, name)

    @hip.jit(debug="race")
    def kernel(a, values, reads):
        i = hip.grid(1)
        update(a, 0, values[i])  # update
        if reads and i == 0:
            values[0] = a[0]  # read

    steps = np.arange(64)
    start, values = np.zeros(1, dtype), np.where(steps % 2, steps, -steps).astype(dtype)
    assert not found_in(kernel[2, 32], start.copy(), values, False)
    findings = found_in(kernel[2, 32], start, values, True)
    assert_races(kernel, findings, ("update", "read", "changed by an atomic operation, and read without one"))


def test_same_value_is_a_warning():
    @hip.jit(debug="race")
    def kernel(flag):
        flag[0] = 1  # set

    flag = np.zeros(1)
    with pytest.warns(RaceWarning, match="with the same value") as caught:
        kernel[2, 64](flag)
    assert flag[0] == 1
    (finding,) = caught[0].message.findings
    assert finding.same_value
    assert finding.lines == (line_of(kernel, "set"),) * 2


# Memory that nobody wrote.


def test_shared_memory_that_nobody_wrote():
    @hip.jit(debug="race")
    def kernel(out):
        s = hip.shared.array(64, float32)
        i = hip.threadIdx.x
        if i < 48:
            s[i] = i
        hip.syncthreads()
        out[hip.grid(1)] = s[i]  # read

    (finding,) = found_in(kernel[3, 64], np.zeros(192))
    assert (finding.kind, finding.first, finding.second.line) == ("uninitialised", None, line_of(kernel, "read"))
    assert (finding.array, finding.index, finding.count) == ("s", (48,), 48)
    assert "read before anybody in this block wrote it" in str(finding)


def test_shared_memory_of_the_block_before_is_not_that_of_this_one():
    @hip.jit(debug="race")
    def kernel(out):
        s = hip.shared.array(1, float32)
        if hip.blockIdx.x == 0:
            s[0] = 1
        out[hip.blockIdx.x] = s[0]  # read

    (finding,) = found_in(kernel[2, 1], np.zeros(2))
    assert (finding.second.block, finding.second.line) == ((1, 0, 0), line_of(kernel, "read"))


def test_device_memory_that_nobody_wrote():
    @hip.jit(debug="race")
    def copy(a, out):
        i = hip.grid(1)
        if i < a.size:
            out[i] = a[i]  # read

    fresh = hip.device_array(100)
    (finding,) = found_in(copy[2, 64], fresh, np.zeros(100))
    assert (finding.kind, finding.array, finding.index, finding.count) == ("uninitialised", "a", (0,), 100)
    assert "read before anybody in the program wrote it" in str(finding)
    fresh[:60] = 1.0
    (finding,) = found_in(copy[2, 64], fresh, np.zeros(100))
    assert (finding.index, finding.count) == ((60,), 40)
    fresh[60:].copy_to_device(np.ones(40))
    other = hip.device_array(100)
    assert found_in(copy[2, 64], fresh, other) == ()
    assert found_in(copy[2, 64], other, np.zeros(100)) == ()  # written by the kernel
    third = hip.device_array(100)
    third.copy_to_device(hip.device_array(100))  # nobody wrote that
    assert len(found_in(copy[2, 64], third, np.zeros(100))) == 1


def test_strided_and_small_elements_are_told_apart():
    @hip.jit(debug="race")
    def copy(a, out):
        i = hip.grid(1)
        out[i] = a[i]

    bytes_ = hip.device_array(64, np.uint8)
    bytes_[::2].copy_to_device(np.ones(32, np.uint8))
    assert found_in(copy[1, 32], bytes_[::2], np.zeros(32, np.uint8)) == ()
    (finding,) = found_in(copy[1, 32], bytes_[1::2], np.zeros(32, np.uint8))
    assert (finding.count, finding.nbytes) == (32, 1)
    assert found_in(copy[1, 32], np.ones(32, np.uint8), bytes_[1::2]) == ()  # neighbours do not race
    assert found_in(copy[1, 64], bytes_, np.zeros(64, np.uint8)) == ()


def test_memory_that_others_can_write_to_counts_as_written():
    @hip.jit(debug="race")
    def copy(a, out):
        i = hip.grid(1)
        out[i] = a[i]

    @hip.jit
    def fill(a):
        a[hip.grid(1)] = 1

    for array in (hip.mapped_array(8), hip.managed_array(8), hip.pinned_array(8)):
        assert found_in(copy[1, 8], array, np.zeros(8)) == ()
    shared = hip.device_array(8)
    assert array_interface(shared)["shape"] == (8,)
    assert found_in(copy[1, 8], shared, np.zeros(8)) == ()
    filled = hip.device_array(8)
    fill[1, 8](filled)  # a kernel that does not tell what it writes
    assert found_in(copy[1, 8], filled, np.zeros(8)) == ()


# What is in order.


def test_last_block_adds_what_the_others_left():
    @hip.jit(debug="race")
    def total(a, parts, count, out):
        s = hip.shared.array(64, float64)
        last = hip.shared.array(1, int32)
        i = hip.threadIdx.x
        s[i] = a[hip.grid(1)]
        hip.syncthreads()
        if i == 0:
            part = 0.0
            for k in range(64):
                part += s[k]
            parts[hip.blockIdx.x] = part
            hip.threadfence()
            last[0] = hip.atomic.inc(count, 0, hip.gridDim.x - 1) == hip.gridDim.x - 1
        hip.syncthreads()
        if last[0] and i == 0:
            everything = 0.0
            for k in range(hip.gridDim.x):
                everything += parts[k]
            out[0] = everything
            count[0] = 0

    a, out = np.arange(512.0), np.zeros(1)
    assert found_in(total[8, 64], a, hip.device_array(8), np.zeros(1, np.uint32), out) == ()
    assert out[0] == a.sum()


def test_last_block_without_a_fence_races():
    @hip.jit(debug="race")
    def total(parts, count, out):
        parts[hip.blockIdx.x] = 1  # write
        if hip.atomic.add(count, 0, 1) == hip.gridDim.x - 1:
            for k in range(hip.gridDim.x):
                out[0] += parts[k]  # read

    findings = found_in(total[4, 1], np.zeros(4), np.zeros(1, np.int32), np.zeros(1))
    assert_races(total, findings, ("write", "read", "written and read by a thread of another block"))


def test_locks():
    @hip.jit(debug="race")
    def count(lock, value):
        while hip.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        hip.threadfence()
        value[0] += 1
        hip.threadfence()
        hip.atomic.exch(lock, 0, 0)

    value = np.zeros(1)
    assert found_in(count[100, 1], np.zeros(1, np.int32), value) == ()
    assert value[0] == 100


def test_whole_block_is_released_by_one_thread():
    @hip.jit(debug="race")
    def kernel(data, flag, out):
        i = hip.threadIdx.x
        if hip.blockIdx.x == 0:
            data[i] = i
            hip.syncthreads()
            if i == 0:
                hip.threadfence()
                hip.atomic.exch(flag, 0, 1)
        else:
            if i == 0:
                while hip.atomic.add(flag, 0, 0) == 0:
                    pass
                hip.threadfence()
            hip.syncthreads()
            out[i] = data[63 - i]

    out = np.zeros(64)
    assert found_in(kernel[2, 64], hip.device_array(64), np.zeros(1, np.int32), out) == ()
    np.testing.assert_array_equal(out, np.arange(64.0)[::-1])


def test_barriers_of_the_grid():
    def make(waits):
        @hip.jit(debug="race")
        def kernel(a, b):
            i = hip.grid(1)
            grid = hip.cg.this_grid()
            a[i] = i  # write
            grid.sync() if waits else hip.syncthreads()
            b[i] = a[a.size - 1 - i]  # read

        return kernel

    b = np.zeros(128)
    assert found_in(make(True)[4, 32], hip.device_array(128), b) == ()
    np.testing.assert_array_equal(b, np.arange(128.0)[::-1])
    broken = make(False)
    findings = found_in(broken[4, 32], np.zeros(128), b)
    assert_races(broken, findings, ("write", "read", "written and read by a thread of another block"))
    assert findings[0].relations == ("grid",)


def test_dynamic_shared_memory_and_shuffles():
    @hip.jit(debug="race")
    def kernel(a, out):
        s = hip.shared.array(0, float64)
        i = hip.threadIdx.x
        value = a[hip.grid(1)]
        for step in (32, 16, 8, 4, 2, 1):
            value += hip.shfl_down(value, step)
        if i % 64 == 0:
            s[i // 64] = value
        hip.syncthreads()
        if i == 0:
            out[hip.blockIdx.x] = s[0] + s[1]

    a, out = np.arange(256.0), np.zeros(2)
    assert found_in(kernel[2, 128, 0, 16], a, out) == ()
    np.testing.assert_array_equal(out, a.reshape(2, 128).sum(axis=1))


def test_records_tuples_and_fortran_arrays():
    kind = np.dtype([("a", np.int8), ("b", np.float32), ("c", np.int16)], align=True)

    @hip.jit(debug="race")
    def fields(records, which):
        i, k = hip.grid(2)
        if i == 0:
            records[k].a = k
        elif i == 1:
            records[k].b = k
        else:
            records[k].c = which[0][i, k]

    @hip.jit(debug="race")
    def same(matrix):
        i, k = hip.grid(2)
        matrix[i, k // 2] = i + k  # write

    records, which = np.zeros(8, kind), np.asfortranarray(np.arange(24, dtype=np.int16).reshape(3, 8))
    assert found_in(fields[1, (3, 8)], records, (which, 1.0)) == ()
    np.testing.assert_array_equal(records["c"], which[2])
    np.testing.assert_array_equal(records["b"], np.arange(8))
    matrix = np.zeros((3, 4), order="F")
    (finding,) = found_in(same[1, (3, 8)], matrix)
    assert (finding.array, finding.index, finding.count) == ("matrix", (0, 0), 12)
    (finding,) = found_in(same[1, (3, 8)], hip.to_device(np.zeros((6, 4)))[::-2])
    assert (finding.index, finding.offset) == ((0, 0), 128)


def test_device_functions_and_private_arrays_have_lines_and_do_not_race():
    @hip.jit(device=True)
    def store(values, i, own):
        for k in range(4):
            own[k] = i
        values[i // 2] = own[3]  # store

    @hip.jit(debug="race")
    def kernel(values):
        own = hip.local.array(4, float64)
        store(values, hip.grid(1), own)

    (finding,) = found_in(kernel[1, 32], np.zeros(16))
    assert (finding.lines, finding.second.function) == ((line_of(store, "store"),) * 2, "store")
    assert finding.count == 16


def test_numba_functions_count_as_the_line_that_calls_them():
    @hip.jit(debug="race")
    def kernel(values, out):
        out[0] = values.sum()  # sum
        values[hip.grid(1)] = 1.5  # write

    findings = found_in(kernel[1, 4], np.arange(8.0), np.zeros(1))
    assert ("values", (line_of(kernel, "sum"), line_of(kernel, "write"))) in {
        (one.array, one.lines) for one in findings
    }


# How it is asked for, and what comes out.


def test_error_and_its_findings():
    @hip.jit(debug="race")
    def kernel(a):
        a[0] += hip.grid(1)

    races(clear=True)
    with pytest.raises(
        RaceError, match=r"kernel kernel: 2 races\n  1\. read and overwritten by another thread"
    ) as caught:
        kernel[1, 32](np.zeros(1))
    error = caught.value
    assert (error.kernel, len(error.findings), error.lost) == ("kernel", 2, 0)
    assert races() == list(error.findings)
    assert races(clear=True)
    assert races() == []
    assert isinstance(error.findings[0], Finding)
    assert isinstance(error.findings[0].second, Access)
    stream = hip.stream()
    with pytest.raises(RaceError):
        kernel[1, 32, stream](hip.to_device(np.zeros(1)))
    stream.synchronize()
    a = np.zeros(1)
    kernel[1, 1](a)  # the device goes on


@pytest.mark.long
def test_setting():
    @hip.jit
    def kernel(a):
        a[0] += hip.grid(1)

    with runtime_config.cpu_races.scope("1"), pytest.raises(RaceError):
        kernel[1, 32](np.zeros(1))

    @hip.jit
    def other(a):
        a[0] += hip.grid(1)

    a = np.zeros(1)
    with runtime_config.cpu_races.scope("warn"), pytest.warns(RaceWarning, match="2 races"):
        other[1, 32](a)
    assert a[0] == np.arange(32).sum()


def test_a_warning_is_for_the_line_of_the_launch():
    @hip.jit
    def kernel(a):
        a[0] += hip.grid(1)

    a = np.zeros(1)
    with runtime_config.cpu_races.scope("warn"):
        for launch in (lambda: kernel[1, 32](a), lambda: kernel[1, 32](hip.to_device(a)), lambda: kernel.forall(32)(a)):
            with pytest.warns(RaceWarning) as caught:
                launch()
            assert caught[0].filename == __file__
            assert caught[0].lineno == launch.__code__.co_firstlineno


@pytest.mark.long
def test_kernels_of_the_library_do_not_race():
    with runtime_config.cpu_races.scope("1"):

        @hip.reduce
        def add(x, y):
            return x + y

        @hip.vectorize(["float64(float64, float64)"])
        def twice(x, y):
            return 2 * x + y

        a = np.arange(1000.0)
        assert add(a) == a.sum()
        np.testing.assert_array_equal(twice(a, a), 3 * a)
        states = hip.random.create_xoroshiro128p_states(64, seed=1)

        @hip.jit
        def draw(states, out):
            i = hip.grid(1)
            out[i] = hip.random.xoroshiro128p_uniform_float64(states, i)

        out = np.zeros(64)
        assert found_in(draw[2, 32], states, out) == ()
        assert 0 < out.mean() < 1


def test_options_that_cannot_be():
    def kernel(a):
        a[0] = 1

    with pytest.raises(OptionError, match="debug is 'races'; it can be a bool, or 'race'"):
        hip.jit(debug="races")(kernel)
    with pytest.raises(Exception, match="only the CPU device reports races, not gfx942"):
        hip.compile(hip.jit(debug="race")(kernel), "(float64[::1],)", target="gfx942")
    with config.simulator.scope(True), pytest.raises(OptionError, match="only the CPU device finds races"):
        hip.jit(debug="race")(kernel)
    with runtime_config.cpu_races.scope("1"):  # which is of the CPU device alone
        assert "s_endpgm" in hip.jit(kernel).inspect_asm("(float64[::1],)", target="gfx942")


def test_findings_that_say_the_same_are_merged():
    def access(kind, line, thread):
        return Access(kind, "f.py", line, "k", (0, 0, 0), (thread, 0, 0))

    def finding(first, second, relation, count):
        return Finding("k", first, second, "device", "a", (0,), 0, 64, 8, (relation,), False, count)

    merged = merge(
        [
            finding(access("write", 9, 0), access("read", 7, 1), "wave", 3),
            finding(access("read", 7, 1), access("write", 9, 70), "block", 4),
            finding(None, access("read", 7, 1), "wave", 1),
        ]
    )
    (one,) = merged
    assert (one.count, one.relations, one.lines) == (7, ("block", "wave"), (7, 9))
    assert (one.first.thread, one.second.thread) == ((1, 0, 0), (70, 0, 0))
    assert one.what == "read and overwritten by another thread between two barriers"


# The detector's machine code.


def test_the_detector_is_compiled_once_for_all_processes(monkeypatch):
    @hip.jit(debug="race")
    def kernel(a):
        a[0] = hip.threadIdx.x

    def compile_again(*args, **kws):
        raise AssertionError("the detector is compiled again")

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    detector.compiled_note.cache_clear()
    first = detector.compiled_note()  # from the cache, or compiled
    detector.compiled_note.cache_clear()
    monkeypatch.setattr(detector, "cfunc", compile_again)
    again = detector.compiled_note()
    assert again.image == first.image
    assert again.entry != first.entry
    assert found_in(kernel[1, BLOCK], np.zeros(1))
    monkeypatch.setattr(detector, "_SOURCES", (Path(__file__),))
    detector.compiled_note.cache_clear()
    with pytest.raises(AssertionError, match="compiled again"):
        detector.compiled_note()


def test_all_that_the_detector_is_compiled_from_decides_whether_its_code_is_used():
    """Functions and numbers that `note` and what it calls refer to come from the modules that are digested."""
    seen, wanted, found = set(), [detector.note], set()
    while wanted:
        function = wanted.pop()
        seen.add(function)
        found.add(Path(function.__code__.co_filename))
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            compiled = getattr(value, "py_func", None) or getattr(value, "_defn", None)  # a function or an intrinsic
            if compiled is not None and compiled not in seen:
                wanted.append(compiled)
            elif isinstance(value, EnumMeta):
                found.add(Path(sys.modules[value.__module__].__file__))
    ours = {file for file in found if "numba_hip" in file.parts}
    assert len(ours) == 4
    assert ours == set(detector._SOURCES)


# What is around kernels that are observed.


def test_a_path_that_holds_no_text(monkeypatch):
    """Importing passes over it; Numba looks for its extensions when it first compiles, and failed on it."""

    @hip.jit(debug="race")
    def kernel(a):
        hip.syncthreads()
        a[0] = hip.threadIdx.x

    path = [None, *sys.path, 7.5]
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.setattr(entrypoints, "_already_initialized", False)
    load_extensions()
    assert found_in(kernel[1, BLOCK], np.zeros(1))
    assert path is sys.path
    assert set(path) >= {None, 7.5}
    assert entrypoints._already_initialized


def test_ctrl_c_ends_a_kernel_that_is_observed(monkeypatch):
    @hip.jit(debug="race")
    def kernel(a, turns):
        i = hip.threadIdx.x
        for _ in range(turns):
            a[i] += 1

    a = hip.to_device(np.zeros(BLOCK))
    kernel[1, BLOCK](a, 1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has us ignore it

    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            kernel[1, BLOCK](a, 1 << 40)  # for days
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    a.copy_to_device(np.zeros(BLOCK))
    kernel[1, BLOCK](a, 2)
    np.testing.assert_array_equal(a.copy_to_host(), np.full(BLOCK, 2.0))
