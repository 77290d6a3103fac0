"""Machine code that is kept from one process to the next."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_kernels import code, pack, sample
from spmd_programs import OPERATIONS
from test_cpu_grid_barrier import GRID, ROTATE
from test_cpu_grid_barrier import PARAMETERS as ROTATE_PARAMETERS
from test_cpu_regions import SHARED, kernel

from hip_runtime import Device, Function, config, to_device
from hip_runtime.drivers.cpu import code_cache, finalise, modules
from hip_runtime.errors import BarrierDivergenceError

VARIABLE = "WHERE_CODE_IS_KEPT"

REVERSE = f"""{OPERATIONS}
declare ptr @spmd.shared.s.256.16(ptr)
define void @k(ptr noalias %item, ptr %x, i32 %until) {{
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %s = call ptr @spmd.shared.s.256.16(ptr %item)
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %s, i32 %t
  store i32 %v, ptr %q
  %late = icmp uge i32 %t, %until
  br i1 %late, label %one, label %other
one:
  call void @spmd.barrier(ptr %item)
  br label %go
other:
  call void @spmd.barrier(ptr %item)
  br label %go
go:
  %bytes = call i64 @spmd.dynamic_shared_bytes(ptr %item)
  %extra = trunc i64 %bytes to i32
  %d = call i32 @spmd.block_dim.x(ptr %item)
  %e = sub i32 %d, 1
  %m = sub i32 %e, %t
  %r = getelementptr i32, ptr %s, i32 %m
  %w = load i32, ptr %r
  %y = add i32 %w, %extra
  store i32 %y, ptr %p
  ret void
}}"""


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about files: what this process has loaded is not used."""
    monkeypatch.setattr(modules, "copy_loaded", lambda code, kernel, block: None)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """The block shapes of the programs that were compiled rather than read."""
    blocks: list[tuple[int, int, int]] = []
    make = finalise.finalise_kernel

    def count(code_object, kernel, block):  # type: ignore[no-untyped-def]
        blocks.append(block)
        return make(code_object, kernel, block)

    monkeypatch.setattr(finalise, "finalise_kernel", count)
    return blocks


