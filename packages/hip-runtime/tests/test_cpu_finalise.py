"""From bitcode to machine code: what is computed, how, and what is refused."""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
import spmd_kernels
from spmd_kernels import GLOBAL_X, code, pack, sample

from hip_devicelib.codeobject import CodeObject, Kernel, Parameter, lay_out
from hip_runtime import Device, ModuleLoadError, SymbolError, config, device_array, to_device
from hip_runtime.drivers.cpu import finalise
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.drivers.cpu.object_code import program
from hip_runtime.drivers.cpu.object_code.object_file import read_object
from hip_runtime.drivers.cpu.strategies import kernel_request


def run(device: Device, text: str, parameters: list[tuple[str, str]], *values: Any, threads: int = 1) -> None:
    code_object = code(text, "k", parameters)
    function = device.load(code_object).function("k")
    function.launch(1, threads, pack(function.kernel, *values))


@pytest.mark.parametrize(
    ("kind", "value", "bits"),
    [
        ("i1", True, b"\1"),
        ("i1", False, b"\0"),
        ("i8", -5, struct.pack("b", -5)),
        ("i16", -30000, struct.pack("<h", -30000)),
        ("i32", 1 << 30, struct.pack("<i", 1 << 30)),
        ("i64", -(1 << 62), struct.pack("<q", -(1 << 62))),
        ("half", 1.5, struct.pack("<e", 1.5)),
        ("float", math.pi, struct.pack("<f", math.pi)),
        ("double", math.pi, struct.pack("<d", math.pi)),
    ],
)
def test_parameters_of_every_type_arrive(device: Device, kind: str, value: Any, bits: bytes) -> None:
    store = "%w = zext i1 %v to i8\n store i8 %w, ptr %out" if kind == "i1" else f"store {kind} %v, ptr %out"
    text = f"define void @k(ptr %item, i8 %first, {kind} %v, ptr %out) {{\n {store}\n ret void\n}}"
    out = to_device(np.zeros(8, np.uint8))
    run(device, text, [("first", "i8"), ("v", kind), ("out", "ptr")], 1, value, out.address)
    assert out.copy_to_host().tobytes()[: len(bits)] == bits


def test_bfloat_parameter_arrives(device: Device) -> None:
    text = "define void @k(ptr %item, ptr %out, bfloat %v) {\n store bfloat %v, ptr %out\n ret void\n}"
    code_object = code(text, "k", [("out", "ptr"), ("v", "bfloat")])
    out = to_device(np.zeros(1, np.uint16))
    function = device.load(code_object).function("k")
    function.launch(1, 1, struct.pack("<QH", out.address, 0x3FC0))
    assert out.copy_to_host()[0] == 0x3FC0


@pytest.mark.parametrize(("name", "kind"), [("__truncsfbf2", "float"), ("__truncdfbf2", "double")])
def test_conversions_to_bfloat16_that_the_processor_may_not_have(device: Device, name: str, kind: str) -> None:
    """LLVM calls these; they are there whatever the C library brings along."""
    text = f"""
    declare bfloat @{name}({kind})
    define void @k(ptr %item, ptr %out, ptr %x) {{
      %t = call i32 @spmd.thread_idx.x(ptr %item)
      %p = getelementptr {kind}, ptr %x, i32 %t
      %v = load {kind}, ptr %p
      %h = call bfloat @{name}({kind} %v)
      %b = bitcast bfloat %h to i16
      %q = getelementptr i16, ptr %out, i32 %t
      store i16 %b, ptr %q
      ret void
    }}"""
    halves = np.arange(1 << 16, dtype=np.uint32)
    exact = (halves << 16).view(np.float32)
    exact = exact[np.isfinite(exact)].astype(np.float64)
    step = np.abs(np.nextafter(exact.astype(np.float32), np.float32(np.inf)).astype(np.float64) - exact)
    values = np.concatenate([exact, exact + step * 2.0**15, exact + step * (2.0**15 + 1), exact + step * (2.0**15 - 1)])
    if kind == "double":  # what would be rounded twice by way of a float
        values = np.concatenate([values, exact + step * (2.0**15 + 2.0**-20), exact + step * (2.0**15 - 2.0**-20)])
    special = np.array([np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, 0.0, -0.0])
    values = np.concatenate([values, special, np.full(-(values.size + special.size) % 256, 1.0)])
    values = values.astype({"float": np.float32, "double": np.float64}[kind])
    x, out = to_device(values), to_device(np.zeros(256, np.uint16))
    function = device.load(code(text, "k", [("out", "ptr"), ("x", "ptr")])).function("k")
    found = []
    for first in range(0, values.size, 256):
        function.launch(1, 256, struct.pack("<QQ", out.address, x.address + first * values.itemsize))
        found.append(out.copy_to_host())
    np.testing.assert_array_equal(np.concatenate(found), _round_to_bfloat16(values))


