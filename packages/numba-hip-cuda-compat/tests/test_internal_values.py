"""What the names of the insides of `numba.cuda` do, and which values they have."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import subprocess
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import config as numba_config
from numba.core import types
from numba.core.errors import TypingError

import hip_runtime
import numba_hip
from hip_runtime import current_device
from hip_runtime.errors import ArrayError, LaunchError, UnknownDeviceError
from numba_hip import config
from numba_hip.host.contexts import ContextError
from numba_hip_cuda import posing


@pytest.mark.parametrize(
    ("own", "cudas"),
    [("GPU-0123456789abcde0", "GPU-30313233-3435-3637-3839-616263646530"),
     ("GPU-abc", "GPU-61626300-0000-0000-0000-000000000000"),
     ("0123456789abcdef0123456789ABCDEF", "GPU-01234567-89ab-cdef-0123-456789abcdef"),
     ("01234567-89ab-cdef-0123-456789abcdef", "GPU-01234567-89ab-cdef-0123-456789abcdef")],
)  # fmt: skip
def test_uuids_of_devices(own: str, cudas: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = current_device()
    monkeypatch.setattr(device, "_attributes", replace(device.attributes, uuid=own))
    with posing() as cuda:
        assert device.uuid == cuda.gpus[0].uuid == cudas
    assert device.uuid == own


def test_devices_by_their_class(cuda: ModuleType) -> None:
    driver = cuda.cudadrv.driver
    device = driver.Device(0)
    assert isinstance(device, driver.Device)
    assert isinstance(cuda.get_current_device(), driver.Device)
    assert not isinstance(17, driver.Device)
    assert (device.id, device.name) == (0, cuda.gpus[0].name)
    assert cuda.gpus[0]._device is device
    assert device.compute_capability >= driver.MIN_REQUIRED_CC
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", device.uuid)
    assert driver.Device.from_identity(device.get_device_identity()) is device
    with pytest.raises(UnknownDeviceError, match="no device {'pci_bus_id': 99}"):
        driver.Device.from_identity({"pci_bus_id": 99})
    with pytest.raises(UnknownDeviceError, match="no device 99"):
        driver.Device(99)
    assert (device.supports_float16, device.supports_bfloat16, device.supports_fp8) == (True, True, False)
    assert (cuda.is_float16_supported(), cuda.is_bfloat16_supported(), cuda.is_fp8_supported()) == (True, True, False)
    context = device.get_primary_context()
    assert isinstance(context, driver.Context)
    assert context == device.primary_context == cuda.current_context()
    device.release_primary_context()
    device.reset()


def test_versions_are_those_of_the_interface(cuda: ModuleType) -> None:
    driver = cuda.cudadrv.driver
    assert cuda.runtime.get_version() == driver.get_version() == driver.driver.get_version() == (13, 0)
    assert cuda.runtime.is_supported_version()
    assert cuda.runtime.get_version()[0] in cuda.cudadrv.runtime.SUPPORTED_TOOLKIT_MAJOR_VERSIONS
    assert cuda.config_default_cc <= cuda.numba_cuda_default_ptx_cc


def test_the_driver_tells_of_itself(cuda: ModuleType) -> None:
    driver = cuda.cudadrv.driver.driver
    driver.ensure_initialized()
    assert driver.is_initialized
    assert driver.pid == os.getpid()
    assert driver.list_devices() == list(driver.devices.values()) == list(cuda.list_devices())
    cuda.current_context()
    with driver.get_active_context() as active:
        assert active
        assert active.devnum == cuda.get_current_device().id
        assert active.context_handle == cuda.current_context()
    driver.reset()
    cuda.close()
    assert cuda.gpus.current is None
    with driver.get_active_context() as active:
        assert not active
        assert active.devnum is active.context_handle is None


def test_errors_have_hips_numbers(cuda: ModuleType) -> None:
    driver = cuda.cudadrv.driver
    with pytest.raises(driver.CudaAPIError) as caught:
        cuda.select_device(99)
    assert (caught.value.code, caught.value.msg) == (101, str(caught.value))
    assert driver.ERROR_MAP[caught.value.code] == "CUDA_ERROR_INVALID_DEVICE"
    with pytest.raises(driver.CudaAPIError) as caught:
        cuda.device_array(2**50, np.uint8)
    assert driver.ERROR_MAP[caught.value.code] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert driver.ERROR_MAP[driver.CudaAPIError("other").code] == "CUDA_ERROR_UNKNOWN"


def test_arrays_are_of_their_classes(cuda: ModuleType) -> None:
    module = cuda.cudadrv.devicearray
    array, mapped, managed = cuda.device_array(3), cuda.mapped_array(3), cuda.managed_array(3)
    assert isinstance(array, module.DeviceNDArrayBase)
    assert issubclass(type(array), module.DeviceNDArrayBase)
    assert not isinstance(np.zeros(3), module.DeviceNDArrayBase)
    assert isinstance(module.DeviceNDArrayBase((2,), (8,), np.float64), module.DeviceNDArray)
    assert [isinstance(one, module.MappedNDArray) for one in (array, mapped, managed)] == [False, True, False]
    assert [isinstance(one, module.ManagedNDArray) for one in (array, mapped, managed)] == [False, False, True]
    assert isinstance(managed[1:], module.ManagedNDArray)
    assert module.DeviceNDArray.copy_to_host(array).shape == (3,)
    if array.device.is_cpu and sys.platform == "linux":
        assert isinstance(array.get_ipc_handle(), module.IpcArrayHandle)


def test_demands_on_arrays(cuda: ModuleType) -> None:
    module = cuda.cudadrv.devicearray
    host = np.arange(12.0).reshape(3, 4)
    for good in (host, host.T, np.broadcast_to(host, (2, 3, 4)), cuda.to_device(host)):
        module.sentry_contiguous(good)
    for bad in (host[:, ::2], cuda.to_device(host)[:, ::2]):
        with pytest.raises(ValueError, match="not contiguous; numpy.ascontiguousarray"):
            module.sentry_contiguous(bad)
    module.check_array_compatibility(host[np.newaxis], host)
    for other, error, words in (
        (host.astype("f4"), TypeError, "incompatible dtype: float64 vs. float32"),
        (host.T, ValueError, "incompatible shape"),
        (np.asfortranarray(host), ValueError, "incompatible strides"),
    ):
        with pytest.raises(error, match=words):
            module.check_array_compatibility(host, other)


def test_memory_by_its_address(cuda: ModuleType) -> None:
    driver = cuda.cudadrv.driver
    array = cuda.to_device(np.arange(6, dtype=np.int16))
    start, end = driver.device_extents(array[2:])
    assert start <= array.address < array.address + 12 <= end
    assert driver.device_ctypes_pointer(array).value == driver.get_devptr_for_active_ctx(array.address) == array.address
    assert driver.device_ctypes_pointer(None).value == 0
    assert driver.memory_size_from_info((3, 4), (32, -8), 8) == 96
    ndarray = importlib.import_module("numba.cuda.cudadrv.ndarray")
    assert ndarray.ndarray_device_allocate_data(np.zeros((3, 5))[:, ::2]).nbytes == 15 * 8
    pointer = cuda.MemoryPointer(cuda.current_context(), array.address, 12)
    kept = object()
    driver.device_memory_depends(pointer, kept)
    before = sys.getrefcount(kept)
    del pointer
    assert sys.getrefcount(kept) < before


def test_pointers_are_set_and_told_of(cuda: ModuleType) -> None:
    driver = cuda.cudadrv.driver
    context = cuda.current_context()
    memory = context.memory_manager.memallocmanaged(8)
    assert isinstance(memory, driver.ManagedMemory)
    assert isinstance(memory.own(), driver.ManagedOwnedPointer)
    assert memory.is_managed
    assert memory.handle == memory.host_pointer == memory.device_pointer_value
    memory.memset(7)
    memory.memset(1, 2)
    context.synchronize()
    assert bytes((ctypes.c_uint8 * 8).from_address(memory.device_pointer_value)) == b"\1\1" + b"\7" * 6
    with pytest.raises(ArrayError, match="byte is 256"):
        memory.memset(256)
    with pytest.raises(ArrayError, match="count is 9; this memory has 8 bytes"):
        memory.memset(0, 9)
    memory.free()
    pinned = context.memory_manager.memhostalloc(8)
    assert isinstance(pinned, driver.PinnedMemory)
    assert not isinstance(pinned, driver.MappedMemory)
    assert pinned.owned is pinned.owner is not None


def test_memory_is_an_instance_of_the_classes_that_programs_ask_for(cuda: ModuleType) -> None:
    driver, context = cuda.cudadrv.driver, cuda.current_context()
    memory, array = context.memalloc(64), cuda.device_array(8)
    for pointer in (memory, memory.own(), memory.view(8), array.gpu_data):
        assert isinstance(pointer, cuda.MemoryPointer)
        assert isinstance(pointer, driver.AutoFreePointer)
        assert driver.is_device_memory(pointer)
    assert isinstance(context.memhostalloc(8, mapped=True), driver.MappedMemory)
    assert isinstance(context.memhostalloc(8), driver.PinnedMemory)
    assert isinstance(context.memallocmanaged(8), driver.ManagedMemory)
    for made in (cuda.mapped_array(4), cuda.managed_array(4)):
        assert isinstance(made, cuda.cudadrv.devicearray.DeviceNDArrayBase)
        assert driver.device_memory_size(made.gpu_data) == made.alloc_size == 32
    kept = object()
    before = sys.getrefcount(kept)
    driver.device_memory_depends(array.gpu_data, kept)
    assert sys.getrefcount(kept) > before
    del array, pointer
    assert sys.getrefcount(kept) == before
    memory.free()
    with pytest.raises(driver.DeadMemoryError, match="must not be used any more"):
        driver.device_memset(memory, 0, 8)


def test_arrays_are_made_in_memory_that_a_program_allocated(cuda: ModuleType) -> None:
    devicearray, context = cuda.cudadrv.devicearray, cuda.current_context()
    memory = context.memalloc(64)
    array = devicearray.DeviceNDArray((8,), (8,), np.float64, gpu_data=memory)
    array.copy_to_device(np.arange(8.0))
    assert array.gpu_data is memory
    like = devicearray.from_array_like(np.empty(4), gpu_data=memory.view(32))
    assert like.copy_to_host().tolist() == [4, 5, 6, 7]
    with pytest.raises(RuntimeError, match="is used by arrays: delete them and their views"):
        memory.free()
    del array, like
    memory.free()
    mapped = context.memhostalloc(64, mapped=True)
    array = devicearray.DeviceNDArray((8,), (8,), np.float64, gpu_data=mapped)
    array.fill(3)
    assert np.ndarray(8, np.float64, buffer=mapped).tolist() == [3] * 8
    with pytest.raises(TypeError, match="gpu_data must be a pointer to memory of the device, got ndarray"):
        devicearray.DeviceNDArray((8,), (8,), np.float64, gpu_data=np.empty(8))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the CPU device shares memory on Linux alone")
def test_handles_for_other_processes_have_the_attributes_that_programs_send(cuda: ModuleType) -> None:
    array = cuda.to_device(np.arange(6.0).reshape(2, 3))
    handle = array.get_ipc_handle()
    assert handle._ipc_handle is handle.memory
    assert len(bytes(handle._ipc_handle.handle)) == len(tuple(handle._ipc_handle.handle)) > 0
    assert handle._array_desc == {"shape": (2, 3), "strides": (24, 8), "dtype": array.dtype}


def test_a_file_is_read_once(cuda: ModuleType, tmp_path: Path) -> None:
    from numba.cuda.utils import cached_file_read

    file = tmp_path / "code.cu"
    file.write_text("int f();")
    assert cached_file_read(str(file)) == "int f();"
    file.write_text("other")
    assert cached_file_read(str(file)) == "int f();"
    assert cached_file_read(str(file), how="rb") == b"other"
    with pytest.raises(AttributeError, match="numba_hip_cuda poses as numba.cuda"):
        cuda.utils.cached_file_write  # noqa: B018


def test_contexts_are_pushed_and_popped(cuda: ModuleType) -> None:
    context = cuda.current_context()
    context.prepare_for_use()
    context.push()
    assert cuda.current_context() == context
    context.pop()
    with pytest.raises(ContextError, match="was not pushed by this thread"):
        context.pop()
    assert int(context.get_legacy_default_stream()) == cuda.cudadrv.drvapi.CU_STREAM_LEGACY
    assert int(context.get_per_thread_default_stream()) == cuda.cudadrv.drvapi.CU_STREAM_PER_THREAD
    assert cuda.cudadrv.driver.CU_STREAM_DEFAULT == cuda.cudadrv.drvapi.CU_STREAM_DEFAULT == 0
    with pytest.raises(hip_runtime.UnsupportedError, match="cannot use memory of"):
        context.enable_peer_access(context)


def test_types_of_ctypes(cuda: ModuleType) -> None:
    drvapi = cuda.cudadrv.drvapi
    assert ctypes.sizeof(drvapi.cu_ipc_mem_handle) == 64
    assert ctypes.sizeof(drvapi.cu_uuid) == 16
    assert drvapi.cu_stream is ctypes.c_void_p
    assert cuda.cudadrv.driver.FuncAttr(1, 2, 3, 4, 5).maxthreads == 5


def test_normal_forms(cuda: ModuleType) -> None:
    prepare = cuda.prepare_shape_strides_dtype
    assert prepare(3, None, "f4", "C") == ((3,), (4,), np.dtype("f4"))
    assert prepare((2, 3), None, np.float64, "F") == ((2, 3), (8, 16), np.dtype("f8"))
    assert prepare((2, 3), (48, 8), np.float64, "C") == ((2, 3), (48, 8), np.dtype("f8"))
    with pytest.raises(TypeError, match="shape must be a whole number"):
        prepare(2.5, None, np.float64, "C")
    normalize = cuda.errors.normalize_kernel_dimensions
    assert normalize(2, (3, 4)) == ((2, 1, 1), (3, 4, 1))
    with pytest.raises(LaunchError, match="blockdim must be a sequence of 1, 2 or 3 integers"):
        normalize(1, (1, 2, 3, 4))
    with pytest.raises(LaunchError, match="griddim must be a sequence of integers"):
        normalize(None, 1)
    assert "kernel[" in cuda.errors.missing_launch_config_msg


def test_indices_in_an_intrinsic(cuda: ModuleType) -> None:
    from numba.core import cgutils

    extending = importlib.import_module("numba.cuda.extending")
    normalize = cuda.api_util.normalize_indices

    @extending.intrinsic
    def fetch(typing_context, array, index):  # type: ignore[no-untyped-def]
        def lower(context, builder, sig, args):  # type: ignore[no-untyped-def]
            kind, wanted = sig.args
            _, indices = normalize(context, builder, wanted, args[1], kind, kind.dtype)
            held = context.make_array(kind)(context, builder, args[0])
            return builder.load(cgutils.get_item_pointer(context, builder, kind, held, indices))

        return array.dtype(array, index), lower

    @cuda.jit
    def kernel(line, table, out):  # type: ignore[no-untyped-def]
        out[0] = fetch(line, np.int8(2))
        out[1] = fetch(table, (1, np.uint8(2)))

    out = np.zeros(2)
    kernel[1, 1](np.arange(5.0), np.arange(6.0).reshape(2, 3), out)
    assert out.tolist() == [2, 5]
    array = types.Array(types.float64, 2, "C")
    with pytest.raises(TypeError, match="expect float64 but got int32"):
        normalize(None, None, types.UniTuple(types.intp, 0), (), array, types.int32)
    with pytest.raises(TypeError, match="indexing 2-D array with 1-D index"):
        normalize(None, None, types.intp, None, array, types.float64)


def thrice(value: float) -> float:
    """Typed and lowered below."""
    raise NotImplementedError


def test_kernels_know_values_by_types_of_their_own(cuda: ModuleType) -> None:
    from numba.cuda.extending import overload_attribute, typeof_impl
    from numba.cuda.typing.typeof import typeof

    class Unit:
        pass

    class UnitOfHost(types.Opaque):
        pass

    class UnitOfKernels(types.Opaque):
        pass

    for kind in (UnitOfHost, UnitOfKernels):
        numba.extending.register_model(kind)(numba.core.datamodel.models.OpaqueModel)
    host, kernels = UnitOfHost("unit of the host"), UnitOfKernels("unit of kernels")
    for_kernels = typeof_impl.register(Unit)(lambda value, context: kernels)
    unit = Unit()
    assert numba.typeof(unit) is typeof(unit) is kernels  # Numba knew nothing of it
    numba.extending.typeof_impl.register(Unit)(lambda value, context: host)
    assert (numba.typeof(unit), typeof(unit), typeof(1)) == (host, kernels, types.int64)
    assert typeof_impl.dispatch(Unit) is typeof_impl.registry[Unit] is for_kernels
    assert typeof_impl.registry[int] is numba.extending.typeof_impl.registry[int]

    @overload_attribute(UnitOfKernels, "scale")
    def scale(unit):
        return lambda unit: 10

    @cuda.jit
    def kernel(values: Any) -> None:
        values[0] = unit.scale

    kernel[1, 1](values := np.zeros(1))
    assert values[0] == 10
    with pytest.raises(TypingError, match="Unknown attribute 'scale' of type unit of the host"):
        numba.njit(lambda unit: unit.scale).compile((host,))

    class Handler:
        def prepare_args(self, kind: Any, value: Any, **_: Any) -> tuple[Any, Any]:
            return (types.uint64, 0) if kind is kernels else (kind, value)

    @cuda.jit(extensions=[Handler()])
    def passed(values: Any, given: Any) -> None:
        values[0] = given.scale

    passed[1, 1](values, unit)
    assert values[0] == 10


def test_the_registries_of_copies_are_those_of_kernels(cuda: ModuleType) -> None:
    lower = importlib.import_module("numba.cuda.np.arraymath").lower
    templates = importlib.import_module("numba.cuda.typing.templates")

    @importlib.import_module("numba.cuda.typing.builtins").registry.register_global(thrice)
    class Thrice(templates.ConcreteTemplate):  # type: ignore[misc, name-defined]
        cases = [templates.signature(types.float64, types.float64)]

    @lower(thrice, types.float64)
    def lower_thrice(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.fmul(args[0], context.get_constant(types.float64, 3))

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = thrice(out[0])

    out = np.array([14.0])
    kernel[1, 1](out)
    assert out.tolist() == [42]


def test_modules_of_numba_stay_as_they_are(cuda: ModuleType) -> None:
    for name in ("typing.builtins", "np.math.numbers", "datamodel.cuda_models", "core.optional", "np.polynomial"):
        importlib.import_module(f"numba.cuda.{name}")
    from numba.core import datamodel, optional, typing
    from numba.np import math, polynomial

    assert typing.builtins is sys.modules["numba.core.typing.builtins"]
    assert not hasattr(datamodel, "cuda_models")
    assert optional.__name__ == "numba.core.optional"
    assert getattr(math, "numbers", None) is not sys.modules["numba.cuda.np.math.numbers"]
    assert polynomial.__name__ == "numba.np.polynomial"


def test_random_states_on_the_host(cuda: ModuleType) -> None:
    random = importlib.import_module("numba.cuda.random")
    states = np.zeros(4, random.xoroshiro128p_dtype)
    random.init_xoroshiro128p_states_cpu(states, 5, 2)
    expected = random.create_xoroshiro128p_states(4, 5, 2).copy_to_host()
    np.testing.assert_array_equal(states, expected)
    random.init_xoroshiro128p_states_cpu(states[:0], 5, 2)
    assert pytest.approx(2 * np.pi) == random.TWO_PI_FLOAT64


def test_the_simulator_has_the_names_of_what_it_simulates(cuda: ModuleType) -> None:
    simulator = cuda.simulator
    assert simulator.cudadrv.devicearray.to_device is simulator.to_device is numba_hip.to_device
    assert simulator.api.jit is simulator.jit is not numba_hip.jit
    seen: list[Any] = []

    @simulator.jit
    def kernel(out: Any) -> None:
        seen.append(out[0])

    kernel[1, 1](np.ones(1))
    assert seen == [1]


def test_cases_for_unittest(cuda: ModuleType) -> None:
    testing = importlib.import_module("numba.cuda.testing")
    ran = []

    class Case(testing.CUDATestCase):  # type: ignore[misc, name-defined]
        def test_advice(self) -> None:
            assert not config.low_occupancy_warnings()
            numba_config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
            assert config.low_occupancy_warnings()
            ran.append("advice")

        @testing.skip_on_cudasim("compiled")
        def test_compiled(self) -> None:
            ran.append(cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS)

        @testing.skip_unless_cudasim("simulated")
        def test_simulated(self) -> None:
            ran.append("simulated")

        @testing.skip_without_nvdisasm("disassembles")
        def test_disassembly(self) -> None:
            ran.append("disassembled")

        @testing.skip_unless_cc_90
        def test_capability(self) -> None:
            assert testing.cc_X_or_above(5, 0)
            assert not testing.cc_X_or_above(99, 0)

    cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful(), result.failures + result.errors
    assert (result.testsRun, len(result.skipped), ran) == (5, 2, ["advice", 0])
    assert cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS == 1
    foreign = testing.ForeignArray(cuda.to_device(np.arange(3)))
    np.testing.assert_array_equal(cuda.as_cuda_array(foreign).copy_to_host(), [0, 1, 2])


def test_nothing_of_the_insides_is_loaded_before_it_is_asked_for() -> None:
    code = """
import sys, numba_hip_cuda
with numba_hip_cuda.posing() as cuda:
    cuda.jit, cuda.grid
    late = {"omitted_names", "devices", "devicearray", "normalization", "testing", "c_types"}
    assert not late & {name.rpartition(".")[2] for name in sys.modules if name.startswith("numba_hip_cuda.")}
"""
    subprocess.run([sys.executable, "-c", code], check=True)
