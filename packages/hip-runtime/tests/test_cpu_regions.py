"""Kernels whose threads wait for each other, written by hand, compared with plain Python or NumPy."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from spmd_blocks import INDEX, kernel, launch
from spmd_kernels import code, pack
from spmd_programs import OPERATIONS

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, LaunchError, ModuleLoadError, SettingError, Stream, UnsupportedError, config, to_device
from hip_runtime.drivers.cpu import finalise
from hip_runtime.errors import BarrierDivergenceError, KernelFault

SHAPES = [(1, 1, 1), (2, 1, 1), (64, 1, 1), (7, 5, 3), (1, 16, 4), (1, 1, 64), (256, 1, 1), (1024, 1, 1), (32, 32, 1)]


def threads_of(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]


# barriers and shared memory


REVERSE = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %own = getelementptr i32, ptr %s, i32 %t
  %p = getelementptr i32, ptr %out, i32 %i
  %v = load i32, ptr %p
  store i32 %v, ptr %own
  call void @spmd.barrier(ptr %item)
  %last = sub i32 %threads, 1
  %mirror = sub i32 %last, %t
  %q = getelementptr i32, ptr %s, i32 %mirror
  %w = load i32, ptr %q
  store i32 %w, ptr %p
  ret void
"""
SHARED = "declare ptr @spmd.shared.s.4096.16(ptr)\n"


@pytest.mark.sample(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_reversal_through_shared_memory(device: Device, shape: tuple[int, int, int]) -> None:
    count = threads_of(shape)
    values = np.random.default_rng(0).integers(0, 1 << 30, 3 * count, np.int32)
    out = to_device(values)
    code_object = kernel(REVERSE, [("out", "ptr")], SHARED, shared_bytes=4096)
    with config.cpu_form.scope("auto"):
        function = launch(device, code_object, 3, shape, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), values.reshape(3, count)[:, ::-1].ravel())
    along = {(1, 16, 4): "; neighbours along y", (1, 1, 64): "; neighbours along z"}
    assert function.form == f"{shape}: regions (the kernel calls spmd.barrier{along.get(shape, '')})"


def test_loops_of_many_regions_are_not_written_out(device: Device) -> None:
    """One block of straight code with thousands of accesses takes LLVM's code generator much longer than as many short
    loops, so there is less code for each region where there are many."""
    swap = """
  store i32 %v{0}, ptr %own
  call void @spmd.barrier(ptr %item)
  %r{0} = load i32, ptr %other
  %v{1} = add i32 %r{0}, %v{0}
  call void @spmd.barrier(ptr %item)"""
    size, values = {}, np.arange(64, dtype=np.int32)
    for count in (8, 40):
        body = f"""
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %own = getelementptr i32, ptr %s, i32 %t
  %last = sub i32 %threads, 1
  %mirror = sub i32 %last, %t
  %other = getelementptr i32, ptr %s, i32 %mirror
  %p = getelementptr i32, ptr %out, i32 %i
  %v0 = load i32, ptr %p
  {"".join(swap.format(number, number + 1) for number in range(count))}
  store i32 %v{count}, ptr %p
  ret void
"""
        code_object = kernel(body, [("out", "ptr")], SHARED, shared_bytes=4096)
        out, expected = to_device(values), values
        launch(device, code_object, 1, (64, 1, 1), out.address)
        for _ in range(count):
            expected = expected + expected[::-1]
        np.testing.assert_array_equal(out.copy_to_host(), expected)
        size[count] = len(finalise.finalise_kernel(code_object, code_object.kernels[0], (64, 1, 1)).image) / count
    assert size[40] < size[8] / 2


def test_reversal_through_dynamic_shared_memory(device: Device) -> None:
    body = REVERSE.replace("@spmd.shared.s.4096.16", "@spmd.dynamic_shared").replace(
        "%last = sub",
        "%bytes = call i64 @spmd.dynamic_shared_bytes(ptr %item)\n store i64 %bytes, ptr %size\n%last = sub",
    )
    code_object = kernel(body, [("out", "ptr"), ("size", "ptr")])
    values = np.arange(400, dtype=np.int32)
    out, size = to_device(values), to_device(np.zeros(1, np.int64))
    function = device.load(code_object).function("k")
    for nbytes in (400, 65536):
        function.launch(4, 100, pack(function.kernel, out.address, size.address), dynamic_shared=nbytes)
        assert size.copy_to_host()[0] == nbytes
    np.testing.assert_array_equal(out.copy_to_host(), values)  # reversed twice
    with pytest.raises(LaunchError, match="dynamic_shared is 65537"):
        function.launch(4, 100, pack(function.kernel, out.address, size.address), dynamic_shared=65537)