def _round_to_bfloat16(values: Any) -> Any:
    """The bits of the nearest bfloat16, the even one of two: found among all that there are."""
    every = (np.arange(0x7F81, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    every[-1] = 2.0**128  # where a further number would be; infinity takes its place
    sizes = np.abs(values.astype(np.float64))
    above = np.clip(np.searchsorted(every, sizes), 1, len(every) - 1)
    below = above - 1
    low, high = sizes - every[below], every[above] - sizes
    nearest = np.where((low < high) | ((low == high) & (below % 2 == 0)), below, above)
    return (nearest | (np.signbit(values) << 15)).astype(np.uint16)


def test_recursive_device_function_and_its_work_item(device: Device) -> None:
    """A function that cannot be inlined is given the work item and reads the thread's index from it."""
    text = """
    define i64 @sum(ptr %item, i64 %n) noinline {
      %t = call i32 @spmd.thread_idx.x(ptr %item)
      %t64 = zext i32 %t to i64
      %end = icmp eq i64 %n, 0
      br i1 %end, label %done, label %more
    done:
      ret i64 %t64
    more:
      %m = sub i64 %n, 1
      %s = call i64 @sum(ptr %item, i64 %m)
      %r = add i64 %s, %n
      ret i64 %r
    }
    define void @k(ptr noalias %item, ptr %out) noinline {
      %t = call i32 @spmd.thread_idx.x(ptr %item)
      %t64 = zext i32 %t to i64
      %v = call i64 @sum(ptr %item, i64 %t64)
      %p = getelementptr i64, ptr %out, i64 %t64
      store i64 %v, ptr %p
      ret void
    }"""
    out = device_array(50, np.int64)
    run(device, text, [("out", "ptr")], out.address, threads=50)
    n = np.arange(50)
    np.testing.assert_array_equal(out.copy_to_host(), n * (n + 1) // 2 + n)


def test_private_memory_is_each_threads_own(device: Device) -> None:
    text = f"""
    define void @k(ptr noalias %item, ptr %out) {{
      %own = alloca [4 x i64]
      {GLOBAL_X}
      %slot = and i64 %i, 3
      %p = getelementptr [4 x i64], ptr %own, i64 0, i64 %slot
      store volatile i64 %i, ptr %p
      %v = load volatile i64, ptr %p
      %q = getelementptr i64, ptr %out, i64 %i
      store i64 %v, ptr %q
      ret void
    }}"""
    out = device_array(1024, np.int64)
    run(device, text, [("out", "ptr")], out.address, threads=1024)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(1024))


def test_math_library_and_intrinsics(device: Device) -> None:
    text = f"""
    declare double @cbrt(double)
    declare double @llvm.sin.f64(double)
    declare double @llvm.fma.f64(double, double, double)
    define void @k(ptr %item, ptr %out) {{
      {GLOBAL_X}
      %x = uitofp i64 %i to double
      %root = call double @cbrt(double %x)
      %sine = call double @llvm.sin.f64(double %x)
      %sum = call double @llvm.fma.f64(double %root, double %sine, double 1.0)
      %p = getelementptr double, ptr %out, i64 %i
      store double %sum, ptr %p
      ret void
    }}"""
    out = device_array(64)
    run(device, text, [("out", "ptr")], out.address, threads=64)
    x = np.arange(64.0)
    np.testing.assert_allclose(out.copy_to_host(), np.cbrt(x) * np.sin(x) + 1, rtol=1e-14)


def test_half_arithmetic(device: Device) -> None:
    text = f"""
    define void @k(ptr %item, ptr %x) {{
      {GLOBAL_X}
      %p = getelementptr half, ptr %x, i64 %i
      %v = load half, ptr %p
      %f = fpext half %v to double
      %g = fmul double %f, 0.333333
      %h = fptrunc double %g to half
      store half %h, ptr %p
      ret void
    }}"""
    host = np.arange(100, dtype=np.float16)
    x = to_device(host)
    run(device, text, [("x", "ptr")], x.address, threads=100)
    np.testing.assert_array_equal(x.copy_to_host(), (host.astype(np.float64) * 0.333333).astype(np.float16))


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump (binutils) is not installed")
def test_thread_loop_is_vectorised(device: Device, tmp_path: Path) -> None:
    code_object = sample("saxpy")
    program = finalise.finalise_kernel(code_object, code_object.kernels[0], (256, 1, 1))
    (tmp_path / "saxpy.o").write_bytes(program.image)
    listing = subprocess.run(["objdump", "-d", tmp_path / "saxpy.o"], capture_output=True, text=True, check=True).stdout
    packed = {"x86_64": ("vfmadd", "mulps", "addps"), "aarch64": ("fmla", "fmul\tv", "fadd\tv")}
    machine = llvm.get_process_triple().partition("-")[0]
    assert any(name in listing for name in packed[machine]), listing


def test_index_wraparound_folds_away(device: Device) -> None:
    """That an index is not negative is known, so the branch for negative ones is gone from the code."""
    text = f"""
    declare void @exit(i32)
    define void @k(ptr %item, ptr %out) {{
      {GLOBAL_X.replace("zext", "sext")}
      %negative = icmp slt i64 %i, 0
      br i1 %negative, label %bad, label %good
    bad:
      call void @exit(i32 9)
      ret void
    good:
      %p = getelementptr i64, ptr %out, i64 %i
      store i64 %i, ptr %p
      ret void
    }}"""
    code_object = code(text, "k", [("out", "ptr")])
    program = finalise.finalise_kernel(code_object, code_object.kernels[0], (128, 1, 1))
    assert "exit" not in read_object(program.image).undefined_symbols()


def test_undefined_symbol_is_named_and_nothing_is_loaded(device: Device) -> None:
    text = "declare void @nobody_has_this()\ndefine void @k(ptr %i) {\n call void @nobody_has_this()\n ret void\n}"
    function = device.load(code(text, "k", [])).function("k")
    for _ in range(2):
        with pytest.raises(SymbolError, match="'nobody_has_this'"):
            function.launch(1, 1, b"")


def test_undefined_variable_is_named(device: Device) -> None:
    text = "@missing = external global i32\ndefine void @k(ptr %i) {\n store i32 1, ptr @missing\n ret void\n}"
    with pytest.raises(SymbolError, match="'missing'"):
        device.load(code(text, "k", [])).function("k").launch(1, 1, b"")


def test_definition_of_an_intrinsic_is_refused(device: Device) -> None:
    text = "define i32 @other(i32 %x) {\n ret i32 %x\n}\ndefine void @k(ptr %i) {\n ret void\n}"
    module = llvm.parse_assembly(text.replace("@other", "@spmd.worker"), llvm.create_context())
    code_object = CodeObject("cpu", module.as_bitcode(), (Kernel("k", (), 0),))
    with pytest.raises(ModuleLoadError, match="cannot be linked"):
        device.load(code_object).function("k").launch(1, 1, b"")


def test_intrinsic_of_a_gpu_is_refused(device: Device) -> None:
    text = """
    declare i32 @llvm.amdgcn.workitem.id.x()
    define void @k(ptr %i, ptr %out) {
      %t = call i32 @llvm.amdgcn.workitem.id.x()
      store i32 %t, ptr %out
      ret void
    }"""
    with pytest.raises(ModuleLoadError, match=r"'llvm\.amdgcn\.workitem\.id\.x', which only amdgcn has"):
        device.load(code(text, "k", [("out", "ptr")]))


def test_bitcode_for_a_gpu_is_refused(device: Device) -> None:
    text = 'target triple = "amdgcn-amd-amdhsa"\ndefine void @k(ptr %i) {\n ret void\n}'
    with pytest.raises(ModuleLoadError, match="amdgcn-amd-amdhsa"):
        device.load(code(text, "k", []))


def test_elf_image_for_the_cpu_is_refused(device: Device) -> None:
    with pytest.raises(ModuleLoadError, match=r"must be LLVM bitcode; this one, of 64 bytes, starts with b'\\x7fELF'"):
        device.load(CodeObject("cpu", b"\x7fELF".ljust(64), (Kernel("k", (), 0),)))


def test_bitcode_that_does_not_hold_its_kernel_is_refused(device: Device) -> None:
    image = sample("saxpy").image
    with pytest.raises(SymbolError, match="'other'"):
        device.load(CodeObject("cpu", image, (Kernel("other", (), 0),)))
    with pytest.raises(SymbolError, match=r"'spmd\.fault'.*only declares"):
        device.load(CodeObject("cpu", spmd_kernels.sample("fault").image, (Kernel("spmd.fault", (), 0),)))


def test_kernel_with_other_parameters_is_refused(device: Device) -> None:
    parameters, nbytes = lay_out([("y", "ptr"), ("x", "ptr"), ("a", "double"), ("n", "i64")])
    with pytest.raises(ModuleLoadError, match=r"\(ptr, ptr, ptr, float, i64\).*\(ptr, ptr, ptr, double, i64\)"):
        device.load(CodeObject("cpu", sample("saxpy").image, (Kernel("saxpy", parameters, nbytes),)))


def test_parameter_beyond_the_buffer_is_refused(device: Device) -> None:
    kernel = Kernel("count", (Parameter("counter", "ptr", 8, 8),), 8)
    with pytest.raises(ModuleLoadError, match="'counter'.*8 to 16.*8 bytes"):
        device.load(CodeObject("cpu", sample("count").image, (kernel,)))


def test_object_of_another_system_is_refused() -> None:
    with pytest.raises(ModuleLoadError, match="ELF"):
        read_object(b"MZ\x90\x00" + bytes(100))


def test_each_block_shape_is_compiled_once(device: Device) -> None:
    counter = to_device(np.zeros(1, np.int64))
    function = device.load(sample("count")).function("count")
    for block in (1, 2, (2, 1, 1), 1, (1, 2)):
        function.launch(1, block, pack(function.kernel, counter.address))
    assert set(function.handle.workers) == {(1, 1, 1), (2, 1, 1), (1, 2, 1)}
    assert counter.copy_to_host()[0] == 8


def test_each_scope_has_the_code_of_its_settings(device: Device) -> None:
    """A launch that is prepared once, as those of a configured kernel are, too."""
    counter = to_device(np.zeros(1, np.int64))
    function = device.load(sample("count")).function("count")
    arguments = pack(function.kernel, counter.address)
    programs: dict[str, list[program.Program]] = {"loop": [], "vectors": [], "auto": []}
    for form in ("loop", "vectors", "auto", "loop", "vectors", "auto"):
        if form == "auto":
            function.launch(1, 8, arguments)
            found = function.handle.find((8, 1, 1))
        else:
            with config.cpu_form.scope(form):
                function.launch(1, 8, arguments)
                function.launch(1, 8, arguments)
                found = function.handle.find((8, 1, 1))
        programs[form].append(found)
    for form, (first, again) in programs.items():
        assert first is again
        assert form == "auto" or first.form == form
    assert counter.copy_to_host()[0] == 8 * 10


def test_what_interrupts_compiling_may_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the handler of a signal does that launches a kernel: it runs in the thread that compiles."""
    driver = CpuDriver(1 << 20)
    outer, inner = (
        driver.get_function(driver.load_module(0, code), code.kernels[0])
        for code in (spmd_kernels.sample("saxpy"), spmd_kernels.sample("count"))
    )
    survey, compiled = kernel_request.survey, []

    def interrupted(module: Any, kernel: str) -> Any:
        if kernel == "saxpy" and not compiled:
            compiled.append(inner.worker((4, 1, 1)))
        return survey(module, kernel)

    monkeypatch.setattr(kernel_request, "survey", interrupted)
    thread = threading.Thread(target=lambda: compiled.append(outer.worker((4, 1, 1))), daemon=True)
    thread.start()
    thread.join(60)
    assert [type(program) for program in compiled] == [program.Program] * 2
