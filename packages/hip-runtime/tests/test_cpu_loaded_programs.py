"""Machine code that is loaded already, for another device or another module with the same code."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from spmd_kernels import code, pack
from spmd_programs import OPERATIONS

from hip_runtime import Device, Function, config, to_device
from hip_runtime.drivers.cpu import finalise
from hip_runtime.drivers.cpu.abi.operation_counters import BYTES, counting

COUNT_LAUNCHES = f"""{OPERATIONS}
@launches = internal global i32 0
define void @count_launches(ptr noalias %item, ptr %out) {{
  %before = atomicrmw add ptr @launches, i32 1 monotonic
  store i32 %before, ptr %out
  ret void
}}"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """The block shapes of the programs that were compiled rather than copied. Those of earlier tests are gone."""
    gc.collect()
    blocks: list[tuple[int, int, int]] = []
    make = finalise.finalise_kernel

    def count(code_object, kernel, block):  # type: ignore[no-untyped-def]
        blocks.append(block)
        return make(code_object, kernel, block)

    monkeypatch.setattr(finalise, "finalise_kernel", count)
    return blocks


def load(device: Device) -> Function:
    return device.load(code(COUNT_LAUNCHES, "count_launches", [("out", "ptr")])).function("count_launches")


def launch(function: Function, block: int | tuple[int, int] = 1) -> int:
    """How many launches the module's global variable has counted before this one."""
    out = to_device(np.zeros(1, np.int32))
    function.launch(1, block, pack(function.kernel, out.address))
    return int(out[0])


def test_copies_have_global_variables_of_their_own(device: Device, made: list[object]) -> None:
    one, other = load(device), load(device)
    assert [launch(one), launch(one), launch(other), launch(one), launch(other)] == [0, 1, 0, 2, 1]
    assert made == [(1, 1, 1)]


def test_a_copy_serves_when_the_first_module_is_gone(device: Device, made: list[object]) -> None:
    one, other = load(device), load(device)
    assert (launch(one), launch(other)) == (0, 0)
    one.module.unload()
    del one
    gc.collect()
    assert launch(other) == 1
    third = load(device)
    assert launch(third) == 0
    assert made == [(1, 1, 1)]
    del other, third
    gc.collect()
    launch(load(device))
    assert len(made) == 2, "nobody keeps a program but the functions that run it"


def test_other_settings_and_block_shapes_have_code_of_their_own(device: Device, made: list[object]) -> None:
    functions = [load(device) for _ in range(4)]
    launch(functions[0], (2, 2))
    launch(functions[1], (2, 3))
    with config.cpu_form.scope("loop"):
        launch(functions[2], (2, 2))
    launch(functions[3], (2, 2))
    assert made == [(2, 2, 1), (2, 3, 1), (2, 2, 1)]


def test_code_for_several_lengths_is_copied_for_each(device: Device, made: list[object]) -> None:
    one, other = load(device), load(device)
    assert (launch(one, 64), launch(other, 128)) == (63, 127) or made  # the last thread's number
    assert len(made) == 1


def test_what_counts_operations_is_neither_copied_nor_a_copy(device: Device, made: list[object]) -> None:
    plain, counted, later = load(device), load(device), load(device)
    launch(plain)
    with counting() as counters:
        launch(counted)
    assert list(counters)[BYTES] > 0
    launch(later)
    assert len(made) == 2
    with counting() as more:
        launch(later)
    assert list(more)[BYTES] == 0, "it is the code of the first"


def test_what_is_to_be_seen_is_made_each_time(
    device: Device, made: list[object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, other = load(device), load(device)
    launch(one)
    seen = tmp_path_factory.mktemp("seen")
    with config.dump.scope(frozenset({"asm"})), config.dump_directory.scope(seen):
        launch(other)
    assert len(made) == 2
    assert list(seen.rglob("*"))