def test_dynamic_shared_memory_on_a_stream(device: Device) -> None:
    body = "  %bytes = call i64 @spmd.dynamic_shared_bytes(ptr %item)\n store i64 %bytes, ptr %size\n ret void\n"
    size = to_device(np.zeros(1, np.int64))
    stream = Stream(device)
    launch(device, kernel(body, [("size", "ptr")]), 1, 1, size.address, dynamic_shared=48, stream=stream)
    stream.synchronize()
    assert size.copy_to_host()[0] == 48


def test_shared_memory_without_a_barrier_is_not_cut(device: Device) -> None:
    body = REVERSE.replace("  call void @spmd.barrier(ptr %item)\n", "").replace("i32 %mirror", "i32 %t")
    values = np.arange(64, dtype=np.int32)
    out = to_device(values)
    with config.cpu_form.scope("auto"):
        function = launch(device, kernel(body, [("out", "ptr")], SHARED, shared_bytes=4096), 1, 64, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), values)
    assert "(no thread waits for another" in function.form
    assert "regions" not in function.form


def test_arrays_of_shared_memory_do_not_overlap(device: Device) -> None:
    names = ["a.1.1", "b.64.64", "c.3.1", "d.256.32"]
    body = ""
    for number, name in enumerate(names):
        body += (
            f"  %p{number} = call ptr @spmd.shared.{name}(ptr %item)\n  %a{number} = ptrtoint ptr %p{number} to i64\n"
        )
        body += f"  %q{number} = getelementptr i64, ptr %out, i32 {number}\n  store i64 %a{number}, ptr %q{number}\n"
    declarations = "".join(f"declare ptr @spmd.shared.{name}(ptr)\n" for name in names)
    out = to_device(np.zeros(4, np.int64))
    launch(device, kernel(body + "ret void\n", [("out", "ptr")], declarations, shared_bytes=512), 1, 1, out.address)
    places = sorted(zip(out.copy_to_host().tolist(), (1, 64, 3, 256), (1, 64, 1, 32), strict=True))
    assert all(address % align == 0 for address, _, align in places)
    assert all(one[0] + one[1] <= other[0] for one, other in pairwise(places))


TREE = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %own = getelementptr float, ptr %s, i32 %t
  %p = getelementptr float, ptr %in, i32 %i
  %v = load float, ptr %p
  store float %v, ptr %own
  call void @spmd.barrier(ptr %item)
  br label %head
head:
  %w0 = phi i32 [ %threads, %entry ], [ %w, %next ]
  %w = lshr i32 %w0, 1
  %more = icmp ne i32 %w, 0
  br i1 %more, label %body, label %done
body:
  %active = icmp ult i32 %t, %w
  br i1 %active, label %add, label %next
add:
  %o = add i32 %t, %w
  %po = getelementptr float, ptr %s, i32 %o
  %vo = load float, ptr %po
  %vs = load float, ptr %own
  %sum = fadd float %vo, %vs
  store float %sum, ptr %own
  br label %next
next:
  call void @spmd.barrier(ptr %item)
  br label %head
done:
  %zero = icmp eq i32 %t, 0
  br i1 %zero, label %write, label %end
write:
  %r = load float, ptr %s
  %q = getelementptr float, ptr %out, i32 %b
  store float %r, ptr %q
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("threads", [1, 2, 64, 256, 1024])
def test_tree_reduction(device: Device, threads: int) -> None:
    values = np.random.default_rng(1).integers(0, 100, 5 * threads).astype(np.float32)
    source, out = to_device(values), to_device(np.zeros(5, np.float32))
    code_object = kernel(TREE, [("in", "ptr"), ("out", "ptr")], SHARED, shared_bytes=4096)
    launch(device, code_object, 5, threads, source.address, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), values.reshape(5, threads).sum(axis=1))


