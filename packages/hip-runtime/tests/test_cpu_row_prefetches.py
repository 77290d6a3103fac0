"""Rows that the threads of later blocks will load, which kernels with barriers ask for."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel
from spmd_kernels import pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.regions import block_function
from hip_runtime.drivers.cpu.regions.row_prefetches import RowLoad

SHARED = "declare ptr @spmd.shared.s.1024.16(ptr)\n"
LENGTH = 64
BLOCKS = 9
PREFETCH = "prfm" if platform.machine() == "aarch64" else "prefetch"


@pytest.fixture(autouse=True)
def _in_regions() -> Any:
    with config.cpu_form.scope("regions"):
        yield


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int]]]:
    """Bytes of each row that is asked for, and from block to block, for each kernel's first region."""
    rows: list[list[tuple[int, int]]] = []
    find = block_function.find_row_loads

    def spy(*arguments: Any) -> list[RowLoad]:
        loads = find(*arguments)
        rows.append([(load.nbytes, load.stride) for load in loads])
        return loads

    monkeypatch.setattr(block_function, "find_row_loads", spy)
    return rows


def _sum_of(places: list[str]) -> str:
    """A kernel's body: each thread adds the elements of ``%in`` at *places*, computed from ``%wt``, ``%wb`` and
    ``%shift``, and stores what the mirrored thread found."""
    loads = "".join(
        f"{place.replace('%place', f'%place{number}')}\n"
        f"%p{number} = getelementptr i32, ptr %in, i64 %place{number}\n%v{number} = load i32, ptr %p{number}\n"
        f"%sum{number} = add i32 %v{number}, {'0' if number == 0 else f'%sum{number - 1}'}\n"
        for number, place in enumerate(places)
    )
    return f"""
      %s = call ptr @spmd.shared.s.1024.16(ptr %item)
      %slot = getelementptr i32, ptr %s, i32 %t
      %wt = zext i32 %t to i64
      %wb = zext i32 %b to i64
      {loads}
      store i32 %sum{len(places) - 1}, ptr %slot
      call void @spmd.barrier(ptr %item)
      %mirror = xor i32 %t, {LENGTH - 1}
      %q = getelementptr i32, ptr %s, i32 %mirror
      %o = load i32, ptr %q
      %r = getelementptr i32, ptr %out, i32 %i
      store i32 %o, ptr %r
      ret void
    """


def _linear(block: int, thread: int, first: int = 0) -> str:
    """The element that is *block* further in each block, and *thread* in each thread."""
    return (
        f"%place.b = mul i64 %wb, {block}\n%place.t = mul i64 %wt, {thread}\n"
        f"%place.s = add i64 %place.b, %place.t\n%place.o = add i64 %place.s, %shift\n"
        f"%place = add i64 %place.o, {first}"
    )


ASKED: dict[str, tuple[list[tuple[int, int, int]], list[tuple[int, int]]]] = {
    "one after the other": ([(64, 1, 0)], [(256, 256)]),
    "two rows for each block": ([(128, 1, 0), (128, 1, 64)], [(256, 512), (256, 512)]),
    "from the end of the array": ([(-64, 1, 1000)], [(256, -256)]),
    "with room between": ([(100, 1, 0)], [(256, 400)]),
    "every second": ([(128, 2, 0)], []),
    "backwards": ([(64, -1, 63)], []),
    "rows that overlap": ([(16, 1, 0)], []),
    "the same for all blocks": ([(0, 1, 0)], []),
    "the same for all threads": ([(64, 0, 0)], []),
    "too far apart": ([(16385, 1, 0)], []),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.sample(4)
def test_rows_that_are_asked_for(
    device: Device, found: list[list[tuple[int, int]]], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    steps, asked = ASKED[name]
    shift = 5 + max(0, *(-block * BLOCKS for block, _, _ in steps))
    made = kernel(
        _sum_of([_linear(*step) for step in steps]), [("out", "ptr"), ("in", "ptr"), ("shift", "i64")], SHARED,
        shared_bytes=1024,
    )  # fmt: skip
    block, thread = np.ogrid[:BLOCKS, :LENGTH]
    places = [across * block + along * thread + first + shift for across, along, first in steps]
    values = np.random.default_rng(2).integers(0, 1 << 20, 1 + max(int(place.max()) for place in places), np.int32)
    source, out = to_device(values), to_device(np.zeros(BLOCKS * LENGTH, np.int32))
    with config.dump.scope("asm"):
        function = device.load(made).function("k")
        function.launch(BLOCKS, LENGTH, pack(function.kernel, out.address, source.address, shift))
    expected = sum(values[place] for place in places)
    np.testing.assert_array_equal(out.copy_to_host(), expected[:, ::-1].ravel())
    assert found == [asked]
    assert (PREFETCH in capsys.readouterr().err) is bool(asked)
