"""Programs of `numba_cuda_mlir`, the package that succeeds numba-cuda. Annotations are evaluated here, as in these."""

import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numba_hip
from hip_runtime.errors import LaunchError, UnsupportedError
from numba_hip.errors import KernelArgumentError, KernelSignatureError, OptionError
from numba_hip_cuda import PoseError, posing
from numba_hip_cuda.mlir.catalog import FORWARDED, MODULES
from numba_hip_cuda.mlir.jit import OURS, PASSED_ON, WITHOUT_EFFECT
from numba_hip_cuda.name_lookup import available, look_up


@pytest.fixture
def mlir() -> Iterator[ModuleType]:
    """`numba_cuda_mlir`, posed as for the time of a test."""
    with posing():
        yield importlib.import_module("numba_cuda_mlir")


@pytest.fixture
def types(mlir: ModuleType) -> ModuleType:
    return importlib.import_module("numba_cuda_mlir.types")


def test_a_program_runs_unchanged(run_python: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import numpy as np\n"
        "from numba_cuda_mlir import cuda, types\n"
        "import numba_cuda_mlir.numba_cuda.cudadrv.error as error\n"
        "@cuda.jit\n"
        "def scale(values: types.Array(types.f32, 1, 'A'), factor: types.f32):\n"
        "    i = cuda.grid(1)\n"
        "    if i < values.shape[0]:\n"
        "        values[i] *= factor\n"
        "values = np.arange(5, dtype=np.float32)\n"
        "scale[1, 32](values, 3)\n"
        "print(values, cuda.is_available(), error.CudaSupportError.__name__)\n"
    )
    result = run_python("-m", "numba_hip_cuda", "program.py", folder=tmp_path)
    assert result.stdout == "[ 0.  3.  6.  9. 12.] True DeviceUnavailableError\n", result.stderr


def test_floats_of_8_bits(mlir: ModuleType, types: ModuleType) -> None:
    cuda = mlir.cuda

    @cuda.jit
    def round_to(values, small, smaller):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < values.size:
            small[i] = types.fp8_e4m3(values[i])
            smaller[i] = types.f8E5M2(values[i])

    values = np.array([0.3, -1.07, 500.0, 17.0], np.float32)
    small, smaller = np.zeros_like(values), np.zeros_like(values)
    round_to[1, 32](values, small, smaller)
    np.testing.assert_array_equal(small, np.array([0.3125, -1.125, 448.0, 16.0], np.float32))
    np.testing.assert_array_equal(smaller, np.array([0.3125, -1.0, 512.0, 16.0], np.float32))
    assert types.f8E4M3FNUZ is numba_hip.float8_e4m3fnuz
    with pytest.raises(AttributeError, match="f8E3M4 has no counterpart .* floats of 8 bits float8_e4m3fn"):
        _ = types.f8E3M4


def test_it_is_there_while_posing_lasts() -> None:
    with posing():
        module = importlib.import_module("numba_cuda_mlir.cuda")
        assert sys.modules["numba_cuda_mlir"].cuda is module
    assert not [name for name in sys.modules if name.startswith("numba_cuda_mlir")]
    assert module.grid is numba_hip.grid, "a program that holds the module can go on"
    with pytest.raises(AttributeError, match="only while numba_hip_cuda poses as numba"):
        _ = module.cudadrv


def test_one_that_is_imported_already_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = ModuleType("numba_cuda_mlir")
    stranger.__file__ = "/some/where/numba_cuda_mlir/__init__.py"
    monkeypatch.setitem(sys.modules, "numba_cuda_mlir", stranger)
    with pytest.raises(PoseError, match="numba_cuda_mlir was imported from /some/where") as caught, posing():
        pass
    assert caught.value.name == "numba_cuda_mlir"
    assert sys.modules["numba_cuda_mlir"] is stranger


@pytest.mark.long
def test_processes_that_are_started_pose_too(check: Callable[..., str]) -> None:
    printed = check("""
        import subprocess, sys
        import numba_hip_cuda
        numba_hip_cuda.pose_as_cuda(children=True)
        code = "from numba_cuda_mlir import cuda; import numba_hip; print(cuda.grid is numba_hip.grid)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    """)
    assert printed.strip() == "True"