COUNT_DOWN = """
  %stop = icmp uge i32 %t, %n
  br i1 %stop, label %end, label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %head ]
  %sum = phi i32 [ 0, %entry ], [ %sum1, %head ]
  %odd = xor i32 %t, %k
  %low = and i32 %odd, 1
  %vote = icmp eq i32 %low, 0
  %count = call i32 @spmd.barrier_count(ptr %item, i1 %vote)
  %sum1 = add i32 %sum, %count
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, 5
  br i1 %more, label %head, label %write
write:
  %p = getelementptr i32, ptr %out, i32 %i
  store i32 %sum1, ptr %p
  br label %end
end:
  ret void
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("n", [0, 1, 63, 99, 100])
def test_votes_after_early_returns(device: Device, n: int) -> None:
    out = to_device(np.full(200, -1, np.int32))
    launch(device, kernel(COUNT_DOWN, [("out", "ptr"), ("n", "i32")]), 2, 100, out.address, n)
    even, odd = (n + 1) // 2, n // 2
    expected = np.full((2, 100), -1, np.int32)
    expected[:, :n] = 3 * even + 2 * odd
    np.testing.assert_array_equal(out.copy_to_host().reshape(2, 100), expected)


def test_barrier_in_a_device_function(device: Device) -> None:
    functions = (
        SHARED
        + """
define internal i32 @pass(ptr %item, i32 %t, i32 %to, i32 %v) {
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %p = getelementptr i32, ptr %s, i32 %t
  store i32 %v, ptr %p
  call void @spmd.barrier(ptr %item)
  %q = getelementptr i32, ptr %s, i32 %to
  %w = load i32, ptr %q
  call void @spmd.barrier(ptr %item)
  ret i32 %w
}
"""
    )
    body = """
  %a = add i32 %t, 1
  %to = urem i32 %a, %threads
  %v = call i32 @pass(ptr %item, i32 %t, i32 %to, i32 %t)
  %w = call i32 @pass(ptr %item, i32 %t, i32 %to, i32 %v)
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %w, ptr %p
  ret void
"""
    out = to_device(np.zeros(50, np.int32))
    launch(device, kernel(body, [("out", "ptr")], functions, shared_bytes=4096), 1, 50, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), (np.arange(50) + 2) % 50)


@pytest.mark.parametrize("large", [False, True], ids=["stack", "heap"])
def test_private_array_lives_across_barriers(device: Device, large: bool) -> None:
    count = 2048 if large else 8
    body = f"""
  %a = alloca [{count} x i32]
  br label %fill
fill:
  %k = phi i32 [ 0, %entry ], [ %k1, %fill ]
  %v = mul i32 %k, %t
  %pa = getelementptr i32, ptr %a, i32 %k
  store i32 %v, ptr %pa
  call void @spmd.barrier(ptr %item)
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, 8
  br i1 %more, label %fill, label %read
read:
  %low = and i32 %t, 7
  %pr = getelementptr i32, ptr %a, i32 %low
  %r = load i32, ptr %pr
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %r, ptr %p
  ret void
"""
    out = to_device(np.zeros(96, np.int32))
    launch(device, kernel(body, [("out", "ptr")]), 1, 96, out.address)
    threads = np.arange(96)
    np.testing.assert_array_equal(out.copy_to_host(), (threads & 7) * threads)


@pytest.mark.parametrize("align", [16, 64, 256])
@pytest.mark.parametrize("both", [False, True], ids=["passing", "kept"])
@pytest.mark.sample(4)
def test_private_memory_is_aligned(device: Device, align: int, both: bool) -> None:
    body = f"""
  %a = alloca i32, align {align}
  %u = ptrtoint ptr %a to i64
  %any = load volatile i64, ptr %out ; so that the barrier stays
  call void @spmd.barrier(ptr %item)
  {"%w" if both else "%unused"} = ptrtoint ptr %a to i64
  %r = add i64 {"%w, 0" if both else "%u, 0"}
  %p = getelementptr i64, ptr %out, i32 %t
  store i64 %r, ptr %p
  ret void
"""
    out = to_device(np.zeros(33, np.int64))
    launch(device, kernel(body, [("out", "ptr")]), 1, 33, out.address)
    addresses = out.copy_to_host()
    assert (addresses != 0).all()
    assert (addresses % align == 0).all()
    assert np.unique(addresses).size == 33


# waves


@pytest.fixture(params=["auto", "regions"])
def each_form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Waves as gangs where that is possible, and as threads one after another."""
    with config.cpu_form.scope(request.param):
        yield


def wave_kernel(body: str, wave_size: int) -> CodeObject:
    text = (
        "  %lane = call i32 @spmd.lane(ptr %item)\n"
        + body
        + "  %p = getelementptr i64, ptr %out, i32 %t\n  store i64 %r, ptr %p\n  ret void\n"
    )
    return kernel(text, [("out", "ptr")], wave_size=wave_size)


