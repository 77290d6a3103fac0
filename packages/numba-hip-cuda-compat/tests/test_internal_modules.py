"""The modules and names that programs and libraries take from the insides of `numba.cuda`."""

from __future__ import annotations

import ctypes
import gc
import importlib
import io
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba.core import types

import numba_hip
from hip_runtime import DeviceArray
from hip_runtime import config as runtime_config
from hip_runtime.errors import UnsupportedError
from numba_hip.array_functions.vectorize import HipUFunc
from numba_hip.errors import OptionError
from numba_hip_cuda import arrays, posing
from numba_hip_cuda.catalog import FORWARDED, MODULES


@pytest.mark.parametrize(
    ("name", "stands_for"),
    [
        ("numba.cuda.core.errors", "numba.core.errors"),
        ("numba.cuda.core.typeinfer", "numba.core.typeinfer"),
        ("numba.cuda.typing.templates", "numba.core.typing.templates"),
        ("numba.cuda.np.numpy_support", "numba.np.numpy_support"),
        ("numba.cuda.datamodel.models", "numba.core.datamodel.models"),
        ("numba.cuda.cgutils", "numba.core.cgutils"),
        ("numba.cuda.misc.special", "numba.misc.special"),
    ],
)
def test_what_numba_cuda_shares_with_numba_is_numbas(cuda: ModuleType, name: str, stands_for: str) -> None:
    module = importlib.import_module(name)
    assert module is importlib.import_module(stands_for)
    assert module.__name__ == stands_for
    assert module.__spec__ is not None
    assert module.__spec__.name == stands_for


def test_a_module_that_numba_lacks_is_refused_by_both_names(cuda: ModuleType) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"numba\.cuda\.core\.annotator would be numba\.core\.annotator"):
        importlib.import_module("numba.cuda.core.annotator")
    with pytest.raises(ModuleNotFoundError, match="which the installed Numba does not have"):
        exec("import numba.cuda.typing.annotator")


@pytest.mark.parametrize("name", [name for name in MODULES if name.count(".") > 1])
def test_every_module_of_the_table_can_be_imported(cuda: ModuleType, name: str) -> None:
    assert importlib.import_module(name).__name__ == name


@pytest.mark.parametrize("name", [name for name, source in FORWARDED.items() if source.startswith("numba.")])
def test_every_module_that_is_numbas_can_be_imported(cuda: ModuleType, name: str) -> None:
    found, source = importlib.import_module(name), importlib.import_module(FORWARDED[name])
    if name in MODULES:  # the names of Numba's, and modules of ours beneath
        assert {public for public in vars(source) if not public.startswith("_")} <= set(dir(found))
    else:
        assert found is source


def test_numbas_types_and_settings(cuda: ModuleType) -> None:
    assert cuda.float32 is types.float32
    assert cuda.types.Array is types.Array
    assert cuda.config is numba.core.config
    assert cuda.HAS_NUMBA is True
    assert cuda.cudadrv.devicearray.DeviceNDArray is cuda.devicearray.DeviceNDArray


def test_errors_of_nvidias_tools_are_classes_of_their_own(cuda: ModuleType) -> None:
    error = importlib.import_module("numba.cuda.cudadrv.error")
    assert issubclass(error.NvrtcCompilationError, error.NvrtcError)
    assert issubclass(error.NvvmSupportError, ImportError)
    assert not issubclass(error.NvvmError, error.CudaDriverError)
    with pytest.raises(error.CudaDriverError):
        numba_hip.device_array(-1)


# Extending.


def scale(value: float) -> float:
    """Overloaded below."""
    raise NotImplementedError


def twice(value: float) -> float:
    """Overloaded below."""
    raise NotImplementedError


def fortytwo(value: int) -> int:
    """Typed and lowered below."""
    raise NotImplementedError


def test_an_overload_without_a_target_is_for_kernels(cuda: ModuleType) -> None:
    extending = importlib.import_module("numba.cuda.extending")

    @extending.overload(scale)
    def scale_on_device(value):  # type: ignore[no-untyped-def]
        return lambda value: value * 3

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = scale(14)

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 42

    @numba.njit
    def on_host():  # type: ignore[no-untyped-def]
        return scale(14)

    with pytest.raises(numba.core.errors.NumbaError):
        on_host()


