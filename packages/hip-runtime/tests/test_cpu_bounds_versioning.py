"""Bounds checks between barriers that all threads of a block usually pass, for which regions are versioned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel, launch
from spmd_kernels import pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.regions import block_function

SHARED = "declare ptr @spmd.shared.s.4096.16(ptr)\n"
SHAPE = (16, 4, 2)


@pytest.fixture(autouse=True)
def _threads_one_after_another() -> Any:
    with config.cpu_form.scope("regions"):
        yield


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The branches that were found in each region that was written, and where they go, by the names of blocks."""
    ways: list[dict[str, str]] = []

    class Spy(block_function.BoundsVersioning):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            ways.append({block.name: target.name for block, target in self.directions.items()})

    monkeypatch.setattr(block_function, "BoundsVersioning", Spy)
    return ways


TILE = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %slot = getelementptr i32, ptr %s, i32 %t
  %wx = zext i32 %tx to i64
  %wy = zext i32 %ty to i64
  %wz = zext i32 %tz to i64
  %wb = zext i32 %b to i64
  %b16 = shl nuw nsw i64 %wb, 4
  %bx = add nsw i64 %b16, %wx
  %x = add nsw i64 %bx, %shift
  %y2 = shl nuw nsw i64 %wz, 2
  %y = add nsw i64 %y2, %wy
  COMPARE
  br i1 %inside, label %read, label %join
read:
  %line = mul nsw i64 %y, %w
  %place = add nsw i64 %line, %x
  %p = getelementptr i32, ptr %in, i64 %place
  %v = load i32, ptr %p
  br label %join
join:
  %found = phi i32 [ %v, %read ], [ -7, %entry ]
  store i32 %found, ptr %slot
  call void @spmd.barrier(ptr %item)
  %last = sub i32 %threads, 1
  %mirror = sub i32 %last, %t
  %q = getelementptr i32, ptr %s, i32 %mirror
  %o = load i32, ptr %q
  %r = getelementptr i32, ptr %out, i32 %i
  store i32 %o, ptr %r
  ret void
