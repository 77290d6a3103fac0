"""Blocks that are joined so that memory is read from beginning to end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from spmd_kernels import code, pack
from test_cpu_lane_axis import HEAD, PARAMETERS, element, plain, run

from hip_runtime import Device, config, current_device, to_device
from hip_runtime.drivers.cpu.strategies import lane_axis
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes
from hip_runtime.errors import KernelFault

BELOW = f"""
{HEAD}
{element("zyx")}
  %following = add nuw nsw i64 %gy, 1
  %is.last = icmp eq i64 %following, %nj
  %below = select i1 %is.last, i64 0, i64 %following
  %below.planes = mul nsw i64 %gz, %nj
  %below.row = add nsw i64 %below.planes, %below
  %below.rows = mul nsw i64 %below.row, %nk
  %other = add nsw i64 %below.rows, %gx
  %px = getelementptr float, ptr %x, i64 %place
  %p.other = getelementptr float, ptr %x, i64 %other
  %py = getelementptr float, ptr %y, i64 %place
  %v = load float, ptr %px
  %w = load float, ptr %p.other
  %sum = fadd float %v, %w
  store float %sum, ptr %py
  br label %out
out:
  ret void
}}
"""
"""y[i, j, k] = x[i, j, k] + x[i, (j + 1) % nj, k]: of two rows."""

TRANSPOSED = f"""
{HEAD}
{element("zyx")}
  %column.planes = mul nsw i64 %gz, %nk
  %column = add nsw i64 %column.planes, %gx
  %columns = mul nsw i64 %column, %nj
  %there = add nsw i64 %columns, %gy
  %px = getelementptr float, ptr %x, i64 %place
  %py = getelementptr float, ptr %y, i64 %there
  %v = load float, ptr %px
  store float %v, ptr %py
  br label %out
out:
  ret void
}}
"""
"""The flat y[(i * nk + k) * nj + j] = x[i, j, k]: lanes scatter."""

COUNTED = f"""
{HEAD}
{element("zyx")}
  %four = lshr i64 %gz, 2
  %four.first = mul i64 %four, %nk
  %counter = add i64 %four.first, %gx
  %pk = getelementptr i64, ptr %x, i64 %counter
  %before = load i64, ptr %pk
  %after = add i64 %before, 1
  store i64 %after, ptr %pk
  %py = getelementptr i64, ptr %y, i64 %place
  store i64 %before, ptr %py
  br label %out