@pytest.mark.parametrize("module", MODULES)
def test_every_name_stands_for_something(mlir: ModuleType, module: str) -> None:
    imported = importlib.import_module(module)
    for name in MODULES[module].names:
        assert getattr(imported, name) is look_up(module, name)
        assert name in dir(imported)
    for name, reason in MODULES[module].absent.items():
        with pytest.raises(AttributeError, match="has no counterpart on HIP") as caught:
            getattr(imported, name)
        assert reason in str(caught.value)
        assert name not in available(module)


def test_its_copy_of_numba_cuda_is_the_posed_one(mlir: ModuleType) -> None:
    assert FORWARDED["numba_cuda_mlir.numba_cuda"] == "numba.cuda"
    for name in ("", ".types", ".cudadrv.driver", ".core.errors", ".extending"):
        copy = importlib.import_module(f"numba_cuda_mlir.numba_cuda{name}")
        assert copy is importlib.import_module(f"numba.cuda{name}")
    assert mlir.cuda.cudadrv is mlir.numba_cuda.cudadrv
    assert importlib.import_module("numba_cuda_mlir.cuda.random") is importlib.import_module("numba.cuda.random")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import numba_cuda_mlir._mlir.ir", "numba_cuda_mlir._mlir has no counterpart .* goes through MLIR"),
        ("from numba_cuda_mlir.cuda import tensor_map", r"numba_cuda_mlir\.cuda\.tensor_map has no counterpart"),
        ("import numba_cuda_mlir.cuda.no_such", r"'numba_cuda_mlir\.cuda' has no attribute 'no_such'"),
        ("from numba_cuda_mlir.types import f8E8M0FNU", "numba_cuda_mlir.types.f8E8M0FNU has no counterpart"),
        ("from numba_cuda_mlir import no_such", "'numba_cuda_mlir' has no attribute 'no_such'"),
    ],
)
def test_what_is_missing_says_why(mlir: ModuleType, statement: str, words: str) -> None:
    with pytest.raises(ImportError, match=words):
        exec(statement)


def test_types_are_named_by_their_bits(types: ModuleType) -> None:
    assert (types.i8, types.u16, types.f32) == (types.int8, types.uint16, types.float32)
    assert importlib.import_module("numba_cuda_mlir.numba_cuda.types").i8 == types.int64
    assert types.alignas(types.grid_constant(types.i32), 128) is types.int32
    assert types.ptr_to(types.f32) == types.CPointer(types.float32)


def test_complex_numbers_of_two_halves(mlir: ModuleType, types: ModuleType) -> None:
    half, cuda = types.complex32, mlir.cuda

    @cuda.jit
    def kernel(out, parts, factor):
        private, shared = cuda.local.array(2, half), cuda.shared.array(2, half)
        private[0] = half(1.5, -2.0)
        shared[1] = private[0] * private[0] + private[0]
        parts[0], parts[1] = shared.real[1], shared.imag[1]
        shared.imag[0] = parts[1] + shared[1].real - shared[1].real
        parts[2] = shared[0].imag
        out[0], out[1], out[2] = shared[1], -private[0] / shared[1], private[0] * factor
        out[3], out[4], out[5] = private[0] == half(1.5, -2.0), private[0] != shared[1], abs(private[0])
        out[6], out[7] = private[0] ** 2, 3 * private[0].conjugate()

    out, parts, z = np.zeros(8, complex), np.zeros(3, np.float16), 1.5 - 2j
    kernel[1, 1](out, parts, 2.5)
    expected = [z * z + z, -z / (z * z + z), z * 2.5, 1, 1, abs(z), z * z, 3 * z.conjugate()]
    np.testing.assert_allclose(out, expected, rtol=2e-3)
    assert out[1] != expected[1], "rounded to two halves"
    np.testing.assert_array_equal(parts, [-0.25, -8, -8])

    @cuda.jit
    def total(value, out):
        out[0] = value.real + value.imag

    assert total.compile("void(complex32, float16[:])") is not None


