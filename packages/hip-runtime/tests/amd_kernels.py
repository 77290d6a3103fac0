"""The kernels of `spmd_kernels` as linked machine code for this machine's AMD GPU, and how long one takes there."""

from __future__ import annotations

import time
from functools import cache

import llvmlite.binding as llvm
import spmd_kernels

from hip_devicelib import link, object_code, optimise
from hip_devicelib.codeobject import CodeObject
from hip_runtime.driver import DEFAULT_STREAM
from hip_runtime.drivers.hip.driver import HipDriver

GRID_COUNTS, BLOCK_SIZES = 0, 12
"""Bytes of the hidden arguments where the blocks of the grid (32 bits for each axis) and the threads of a block (16
bits) stand."""

SLOW_SECONDS = 0.005
"""How long `spin` is to take where a test wants a launch that is not done at once."""

FEWEST_TURNS = 100


def _index(name: str, axis: str, intrinsic: str) -> str:
    return f"""
declare i32 @llvm.amdgcn.{intrinsic}.id.{axis}()
define i32 @spmd.{name}.{axis}(ptr %item) {{
  %index = call i32 @llvm.amdgcn.{intrinsic}.id.{axis}()
  ret i32 %index
}}
"""


def _extent(name: str, axis: str, bits: int, offset: int) -> str:
    return f"""
define i32 @spmd.{name}.{axis}(ptr %item) {{
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %place = getelementptr i8, ptr addrspace(4) %hidden, i64 {offset}
  %extent = load i{bits}, ptr addrspace(4) %place
  %wide = zext i{bits} %extent to i64
  %result = trunc i64 %wide to i32
  ret i32 %result
}}
"""


def _indices() -> str:
    """What SPMD code asks for its indices by, as an AMD GPU answers."""
    text = "declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
    for number, axis in enumerate("xyz"):
        text += _index("thread_idx", axis, "workitem") + _index("block_idx", axis, "workgroup")
        text += _extent("grid_dim", axis, 32, GRID_COUNTS + 4 * number)
        text += _extent("block_dim", axis, 16, BLOCK_SIZES + 2 * number)
    return text


def _fault() -> str:
    """How the first thread that stops with an error writes the record of its kernel: ``docs/design/hip-driver.md``."""
    text = """
@fault.fault = addrspace(1) global { ptr, i32, i32 } zeroinitializer
define void @spmd.fault(ptr %item, i32 %code) {
  %word = getelementptr i8, ptr addrspace(1) @fault.fault, i64 8
  %pair = cmpxchg ptr addrspace(1) %word, i32 0, i32 1 syncscope("agent") acq_rel monotonic
  %won = extractvalue { i32, i1 } %pair, 1
  br i1 %won, label %write, label %done
write:
  %record = load ptr, ptr addrspace(1) @fault.fault
  %first = getelementptr i32, ptr %record, i32 1
  store i32 %code, ptr %first
"""
    indices = [f"{what}.{axis}" for what in ("block_idx", "thread_idx") for axis in "xyz"]
    text = "".join(f"declare i32 @spmd.{name}(ptr)\n" for name in indices) + text
    for place, name in enumerate(indices, 2):
        text += f"  %value{place} = call i32 @spmd.{name}(ptr %item)\n"
        text += f"  %place{place} = getelementptr i32, ptr %record, i32 {place}\n"
        text += f"  store i32 %value{place}, ptr %place{place}\n"
    return text + "  store atomic i32 1, ptr %record release, align 4\n  br label %done\ndone:\n  ret void\n}\n"


def _body(name: str) -> str:
    """The SPMD function of a kernel, called ``NAME.body``."""
    module = llvm.parse_assembly(spmd_kernels.KERNELS[name][0] + spmd_kernels.DECLARATIONS, llvm.create_context())
    module.get_function(name).name = f"{name}.body"
    return str(module)


def _entry(name: str) -> str:
    """The kernel that calls it."""
    parameters = spmd_kernels.KERNELS[name][1]
    given = ", ".join(f"{'ptr addrspace(1)' if kind == 'ptr' else kind} %{label}" for label, kind in parameters)
    casts = "".join(
        f"  %{label}.any = addrspacecast ptr addrspace(1) %{label} to ptr\n"
        for label, kind in parameters
        if kind == "ptr"
    )
    passed = "".join(f", {kind} %{label}{'.any' if kind == 'ptr' else ''}" for label, kind in parameters)
    declared = "".join(f", {kind}" for _, kind in parameters)
    return (
        f"declare void @{name}.body(ptr{declared})\n"
        f"define amdgpu_kernel void @{name}({given}) {{\n{casts}  call void @{name}.body(ptr null{passed})\n"
        "  ret void\n}\n"
    )


@cache
def code(name: str, target: str) -> CodeObject:
    """The code object of one kernel."""
    faults = name == "fault"
    modules = [_entry(name), _body(name), _indices(), *([_fault()] if faults else [])]
    bitcode = optimise(modules, target, keep=("fault.fault",) if faults else ())
    return link(object_code(bitcode, target), signatures={name: spmd_kernels.KERNELS[name][1]})


@cache
def driver_of_the_tests() -> HipDriver:
    """The driver that is asked about the GPU."""
    return HipDriver()


def sample(name: str) -> CodeObject:
    """The code object of one kernel for GPU 0."""
    return code(name, driver_of_the_tests().attributes(0).target)


@cache
def slow_turns() -> int:
    """Turns of `spin` that take some milliseconds: a GPU's memory is slow for one thread, an emulator more so."""
    driver = driver_of_the_tests()
    kernel = sample("spin").kernels[0]
    function = driver.get_function(driver.load_module(0, sample("spin")), kernel)
    place = driver.alloc(0, 8)

    def time_launch(turns: int) -> float:
        start = time.perf_counter()
        driver.launch(function, (1, 1, 1), (1, 1, 1), 0, DEFAULT_STREAM, spmd_kernels.pack(kernel, place, turns))
        driver.synchronize_device(0)
        return time.perf_counter() - start

    try:
        time_launch(1)  # the first one takes longer
        launch, turns = time_launch(1), FEWEST_TURNS
        while time_launch(turns) - launch < SLOW_SECONDS:
            turns *= 2
    finally:
        driver.free(place)
    return turns