out:
  ret void
}}
"""
"""y[i, j, k] = x[i // 4, k]; x[i // 4, k] += 1: a race, which tells in which order one thread of the processor ran the
threads of four planes."""

BLOCKS = [(16, 16, 1), (8, 8, 4), (5, 3, 2), (1, 2, 8), (32, 4, 2), (4, 1, 4)]


def count_joined(form: str) -> int:
    """Over how many blocks gangs may reach."""
    found = re.search("in up to ([0-9]+) blocks", form)
    return 1 if found is None else int(found[1])


@pytest.fixture(params=[0, 1 << 40], ids=["rows", "row"])
def planes_first(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that read several rows: planes of several rows of blocks first, or block by block."""
    monkeypatch.setattr(lane_axis, "_BEYOND_CACHES", request.param)
    return


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(9, 37, 75), (4, 8, 16), (1, 1, 300), (13, 70, 3)])
@pytest.mark.sample(5)
def test_every_thread_runs_once(device: Device, block: tuple[int, int, int], shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(1).random(shape, np.float32)
    with config.cpu_lanes.scope("x"), config.cpu_form.scope("vectors"):
        found, form = run(device, plain("zyx"), x, "zyx", block)
    np.testing.assert_array_equal(found, 2 * x + np.arange(x.shape[1], dtype=np.float32)[:, None])
    assert count_joined(form) == 2048 * default_lanes() // block[0] or np.prod(block) < default_lanes(), form


@pytest.mark.usefixtures("planes_first")
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.sample(4)
def test_rows_of_blocks_that_read_several_rows(device: Device, block: tuple[int, int, int]) -> None:
    x = np.random.default_rng(1).random((9, 37, 75), np.float32)
    with config.cpu_lanes.scope("x"), config.cpu_form.scope("vectors"):
        found, _ = run(device, code(BELOW, "k", PARAMETERS), x, "zyx", block)
    np.testing.assert_array_equal(found, x + np.roll(x, -1, axis=1))


def test_wide_blocks_are_joined_unless_they_read_several_rows(device: Device) -> None:
    x = np.random.default_rng(4).random((3, 70, 1051), np.float32)
    found, form = run(device, plain("zyx"), x, "zyx", (512, 2, 1))
    np.testing.assert_array_equal(found, 2 * x + np.arange(x.shape[1], dtype=np.float32)[:, None])
    assert count_joined(form) == 2048 * default_lanes() // 512, form
    found, form = run(device, code(BELOW, "k", PARAMETERS), x, "zyx", (512, 2, 1))
    np.testing.assert_array_equal(found, x + np.roll(x, -1, axis=1))
    assert count_joined(form) == 1, form


def test_rows_of_kernels_that_scatter_are_short(device: Device) -> None:
    x = np.random.default_rng(4).random((3, 70, 151), np.float32)
    with config.cpu_lanes.scope("x"), config.cpu_form.scope("vectors"):
        found, form = run(device, code(TRANSPOSED, "k", PARAMETERS), x, "zyx", (16, 16, 1))
    np.testing.assert_array_equal(found.ravel(), x.transpose(0, 2, 1).ravel())
    assert count_joined(form) == 32 * default_lanes() // 16, form


def count_ordered(expected: str, blocks: int) -> None:
    """Check that each thread ran once, and print how many fours of planes ran in the order that *expected* computes of
    ``i`` and ``j``."""
    shape = (128, 16, 70)
    device = current_device()
    function = device.load(code(COUNTED, "k", PARAMETERS)).function("k")
    i, j = np.indices((4, 16))
    order = eval(expected, {"i": i, "j": j})
    found = []
    with config.cpu_lanes.scope("x"), config.cpu_form.scope("vectors"):
        for _ in range(8):  # the time that launches took decides how many blocks are a chunk
            out, count = (to_device(np.zeros(extents, np.int64), device=device) for extents in (shape, (32, 70)))
            arguments = pack(function.kernel, out.address, count.address, *shape)
            function.launch((blocks, 2, 32), (16, 8, 4), arguments)
            fours = out.copy_to_host()[..., 0].reshape(32, 4, 16)
            assert all(np.array_equal(np.sort(four.ravel()), np.arange(64)) for four in fours)
            found.append(sum(np.array_equal(four, order) for four in fours))
    print(max(found))


@pytest.mark.parametrize(
    ("blocks", "expected"), [(5, "i * 16 + j"), (2048 * default_lanes() // 16 + 1, "j // 8 * 32 + i * 8 + j % 8")]
)
@pytest.mark.sample(1)
def test_planes_of_all_blocks_run_one_after_another(blocks: int, expected: str) -> None:
    """If gangs reach over whole rows of the grid; in a process with one thread, as kernels of several would race."""
    run = f"from test_cpu_row_streams import count_ordered; count_ordered({expected!r}, {blocks})"
    environment = {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", run], env=environment, cwd=Path(__file__).parent, capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    assert int(done.stdout) > 0


FAULT = f"""
{HEAD}
{element("zyx")}
  %bad = icmp eq i64 %place, 1234
  br i1 %bad, label %stop, label %far
stop:
  call void @spmd.fault(ptr %item, i32 7)
  ret void
far:
  %py = getelementptr i64, ptr %y, i64 %place
  store i64 %place, ptr %py
  br label %out
out:
  ret void
}}
"""


def test_faults_name_the_block_and_the_thread(device: Device) -> None:
    shape, block, grid = (8, 20, 30), (4, 4, 4), (8, 5, 2)
    out = to_device(np.zeros(shape, np.int64), device=device)
    function = device.load(code(FAULT, "k", PARAMETERS)).function("k")
    with config.cpu_lanes.scope("x"), config.cpu_form.scope("vectors"):
        function.launch((1, 1, 1), block, pack(function.kernel, out.address, out.address, *shape))  # tells the cost
        with pytest.raises(KernelFault) as caught:
            function.launch(grid, block, pack(function.kernel, out.address, out.address, *shape))
    z, y, x = np.unravel_index(1234, shape)
    assert caught.value.block == (x // 4, y // 4, z // 4)
    assert caught.value.thread == (x % 4, y % 4, z % 4)