def test_annotations_are_a_signature(mlir: ModuleType, types: ModuleType) -> None:
    @mlir.cuda.jit
    def fill(out: types.Array(types.i32, 1, "A"), a: np.int16, b: ctypes.c_float) -> None:  # type: ignore[name-defined]
        out[0] = a * 10 + b

    out = np.zeros(2, np.int32)
    (compiled,) = fill.nopython_signatures
    assert compiled.args == (types.Array(types.int32, 1, "A"), types.int16, types.float32)
    fill[1, 1](out[::2], 4, 2)
    assert out.tolist() == [42, 0]
    with pytest.raises(KernelArgumentError):
        fill[1, 1](np.zeros(1), 4, 2)


@pytest.mark.parametrize("annotated", [True, False])
def test_a_function_with_a_parameter_of_any_type_is_compiled_when_it_is_launched(
    mlir: ModuleType, types: ModuleType, annotated: bool
) -> None:
    def fill(out, a: types.i32):  # type: ignore[no-untyped-def]
        out[0] = a

    def fill_all(out: types.Array(types.i32, 1, "A"), a: types.i32):  # type: ignore[no-untyped-def]
        out[0] = a

    kernel = mlir.cuda.jit(fill) if annotated else mlir.cuda.jit(fill_all, annotations_as_signatures=False)
    assert kernel.nopython_signatures == []
    out = np.zeros(1)
    kernel[1, 1](out, 2.5)
    assert out[0] == 2.5, "annotations are no signature then"


def test_device_functions_convert_to_their_annotations(mlir: ModuleType, types: ModuleType) -> None:
    @mlir.cuda.jit(device=True)
    def half(value: types.i32) -> types.i32:  # type: ignore[name-defined]
        return value / 2

    @mlir.cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = half(7.9)

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 3


def test_signatures_may_stand_in_two_places(mlir: ModuleType, types: ModuleType) -> None:
    def fill(out, a):  # type: ignore[no-untyped-def]
        out[0] = a

    for kernel in (mlir.cuda.jit("void(int64[::1], int64)")(fill), mlir.cuda.jit(signature="void(i8[::1], i8)")(fill)):
        out = np.zeros(1, np.int64)
        kernel[1, 1](out, 7)
        assert out[0] == 7
        assert [one.args for one in kernel.nopython_signatures] == [(types.Array(types.int64, 1, "C"), types.int64)]


def test_contradictions_are_refused(mlir: ModuleType, types: ModuleType) -> None:
    jit = mlir.cuda.jit

    def fill(out: types.Array(types.i32, 1, "A")):  # type: ignore[no-untyped-def]
        out[0] = 1

    with pytest.raises(KernelSignatureError, match="Conflicting signature sources for 'fill'"):
        jit("void(int32[:])")(fill)
    jit("void(int32[:])", annotations_as_signatures=False)(fill)
    with pytest.raises(KernelSignatureError, match="signature='infer'"):
        jit(signature="infer")(lambda out: None)
    with pytest.raises(OptionError, match="both opt and opt_level"):
        jit(opt=True, opt_level=1)
    with pytest.raises(OptionError, match="between 0 and 3, got 4"):
        jit(opt_level=4)
    with pytest.raises(OptionError, match="invalid options: fastermath"):
        jit(fastermath=True)
    with pytest.raises(SystemExit, match="annotations_as_signatures"):
        jit(help=True)


def test_options_have_the_meaning_that_they_have_there(mlir: ModuleType) -> None:
    def fill(out):  # type: ignore[no-untyped-def]
        out[0] = 1.0

    jit = mlir.cuda.jit
    assert jit(opt_level=0)(fill).options.opt is False
    assert jit(opt_level=1)(fill).options.opt is True
    assert jit(opt=2)(fill).options.opt is True
    assert jit(fast_math=True)(fill).options.fastmath is True
    assert jit(shared_memory_carveout="maxl1")(fill).options.shared_memory_carveout == "MaxL1"
    assert jit(inline=True, chip="sm_90", lto=True, dump_ptx=False, _dbg_optnone=True)(fill).options.forceinline
    assert len(PASSED_ON | OURS | WITHOUT_EFFECT) == len(PASSED_ON) + len(OURS) + len(WITHOUT_EFFECT)