def run_wave(device: Device, body: str, wave_size: int, shape: tuple[int, int, int]) -> Any:
    out = to_device(np.full(threads_of(shape), -1, np.int64))
    launch(device, wave_kernel(body, wave_size), 1, shape, out.address)
    return out.copy_to_host()


WAVES = [(32, (32, 1, 1)), (64, (64, 1, 1)), (32, (70, 1, 1)), (64, (130, 1, 1)), (64, (9, 5, 2)), (32, (1, 1, 1))]


@pytest.mark.sample(5)
@pytest.mark.usefixtures("each_form")
@pytest.mark.parametrize(("wave_size", "shape"), WAVES)
def test_lane_and_wave_size(device: Device, wave_size: int, shape: tuple[int, int, int]) -> None:
    body = """
  %w = call i32 @spmd.wave_size(ptr %item)
  %m = mul i32 %w, 1000
  %s = add i32 %m, %lane
  %r = zext i32 %s to i64
"""
    expected = wave_size * 1000 + np.arange(threads_of(shape)) % wave_size
    np.testing.assert_array_equal(run_wave(device, body, wave_size, shape), expected)


@pytest.mark.sample(5)
@pytest.mark.usefixtures("each_form")
@pytest.mark.parametrize(("wave_size", "shape"), WAVES)
def test_ballot_of_partial_waves(device: Device, wave_size: int, shape: tuple[int, int, int]) -> None:
    body = """
  %third = urem i32 %t, 3
  %vote = icmp eq i32 %third, 0
  %r = call i64 @spmd.ballot(ptr %item, i1 %vote)
"""
    threads = np.arange(threads_of(shape))
    expected = [
        sum(
            1 << (one % wave_size)
            for one in threads.tolist()
            if one // wave_size == other // wave_size and one % 3 == 0
        )
        for other in threads.tolist()
    ]
    np.testing.assert_array_equal(
        run_wave(device, body, wave_size, shape).view(np.uint64), np.array(expected, np.uint64)
    )