def saxpy(device: Device, directory: Path, block: int = 64) -> Function:
    """Load the kernel anew, keeping its code in *directory*, launch it and check what it does."""
    function = device.load(sample("saxpy")).function("saxpy")
    function.keep_code(directory, VARIABLE)
    x, y = (to_device(np.arange(100, dtype=np.float32)) for _ in range(2))
    function.launch(-(-100 // block), block, pack(function.kernel, y.address, x.address, 2.0, 100))
    np.testing.assert_array_equal(y.copy_to_host(), 3 * np.arange(100))
    return function


def entries(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.entry"))


def test_second_load_does_not_compile(device: Device, tmp_path: Path, made: list[object]) -> None:
    first = saxpy(device, tmp_path)
    second = saxpy(device, tmp_path)
    assert made == [(64, 1, 1)]
    assert second.form == first.form != ""


def test_what_is_to_be_seen_is_made_each_time(device: Device, tmp_path: Path, made: list[object]) -> None:
    saxpy(device, tmp_path / "kept")
    with config.dump.scope(frozenset({"asm"})), config.dump_directory.scope(tmp_path / "seen"):
        saxpy(device, tmp_path / "kept")
    assert made == [(64, 1, 1)] * 2
    assert list((tmp_path / "seen").rglob("*"))
    assert len(entries(tmp_path / "kept")) == 1


def test_code_is_kept_for_each_block_shape(device: Device, tmp_path: Path, made: list[object]) -> None:
    for block in (64, 32, 64, 32):
        saxpy(device, tmp_path, block)
    assert made == [(64, 1, 1), (32, 1, 1)]


def test_code_is_kept_for_each_number_of_lanes(device: Device, tmp_path: Path, made: list[object]) -> None:
    with config.cpu_form.scope("vectors"):
        reasons = []
        for lanes in (8, 16, 8):
            with config.cpu_width.scope(lanes):
                reasons.append(saxpy(device, tmp_path).form)
    assert len(made) == 2
    assert [f"{lanes} threads at a time" in reason for lanes, reason in zip((8, 16, 8), reasons, strict=True)] == [
        True, True, True
    ]  # fmt: skip


def test_code_of_waves_in_lock_step_is_kept_apart(device: Device, tmp_path: Path, made: list[object]) -> None:
    for lockstep in (False, True, False, True):
        with config.cpu_lockstep.scope(lockstep):
            assert ("lock step" in str(saxpy(device, tmp_path).form)) == lockstep
    assert len(made) == 2


def test_code_of_another_form_processor_or_llvm_is_not_used(
    device: Device, tmp_path: Path, made: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    saxpy(device, tmp_path)
    with config.cpu_form.scope("regions"):
        saxpy(device, tmp_path)
    assert len(made) == 2
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "llvm_version_info", (99, 0, 0))
        saxpy(device, tmp_path)
    assert len(made) == 3
    features = llvm.get_host_cpu_features()
    name = next(iter(features))
    features[name] = not features[name]
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "get_host_cpu_features", lambda: features)
        saxpy(device, tmp_path)
    assert len(made) == 4
    with monkeypatch.context() as patch:
        patch.setattr(code_cache, "_source_digest", lambda: "other modules")
        saxpy(device, tmp_path)
    assert len(made) == 5
    saxpy(device, tmp_path)
    assert len(made) == 5


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_entry_is_made_again(device: Device, tmp_path: Path, made: list[object], damage: str) -> None:
    saxpy(device, tmp_path)
    (entry,) = entries(tmp_path)
    data = bytearray(entry.read_bytes())
    if damage == "changed":
        data[len(data) // 2] ^= 1
    entry.write_bytes({"cut": data[:-100], "changed": data, "empty": b""}[damage])
    saxpy(device, tmp_path)
    saxpy(device, tmp_path)
    assert len(made) == 2
    assert len(entries(tmp_path)) == 1


def test_directory_that_others_can_write_to_is_not_used(device: Device, tmp_path: Path, made: list[object]) -> None:
    saxpy(device, tmp_path)
    before = entries(tmp_path)
    tmp_path.chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
    with pytest.warns(RuntimeWarning, match=f"neither looked up nor kept: others can write.*{VARIABLE}"):
        saxpy(device, tmp_path)
    with pytest.warns(RuntimeWarning, match="others can write"):
        saxpy(device, tmp_path, block=32)
    assert len(made) == 3
    assert entries(tmp_path) == before


def test_one_warning_is_shown_of_a_directory_that_others_can_write_to(device: Device, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for block in (64, 32):
            saxpy(device, tmp_path, block)
    assert [warning.category for warning in shown] == [RuntimeWarning]


def test_a_file_is_no_directory_for_machine_code(device: Device, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(RuntimeWarning, match=f"neither looked up nor kept: .*file.*{VARIABLE}"):
        saxpy(device, tmp_path / "file")


def test_a_folder_below_that_others_can_write_to_is_not_read(
    device: Device, tmp_path: Path, made: list[object]
) -> None:
    saxpy(device, tmp_path)
    (entry,) = entries(tmp_path)
    entry.parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=f"'saxpy' is not looked up, nor kept: others can write.*{VARIABLE}"):
        saxpy(device, tmp_path)
    assert len(made) == 2
    entry.parent.chmod(0o700)
    saxpy(device, tmp_path)
    assert len(made) == 2


def test_an_entry_that_is_a_directory_is_made_again(device: Device, tmp_path: Path, made: list[object]) -> None:
    saxpy(device, tmp_path)
    (entry,) = entries(tmp_path)
    entry.unlink()
    entry.mkdir()
    saxpy(device, tmp_path)
    saxpy(device, tmp_path)
    assert len(made) == 2
    assert entry.is_file()


def test_what_cannot_be_kept_is_run_with_a_warning(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.warns(RuntimeWarning, match=f"'saxpy' is not kept.*No space left.*{VARIABLE}"):
        saxpy(device, tmp_path)
    assert entries(tmp_path) == []


def test_barriers_and_dynamic_memory_of_a_program_that_was_read(
    device: Device, tmp_path: Path, made: list[object]
) -> None:
    code_object = code(REVERSE, "k", [("x", "ptr"), ("until", "i32")], shared_bytes=256)
    for _ in range(2):
        function = device.load(code_object).function("k")
        function.keep_code(tmp_path, VARIABLE)
        x = to_device(np.arange(64, dtype=np.int32))
        function.launch(1, 64, pack(function.kernel, x.address, 0), dynamic_shared=1000)
        np.testing.assert_array_equal(x.copy_to_host(), 1000 + np.arange(64)[::-1])
        with pytest.raises(BarrierDivergenceError):
            function.launch(1, 64, pack(function.kernel, x.address, 5))
    assert len(made) == 1


def test_barriers_of_the_grid_in_a_program_that_was_read(device: Device, tmp_path: Path, made: list[object]) -> None:
    code_object = kernel(ROTATE, ROTATE_PARAMETERS, GRID + SHARED, shared_bytes=4096)
    for _ in range(2):
        function = device.load(code_object).function("k")
        function.keep_code(tmp_path, VARIABLE)
        out = to_device(np.arange(3 * 33, dtype=np.int32))
        function.launch(3, 33, pack(function.kernel, out.address, 2), cooperative=True)
        np.testing.assert_array_equal(out.copy_to_host(), np.roll(np.arange(3 * 33), -2))
    assert len(made) == 1


def test_code_is_kept_for_each_kernel_of_a_code_object(device: Device, tmp_path: Path, made: list[object]) -> None:
    text = "".join(
        f"define void @{name}(ptr noalias %item, ptr %x) {{\n  store i32 {number}, ptr %x\n  ret void\n}}\n"
        for name, number in (("one", 1), ("two", 2))
    )
    one = code(text, "one", [("x", "ptr")])
    both = replace(one, kernels=(*one.kernels, replace(one.kernels[0], name="two")))
    for _ in range(2):
        for name, number in (("one", 1), ("two", 2)):
            function = device.load(both).function(name)
            function.keep_code(tmp_path, VARIABLE)
            x = to_device(np.zeros(1, np.int32))
            function.launch(1, 1, pack(function.kernel, x.address))
            assert x.copy_to_host()[0] == number
    assert len(made) == 2


PROCESS = """
import sys
import warnings
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import numpy as np
from spmd_kernels import sample, pack
from hip_runtime import current_device, to_device
from hip_runtime.drivers.cpu import finalise
made, make = [], finalise.finalise_kernel
finalise.finalise_kernel = lambda *what: made.append(what) or make(*what)
for block in (32, 64):
    function = current_device().load(sample("saxpy")).function("saxpy")
    function.keep_code(Path(sys.argv[1]), "X")
    x, y = (to_device(np.arange(100, dtype=np.float32)) for _ in range(2))
    function.launch(4, block, pack(function.kernel, y.address, x.address, 2.0, 100))
    assert (y.copy_to_host() == 3 * np.arange(100)).all()
print(len(made))
"""


@pytest.mark.long
def test_many_processes(tmp_path: Path) -> None:
    """Processes that begin at the same time do not disturb each other, and one that comes later compiles nothing."""
    command = [sys.executable, "-c", PROCESS, str(tmp_path), str(Path(__file__).parent)]
    environment = {**os.environ, "NUMBA_HIP_DEVICE": "cpu"}
    together = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    counts = [int(process.communicate(timeout=60)[0]) for process in together]
    assert all(process.returncode == 0 for process in together)
    assert 2 <= sum(counts) <= 6
    assert len(entries(tmp_path)) == 2
    later = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert later.stdout.strip() == "0"
