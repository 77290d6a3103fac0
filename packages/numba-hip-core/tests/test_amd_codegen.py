"""Code for AMD GPUs, made without one: its structure, not its text."""

import math
import os
import subprocess
import sys
import threading

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types, vectorize
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import TypingError

import numba_hip as hip
from hip_devicelib import amdgpu, find_rocm, kernel_metadata
from hip_devicelib.errors import NotFoundError
from hip_devicelib.forking import compiling
from hip_devicelib.linkers import find_linkers
from hip_devicelib.target import parse_target
from numba_hip.compilation.kernel_code import compile_kernel
from numba_hip.compilation.options import CompileOptions
from numba_hip.errors import OptionError, OutputError
from numba_hip.extending import intrinsic
from numba_hip.targets.context import HipContext
from numba_hip.targets.typing import HipTypingContext

TARGETS = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"]
try:
    ROCM = find_rocm()
except NotFoundError:
    ROCM = None

WAVE = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1030": 32, "gfx1100": 32, "gfx1201": 32}
SAXPY = "void(float32, float32[::1], float32[::1], float32[::1])"


@hip.jit
def saxpy(a, x, y, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def module_of(kernel, signature, target, **options):
    text, _result = hip.compile(kernel, signature, target=target, output="llvm", **options)
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def instructions(module):
    return [i for f in module.functions if not f.is_declaration for b in f.blocks for i in b.instructions]


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_and_its_metadata(target):
    image, result = hip.compile(saxpy, SAXPY, target=target, output="object")
    assert result == hip.compile(saxpy, SAXPY, target=target)[1]
    (kernel,) = kernel_metadata.read_kernels(image)
    assert kernel.name == "saxpy"
    assert kernel.wave_size == WAVE[target]
    assert kernel.max_block_threads == 1024
    assert kernel.shared_bytes == 0
    assert kernel.private_bytes == 0, "no spills"
    compiled = compile_kernel(saxpy.py_func, saxpy_types(), CompileOptions(), target)
    assert [(p.offset, p.size) for p in kernel.parameters] == [(p.offset, p.size) for p in compiled.parameters]
    assert kernel.argument_bytes == compiled.argument_bytes


def saxpy_types():
    from numba.core import sigutils

    return tuple(sigutils.normalize_signature(SAXPY)[0])


@pytest.mark.parametrize("target", TARGETS)
def test_memory_is_reached_through_the_right_address_spaces(target):
    module = module_of(saxpy, SAXPY, target)
    memory = [i for i in instructions(module) if i.opcode in ("load", "store")]
    pointers = [str(list(i.operands)[-1].type) for i in memory]
    assert pointers.count("ptr addrspace(1)") == 3, "two loads and a store of global memory"
    assert set(pointers) == {"ptr addrspace(1)", "ptr addrspace(4)"}, "all else are implicit arguments"
    (kernel,) = [f for f in module.functions if not f.is_declaration]
    assert "amdgpu_kernel" in str(kernel).split("@")[0]
    assert [str(a.type) for a in kernel.arguments].count("ptr addrspace(1)") == 3, "the addresses of three arrays"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.sample(3)
def test_assembly(target):
    text, _ = hip.compile(saxpy, SAXPY, target=target, output="asm")
    assert f"amdgcn-amd-amdhsa--{target}" in text
    assert ".amdhsa_kernel saxpy" in text
    assert "flat_load" not in text
    assert "flat_store" not in text
    assert "scratch_load" not in text
    assert "buffer_load" not in text


def test_private_arrays_lie_in_private_memory():
    def kernel(values, out):
        i = hip.grid(1)
        pair = (values[i], values[i + 1], values[i + 2])
        out[i] = pair[out[i] % 3]

    module = module_of(kernel, "(int32[::1], int32[::1])", "gfx942", opt=False)
    slots = [i for i in instructions(module) if i.opcode == "alloca"]
    assert slots
    assert {str(slot.type) for slot in slots} == {"ptr addrspace(5)"}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.sample(1)
def test_code_that_is_not_optimised_has_no_phis(debug):
    def kernel(x, out):
        for n, value in enumerate((x[0], 2.0, 3.0)):  # by a switch, whose cases are members of a structure
            out[n] = value + clip(value, 0.0, x[1])

    module = module_of(kernel, "(float64[::1], float64[::1])", "gfx942", opt=False, debug=debug)
    assert "switch" in [i.opcode for i in instructions(module)]
    assert "phi" not in [i.opcode for i in instructions(module)]
    for function in module.functions:
        attributes = b" ".join(function.attributes)
        assert function.is_declaration or (b"optnone" in attributes and b"noinline" in attributes)
    assert hip.compile(kernel, "(float64[::1], float64[::1])", target="gfx1100", opt=False, output="object")


def test_indices_and_structures_that_come_from_phis_in_code_that_is_not_optimised():
    wide, pair = ir.IntType(64), ir.LiteralStructType([ir.IntType(64)] * 2)

    @intrinsic
    def choose(typing_context, flag):
        def lower(context, builder, signature, args):
            start = builder.block
            numbers, pairs = [wide(4), wide(5)], [pair((2, 3)), pair((6, 7))]
            with builder.if_then(args[0]):
                chosen = builder.block
            index, found = builder.phi(wide), builder.phi(pair)
            for phi, values in ((index, numbers), (found, pairs)):
                phi.add_incoming(values[0], start)
                phi.add_incoming(values[1], chosen)
            table = cgutils.alloca_once_value(builder, ir.ArrayType(wide, 8)([wide(n) for n in range(8)]))
            element = builder.load(builder.gep(table, [wide(0), index]))
            changed = builder.insert_value(builder.insert_value(found, index, 0), element, 0)
            return builder.add(builder.extract_value(found, 1), builder.extract_value(changed, 0))

        return types.int64(flag), lower

    def kernel(x, out):
        out[0] = choose(x[0] > 0)

    module = module_of(kernel, "(int64[::1], int64[::1])", "gfx942", opt=False)
    assert "phi" not in [i.opcode for i in instructions(module)]
    values = np.zeros(1, np.int64)
    for flag, expected in ((0, 3 + 4), (1, 7 + 5)):
        hip.jit(kernel, opt=False)[1, 1](np.array([flag]), values)
        assert values[0] == expected


def test_captured_arrays_lie_in_constant_memory():
    table = np.arange(16, dtype=np.float32) ** 2

    def kernel(out):
        i = hip.grid(1)
        out[i] = table[i % 16]

    module = module_of(kernel, "(float32[::1],)", "gfx1100")
    (constant,) = module.global_variables
    assert str(constant.type) == "ptr addrspace(4)"
    assert constant.is_constant
    assert table.tobytes() in hip.compile(kernel, "(float32[::1],)", target="gfx1100", output="object")[0]


def test_math_comes_from_ocml_or_the_hardware():
    def kernel(x, out):
        i = hip.grid(1)
        out[i] = math.sin(x[i]) + math.sqrt(x[i]) + math.pow(x[i], 1.5) + x[i] ** 2.5 + math.gamma(x[i])

    for signature, suffix in (("(float32[::1], float32[::1])", "f32"), ("(float64[::1], float64[::1])", "f64")):
        code = compile_kernel(kernel, tuple(hip_types(signature)), CompileOptions(), "gfx90a")
        wanted = {f"__ocml_sin_{suffix}", f"__ocml_tgamma_{suffix}", "__ocml_pow_f64"}
        assert set(amdgpu.undefined_symbols(code.bitcode)) == wanted
        assert code.object()


def hip_types(signature):
    from numba.core import sigutils

    return sigutils.normalize_signature(signature)[0]


@njit
def clip(value, low, high):
    return min(max(value, low), high)


@hip.jit(device=True)
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@hip.jit
def everything(x, out, pair):
    i, j = hip.grid(2)
    si, sj = hip.gridsize(2)
    while i < out.shape[0]:
        if j < out.shape[1]:
            total = 0.0
            for k in range(x.shape[0]):
                total += x[k, -1] * pair[1] if k % 2 else pair[0] // (k + 1)
            out[i, j] = clip(total, -1.0, 1.0) + factorial(hip.threadIdx.z) + hip.blockDim.y * sj
        i += si


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_larger_kernel(target):
    signature = "(float64[:, :], float64[:, ::1], Tuple((int64, float32)))"
    image, _ = hip.compile(everything, signature, target=target, output="object")
    (kernel,) = kernel_metadata.read_kernels(image)
    assert kernel.name == "everything"
    assert len(kernel.parameters) == 5 + 4 + 2


def test_launch_bounds_reach_the_metadata():
    image, _ = hip.compile(saxpy.py_func, SAXPY, target="gfx942", output="object", launch_bounds=(256, 2))
    assert kernel_metadata.read_kernels(image)[0].max_block_threads == 256


def in_registers(x, out):
    own = hip.local.array(48, np.float32)
    i = hip.grid(1)
    for j in range(48):
        own[j] = x[i + j * 64]
    total = np.float32(0)
    for j in range(48):
        for k in range(48):
            total += own[j] * own[k]
    out[i] = total


@pytest.mark.parametrize(
    ("target", "bounds", "waves", "fits"),
    [
        ("gfx90a", (1024, 2), 8, 8), ("gfx90a", (256, 1), 1, None), ("gfx90a", (100, 3, 2), 2, None),
        ("gfx1100", (1024, 2), 16, 16), ("gfx1100", (256,), None, None), ("gfx1100", 256, None, None),
    ],
)  # fmt: skip
@pytest.mark.sample(2)
def test_blocks_of_a_compute_unit_become_waves(target, bounds, waves, fits):
    code = hip.jit(launch_bounds=bounds)(in_registers).compile("(float32[::1], float32[::1])", target=target)
    found = [line.partition('"amdgpu-waves-per-eu"="')[2].partition('"')[0] for line in code.llvm().splitlines()]
    assert [text for text in found if text] == ([] if waves is None else [str(waves)])
    assert fits in (None, code.occupancy)
    assert 1 <= code.occupancy <= parse_target(target).max_waves_per_simd


def test_more_blocks_than_a_compute_unit_holds():
    with pytest.raises(TypingError) as caught:
        hip.compile(saxpy.py_func, SAXPY, target="gfx90a", launch_bounds=(1024, 3))
    message = str(caught.value)
    assert "3 blocks of 1024 threads on a compute unit are 12 waves on each SIMD unit; gfx90a has room for 8" in message
    assert "test_amd_codegen.py" in message
    assert hip.compile(saxpy.py_func, SAXPY, target="gfx1100", launch_bounds=(512, 4), wave_size=64)
    with pytest.raises(OptionError, match="Got 4 launch bounds: .*it can be threads of a block, blocks of a"):
        hip.jit(launch_bounds=(256, 1, 1, 1))
    for bounds in ((256, 0), (256, "2"), (256, True)):
        with pytest.raises(OptionError, match="it can be threads of a block, or a tuple of these"):
            hip.jit(launch_bounds=bounds)


def test_the_cpu_device_has_no_occupancy():
    with pytest.raises(OutputError, match="the CPU device has no occupancy"):
        assert hip.jit(saxpy.py_func).compile(SAXPY, target="cpu").occupancy


@pytest.mark.long
def test_code_is_the_same_every_time_and_in_threads():
    results: dict[tuple[str, str], list[bytes | str]] = {(t, o): [] for t in TARGETS for o in ("object", "llvm")}

    def compile_all():
        for target, output in results:
            results[target, output].append(hip.compile(saxpy.py_func, SAXPY, target=target, output=output)[0])

    threads = [threading.Thread(target=compile_all) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for codes in results.values():
        assert len(codes) == 3
        assert len(set(codes)) == 1


def test_numbas_contexts_are_asked_under_both_locks_alone(monkeypatch):
    asked = []

    def watch(kind, name):
        original = getattr(kind, name)

        def check(self, *args, **kws):
            asked.append((name, compiling._is_owned() and global_compiler_lock._lock._is_owned()))
            return original(self, *args, **kws)

        monkeypatch.setattr(kind, name, check)

    for name in ("create_module", "get_function", "insert_user_function", "refresh"):
        watch(HipContext, name)
    watch(HipTypingContext, "refresh")
    hip.compile(saxpy.py_func, SAXPY, target="gfx90a", output="llvm")
    hip.compile(lambda a, b: a + b, "float64(float64, float64)", target="gfx90a", device=True, output="llvm")
    vectorize(["float64(float64, float64)"], target="hip")(lambda a, b: a - b)
    assert {name for name, _ in asked} == {"create_module", "get_function", "insert_user_function", "refresh"}
    assert all(held for _, held in asked), [name for name, held in asked if not held]


def test_features_of_a_target():
    image, _ = hip.compile(saxpy, SAXPY, target="gfx90a:xnack+", output="object")
    assert kernel_metadata.read_kernels(image)[0].name == "saxpy"
    assert "xnack+" in hip.compile(saxpy, SAXPY, target="gfx90a:xnack+", output="asm")[0]


needs_linker = pytest.mark.skipif(next(find_linkers(ROCM), None) is None, reason="needs ld.lld or ziglang")


@pytest.mark.sample(1)
@needs_linker
@pytest.mark.parametrize("target", TARGETS)
def test_a_linked_code_object(target):
    code = compile_kernel(saxpy.py_func, saxpy_types(), CompileOptions(), target)
    assert code.code_object.target == target
    kernel = code.code_object.kernel("saxpy")
    assert kernel.parameters == code.parameters
    assert kernel.argument_bytes == code.argument_bytes
    image, _ = hip.compile(saxpy, SAXPY, target=target, output="codeobject")
    assert image == code.code_object.image


@pytest.mark.skipif(ROCM is not None, reason="needs a machine with no ROCm")
def test_math_needs_the_device_library_of_rocm():
    def kernel(x):
        x[0] = math.sin(x[0])

    with pytest.raises(NotFoundError, match="the kernel calls __ocml_sin_f64 of ROCm's device library: no ROCm"):
        hip.compile(kernel, "(float64[::1],)", target="gfx942", output="codeobject")


@pytest.mark.skipif(ROCM is None, reason="needs ROCm's device library")
@needs_linker
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1030", "gfx1100"])
def test_a_code_object_with_the_device_library(target):
    def kernel(x, out):
        i = hip.grid(1)
        out[i] = math.sin(x[i]) + math.erf(x[i]) ** x[i] + hip.syncthreads_count(x[i] > 0)

    for kind in ("float32", "float64"):
        signature = f"({kind}[::1], {kind}[::1])"
        image, _ = hip.compile(kernel, signature, target=target, output="codeobject")
        assert kernel_metadata.read_kernels(image)[0].name == "kernel"


PRINT_CODE = """
import sys
import numba_hip as hip
from numba import float32

@hip.jit(device=True)
def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)

@hip.jit
def before(values):
    values[0] = factorial(values[1])

@hip.jit
def kernel(values):
    tile = hip.shared.array(64, float32)
    tile[hip.threadIdx.x] = values[hip.grid(1)]
    hip.syncthreads()
    values[hip.grid(1)] = tile[0] + factorial(hip.threadIdx.x)

for _ in range(int(sys.argv[1])):
    hip.compile(before, "(int64[:],)", target="cpu", output="llvm")
    hip.compile(before, "(float64[:],)", target="gfx942", output="llvm")
for target, output in (("cpu", "llvm"), ("gfx942", "llvm"), ("gfx942", "asm"), ("gfx1100", "asm")):
    print(hip.compile(kernel, "(float32[::1],)", target=target, output=output)[0])
"""


@pytest.mark.long
def test_code_depends_neither_on_what_was_compiled_before_nor_on_the_seed_of_hashes(tmp_path):
    script = tmp_path / "print_code.py"
    script.write_text(PRINT_CODE)
    outputs = [
        subprocess.run(
            [sys.executable, str(script), count],
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for count, seed in (("0", "1"), ("1", "4711"))
    ]
    assert [output.returncode for output in outputs] == [0, 0], outputs[0].stderr + outputs[1].stderr
    assert outputs[0].stdout == outputs[1].stdout
    assert "s_barrier" in outputs[0].stdout
