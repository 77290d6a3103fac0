"""Settings of Numba CUDA's while posing: advice, defaults of options, and the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core import config as numba_config
from numba.core.errors import NumbaInvalidConfigWarning, NumbaPerformanceWarning, NumbaWarning

from numba_hip import config
from numba_hip.simulator.dispatcher import SimulatedDispatcher
from numba_hip_cuda import posing
from numba_hip_cuda.settings import FOLLOWERS


def test_settings_are_as_before_after_posing() -> None:
    before = [setting() for setting, _ in FOLLOWERS]
    with posing():
        assert [setting() for setting, _ in FOLLOWERS] == [source() for _, source in FOLLOWERS]
    assert [setting() for setting, _ in FOLLOWERS] == before


def test_advice_is_given_in_the_words_of_cuda(cuda: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    @cuda.jit
    def kernel(values: Any) -> None:
        values[0] = 1

    for variable in ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY"):
        monkeypatch.setattr(numba_config, variable, 1)
        monkeypatch.setenv(f"NUMBA_{variable}", "1")  # which Numba reads again when it compiles
    if cuda.get_current_device().MULTIPROCESSOR_COUNT > 1:
        with pytest.warns(NumbaPerformanceWarning, match="Grid size 1 .* low occupancy") as told:
            configured = kernel[1, 1]
        configured(cuda.to_device(np.zeros(1)))
        assert told[0].filename == __file__
    with pytest.warns(NumbaPerformanceWarning, match="Host array used in CUDA kernel will incur copy overhead"):
        kernel[1, 1](np.zeros(1))
    with config.implicit_copy_warnings.scope(False):
        kernel[1, 1](np.zeros(1))


@pytest.mark.parametrize("simulated", [0, 1])
def test_cuda_that_is_disabled(simulated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_config, "DISABLE_CUDA", 1)
    monkeypatch.setattr(numba_config, "ENABLE_CUDASIM", simulated)
    with posing() as cuda:
        assert cuda.is_available() == bool(simulated)  # the simulator needs no device of CUDA's

        @cuda.jit
        def kernel(values: Any) -> None:
            values[0] = 1

        if not simulated:
            assert "CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1" in cuda.cuda_error()
            for use in (cuda.current_context, lambda: cuda.device_array(1), lambda: kernel[1, 1](np.zeros(1))):
                with pytest.raises(cuda.CudaSupportError, match="NUMBA_DISABLE_CUDA=1") as caught:
                    use()
                assert caught.value.msg == cuda.cuda_error()
    monkeypatch.undo()
    kernel[1, 1](values := np.zeros(1))
    assert values[0] == 1


def test_defaults_of_options(cuda: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(values: Any) -> None:
        values[0] = 1

    with pytest.warns(NumbaInvalidConfigWarning, match="not supported by CUDA"):
        assert cuda.jit(kernel, debug=True).options.opt
    monkeypatch.setattr(numba_config, "CUDA_DEBUGINFO_DEFAULT", 1)
    monkeypatch.setattr(numba_config, "OPT", 0)
    made = cuda.jit(kernel)
    assert (made.options.debug, made.options.opt) == (True, False)
    assert not cuda.jit(kernel, debug=False).options.debug


def test_numbers_are_cut_off_to_the_types_of_signatures(cuda: ModuleType) -> None:
    @cuda.jit("(int64[::1], int32)")
    def kernel(out: Any, number: int) -> None:
        out[0] = number

    out = np.zeros(1, np.int64)
    with pytest.warns(NumbaWarning, match=r"'number' is 1099511627781 .*; 5 is passed instead, as CUDA does"):
        kernel[1, 1](out, 2**40 + 5)
    assert out[0] == 5


def test_wider_integers_are_read_by_their_low_bytes(cuda: ModuleType) -> None:
    @cuda.jit("(int32[:], int32[:])")
    def kernel(source: Any, target: Any) -> None:
        i = cuda.grid(1)
        if i < target.size:
            target[i] = 3 * source[i]

    target = np.zeros(5, np.int64)
    with pytest.warns(NumbaWarning, match=r"'(source|target)' .* first 4 bytes .* taken for int32, as CUDA does"):
        kernel[1, 8](np.arange(5), target)
    assert target.tolist() == [0, 3, 6, 9, 12]


@pytest.mark.parametrize("given", ["CUDA_NVRTC_EXTRA_SEARCH_PATHS", "CUDA_INCLUDE_PATH"])
def test_folders_that_cuda_cpp_includes_from(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang", reason="needs a compiler of C++: pip install ziglang")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "factor.cuh").write_text("#define FACTOR 3\n")
    source = tmp_path / "scale.cu"
    text = '#include <factor.cuh>\nextern "C" __device__ int scale(int *r, int x) { *r = x * FACTOR; return 0; }'
    source.write_text(text)
    with posing() as cuda:
        assert config.include_paths() == ()
        monkeypatch.setattr(cuda.config, given, str(tmp_path / "include"))
        scale = cuda.declare_device("scale", "int32(int32)", link=source)

        @cuda.jit
        def kernel(out: Any) -> None:
            out[0] = scale(7)

        out = np.zeros(1, np.int32)
        kernel[1, 1](out)
    assert out[0] == 21


def test_numbas_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_HIP_CACHE_DIR", raising=False)
    tmp_path.chmod(0o1777)  # as /tmp
    monkeypatch.setattr(numba_config, "CACHE_DIR", str(tmp_path))
    with posing() as cuda:

        @cuda.jit(cache=True)
        def kernel(out: Any) -> None:
            out[0] = 1

        kernel[1, 1](np.zeros(1))
        assert Path(kernel.stats.cache_path).parent == tmp_path
        assert list(Path(kernel.stats.cache_path).glob("??/*.entry"))
        monkeypatch.setenv("NUMBA_HIP_CACHE_DIR", "ours")
        assert config.cache_dir() == Path("ours")
        monkeypatch.delenv("NUMBA_HIP_CACHE_DIR")
        monkeypatch.setattr(numba_config, "CACHE_DIR", "")
        assert config.cache_dir() == config.user_cache()


def test_folders_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CUDA_NVRTC_EXTRA_SEARCH_PATHS", "first:second")
    with posing():
        assert config.include_paths() == (Path("first"), Path("second"))
    assert not hasattr(numba_config, "CUDA_NVRTC_EXTRA_SEARCH_PATHS")


PROGRAM = """
import numpy as np
from numba_hip_cuda import pose_as_cuda
pose_as_cuda()
from numba import cuda, vectorize