def test_what_goes_through_nvidias_compiler_says_so(mlir: ModuleType) -> None:
    cuda = mlir.cuda
    for function in (cuda.compile_mlir, cuda.compile_cubin, cuda.compile_for, cuda.inline_ptx):
        with pytest.raises(UnsupportedError, match=rf"numba_cuda_mlir\.cuda\.{function.__name__} has no counterpart"):
            function(print, ())
    with pytest.raises(NotImplementedError, match="Unsupported output type: cubin"):
        cuda.compile(print, (), output="cubin")


def test_blocks_of_a_cluster_divide_the_grid_and_run_as_any(mlir: ModuleType) -> None:
    cuda = mlir.cuda

    @cuda.jit
    def number(out):  # type: ignore[no-untyped-def]
        out[cuda.grid(1)] = cuda.blockIdx.x

    for launch in (
        number[4, 2, None, None, (2, 1, 1)],
        number[(4,), (2,), None, None, (2,)],
        number.configure(4, 2, cluster=2, sharedmem=None),
    ):
        out = np.zeros(8, np.int32)
        launch(out)
        assert out.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(LaunchError, match=r"griddim \(4, 1, 1\) is not a multiple of the cluster \(3, 1, 1\)"):
        number[4, 2, None, None, 3]
    with pytest.raises(LaunchError, match="cluster"):
        number.configure(4, 2, cluster=(1, 1, 1, 1))


def test_what_it_tells_about_the_device(mlir: ModuleType) -> None:
    tools = importlib.import_module("numba_cuda_mlir.tools")
    capability = tools.get_gpu_compute_capability(tuple)
    assert capability == tuple(numba_hip.get_current_device().compute_capability)
    assert tools.parse_compute_capability(tools.get_gpu_compute_capability()) == capability
    assert tools.parse_compute_capability("sm_120a") == (12, 0)
    with pytest.raises(ValueError, match="Invalid compute capability: 90"):
        tools.parse_compute_capability("90")


def test_arrays_by_their_short_names(mlir: ModuleType) -> None:
    cuda = mlir.cuda

    @cuda.jit
    def reverse(values):  # type: ignore[no-untyped-def]
        shared = cuda.shared_array(32, np.int32)
        mine = cuda.local_array(1, np.int32)
        i = cuda.threadIdx.x
        shared[i] = values[i]
        cuda.syncthreads()
        mine[0] = shared[31 - i]
        values[i] = mine[0]

    values = np.arange(32, dtype=np.int32)
    reverse[1, 32](values)
    assert values.tolist() == list(range(31, -1, -1))


def test_extending_by_its_registries(mlir: ModuleType, types: ModuleType) -> None:
    cuda, extending = mlir.cuda, importlib.import_module("numba_cuda_mlir.extending")

    def twice(value):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    @extending.overload(twice, typing_registry=extending.typing_registry)
    def twice_in_kernels(value):  # type: ignore[no-untyped-def]
        return lambda value: value * 2

    @extending.overload_method(types.Integer, "plus_one", typing_registry=extending.typing_registry)
    def plus_one(value):  # type: ignore[no-untyped-def]
        return lambda value: value + 1

    @extending.overload_attribute(
        types.Integer, "negative", typing_registry=extending.typing_registry, lowering_registry=None
    )
    def negative(value):  # type: ignore[no-untyped-def]
        return lambda value: -value

    @extending.register_jitable(typing_registry=extending.typing_registry)
    def square(value):  # type: ignore[no-untyped-def]
        return value * value

    extending.refresh_registries()

    @cuda.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        out[0] = twice(out[0])
        out[1] = out[1].plus_one()
        out[2] = out[2].negative
        out[3] = square(out[3])

    out = np.array([3, 4, 5, 6])
    kernel[1, 1](out)
    assert out.tolist() == [6, 5, -5, 36]
    assert square(3) == 9
    with pytest.raises(UnsupportedError, match="lower.*builder of MLIR"):
        extending.lower_builtin("name", types.int32)
    with pytest.raises(UnsupportedError, match="lower_getattr_generic.*overload"):
        extending.lowering_registry.lower_getattr_generic(types.int32)
    with pytest.raises(UnsupportedError, match="lower_cast.*overload"):
        extending.lowering_registry.lower_cast(types.int32, types.int64)