@pytest.mark.sample(4)
@pytest.mark.usefixtures("each_form")
@pytest.mark.parametrize(("wave_size", "shape"), WAVES)
def test_active_lanes_in_a_branch(device: Device, wave_size: int, shape: tuple[int, int, int]) -> None:
    body = """
  %low = and i32 %t, 1
  %odd = icmp eq i32 %low, 1
  br i1 %odd, label %one, label %other
one:
  %ro = call i64 @spmd.active_lanes(ptr %item)
  br label %after
other:
  %re = call i64 @spmd.active_lanes(ptr %item)
  br label %after
after:
  %side = phi i64 [ %ro, %one ], [ %re, %other ]
  %all = call i64 @spmd.active_lanes(ptr %item)
  %r = xor i64 %side, %all
"""
    threads = range(threads_of(shape))
    expected = [
        sum(1 << (one % wave_size) for one in threads if one // wave_size == other // wave_size and (one ^ other) & 1)
        for other in threads
    ]
    np.testing.assert_array_equal(
        run_wave(device, body, wave_size, shape).view(np.uint64), np.array(expected, np.uint64)
    )


@pytest.mark.sample(5)
@pytest.mark.usefixtures("each_form")
@pytest.mark.parametrize(
    ("kind", "name", "number"),
    [("i32", "i32", "sext"), ("i64", "i64", ""), ("float", "float", "fptosi"), ("double", "double", "fptosi")],
)
@pytest.mark.parametrize("source", ["%up", "%down", "%xor", "%far", "%below"])
def test_shuffles(device: Device, kind: str, name: str, number: str, source: str) -> None:
    make = {"i32": "  %v = add i32 %t, 1000\n", "i64": "  %v0 = add i32 %t, 1000\n  %v = zext i32 %v0 to i64\n"}
    value = make.get(kind, f"  %v0 = add i32 %t, 1000\n  %v = uitofp i32 %v0 to {kind}\n")
    body = f"""{value}
  %up = sub i32 %lane, 3
  %down = add i32 %lane, 5
  %xor = xor i32 %lane, 6
  %far = add i32 %lane, 32
  %below = sub i32 0, 1
  %s = call {kind} @spmd.shuffle.{name}(ptr %item, {kind} %v, i32 {source})
  %r = {f"{number} {kind} %s to i64" if number else "add i64 %s, 0"}
"""
    count, wave_size = 45, 32
    lanes = {"%up": lambda n: n - 3, "%down": lambda n: n + 5, "%xor": lambda n: n ^ 6, "%far": lambda n: n + 32,
             "%below": lambda n: -1}  # fmt: skip
    expected = []
    for thread in range(count):
        other = lanes[source](thread % wave_size)
        first = thread // wave_size * wave_size
        there = 0 <= other < wave_size and first + other < count
        expected.append(1000 + (first + other if there else thread))
    np.testing.assert_array_equal(run_wave(device, body, wave_size, (count, 1, 1)), expected)


@pytest.mark.usefixtures("each_form")
def test_shuffle_in_loops_of_different_lengths(device: Device) -> None:
    """Lane n iterates n % 4 times; in each iteration it hands its value one lane up."""
    body = """
  %rounds = and i32 %t, 3
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %body ]
  %v = phi i32 [ %t, %entry ], [ %v2, %body ]
  %more = icmp ult i32 %k, %rounds
  br i1 %more, label %body, label %after
body:
  %from = sub i32 %lane, 1
  %v1 = call i32 @spmd.shuffle.i32(ptr %item, i32 %v, i32 %from)
  %v2 = add i32 %v1, 100
  %k1 = add i32 %k, 1
  br label %head
after:
  %all = call i64 @spmd.active_lanes(ptr %item)
  %bits = and i64 %all, 4294967295
  %v64 = zext i32 %v to i64
  %r = add i64 %v64, %bits
"""
    values = list(range(32))
    for turn in range(3):
        active = [lane for lane in range(32) if turn < lane & 3]
        passed = [values[lane - 1] if lane - 1 in active else values[lane] for lane in range(32)]
        values = [passed[lane] + 100 if lane in active else values[lane] for lane in range(32)]
    found = run_wave(device, body, 32, (32, 1, 1))
    np.testing.assert_array_equal(found, np.array(values) + 0xFFFFFFFF)


@pytest.mark.usefixtures("each_form")
def test_butterfly_reduction_by_the_first_wave_only(device: Device) -> None:
    body = """
  %wave = udiv i32 %t, 64
  %first_wave = icmp eq i32 %wave, 0
  br i1 %first_wave, label %head, label %after
head:
  %w = phi i32 [ 32, %entry ], [ %w1, %head ]
  %v = phi i32 [ %t, %entry ], [ %v1, %head ]
  %other = xor i32 %lane, %w
  %o = call i32 @spmd.shuffle.i32(ptr %item, i32 %v, i32 %other)
  %v1 = add i32 %v, %o
  %w1 = lshr i32 %w, 1
  %more = icmp ne i32 %w1, 0
  br i1 %more, label %head, label %after
after:
  %x = phi i32 [ 7, %entry ], [ %v1, %head ]
  call void @spmd.barrier(ptr %item)
  %r = zext i32 %x to i64
"""
    expected = [sum(range(64))] * 64 + [7] * 136
    np.testing.assert_array_equal(run_wave(device, body, 64, (200, 1, 1)), expected)


@pytest.mark.usefixtures("each_form")
def test_wave_operations_after_early_returns(device: Device) -> None:
    body = """
  %low = urem i32 %t, 5
  %gone = icmp eq i32 %low, 2
  br i1 %gone, label %leave, label %stay
leave:
  ret void
stay:
  call void @spmd.wave_barrier(ptr %item)
  %r = call i64 @spmd.active_lanes(ptr %item)
"""
    found = run_wave(device, body, 32, (40, 1, 1))
    for thread in range(40):
        wave = range(32) if thread < 32 else range(32, 40)
        lanes = sum(1 << (other % 32) for other in wave if other % 5 != 2)
        assert found[thread] == (-1 if thread % 5 == 2 else lanes)


# what goes wrong


DIVERGENT = """
  %low = and i32 %t, 1
  %odd = icmp eq i32 %low, 1
  br i1 %odd, label %one, label %other
one:
  store i32 1, ptr %out
  call void @spmd.barrier(ptr %item){one}
  br label %end
other:
  store i32 2, ptr %out
  %c = call i32 @spmd.barrier_count(ptr %item, i1 true){other}
  br label %end
end:
  ret void
"""


def test_barrier_that_some_threads_never_reach(device: Device) -> None:
    code_object = kernel(DIVERGENT.format(one="", other=""), [("out", "ptr")])
    out = to_device(np.zeros(1, np.int32))
    with pytest.raises(BarrierDivergenceError, match=r"threads of block \(0, 0, 0\) wait for one another") as caught:
        launch(device, code_object, 1, 64, out.address)
    error = caught.value
    assert isinstance(error, KernelFault)
    assert (error.kernel, error.block) == ("k", (0, 0, 0))
    assert error.thread[0] in (0, 1)
    assert error.places == ("", "")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    launch(device, kernel(REVERSE, [("out", "ptr")], SHARED, shared_bytes=4096), 1, 1, out.address)  # works again


def test_divergent_barriers_name_their_lines(device: Device) -> None:
    debug = """
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, producer: "x", emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "program.py", directory: "/")
!3 = distinct !DISubprogram(name: "k", scope: !2, file: !2, line: 1, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 12, column: 1, scope: !3)
!7 = !DILocation(line: 34, column: 1, scope: !3)
"""
    body = DIVERGENT.format(one=", !dbg !6", other=", !dbg !7")
    text = f"{OPERATIONS}define void @k(ptr noalias %item, ptr %out) !dbg !3 {{\nentry:\n{INDEX}{body}}}\n{debug}"
    out = to_device(np.zeros(1, np.int32))
    with pytest.raises(BarrierDivergenceError) as caught:
        launch(device, code(text, "k", [("out", "ptr")]), (1, 2), (32, 2), out.address)
    assert sorted(caught.value.places) == ["/program.py:12", "/program.py:34"]
    assert "program.py:12" in str(caught.value)
    assert "program.py:34" in str(caught.value)


def test_fault_of_a_thread_between_barriers(device: Device) -> None:
    body = """
  call void @spmd.barrier(ptr %item)
  %hit = icmp eq i32 %t, 5
  br i1 %hit, label %stop, label %go
stop:
  call void @spmd.fault(ptr %item, i32 77)
  ret void
go:
  %count = call i32 @spmd.barrier_count(ptr %item, i1 true)
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %count, ptr %p
  ret void
"""
    out = to_device(np.zeros(16, np.int32))
    with pytest.raises(KernelFault, match=r"error code 77 in block \(0, 0, 0\), thread \(5, 0, 0\)"):
        launch(device, kernel(body, [("out", "ptr")]), 1, 16, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), np.where(np.arange(16) == 5, 0, 15))


