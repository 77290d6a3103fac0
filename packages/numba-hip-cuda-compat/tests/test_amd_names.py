"""Programs that were written for AMD's numba-hip."""

from __future__ import annotations

import importlib
import unittest
from types import ModuleType

import numpy as np
import pytest
from numba.core import config as numba_config

import numba_hip
from numba_hip import config
from numba_hip.language import hip_extensions
from numba_hip_cuda.amd.catalog import ALIASES, HIP, MODULES
from numba_hip_cuda.amd.namespace import look_up


@pytest.mark.parametrize("module", MODULES)
def test_every_name_stands_for_something_without_posing(module: str) -> None:
    imported = importlib.import_module(module)
    table = MODULES[module]
    for name in table.names:
        assert getattr(imported, name) is not None
    for name, reason in table.absent.items():
        with pytest.raises(AttributeError, match="has no counterpart on HIP") as caught:
            getattr(imported, name)
        assert reason in str(caught.value)
        with pytest.raises(ModuleNotFoundError, match="has no counterpart on HIP"):
            importlib.import_module(f"{module}.{name}")


@pytest.mark.parametrize(("alias", "meant"), ALIASES.items())
def test_modules_have_second_names(alias: str, meant: str) -> None:
    assert importlib.import_module(alias) is importlib.import_module(meant)
    assert getattr(numba_hip, alias.rpartition(".")[2]) is importlib.import_module(meant)


def test_the_driver_is_there_with_its_objects() -> None:
    driver = importlib.import_module("numba.hip.hipdrv.driver")
    assert driver is importlib.import_module("numba.hip.cudadrv.driver")
    assert driver.Stream is numba_hip.Stream
    assert driver.driver.get_device_count() == len(numba_hip.list_devices())
    array = importlib.import_module("numba.hip.hipdrv.devicearray").from_array_like(np.ones(3))
    driver.host_to_device(array, np.arange(3.0), 24)
    assert array.copy_to_host().tolist() == [0, 1, 2]
    devices = importlib.import_module("numba.hip.hipdrv.devices")
    assert devices.get_context is numba_hip.current_context


def test_names_are_those_of_hip() -> None:
    assert numba_hip.as_hip_array is numba_hip.as_cuda_array is numba_hip.as_device_array
    assert issubclass(numba_hip.HipSupportError, Exception)
    assert numba_hip.hip_error() is None
    assert str(numba_hip.KernelRuntimeError("no", (1, 0, 0), (2, 0, 0))).startswith("An exception was raised in thread")
    assert numba_hip.BaseHIPMemoryManager is numba_hip.BaseMemoryManager


def test_what_nobody_has_is_still_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = numba_hip.no_such_name
    with pytest.raises(ModuleNotFoundError, match=r"numba\.hip\.no_such_module"):
        importlib.import_module("numba.hip.no_such_module")
    with pytest.raises(LookupError):
        look_up("no_such_name")
    assert HIP in MODULES


def test_posed_programs_find_them_in_numba_cuda(cuda: ModuleType) -> None:
    code, _ = cuda.compile_llvm_ir_for_current_device(lambda: None, (), device=True, name="GENERIC_OP")
    assert "GENERIC_OP" in code
    assert isinstance(cuda.jit(lambda: None), cuda.dispatcher.HIPDispatcher)

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = cuda.cosf(out[0])

    out = np.zeros(1, np.float32)
    kernel[1, 1](out)
    assert out[0] == 1
    assert "compile_llvm_ir" not in dir(cuda)


def test_posed_programs_call_their_own_hip(cuda: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_extensions, "_chosen", hip_extensions._Chosen())
    pytest.importorskip("ziglang")
    pytest.importorskip("clang")
    cuda.set_hip_extensions(code="__device__ int my_posed_number() { return 42; }")

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = cuda.my_posed_number()

    out = np.zeros(1, np.int32)
    kernel[1, 1](out)
    assert out[0] == 42


def test_its_base_of_tests_turns_advice_off_and_on_again(cuda: ModuleType) -> None:
    testing = importlib.import_module("numba.cuda.testing")
    assert issubclass(testing.CUDATestCase, importlib.import_module("numba.hip.testing").HIPTestCase)
    seen = []

    class Case(testing.CUDATestCase):  # type: ignore[name-defined, misc]
        def test_it(self) -> None:
            settings = config.low_occupancy_warnings(), config.implicit_copy_warnings()
            seen.append((*settings, numba_config.CUDA_LOW_OCCUPANCY_WARNINGS))

        @testing.skip_unless_hipsim("under the simulator alone")
        def test_simulated(self) -> None:
            raise AssertionError

    numba_config.CUDA_LOW_OCCUPANCY_WARNINGS = 1  # put back by the fixture that every test here has
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful(), result.errors
    assert seen == [(False, False, 0)]
    assert [why for _, why in result.skipped] == ["under the simulator alone"]
    assert config.low_occupancy_warnings() is True
