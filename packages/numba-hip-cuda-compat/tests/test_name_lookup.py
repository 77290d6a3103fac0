"""The table, and what happens to names that are not in it."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

import hip_runtime.errors
import numba_hip
from hip_runtime.errors import UnsupportedError
from numba_hip_cuda import catalog, cuda_only_functions, posing
from numba_hip_cuda.catalog import MODULES
from numba_hip_cuda.name_lookup import UnavailableNameError, UnknownPosedNameError, available, look_up

FIRST_FORM = """
    jit grid gridsize threadIdx blockIdx blockDim gridDim to_device device_array device_array_like stream synchronize
    event event_elapsed_time is_available detect list_devices get_current_device select_device
    as_cuda_array is_cuda_array is_supported_version cuda_error implementation CudaSupportError
""".split()


@pytest.mark.parametrize("name", FIRST_FORM)
def test_names_that_programs_use_stand_for_something(cuda: ModuleType, name: str) -> None:
    assert getattr(cuda, name) is look_up("numba.cuda", name)
    assert name in dir(cuda)


@pytest.mark.parametrize("name", catalog.SAME)
def test_a_name_is_that_of_numba_hip_or_refused(cuda: ModuleType, name: str) -> None:
    if name in dir(numba_hip):
        assert getattr(cuda, name) is getattr(numba_hip, name)
    else:
        with pytest.raises(UnavailableNameError, match=rf"numba\.cuda\.{name} would be numba_hip\.{name}, which"):
            getattr(cuda, name)


def test_where_names_differ(cuda: ModuleType) -> None:
    assert cuda.as_cuda_array is numba_hip.as_device_array
    assert cuda.is_cuda_array is numba_hip.is_device_array
    assert cuda.CudaSupportError is hip_runtime.errors.DeviceUnavailableError


def test_no_name_is_both_there_and_absent_and_every_source_exists(cuda: ModuleType) -> None:
    for module in MODULES.values():
        assert not module.names.keys() & module.absent.keys()
        for where in module.names.values():
            source, separator, attribute = where.partition(":")
            assert separator
            if not attribute:
                assert source in MODULES
                continue
            assert attribute.isidentifier()
            found = importlib.import_module(source)
            if source != "numba_hip":  # which may be older than this table
                assert hasattr(found, attribute), where


def test_an_unknown_name_says_what_may_have_been_meant(cuda: ModuleType) -> None:
    with pytest.raises(UnknownPosedNameError) as caught:
        cuda.gird  # noqa: B018
    message = "module 'numba.cuda' has no attribute 'gird'; did you mean 'grid'? (numba_hip_cuda poses as numba.cuda)"
    assert str(caught.value) == message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(cuda, "gird")
    with pytest.raises(UnknownPosedNameError, match="did you mean 'gridDim'"):
        cuda.griddim  # noqa: B018
    with pytest.raises(UnknownPosedNameError, match="'DeviceNDArray'; there is one in numba.cuda.cudadrv.devicearray "):
        cuda.DeviceNDArray  # noqa: B018
    with pytest.raises(UnknownPosedNameError, match=r"'qqqqqqq' \(numba_hip_cuda poses"):
        cuda.qqqqqqq  # noqa: B018


def test_a_name_that_hip_cannot_have_says_why(cuda: ModuleType) -> None:
    with pytest.raises(UnavailableNameError, match=r"numba\.cuda\.nvvm has no counterpart on HIP .* NVIDIA's compiler"):
        cuda.nvvm  # noqa: B018


@pytest.mark.parametrize("name", catalog.COMPILE)
def test_a_function_of_the_toolkit_can_be_imported_and_refuses_when_called(cuda: ModuleType, name: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"numba\.cuda\.{name} has no counterpart on HIP .* assembly language"):
        getattr(cuda, name)(lambda: None, ())


@pytest.mark.parametrize("name", catalog.CODE)
def test_a_kind_of_nvidias_code_can_be_made_and_not_linked(cuda: ModuleType, name: str) -> None:
    code = getattr(cuda, name)("code for another GPU", name="other")
    assert (code.data, code.name) == ("code for another GPU", "other")
    with pytest.raises(cuda.cudadrv.driver.LinkerError, match="other"):
        cuda.jit("void()", link=[code])(lambda: None)


def test_nvidias_linker_can_be_named_and_not_made(cuda: ModuleType) -> None:
    with pytest.raises(UnsupportedError, match=r"numba\.cuda's _Linker has no counterpart on HIP: "):
        cuda.cudadrv.driver._Linker()


def test_arrays_of_given_strides(cuda: ModuleType) -> None:
    from numba.cuda.cudadrv.devicearray import DeviceNDArray, DeviceRecord, auto_device

    array = DeviceNDArray((1, 10), (800, 8), np.float64)
    assert isinstance(array, DeviceNDArray)
    assert array.flags == {"C_CONTIGUOUS": True, "F_CONTIGUOUS": True}
    array.copy_to_device(np.arange(10.0).reshape(1, 10))
    same = DeviceNDArray((10,), (8,), np.float64, gpu_data=array.gpu_data)
    np.testing.assert_array_equal(same.copy_to_host(), np.arange(10.0))
    with pytest.raises(TypeError, match="gpu_data must be a pointer to memory of the device, got int"):
        DeviceNDArray(3, 8, np.float64, gpu_data=17)
    host = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])[0]
    record, new = auto_device(host)
    assert new
    assert isinstance(record, DeviceRecord)
    assert record.copy_to_host().item() == (1, 2.5)


@pytest.mark.long
def test_every_module_is_there_without_being_imported(check: Callable[..., str]) -> None:
    check("""
        import numba_hip_cuda
        numba_hip_cuda.pose_as_cuda()
        from numba import cuda
        assert cuda.core.typeinfer is not None and cuda.typing.templates is not None
        assert cuda.target.CUDATargetContext.__name__ == "HipContext"
        assert cuda.is_float16_supported() is cuda.get_current_device().supports_float16 is True
    """)


def test_the_driver_tells_of_devices_and_refuses_the_rest(cuda: ModuleType) -> None:
    driver = cuda.cudadrv.driver.driver
    assert driver.is_available
    assert driver.initialization_error is None
    assert driver.get_device_count() == len(cuda.list_devices())
    assert driver.get_device() is cuda.list_devices()[0]
    with pytest.raises(AttributeError, match="no cuMemAlloc here .*no CUDA driver beneath"):
        driver.cuMemAlloc  # noqa: B018


def test_detect_uses_the_words_of_cuda(cuda: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert cuda.detect() is True
    printed = capsys.readouterr().out
    assert printed.startswith(f"Found {len(cuda.list_devices())} CUDA devices")
    assert "Compute Capability: 9.0" in printed
    assert "HIP target: cpu" in printed


def test_importing_a_name_that_is_not_there_gives_the_same_reason(check: Callable[..., str]) -> None:
    printed = check("""
        from numba_hip_cuda import pose_as_cuda
        pose_as_cuda()
        for statement in ("from numba.cuda import gird", "from numba.cuda import nvvm",
                          "import numba.cuda.radnom", "import numba.cuda.cudadrv.drivr",
                          "from numba.cuda.cudadrv.nvrtc import NVRTC", "import numba.cuda.nvvm.more"):
            try:
                exec(statement)
            except ImportError as error:
                print(error)
    """).splitlines()
    assert "no attribute 'gird'; did you mean 'grid'?" in printed[0]
    assert "no counterpart on HIP" in printed[1]
    assert "did you mean 'random'?" in printed[2]
    assert "did you mean 'driver'?" in printed[3]
    assert "NVRTC is NVIDIA's compiler" in printed[4]
    assert "NVVM is NVIDIA's compiler" in printed[5]
    assert all("numba_hip_cuda poses as numba.cuda" in line and len(line) < 200 for line in printed)
    assert len(printed) == 6


@pytest.mark.long
def test_modules_beneath(check: Callable[..., str]) -> None:
    check("""
        from numba_hip_cuda import pose_as_cuda
        pose_as_cuda()
        from numba.cuda.cudadrv.error import CudaSupportError, CudaDriverError
        from numba.cuda.cudadrv.driver import CudaAPIError
        from numba.cuda.cudadrv.devicearray import DeviceNDArray, is_cuda_ndarray
        import numba.cuda.args, numba_hip, hip_runtime.errors
        assert CudaSupportError is hip_runtime.errors.DeviceUnavailableError
        assert CudaAPIError is CudaDriverError is hip_runtime.errors.HipRuntimeError
        assert issubclass(numba_hip.DeviceArray, DeviceNDArray)
        assert numba.cuda.args.__name__ == "numba.cuda.args"
    """)


def test_a_module_of_numba_hip_is_handed_out_as_it_is(monkeypatch: pytest.MonkeyPatch, cuda: ModuleType) -> None:
    from numba_hip_cuda import pose

    monkeypatch.setattr(pose, "FORWARDED", {"numba.cuda.language": "numba_hip.language"})
    module = importlib.import_module("numba.cuda.language")
    assert module is numba_hip.language
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == "numba_hip.language"


def test_a_module_that_numba_hip_lacks_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, cuda: ModuleType) -> None:
    from numba_hip_cuda import pose

    monkeypatch.setattr(pose, "FORWARDED", {"numba.cuda.elsewhere": "numba_hip.no_such_module"})
    with pytest.raises(ModuleNotFoundError, match=r"numba\.cuda\.elsewhere would be numba_hip\.no_such_module"):
        importlib.import_module("numba.cuda.elsewhere")


@pytest.mark.long
def test_a_star_import_takes_what_there_is(check: Callable[..., str]) -> None:
    check("""
        from numba_hip_cuda import pose_as_cuda
        pose_as_cuda()
        from numba.cuda import *
        import numba_hip
        assert grid is numba_hip.grid and jit is numba_hip.jit
    """)


def test_modules_are_there_only_while_posing() -> None:
    with posing() as module:
        assert module.devicearray is importlib.import_module("numba.cuda.cudadrv.devicearray")
    with pytest.raises(UnavailableNameError, match="there only while numba_hip_cuda poses"):
        module.devicearray  # noqa: B018
    assert "numba.cuda" not in sys.modules


def test_available_names_resolve(cuda: ModuleType) -> None:
    listed = available("numba.cuda")
    assert listed == sorted(listed)
    assert {"grid", "jit", "as_cuda_array"} <= set(listed)
    for name in listed:
        look_up("numba.cuda", name)


def test_the_shims(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cuda_only_functions.implementation == "HIP"
    assert cuda_only_functions.is_supported_version() is True
    assert cuda_only_functions.cuda_error() is None
    reason = hip_runtime.errors.DeviceUnavailableError("none here")

    def refuse() -> None:
        raise reason

    monkeypatch.setattr(numba_hip, "get_current_device", refuse)
    assert cuda_only_functions.cuda_error() == "none here"


def test_the_table_of_vector_types(cuda: ModuleType) -> None:
    table = importlib.import_module("numba.cuda.vector_types").vector_types
    assert len(table) == 40
    assert all(hasattr(cuda, name) for name in table)
    kind = table["float32x4"]
    assert (kind.name, str(kind.base_type), kind.num_elements) == ("float32x4", "float32", 4)
    assert kind.user_facing_object is cuda.float32x4 is cuda.float4
    assert table["int64x2"].user_facing_object.aliases == ("long2", "longlong2")