def test_more_shared_memory_than_declared_is_refused(device: Device) -> None:
    with pytest.raises(ModuleLoadError, match="take 4096 bytes; the code object says 100"):
        launch(device, kernel(REVERSE, [("out", "ptr")], SHARED, shared_bytes=100), 1, 1, 0)


def test_more_shared_memory_than_there_is_cannot_be_launched(device: Device) -> None:
    with pytest.raises(LaunchError, match="70000 bytes that kernel 'k' declares, at most 65536"):
        launch(device, kernel(REVERSE, [("out", "ptr")], SHARED, shared_bytes=70000), 1, 1, 0)


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.b.c", "is called"), ("a.4", "is called"), ("a.4.3", "power of two"), ("a.4.8192", "power of two")],
)
def test_impossible_names_of_shared_arrays(device: Device, name: str, message: str) -> None:
    body = f"  %p = call ptr @spmd.shared.{name}(ptr %item)\n store i8 1, ptr %p\n ret void\n"
    with pytest.raises(ModuleLoadError, match=message):
        launch(device, kernel(body, [], f"declare ptr @spmd.shared.{name}(ptr)\n", shared_bytes=64), 1, 1)


def test_unknown_operation_is_refused(device: Device) -> None:
    body = "  call void @spmd.teleport(ptr %item)\n ret void\n"
    with pytest.raises(ModuleLoadError, match=r"'spmd\.teleport', which the CPU device does not have"):
        launch(device, kernel(body, [], "declare void @spmd.teleport(ptr)\n"), 1, 1)


@pytest.mark.parametrize(
    ("attributes", "call", "message"),
    [
        ("", "  call void @f(ptr %item, i32 0)\n", "calls itself"),
        ("noinline", "", "marked noinline"),
    ],
)
def test_functions_that_cannot_be_inlined(device: Device, attributes: str, call: str, message: str) -> None:
    functions = f"""
define internal void @f(ptr %item, i32 %n) {attributes} {{
  call void @spmd.barrier(ptr %item)
{call}  ret void
}}
"""
    body = "  call void @f(ptr %item, i32 3)\n ret void\n"
    with pytest.raises(UnsupportedError, match=message):
        launch(device, kernel(body, [], functions), 1, 4)