"""
TILE_PARAMETERS = [("out", "ptr"), ("in", "ptr"), ("w", "i64"), ("h", "i64"), ("shift", "i64")]
COMPARISONS = {
    "both": "%a = icmp slt i64 %x, %w\n %c = icmp sgt i64 %h, %y\n %inside = and i1 %a, %c",
    "one after the other": "%a = icmp slt i64 %x, %w\n %c = icmp slt i64 %y, %h\n"
    "%inside = select i1 %a, i1 %c, i1 false",
    "without sign": "%a = icmp ult i64 %x, %w\n %c = icmp ult i64 %y, %h\n %inside = and i1 %a, %c",
}


@pytest.mark.parametrize("compared", COMPARISONS)
def test_blocks_at_the_edge(device: Device, found: list[dict[str, str]], compared: str) -> None:
    body = TILE.replace("COMPARE", COMPARISONS[compared])
    code_object = kernel(body, TILE_PARAMETERS, SHARED, shared_bytes=4096)
    function = device.load(code_object).function("k")
    blocks, (width, rows, planes) = 4, SHAPE
    unsigned = compared == "without sign"
    for w, h, shift in [
        (64, 8, 0), (63, 8, 0), (64, 7, 0), (1, 1, 0), (0, 8, 0), (17, 8, 0), (65, 9, 0), (60, 8, 3), (60, 8, 16),
        *([(40, 8, -20)] if unsigned else []),
    ]:  # fmt: skip
        values = np.random.default_rng(w * h).integers(0, 1 << 30, max(w * h, 1), np.int32)
        source, out = to_device(values), to_device(np.zeros(blocks * width * rows * planes, np.int32))
        function.launch(blocks, SHAPE, pack(function.kernel, out.address, source.address, w, h, shift))
        block, z, y, x = np.ogrid[:blocks, :planes, :rows, :width]
        x, y = x + width * block + shift, y + rows * z
        inside = (x < w) & (y < h) & ((x >= 0) | (not unsigned))
        expected = np.where(inside, values[np.where(inside, y * w + x, 0)], -7).reshape(blocks, -1)
        np.testing.assert_array_equal(out.copy_to_host(), expected[:, ::-1].ravel(), f"{w} x {h} from {shift}")
    assert found[0]
    assert found[1:] == [{}]


ROUNDS = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %slot = getelementptr i64, ptr %s, i32 %t
  %wide = zext i32 %tx to i64
  %wx = zext i32 %tx to i64
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %latch ]
  %sum = phi i64 [ 0, %entry ], [ %more, %latch ]
  %line = mul nsw i64 %k, 100
  %x = add nsw i64 %line, %wx
  %inside = icmp slt i64 %x, %n
  br i1 %inside, label %read, label %join
read:
  %p = getelementptr i64, ptr %in, i64 %x
  %v = load i64, ptr %p
  br label %join
join:
  %found = phi i64 [ %v, %read ], [ 1, %head ]
  store i64 %found, ptr %slot
  call void @spmd.barrier(ptr %item)
  %q = getelementptr i64, ptr %s, i64 %k
  %other = load i64, ptr %q
  %scaled = mul i64 %other, %x
  call void @spmd.barrier(ptr %item)
  br label %latch
latch:
  %more = add i64 %sum, %scaled
  %next = add nsw i64 %k, 1
  %again = icmp slt i64 %next, %rounds
  br i1 %again, label %head, label %end
end:
  %r = getelementptr i64, ptr %out, i64 %wide
  store i64 %more, ptr %r
  ret void
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("n", [-1, 0, 99, 100, 250, 299, 300, 301, 10_000])
def test_the_bound_is_that_of_the_round(device: Device, found: list[dict[str, str]], n: int) -> None:
    """The counter of a loop around barriers starts anew where the loop is entered again, in the middle of a region."""
    parameters = [("out", "ptr"), ("in", "ptr"), ("n", "i64"), ("rounds", "i64")]
    values = np.random.default_rng(3).integers(0, 1000, 300)
    source, out = to_device(values), to_device(np.zeros(100, np.int64))
    rounds = 3
    code_object = kernel(ROUNDS, parameters, SHARED, shared_bytes=4096)
    launch(device, code_object, 1, 100, out.address, source.address, n, rounds)
    expected = np.zeros(100, np.int64)
    for k in range(rounds):
        x = 100 * k + np.arange(100)
        tile = np.where(x < n, values[x], 1)
        expected += tile[k] * x
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert sum(map(bool, found)) >= 1


WALKS = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %slot = getelementptr i64, ptr %s, i32 %t
  %wx = zext i32 %tx to i64
  store i64 0, ptr %slot
  call void @spmd.barrier(ptr %item)
  %some = icmp slt i64 %wx, %n
  br i1 %some, label %loop, label %done
loop:
  %k = phi i64 [ %wx, %entry ], [ %next, %LATCH ]
  %p = getelementptr i64, ptr %in, i64 %k
  %v = load i64, ptr %p
  %w = load i64, ptr %slot
  %more = add i64 %v, %w
  store i64 %more, ptr %slot
  %next = add nsw i64 %k, 100
  REST
done:
  call void @spmd.barrier(ptr %item)
  %q = load i64, ptr %slot
  %r = getelementptr i64, ptr %out, i64 %wx
  store i64 %q, ptr %r
  ret void
"""
ENDS = {
    "loop": "%again = icmp slt i64 %next, %n\n br i1 %again, label %loop, label %done",
    "tail": "%few = icmp slt i64 %next, %m\n br i1 %few, label %less, label %tail\nless:\n %u = load i64, ptr %slot\n"
    " %twice = mul i64 %u, 2\n store i64 %twice, ptr %slot\n br label %tail\ntail:\n"
    " %again = icmp slt i64 %next, %n\n br i1 %again, label %loop, label %done",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("latch", ENDS)
@pytest.mark.parametrize("n", [0, 50, 100, 101, 250, 300])
def test_what_holds_in_the_first_round_of_a_loop_may_not_in_the_next(
    device: Device, found: list[dict[str, str]], n: int, latch: str
) -> None:
    parameters = [("out", "ptr"), ("in", "ptr"), ("n", "i64"), ("m", "i64")]
    values = np.random.default_rng(4).integers(0, 1000, 400)
    source, out = to_device(values), to_device(np.full(100, -1))
    body = WALKS.replace("LATCH", latch).replace("REST", ENDS[latch])
    m = 250
    code_object = kernel(body, parameters, SHARED, shared_bytes=4096)
    launch(device, code_object, 1, 100, out.address, source.address, n, m)
    expected = np.zeros(100, np.int64)
    for thread in range(min(n, 100)):
        for k in range(thread, max(n, thread + 1), 100):
            expected[thread] += values[k]
            if latch == "tail" and k + 100 < m:
                expected[thread] *= 2
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert max(map(len, found)) <= 1


NOT_FOUND = {
    "of the index alone": "%inside = icmp slt i64 %wide, 37",
    "of what was read": "%g = getelementptr i64, ptr %in, i64 %wide\n %h = load i64, ptr %g\n"
    "%inside = icmp slt i64 %h, %n",
    "whether equal": "%inside = icmp ne i64 %wide, %n",
}


@pytest.mark.parametrize("condition", NOT_FOUND)
def test_conditions_that_corners_do_not_tell(device: Device, found: list[dict[str, str]], condition: str) -> None:
    body = f"""
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %wide = zext i32 %tx to i64
  {NOT_FOUND[condition]}
  br i1 %inside, label %read, label %join
read:
  %p = getelementptr i64, ptr %in, i64 %wide
  %v = load i64, ptr %p
  br label %join
join:
  %found = phi i64 [ %v, %read ], [ -7, %entry ]
  %slot = getelementptr i64, ptr %s, i64 %wide
  store i64 %found, ptr %slot
  call void @spmd.barrier(ptr %item)
  %o = load i64, ptr %slot
  %r = getelementptr i64, ptr %out, i64 %wide
  store i64 %o, ptr %r
  ret void
"""
    values = np.arange(100)
    source, out = to_device(values), to_device(np.zeros(100, np.int64))
    code_object = kernel(body, [("out", "ptr"), ("in", "ptr"), ("n", "i64")], SHARED, shared_bytes=4096)
    launch(device, code_object, 1, 100, out.address, source.address, 50)
    inside = {
        "of the index alone": values < 37, "of what was read": values < 50,
        "whether equal": values != 50,
    }[condition]  # fmt: skip
    np.testing.assert_array_equal(out.copy_to_host(), np.where(inside, values, -7))
    assert found == [{}, {}]


@pytest.mark.parametrize(
    ("opcode", "given", "expected"),
    [
        ("add", (1 << 63) - 40, lambda t: t >= 40), ("add", -1000, lambda t: t >= 0), ("add", 0, lambda t: t < 37),
        ("mul", 1 << 57, lambda t: ((t << 57) + (1 << 63)) % (1 << 64) - (1 << 63) < 37), ("mul", -1, lambda t: t >= 0),
    ],
)  # fmt: skip
def test_what_overflows_is_not_in_order(
    device: Device, found: list[dict[str, str]], opcode: str, given: int, expected: Any
) -> None:
    body = f"""
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %wide = zext i32 %tx to i64
  %y = {opcode} i64 %wide, %given
  %inside = icmp slt i64 %y, 37
  br i1 %inside, label %read, label %join
read:
  %p = getelementptr i64, ptr %in, i64 %wide
  %v = load i64, ptr %p
  br label %join
join:
  %found = phi i64 [ %v, %read ], [ -7, %entry ]
  %slot = getelementptr i64, ptr %s, i64 %wide
  store i64 %found, ptr %slot
  call void @spmd.barrier(ptr %item)
  %o = load i64, ptr %slot
  %r = getelementptr i64, ptr %out, i64 %wide
  store i64 %o, ptr %r
  ret void
"""
    source, out = to_device(np.arange(100)), to_device(np.zeros(100, np.int64))
    code_object = kernel(body, [("out", "ptr"), ("in", "ptr"), ("given", "i64")], SHARED, shared_bytes=4096)
    launch(device, code_object, 1, 100, out.address, source.address, given)
    wanted = [thread if expected(thread) else -7 for thread in range(100)]
    np.testing.assert_array_equal(out.copy_to_host(), wanted)
    assert found == [{"entry": "read"}, {}]


def test_threads_that_returned_do_not_count(device: Device, found: list[dict[str, str]]) -> None:
    """A thread at a corner may not be there any more, and what it would have computed may have overflowed."""
    body = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %wide = zext i32 %tx to i64
  %slot = getelementptr i64, ptr %s, i64 %wide
  %stays = icmp slt i64 %wide, %left
  br i1 %stays, label %stay, label %end
stay:
  call void @spmd.barrier(ptr %item)
  %x = mul nsw i64 %wide, %factor
  %inside = icmp slt i64 %x, %n
  br i1 %inside, label %write, label %end
write:
  %r = getelementptr i64, ptr %out, i64 %wide
  store i64 %x, ptr %r
  br label %end
end:
  ret void
"""
    out = to_device(np.full(100, -1))
    parameters = [("out", "ptr"), ("left", "i64"), ("factor", "i64"), ("n", "i64")]
    code_object = kernel(body, parameters, SHARED, shared_bytes=4096)
    factor = (1 << 63) // 60  # overflows from thread 60 on
    launch(device, code_object, 1, 100, out.address, 50, factor, 40 * factor)
    expected = [factor * thread if thread < 40 else -1 for thread in range(100)]
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    assert found[1:] == [{}]
