"""Warps have 32 lanes while posing, whatever waves are otherwise."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from hip_runtime import config
from numba_hip_cuda import posing


@pytest.fixture(autouse=True)
def nobody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(config.cpu_wave_size.variable, raising=False)


def test_a_warp_has_32_lanes_in_kernels_and_by_all_names(cuda: ModuleType) -> None:
    @cuda.jit
    def kernel(sizes, lanes, votes):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        sizes[i] = cuda.warpsize
        lanes[i] = cuda.laneid
        votes[i] = cuda.ballot_sync(0xFFFFFFFF, i % 2 == 0)

    sizes, lanes, votes = np.zeros(96, np.int64), np.zeros(96, np.int64), np.zeros(96, np.uint64)
    kernel[1, 96](sizes, lanes, votes)
    assert set(sizes) == {32}
    assert lanes.tolist() == list(range(32)) * 3
    assert set(votes.tolist()) == {0x55555555}
    device = cuda.get_current_device()
    assert device.WARP_SIZE == device.wave_size == 32


def test_waves_are_as_before_after_posing() -> None:
    with posing():
        assert config.cpu_wave_size() == 32
    assert config.cpu_wave_size() == 64


def test_who_chose_a_wave_size_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(config.cpu_wave_size.variable, "64")
    with posing() as cuda:
        assert cuda.get_current_device().WARP_SIZE == 64

        @cuda.jit
        def kernel(votes):  # type: ignore[no-untyped-def]
            i = cuda.grid(1)
            votes[i] = cuda.ballot_sync(0xFFFFFFFF, i % 2 == 0)

        # No array of the host: to compile, Numba reads its own variables again when one of the environment was set, and
        # wants the warning of copies then.
        votes = cuda.to_device(np.zeros(64, np.uint64))
        kernel[1, 64](votes)
        assert set(votes.copy_to_host().tolist()) == {0x55555555}, "a mask of 32 bits is that of the lower half"


@pytest.mark.long
def test_children_pose_on_request(check: Callable[..., str]) -> None:
    printed = check("""
        import os, subprocess, sys
        from numba_hip_cuda import pose_as_cuda, stop_posing
        code = "from numba import cuda; print(cuda.implementation, cuda.get_current_device().WARP_SIZE)"
        before = os.environ.get("PYTHONPATH")
        pose_as_cuda(children=True)
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
        grandchild = f"import subprocess, sys; from numba import cuda; subprocess.run([sys.executable, '-c', {code!r}])"
        print(subprocess.run([sys.executable, "-c", grandchild], capture_output=True, text=True).stdout.strip())
        stop_posing()
        assert os.environ.get("PYTHONPATH") == before
    """)
    assert printed.split("\n")[:2] == ["HIP 32", "HIP 32"]


def test_children_that_ask_for_nothing_pay_nothing(check: Callable[..., str]) -> None:
    check("""
        import subprocess, sys
        from numba_hip_cuda import pose_as_cuda
        pose_as_cuda(children=True)
        code = "import sys; assert not [m for m in sys.modules if m.startswith(('numba', 'numpy', 'hip_runtime'))]"
        subprocess.run([sys.executable, "-c", code], check=True)
    """)


@pytest.mark.long
def test_another_sitecustomize_is_run_too(check: Callable[..., str], tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    printed = check(
        """
        import subprocess, sys
        from numba_hip_cuda import pose_as_cuda
        pose_as_cuda(children=True)
        subprocess.run([sys.executable, "-c", "from numba import cuda; print(cuda.implementation)"], check=True)
        """,
        path=tmp_path,
    )
    assert printed.split() == ["mine", "mine", "HIP"]


@pytest.mark.long
def test_processes_of_multiprocessing_pose_too(run_python: Callable[..., object], tmp_path) -> None:  # type: ignore[no-untyped-def]
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing\n"
        "def ask(n):\n"
        "    from numba import cuda\n"
        "    return cuda.implementation\n"
        "if __name__ == '__main__':\n"
        "    from numba_hip_cuda import pose_as_cuda\n"
        "    pose_as_cuda(children=True)\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(ask, [1]))\n"
    )
    result = run_python(str(program))
    assert result.stdout == "['HIP']\n", result.stderr  # type: ignore[attr-defined]