def test_address_of_a_function_that_synchronises(device: Device) -> None:
    functions = "define internal void @f(ptr %item) {\n call void @spmd.barrier(ptr %item)\n ret void\n}\n"
    body = "  call void @f(ptr %item)\n store ptr @f, ptr %out\n ret void\n"
    with pytest.raises(UnsupportedError, match="whose address is taken"):
        launch(device, kernel(body, [("out", "ptr")], functions), 1, 4, 0)


def test_function_without_a_name_that_synchronises(device: Device) -> None:
    functions = "define internal void @0(ptr %item, ptr %out) {\n call void @spmd.barrier(ptr %item)\n ret void\n}\n"
    body = """
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %t, ptr %p
  call void @0(ptr %item, ptr %out)
  %other = xor i32 %t, 3
  %q = getelementptr i32, ptr %out, i32 %other
  %v = load i32, ptr %q
  call void @0(ptr %item, ptr %out)
  store i32 %v, ptr %p
  ret void
"""
    out = to_device(np.zeros(4, np.int32))
    launch(device, kernel(body, [("out", "ptr")], functions), 1, 4, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), [3, 2, 1, 0])


def test_private_memory_of_unknown_size(device: Device) -> None:
    body = """
  %a = alloca i32, i32 %n
  call void @use(ptr %a)
  call void @spmd.barrier(ptr %item)
  call void @use(ptr %a)
  ret void
"""
    functions = "define internal void @use(ptr %p) noinline {\n store volatile i32 1, ptr %p\n ret void\n}\n"
    with pytest.raises(UnsupportedError, match="size is known only at run time"):
        launch(device, kernel(body, [("n", "i32")], functions), 1, 4, 3)


# forms


def test_forced_forms(device: Device) -> None:
    out = to_device(np.zeros(64, np.int32))
    plain = kernel("  %p = getelementptr i32, ptr %out, i32 %t\n store i32 %t, ptr %p\n ret void\n", [("out", "ptr")])
    with config.cpu_form.scope("regions"):
        function = launch(device, plain, 1, 64, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(64))
    assert function.form == "(64, 1, 1): regions (NUMBA_HIP_CPU_FORM asks for it)"
    with config.cpu_form.scope("loop"):
        assert launch(device, plain, 1, 64, out.address).form.endswith("loop (NUMBA_HIP_CPU_FORM asks for it)")
        with pytest.raises(UnsupportedError, match=r"the form 'loop' cannot run a kernel that calls spmd\.barrier"):
            launch(device, kernel(REVERSE, [("out", "ptr")], SHARED, shared_bytes=4096), 1, 64, out.address)
    with pytest.raises(SettingError, match="NUMBA_HIP_CPU_FORM='fast'"), config.cpu_form.scope("fast"):
        pass


def test_functions_that_are_not_inlined_see_the_item(device: Device) -> None:
    """A recursive function reads shared memory and the index of its thread."""
    functions = (
        SHARED
        + """
define internal i32 @sum(ptr %item, i32 %n) noinline {
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %stop = icmp ult i32 %n, 2
  br i1 %stop, label %end, label %more
more:
  %n1 = sub i32 %n, 1
  %rest = call i32 @sum(ptr %item, i32 %n1)
  %n2 = sub i32 %n, 2
  %other = call i32 @sum(ptr %item, i32 %n2)
  %both = add i32 %rest, %other
  ret i32 %both
end:
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %p = getelementptr i32, ptr %s, i32 %t
  %v = load i32, ptr %p
  ret i32 %v
}
"""
    )
    body = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %own = getelementptr i32, ptr %s, i32 %t
  store i32 %t, ptr %own
  call void @spmd.barrier(ptr %item)
  %v = call i32 @sum(ptr %item, i32 6)
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %v, ptr %p
  ret void
"""
    out = to_device(np.zeros(20, np.int32))
    launch(device, kernel(body, [("out", "ptr")], functions, shared_bytes=4096), 1, 20, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), 13 * np.arange(20))


def test_globals_of_the_kernel(device: Device) -> None:
    functions = (
        "@table = internal constant [4 x i32] [i32 7, i32 5, i32 3, i32 1]\n"
        "@0 = private constant [2 x i32] [i32 9, i32 8]\n"
    )
    body = """
  %low = and i32 %t, 3
  %p = getelementptr [4 x i32], ptr @table, i32 0, i32 %low
  %v = load i32, ptr %p
  call void @spmd.barrier(ptr %item)
  %bit = and i32 %t, 1
  %q = getelementptr [2 x i32], ptr @0, i32 0, i32 %bit
  %w = load i32, ptr %q
  %x = mul i32 %v, %w
  %o = getelementptr i32, ptr %out, i32 %t
  store i32 %x, ptr %o
  ret void