@pytest.mark.parametrize("named", [False, True])
def test_an_intrinsic(cuda: ModuleType, named: bool) -> None:
    extending = importlib.import_module("numba.cuda.extending")

    def negate(typing_context, value):  # type: ignore[no-untyped-def]
        def lower(context, builder: ir.IRBuilder, sig, args):  # type: ignore[no-untyped-def]
            return builder.neg(args[0])

        return types.int64(types.int64), lower

    negated = extending.intrinsic(target="cuda")(negate) if named else extending.intrinsic(negate)

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = negated(out[0])

    out = np.array([7])
    kernel[1, 1](out)
    assert out[0] == -7


def test_numbas_decorators_take_cuda_for_ours_while_posing(cuda: ModuleType) -> None:
    @numba.extending.overload(twice, target="cuda")
    def twice_on_device(value):  # type: ignore[no-untyped-def]
        return lambda value: value * 2

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = twice(out[0])

    out = np.array([4.0])
    kernel[1, 1](out)
    assert out[0] == 8


def test_registries(cuda: ModuleType) -> None:
    templates = importlib.import_module("numba.cuda.typing.templates")
    registry = importlib.import_module("numba.cuda.cudadecl").registry
    lower = importlib.import_module("numba.cuda.cudaimpl").lower

    @registry.register_global(fortytwo)
    class Template(templates.AbstractTemplate):  # type: ignore[misc, name-defined]
        key = fortytwo

        def generic(self, args, kws):  # type: ignore[no-untyped-def]
            return types.int64(types.int64)

    @lower(fortytwo, types.int64)
    def lowered(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return context.get_constant(types.int64, 42)

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = fortytwo(out[0])

    out = np.array([1])
    kernel[1, 1](out)
    assert out[0] == 42


def test_the_contexts_are_those_of_the_current_device(cuda: ModuleType) -> None:
    target = importlib.import_module("numba.cuda.descriptor").cuda_target
    assert target.typing_context is target.typing_context
    assert target.target_context.typing_context is target.typing_context
    assert target.typing_context.resolve_value_type(cuda.grid) is not None


# Memory.


def test_auto_device() -> None:
    host = np.arange(6).reshape(2, 3)
    device, copied = arrays.auto_device(host)
    assert copied
    np.testing.assert_array_equal(device.copy_to_host(), host)
    assert arrays.auto_device(device) == (device, False)


def test_from_array_like() -> None:
    host = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    alike = arrays.from_array_like(host)
    assert (alike.shape, alike.strides, alike.dtype) == (host.shape, host.strides, host.dtype)
    memory = numba_hip.to_device(np.arange(6.0))
    view = arrays.from_array_like(np.empty((3, 2)), gpu_data=memory)
    np.testing.assert_array_equal(view.copy_to_host(), np.arange(6.0).reshape(3, 2))
    with pytest.raises(ValueError, match="gpu_data has 48 bytes, an array like ary needs 56"):
        arrays.from_array_like(np.empty(7), gpu_data=memory)


def test_what_is_no_device_array_is_refused() -> None:
    with pytest.raises(TypeError, match="expected an array on a device, got list"):
        arrays.verify_cuda_ndarray_interface([1])
    with pytest.raises(ValueError, match="a device array is required, got ndarray"):
        arrays.require_cuda_ndarray(np.zeros(1))
    arrays.require_cuda_ndarray(numba_hip.device_array(1))


def test_contiguity_and_the_core_of_an_array() -> None:
    host = np.arange(6).reshape(2, 3)
    repeated = np.broadcast_to(host, (4, 2, 3))
    for array, contiguous in (
        (host, True), (host[:, None], True), (repeated, True), (np.arange(4)[::4], True),
        (host.T, False), (host[:, ::2], False), (host[::-1], False),
    ):  # fmt: skip
        assert arrays.is_contiguous(array) is contiguous
        if contiguous:
            assert arrays.is_contiguous(numba_hip.to_device(array))
    assert not arrays.is_contiguous(numba_hip.to_device(host).T)
    np.testing.assert_array_equal(arrays.array_core(repeated), host)
    assert arrays.array_core(np.float64(1)) == 1


def test_transposing() -> None:
    host = np.arange(12.0).reshape(3, 4)
    turned = arrays.transpose(numba_hip.to_device(host))
    assert isinstance(turned, DeviceArray)
    assert turned.is_c_contiguous()
    np.testing.assert_array_equal(turned.copy_to_host(), host.T)
    out = numba_hip.device_array((4, 3))
    assert arrays.transpose(numba_hip.to_device(host), out) is out
    with posing() as cuda:
        array = cuda.to_device(host)
        flipped = array.T
        assert flipped.is_c_contiguous()
        flipped[0, 0] = 100
        assert array[0, 0] == 0
        assert cuda.to_device(host.reshape(3, 2, 2)).T.shape == (2, 2, 3)
        np.testing.assert_array_equal(arrays.transpose(array).copy_to_host(), host.T)
    np.testing.assert_array_equal(out.copy_to_host(), host.T)


def test_copies_by_address() -> None:
    host = np.arange(8, dtype=np.uint8)
    array = numba_hip.to_device(np.zeros(8, np.uint8))
    arrays.host_to_device(array, host, 8)
    arrays.device_to_device(array.address, array.address + 4, 4)
    arrays.device_memset(array.address + 6, 255, 2)
    back = np.zeros(8, np.uint8)
    arrays.device_to_host(back, array, 8)
    assert back.tolist() == [4, 5, 6, 7, 4, 5, 255, 255]
    assert arrays.device_memory_size(array) == 8
    assert arrays.is_device_memory(array)
    assert not arrays.is_device_memory(host)


def test_copies_that_cannot_be() -> None:
    array = numba_hip.device_array(1, np.uint8)
    with pytest.raises(TypeError, match="expected memory of a device or its address, got ndarray"):
        arrays.device_to_host(np.zeros(1), np.zeros(1), 1)
    with pytest.raises(ValueError, match="val is 256; it must be 0 to 255"):
        arrays.device_memset(array, 256, 1)
    locked = np.zeros(1, np.uint8)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        arrays.device_to_host(locked, array, 1)


def test_the_extent_of_host_memory() -> None:
    array = np.arange(10, dtype=np.int16)
    backwards = array[::-2]
    assert arrays.host_memory_extents(backwards) == (array.ctypes.data + 2, array.ctypes.data + 20)
    assert arrays.host_memory_size(array) == 20
    assert arrays.host_memory_size(np.asarray(np.uint32(1))) == 4
    assert arrays.host_memory_size(ctypes.c_double(1.5)) == 8
    assert arrays.host_pointer(array.ctypes.data) == arrays.host_pointer(array) == array.ctypes.data
    assert arrays.host_pointer(b"text", readonly=True)
    with pytest.raises(ValueError, match="read-only"):
        arrays.host_pointer(b"text")


def test_memory_of_a_device_is_required_where_there_is_none() -> None:
    arrays.require_device_memory(numba_hip.device_array(1))
    with pytest.raises(TypeError, match="memory of a device is required, got ndarray"):
        arrays.require_device_memory(np.zeros(1))


# Ufuncs.


def test_options_of_vectorize_are_those_of_cuda(cuda: ModuleType) -> None:
    for decorate in (cuda.vectorize, numba.vectorize):
        with pytest.warns(RuntimeWarning, match="nopython kwarg for cuda target is redundant"):
            add = decorate(["float64(float64, float64)"], target="cuda", nopython=True)(lambda a, b: a + b)
        assert add(1.5, 2.0) == 3.5
        with pytest.raises(KeyError, match="cuda vectorize target does not support option: 'what'"):
            decorate(["float64(float64)"], target="cuda", what=1)(lambda a: a)


def test_numbas_vectorize_for_cuda_is_ours_while_posing(cuda: ModuleType) -> None:
    @numba.vectorize(["float64(float64, float64)"], target="cuda")
    def add(x, y):  # type: ignore[no-untyped-def]
        return x + y

    assert isinstance(add, HipUFunc)
    np.testing.assert_array_equal(add(np.arange(3.0), 1.0), [1, 2, 3])

    @numba.guvectorize(["(float64[:], float64[:])"], "(n)->()", target="cuda")
    def total(row, out):  # type: ignore[no-untyped-def]
        out[0] = 0
        for i in range(row.size):
            out[0] += row[i]

    np.testing.assert_array_equal(total(np.arange(6.0).reshape(2, 3)), [3, 12])


def test_ufuncs_of_cuda_take_its_name_as_target(cuda: ModuleType) -> None:
    @cuda.vectorize(["int64(int64)"], target="cuda")
    def square(x):  # type: ignore[no-untyped-def]
        return x * x

    assert square(np.array([3])).tolist() == [9]
    with pytest.raises(OptionError, match="target is 'parallel'; numba.cuda makes functions for 'cuda'"):
        cuda.vectorize(["int64(int64)"], target="parallel")
    with pytest.raises(OptionError, match="target is 'cpu'"):
        cuda.guvectorize(["(int64[:], int64[:])"], "(n)->(n)", target="cpu")


def test_numba_forgets_our_ufuncs_when_posing_ends() -> None:
    from numba.np.ufunc.decorators import Vectorize

    before = Vectorize.target_registry.ondemand["cuda"]
    for _ in range(2):
        with posing():
            assert isinstance(numba.vectorize(["int64(int64)"], target="cuda")(lambda x: x), HipUFunc)
        assert Vectorize.target_registry.ondemand["cuda"] is before
        assert "cuda" not in dict(Vectorize.target_registry)


def test_memory_is_given_back_as_the_settings_of_numba_say(cuda: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pending = cuda.current_context().memory_manager.deallocations
    pending.clear()
    monkeypatch.setattr(cuda.config, "CUDA_DEALLOCS_COUNT", 2)
    for count in (1, 2, 0):
        cuda.to_device(np.arange(3))
        assert len(pending) == count
    monkeypatch.setattr(cuda.config, "CUDA_DEALLOCS_RATIO", 1000 / cuda.current_context().get_memory_info().total)
    assert 999 <= pending.max_bytes <= 1000
    cuda.to_device(np.zeros(1001, np.int8))
    assert len(pending) == 0
    cuda.to_device(np.zeros(4, np.int8))
    with runtime_config.pending_releases.scope(0):
        cuda.to_device(np.zeros(4, np.int8))
    assert len(pending) == 0, "what is chosen under our own name comes first"


def test_pointers_of_memory_managers_are_device_memory(cuda: ModuleType) -> None:
    freed = []
    driver = cuda.cudadrv.driver
    for kind in (driver.MemoryPointer, driver.AutoFreePointer):
        memory = kind(cuda.current_context(), ctypes.c_void_p(0xDEADBEEF), 40, finalizer=lambda: freed.append(1))
        assert driver.is_device_memory(memory)
        assert (driver.device_pointer(memory), driver.device_memory_size(memory)) == (0xDEADBEEF, 40)
        del memory
    assert freed == [1, 1]
    assert isinstance(cuda.current_context().memory_manager, driver.NumbaCUDAMemoryManager)


def test_compiling_to_ptx_is_refused_once_the_arguments_are_right(cuda: ModuleType) -> None:
    def add(x: int, y: int) -> int:
        return x + y

    signature = "(int32, int32)"
    for name in (
        "compile",
        "compile_all",
        "compile_ptx",
        "compile_for_current_device",
        "compile_ptx_for_current_device",
    ):
        function = getattr(cuda, name)
        with pytest.raises(NotImplementedError, match="Unsupported ABI: fastcall"):
            function(add, signature, abi="fastcall")
        with pytest.raises(NotImplementedError, match="Unsupported output type: elf"):
            function(add, signature, device=True, output="elf")
        with pytest.raises(NotImplementedError, match="The C ABI is not supported for kernels"):
            function(add, signature, device=False, abi="c")
        with pytest.raises(
            UnsupportedError, match=f"numba.cuda.{name} has no counterpart.*numba_hip.compile gives LLVM IR"
        ):
            function(add, signature, device=True)


def test_callbacks_of_code_that_is_linked(cuda: ModuleType) -> None:
    said: list[str] = []
    source = io.StringIO("")
    code = cuda.CUSource(
        source, setup_callback=lambda module: said.append("up"), teardown_callback=lambda module: said.append("down")
    )

    @cuda.jit(link=[code])
    def kernel(values: Any) -> None:
        values[0] += 1

    values = np.zeros(1)
    kernel[1, 1](values)
    kernel[1, 1](values)
    assert values[0] == 2
    assert said == ["up"]
    del kernel
    gc.collect()
    assert said == ["up", "down"]
    with pytest.raises(TypeError, match="setup_callback must be callable"):
        cuda.CUSource("", setup_callback=1)
    source.write("__device__ int number;")
    assert code.data == "__device__ int number;"


@pytest.mark.parametrize("given", ["file", "text", "text in memory"])
def test_functions_of_cuda_cpp(cuda: ModuleType, given: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="needs a compiler of C++: pip install ziglang")
    text = """
    extern "C" __device__ int multiply(float *result, float x, float y) { *result = x * y; return 0; }
    """
    path = tmp_path / "functions.cu"
    path.write_text(text)
    link = {"file": str(path), "text": cuda.CUSource(text), "text in memory": cuda.CUSource(io.StringIO(text))}[given]
    multiply = cuda.declare_device("multiply", "float32(float32, float32)", link=link)

    @cuda.jit
    def kernel(x: Any, y: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            x[i] = multiply(x[i], y[i])

    x, y = np.arange(40, dtype=np.float32), np.full(40, 1.5, np.float32)
    kernel[2, 32](x, y)
    np.testing.assert_array_equal(x, np.arange(40) * np.float32(1.5))
