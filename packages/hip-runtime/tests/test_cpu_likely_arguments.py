"""Code for the arguments that launches are likely to pass, for some others and for any: which runs, and its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, Function, Stream, config, to_device
from hip_runtime.drivers.cpu import finalise, launches
from hip_runtime.errors import KernelFault, ModuleLoadError

STRIDED = f"""
define void @k(ptr noalias %item, ptr %x, i64 %stride, ptr %out, i32 %step, i64 %n) {{
{GLOBAL_X}
  %in = icmp ult i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %from = mul i64 %i, %stride
  %px = getelementptr i8, ptr %x, i64 %from
  %v = load i32, ptr %px
  %wide = sext i32 %step to i64
  %to = mul i64 %i, %wide
  %po = getelementptr i32, ptr %out, i64 %to
  %more = add i32 %v, 1
  store i32 %more, ptr %po
  %bad = icmp eq i32 %v, -7
  br i1 %bad, label %report, label %end
report:
  call void @spmd.fault(ptr %item, i32 5)
  br label %end
end:
  ret void
}}"""
PARAMETERS = [("x", "ptr"), ("stride", "i64"), ("out", "ptr"), ("step", "i32"), ("n", "i64")]
LIKELY = ((1, 4), (3, 1))
N = 300
FORMS = ["auto", "loop", "vectors", "regions"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """For each program that is made, the arguments that it is for; none if that is any."""
    found: list[tuple[int, ...]] = []
    make = finalise.finalise_kernel

    def count(code_object: Any, kernel: Any, block: Any) -> Any:
        found.append(tuple(number for _, number in kernel.likely_arguments))
        return make(code_object, kernel, block)

    monkeypatch.setattr(finalise, "finalise_kernel", count)
    return found


def load(device: Device) -> Function:
    return device.load(code(STRIDED, "k", PARAMETERS, likely_arguments=LIKELY)).function("k")


def check(function: Function, stride: int, step: int, stream: Stream | None = None) -> None:
    numbers = np.random.default_rng(stride).integers(0, 1 << 20, 3 * N, np.int32)
    given, out = to_device(numbers), to_device(np.full(2 * N, -1, np.int32))
    arguments = pack(function.kernel, given.address, stride, out.address, step, N)
    function.launch(5, 64, arguments, **({} if stream is None else {"stream": stream}))
    if stream is not None:
        stream.synchronize()
    expected = np.full(2 * N, -1, np.int32)
    expected[: N * step : step] = numbers[: N * stride // 4 : stride // 4][:N] + 1
    np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize("form", FORMS)
def test_each_launch_runs_code_for_what_it_passes(device: Device, made: list[tuple[int, ...]], form: str) -> None:
    with config.cpu_form.scope(form):
        function = load(device)
        check(function, 4, 1)
        assert made == [(4, 1)]
        for stride, step in [(8, 1), (4, 2), (12, 2), (4, 1), (8, 1)]:
            check(function, stride, step)
        assert made == [(4, 1), (8, 1), ()]
        assert set(function.handle.forms) == {(64, 1, 1)}


def test_one_launcher_serves_both(device: Device, made: list[tuple[int, ...]]) -> None:
    function, numbers = load(device), np.arange(2 * N, dtype=np.int32)
    given, out = to_device(numbers), to_device(np.zeros(N, np.int32))
    launch = device.driver.launcher(function.handle, (64, 1, 1), 0, False)
    for stride in (8, 4, 8, 4):
        launch(pack(function.kernel, given.address, stride, out.address, 1, N), (5, 1, 1), 0)
        np.testing.assert_array_equal(out.copy_to_host(), numbers[:: stride // 4][:N] + 1)
    assert made == [(8, 1), (4, 1)]


def test_arguments_far_from_likely_ones_have_code_for_any(device: Device, made: list[tuple[int, ...]]) -> None:
    function, numbers = load(device), np.arange(70 * 16, dtype=np.int32)
    given, out = to_device(numbers), to_device(np.zeros(70, np.int32))
    for stride in (64, -64, 32, 12, 64):
        first = given.address if stride > 0 else given.address + 69 * 64
        function.launch(2, 64, pack(function.kernel, first, stride, out.address, 1, 70))
        wanted = numbers[::16] if abs(stride) == 64 else numbers[:: stride // 4][:70]
        np.testing.assert_array_equal(out.copy_to_host(), (wanted if stride > 0 else wanted[::-1]) + 1)
    assert made == [(), (12, 1)]


def test_many_arguments_are_told_apart(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_MOST_REMEMBERED", 2)
    function = load(device)
    for stride, step in [(4, 1), (8, 1), (12, 1), (8, 2), (4, 1), (4, 2), (8, 1)]:
        check(function, stride, step)


def test_code_is_prepared_for_likely_arguments(device: Device, made: list[tuple[int, ...]]) -> None:
    function = load(device)
    device.driver.prepare(function.handle, (64, 1, 1))
    check(function, 4, 1)
    assert made == [(4, 1)]


def test_launches_on_streams(device: Device) -> None:
    function, stream = load(device), Stream(device)
    for stride, step in [(4, 1), (8, 1), (12, 1), (4, 1)]:
        check(function, stride, step, stream)
    stream.close()


@pytest.mark.parametrize("stride", [4, 8])
def test_faults_are_reported_by_both(device: Device, stride: int) -> None:
    function, numbers = load(device), np.zeros(2 * N, np.int32)
    numbers[70 * stride // 4] = -7
    given, out = to_device(numbers), to_device(np.zeros(N, np.int32))
    with pytest.raises(KernelFault) as caught:
        function.launch(5, 64, pack(function.kernel, given.address, stride, out.address, 1, N))
    assert (caught.value.code, caught.value.block, caught.value.thread) == (5, (1, 0, 0), (6, 0, 0))


def test_both_are_kept_on_disk(device: Device, made: list[tuple[int, ...]], tmp_path: Path) -> None:
    for _ in range(2):
        function = load(device)
        function.keep_code(tmp_path, "WHERE")
        for stride in (4, 8, 12):
            check(function, stride, 1)
        del function
    assert made == [(4, 1), (8, 1), ()]


def test_both_are_unloaded(device: Device) -> None:
    module = device.load(code(STRIDED, "k", PARAMETERS, likely_arguments=LIKELY))
    function = module.function("k")
    for stride in (4, 8, 12):
        check(function, stride, 1)
    module.unload()
    for stride in (4, 8, 12):
        with pytest.raises(ModuleLoadError, match="unloaded"):
            check(function, stride, 1)