"""
    out = to_device(np.zeros(8, np.int32))
    launch(device, kernel(body, [("out", "ptr")], functions), 1, 8, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), np.array([7, 5, 3, 1] * 2) * np.array([9, 8] * 4))


def test_arguments_are_not_shared_by_launches(device: Device) -> None:
    function = device.load(kernel(COUNT_DOWN, [("out", "ptr"), ("n", "i32")])).function("k")
    outs = [to_device(np.zeros(8, np.int32)) for _ in range(4)]
    for n, out in enumerate(outs):
        function.launch(1, 8, pack(function.kernel, out.address, n))
    for n, out in enumerate(outs):
        assert out.copy_to_host().tolist() == [3 * ((n + 1) // 2) + 2 * (n // 2)] * n + [0] * (8 - n)


def test_packed_arguments_with_bytes_behind_them_are_refused(device: Device) -> None:
    function = device.load(kernel(COUNT_DOWN, [("out", "ptr"), ("n", "i32")])).function("k")
    with pytest.raises(LaunchError, match="arguments are 16 bytes"):
        function.launch(1, 8, struct.pack("<QQ", 0, 0))


CLEARED = """
  %s = call ptr @spmd.shared.cells.1024.4(ptr %item)
  %wide = zext i32 %t to i64
  {index}
  %cleared = getelementptr i32, ptr %s, i64 {first}
  store i32 0, ptr %cleared
  {early}
  %px = getelementptr i64, ptr %in, i64 %wide
  %x = load i64, ptr %px
  %far = mul i64 %x, {distance}
  %place = add i64 {first}, %far
  %own = getelementptr i32, ptr %s, i64 %place
  %old = load i32, ptr %own
  %new = add i32 %old, 1
  store i32 %new, ptr %own
  {late}
  call void @spmd.barrier(ptr %item)
  %q = getelementptr i32, ptr %s, i64 %wide
  %r = load i32, ptr %q
  %p = getelementptr i32, ptr %out, i64 %wide
  store i32 %r, ptr %p
  %behind = add i64 %wide, 64
  %q.1 = getelementptr i32, ptr %s, i64 %behind
  %r.1 = load i32, ptr %q.1
  %p.1 = getelementptr i32, ptr %out, i64 %behind
  store i32 %r.1, ptr %p.1
  ret void
"""
SECOND = """
  %second.index = add i64 {first}, {distance}
  %second = getelementptr i32, ptr %s, i64 %second.index
  store i32 {value}, ptr %second
"""


@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("shape", [(64, 1, 1), (8, 8, 1), (4, 16, 1), (4, 4, 4), (16, 4, 1)])
@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.sample(4)
def test_threads_that_clear_their_elements_and_count_in_them(
    device: Device, form: str, shape: tuple[int, int, int], neighbours: bool
) -> None:
    """Stores of several threads to neighbours are one vector store, which must not come after what they add."""
    if neighbours:  # two elements of a thread, of which the second is stored last
        index, first, distance = "%twice = shl i64 %wide, 1", "%twice", 1
    else:
        index, first, distance = "", "%wide", 64
    second = SECOND.format(first=first, distance=distance, value=7 if neighbours else 0)
    body = CLEARED.format(
        index=index, first=first, distance=distance, early="" if neighbours else second,
        late=second if neighbours else "",
    )  # fmt: skip
    chosen = np.zeros(64, np.int64) if neighbours else np.random.default_rng(1).integers(0, 2, 64)
    out = to_device(np.zeros(128, np.int32))
    functions = "declare ptr @spmd.shared.cells.1024.4(ptr)\n"
    made = kernel(body, [("in", "ptr"), ("out", "ptr")], functions, shared_bytes=1024)
    with config.cpu_form.scope(form):
        source = to_device(chosen)
        launch(device, made, 1, shape, source.address, out.address)
    if neighbours:
        expected = np.tile([1, 7], 64)
    else:
        expected = np.concatenate([chosen == 0, chosen == 1]).astype(np.int32)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