@cuda.jit
def sort(values):
    for last in range(values.size - 1, 0, -1):
        for i in range(last):
            if values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]

@cuda.jit
def table(out):
    x, y = cuda.grid(2)
    if x < out.shape[0] and y < out.shape[1]:
        out[x, y] = 10 * x + y

@vectorize(["float64(float64, float64)", "float32(float32, float32)"], target="cuda")
def sum_of_squares(a, b):
    return a * a + b * b

values = np.array([3, 1, 2, 5, 4])
sort[1, 1](values)
out = np.zeros((2, 3), np.int32)
table[(1, 2), (4, 2)](out)
total = cuda.reduce(lambda a, b: a + b)(np.arange(100.0))
squares = sum_of_squares(np.arange(3.0), 2.0)
print(values.tolist(), out.tolist(), total, squares.tolist(), sum_of_squares(3.0, 4.0), type(sort).__name__)
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(("variable", "name"), [("0", "Dispatcher"), ("1", "SimulatedDispatcher")])
def test_programs_run_compiled_and_simulated(
    variable: str, name: str, check: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", variable)
    expected = f"[1, 2, 3, 4, 5] [[0, 1, 2], [10, 11, 12]] 4950.0 [4.0, 5.0, 8.0] 25.0 {name}\n"
    assert check(PROGRAM) == expected


def test_the_simulators_own_decorator(cuda: ModuleType) -> None:
    def count(values: Any) -> None:
        values[simulator.grid(1)] += 1

    simulator = cuda.simulator
    for kernel in (simulator.jit(count), simulator.jit("void(float64[:])")(count), simulator.jit(debug=False)(count)):
        assert type(kernel) is SimulatedDispatcher
        values = np.zeros(4)
        kernel[2, 2](values)
        assert values.tolist() == [1, 1, 1, 1]
