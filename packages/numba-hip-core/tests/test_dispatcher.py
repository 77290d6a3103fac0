"""What a dispatcher offers beside launches: specialisation, launches by tasks, what its code takes, statistics."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types
from numba.core import config as numba_config
from numba.core import event

import numba_hip as hip
from hip_runtime.errors import LaunchError
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.dispatch.launch import MOST_REMEMBERED
from numba_hip.errors import KernelArgumentError, KernelSignatureError, NotCompiledError

CAPTURED = np.arange(10, dtype=np.float64)

TAKEN_BY_HIP = 0 if hip.get_current_device().is_cpu else 2 << 20
"""The HIP runtime takes memory for itself when it comes to it."""


def fresh():
    @hip.jit
    def add(values, step):
        i = hip.grid(1)
        if i < values.size:
            values[i] += step

    return add


def free_memory():
    hip.synchronize()
    gc.collect()
    return hip.get_current_device().memory_info()[0]


@pytest.mark.sample(4)
@pytest.mark.parametrize("tasks", [1, 255, 256, 257, 10_000])
@pytest.mark.parametrize("block", [0, 1, 100])
def test_forall(tasks, block):
    @hip.jit
    def mark(values, threads):
        i = hip.grid(1)
        if i == 0:
            threads[0] = hip.gridsize(1)
            threads[1] = hip.blockDim.x
        if i < values.size:
            values[i] += 1

    values, threads = np.zeros(tasks), np.zeros(2, np.int64)
    mark.forall(tasks, tpb=block)(values, threads)
    assert (values == 1).all()
    assert tasks <= threads[0] < tasks + threads[1]
    assert threads[1] == (block or 256)


def test_forall_without_tasks_launches_nothing():
    values = np.arange(3.0)
    fresh().forall(0)(values, 1.0)
    np.testing.assert_array_equal(values, np.arange(3.0))


def test_forall_respects_launch_bounds_and_streams():
    stream = hip.stream()
    bounded = hip.jit(launch_bounds=64)(fresh().py_func)
    values = hip.to_device(np.zeros(1000))
    bounded.forall(1000, stream=stream)(values, 2.0)
    stream.synchronize()
    assert (values.copy_to_host() == 2).all()


@pytest.mark.parametrize(("tasks", "block"), [(-1, 0), (1.5, 0), ("3", 0), (True, 0), (10, -2), (10, 2.0)])
def test_forall_with_impossible_numbers(tasks, block):
    with pytest.raises(LaunchError, match="ntasks|thread_per_block"):
        fresh().forall(tasks, tpb=block)


def test_every_form_of_a_launch_uses_what_was_prepared_for_its_shape(monkeypatch):
    """And nothing that belongs to the kernel alone, as its code does, is looked at again."""
    stream, out, add = hip.stream(), hip.to_device(np.zeros(4)), fresh()
    foreign = SimpleNamespace(cuda_stream=stream.handle)
    add[2, 2](out, 1.0)
    monkeypatch.setattr(KernelCode, "cooperative", property(lambda code: pytest.fail("the code was looked at")))
    for config in ((2, 2, stream), (np.int64(2), [2]), ((2, 1), (2,), 0, 0), (2, 2, foreign), (2, 2, stream.handle)):
        configured = add[config]
        assert configured.ready is add[2, 2].ready
        configured(out, 1.0)
    add[1, 2, stream](out, 1.0)
    add[2, 2, stream, 8](out, 1.0)
    for blocks in range(3, 3 + MOST_REMEMBERED):
        add[blocks, 2](out, 1.0)
    stream.synchronize()
    np.testing.assert_array_equal(out.copy_to_host(), np.array([8, 8, 7, 7]) + MOST_REMEMBERED)
    assert add[2, 2].stream is None
    last = add[MOST_REMEMBERED + 2, 2]
    assert add[MOST_REMEMBERED + 2, 2] is last  # of many, the last are remembered
    assert len(add._configured) <= MOST_REMEMBERED
    assert add[1000, 2].ready is last.ready  # blocks of the same shape share what was prepared
    assert add[2, 2, 0, 8].ready is not last.ready


def test_each_launch_may_have_another_shape_and_other_types():
    @hip.jit
    def fill(out, value):
        i = hip.grid(1)
        if i < out.size:
            out[i] = value + scale

    scale = 0
    for round_number in range(2):
        for blocks in range(1, 40):
            dtype = (np.float64, np.float32, np.int64)[blocks % 3 if blocks % 7 else 0]
            device_array = hip.to_device(np.zeros(40, dtype))
            fill[blocks, 1 + blocks % 2](device_array, blocks)
            launched = min(blocks * (1 + blocks % 2), 40)
            expected = np.where(np.arange(40) < launched, blocks + scale, 0)
            np.testing.assert_array_equal(device_array.copy_to_host(), expected)
        scale = 100 * (round_number + 1)
        fill.recompile()
    with pytest.raises(KernelArgumentError, match="fill takes 2 arguments"):
        fill[41, 1](device_array)
    with pytest.raises(LaunchError, match="blockdim"):
        fill[42, 0](device_array, 1)
    with pytest.raises(LaunchError, match="at most"):
        fill[43, 4096](device_array, 1)
    fill[44, 2](device_array, 5)
    np.testing.assert_array_equal(device_array.copy_to_host(), np.full(40, 5 + scale))


def test_each_grid_is_checked():
    out, add = hip.to_device(np.zeros(4)), fresh()
    add[2, 2](out, 1.0)
    for grid, axis in (((1, 65536), "y"), (2**31, "x")):
        with pytest.raises(LaunchError, match=f"grid has extent [0-9]+ along {axis}; .* at most"):
            add[grid, 2](out, 1.0)
    add[2, 2](out, 1.0)
    np.testing.assert_array_equal(out.copy_to_host(), [2] * 4)


def test_no_kernel_keeps_a_stream():
    stream, out, add = hip.stream(), hip.to_device(np.zeros(4)), fresh()
    kept = weakref.ref(stream)
    add[2, 2, stream](out, 1.0)
    assert add[2, 2, stream].stream is stream
    del stream
    assert kept() is None
    hip.synchronize()
    np.testing.assert_array_equal(out.copy_to_host(), [1] * 4)


def test_configure():
    kernel = fresh()
    configured = kernel.configure((2, 1), 32)
    assert (configured.griddim, configured.blockdim, configured.sharedmem) == ((2, 1, 1), (32, 1, 1), 0)
    values = np.zeros(50)
    configured(values, 1.0)
    assert (values == 1).all()
    with pytest.raises(LaunchError):
        kernel.configure(0, 32)


def test_specialize():
    kernel = fresh()
    values = np.zeros(10, np.float32)
    special = kernel.specialize(values, np.float32(1))
    assert special.specialized
    assert not kernel.specialized
    assert special.signatures == [(types.float32[::1], types.float32)]
    assert kernel.signatures == []
    assert (values == 0).all(), "nothing is launched"
    special[1, 32](values, np.float32(3))
    assert (values == 3).all()
    assert kernel.specialize(np.zeros(3, np.float32), np.float32(5)) is special
    assert kernel.specialize(hip.device_array(3), np.float32(5)) is not special
    with pytest.raises(RuntimeError, match="already specialized: kernel add"):
        special.specialize(values, np.float32(1))
    with pytest.raises(KernelArgumentError, match=r"compiled for \(array\(float32, 1d, C\), float32\) only"):
        special[1, 32](np.zeros((2, 2)), np.float32(1))


def test_specialize_sees_what_a_launch_would():
    kernel = fresh()
    strided = np.zeros((4, 4))[::2]
    fortran = np.zeros((4, 3), order="F")
    copies = {
        "strided": (strided, types.float64[:, ::1]),
        "fortran": (fortran, types.float64[::1, :]),
        "out": (hip.Out(fortran), types.float64[::1, :]),
        "device": (hip.to_device(fortran), types.float64[::1, :]),
    }

    @hip.jit
    def touch(values, step):
        values[0, 0] = step

    for array, kind in copies.values():
        assert touch.specialize(array, 1.0).signatures == [(kind, types.float64)]
        touch[1, 1](array, 1.0)
    assert set(touch.signatures) == {(kind, types.float64) for _, kind in copies.values()}
    with pytest.raises(KernelArgumentError, match="argument 'step'"):
        kernel.specialize(strided, "text")
    with pytest.raises(KernelArgumentError, match="takes 2 arguments"):
        kernel.specialize(strided)


def test_what_a_kernel_takes_of_the_device():
    @hip.jit
    def kernel(out):
        own = hip.local.array(50, np.float64)
        for i in range(50):
            own[i] = out[i]
        i = hip.grid(1)
        out[i] = own[i % 50] + hip.const.array_like(CAPTURED)[i]

    args = (types.float64[::1],)
    kernel.compile(args)
    assert kernel.get_const_mem_size(args) == CAPTURED.nbytes
    private = kernel.get_local_mem_per_thread(args)
    assert 400 <= private <= 416, "a GPU's frame is rounded up"
    assert kernel.get_shared_mem_per_block(args) == 0
    assert kernel.get_max_threads_per_block(args) == 1024
    assert kernel.get_regs_per_thread(args) > 0
    assert kernel.get_const_mem_size() == {args: CAPTURED.nbytes}
    assert kernel.specialize(np.zeros(50)).get_local_mem_per_thread() == private
    plain = hip.jit(kernel.py_func, opt=False)
    plain.compile(args)
    assert plain.get_local_mem_per_thread(args) >= 400
    with pytest.raises(NotCompiledError, match=r"kernel kernel was not compiled for \(int8\); its signatures: array"):
        kernel.get_regs_per_thread((types.int8,))


def test_shared_memory_that_a_kernel_declares():
    @hip.jit
    def kernel(out):
        first = hip.shared.array(3, np.int8)
        second = hip.shared.array(10, np.float64)
        first[hip.threadIdx.x % 3] = 1
        second[hip.threadIdx.x % 10] = 2
        out[0] = first[0] + second[0]

    args = (types.float64[::1],)
    assert kernel.compile(args).code_object.kernels[0].shared_bytes in (83, 88), "in either order"
    assert kernel.get_shared_mem_per_block(args) in (83, 88)
    kernel.compile(args, "gfx942")
    assert kernel.get_shared_mem_per_block(args) in (83, 88)


def test_what_a_kernel_takes_of_an_amd_gpu():
    kernel = hip.jit(launch_bounds=128)(fresh().py_func)
    args = (types.float64[::1], types.float64)
    kernel.compile(args, "gfx942")
    assert 1 <= kernel.get_regs_per_thread(args) <= 512
    assert kernel.get_max_threads_per_block(args) == 128
    assert kernel.get_const_mem_size(args) == 0


def test_inspection():
    kernel = fresh()
    args = (types.float64[::1], types.float64)
    assert kernel.inspect_llvm() == {}
    with pytest.raises(NotCompiledError, match="its signatures: none yet"):
        kernel.inspect_asm(args)
    kernel.compile(args)
    assert "@add(" in kernel.inspect_llvm(args)
    assert kernel.inspect_sass(args) == kernel.inspect_asm(args)
    assert "v_add_f64" in kernel.inspect_asm(args, target="gfx90a")
    assert "amdgcn" in kernel.inspect_llvm("(float64[::1], float64)", target="gfx90a")
    assert "v_add_f64" in kernel.inspect_sass(target="gfx1100")[args]


@pytest.mark.parametrize(
    ("setting", "title", "words"),
    [("DUMP_OPTIMIZED", "OPTIMIZED DUMP", "amdgpu_kernel void @add"), ("DUMP_ASSEMBLY", "ASSEMBLY", "v_add_f64")],
)
def test_what_numbas_settings_have_printed(setting, title, words, monkeypatch, capsys):
    monkeypatch.setattr(numba_config, setting, 1)
    hip.compile(fresh(), "(float64[::1], float64)", target="gfx942")
    out = capsys.readouterr().out
    assert out.startswith("-" * 20)
    assert f"--{title} add--" in out
    assert words in out
    monkeypatch.undo()
    hip.compile(fresh(), "(float64[::1], float64)", target="gfx942")
    assert not capsys.readouterr().out


def test_inspection_of_device_functions():
    @hip.jit(device=True)
    def double(x):
        return 2 * x

    assert double.inspect_llvm() == {}
    assert "i32 @" in double.inspect_llvm("(int32,)")
    assert list(double.inspect_llvm()) == [(types.int32,)]
    assert [str(signature) for signature in double.nopython_signatures] == ["(int32,) -> int64"]
    with pytest.raises(TypeError, match="Cannot inspect assembly of a device function: double has no code apart"):
        double.inspect_asm()
    with pytest.raises(RuntimeError, match="Cannot measure resources of a device function"):
        double.get_regs_per_thread()
    with pytest.raises(RuntimeError, match="Cannot inspect SASS of a device function"):
        double.inspect_sass()
    result = double.compile_device((types.float32,), types.float64)
    assert result.signature.return_type == types.float64
    assert double.inspect_llvm("(float32,)") == result.library.get_llvm_str()
    with pytest.raises(KernelSignatureError, match="double returns float64, not float32"):
        double.compile_device((types.float32,), types.float32)


def test_what_is_no_launch():
    @hip.jit(device=True)
    def double(x):
        return 2 * x

    with pytest.raises(RuntimeError, match="Cannot compile a device function as a kernel: kernels call double"):
        double[1, 1](3)
    with pytest.raises(ValueError, match=r"launch configuration was not specified; write \w+\[grid, block\]"):
        fresh()(np.zeros(3), 1.0)
    for config in ((1.5, 1), (1, (2, "3"))):
        with pytest.raises(TypeError, match="must be a sequence of integers"):
            fresh()[config]


def test_signatures_and_statistics():
    kernel = fresh()
    for dtype in (np.float32, np.float64, np.float32):
        kernel[1, 8](np.zeros(8, dtype), dtype(1))
    assert [str(found) for found in kernel.nopython_signatures] == [
        "(Array(float32, 1, 'C', False, aligned=True), float32) -> none",
        "(Array(float64, 1, 'C', False, aligned=True), float64) -> none",
    ]
    assert kernel.stats.cache_path is None
    assert not kernel.stats.cache_hits
    assert list(kernel.stats.cache_misses.values()) == [1, 1]


def test_the_collector_pauses_while_a_kernel_is_compiled():
    paused = []

    class Looks(event.Listener):
        def on_start(self, event):
            paused.append(not gc.isenabled())

        def on_end(self, event):
            pass

    with event.install_listener("numba:run_pass", Looks()):
        fresh()[1, 1](np.zeros(1), 1.0)
    assert paused
    assert all(paused)
    assert gc.isenabled()


def test_recompile_sees_what_changed():
    namespace = {"hip": hip, "VALUE": 1}
    exec(
        "@hip.jit(device=True)\ndef inner():\n    return VALUE\n"
        "@hip.jit\ndef outer(out):\n    out[0] = inner()\n    out[1] = VALUE\n",
        namespace,
    )
    outer, out = namespace["outer"], np.zeros(2, np.int64)
    outer[1, 1](out)
    namespace["VALUE"] = 2
    outer[1, 1](out)
    assert out.tolist() == [1, 1]
    outer.recompile()
    assert len(outer.signatures) == 1
    outer[1, 1](out)
    assert out.tolist() == [1, 2]
    namespace["inner"].recompile()
    outer.recompile()
    outer[1, 1](out)
    assert out.tolist() == [2, 2]


def test_callbacks_before_a_launch():
    kernel, seen = fresh(), []
    configured = kernel[1, 8]
    configured.pre_launch_callbacks.append(lambda code, config: seen.append((code.signature, config)))
    values = hip.to_device(np.zeros(8))
    configured(values, 1.0)
    configured(values, 1.0)
    configured(np.zeros(8), 1.0)
    assert len(seen) == 3
    assert all(config is configured and signature.args[1] == types.float64 for signature, config in seen)
    assert (values.copy_to_host() == 2).all()


def test_a_callback_that_raises_prevents_the_launch():
    def refuse(code, config):
        raise RuntimeError("not now")

    kernel, values = fresh(), np.zeros(8)
    kernel[1, 8](values, 1.0)
    free = free_memory()
    configured = kernel[1, 8]
    configured.pre_launch_callbacks.append(refuse)
    on_device = hip.to_device(values)
    for target in (values, on_device):
        with pytest.raises(RuntimeError, match="not now"):
            configured(target, 1.0)
    assert (values == 1).all()
    assert (on_device.copy_to_host() == 1).all()
    del on_device, target
    assert abs(free_memory() - free) <= TAKEN_BY_HIP


def test_specialising_for_types():
    @hip.jit
    def fill(array, value):
        array[hip.grid(1)] = value

    made = fill.specialize(types.float32[::1], types.int64)
    assert fill.specializations == {(hip.get_current_device().target, (types.float32[::1], types.int64)): made}
    assert isinstance(made.get_shared_mem_per_block(), int)

    eager = hip.jit("void(float32[::1], int64)")(fill.py_func)
    assert isinstance(eager.get_local_mem_per_thread(), int)
    with pytest.raises(RuntimeError, match="already specialized: kernel fill is for"):
        eager.specialize(types.float32[::1], types.int64)
    (code,) = eager.overloads.values()
    assert not code.cooperative
    assert code._type_annotation is code.annotation
    assert code.max_cooperative_grid_blocks((8, 4)) == code.max_cooperative_grid_blocks(32) >= 1


def test_signatures_that_fit_equally():
    @hip.jit(["(float64[::1], float32, float64)", "(float64[::1], float64, float32)", "(float64[::1], int64, int64)"])
    def kernel(out, x, y):
        out[0] = x + y

    with pytest.raises(KernelArgumentError, match=r"^Ambiguous overloading for <function .*kernel.* at") as caught:
        kernel[1, 1](np.zeros(1), 1.0, 2.0)
    array = "Array(float64, 1, 'C', False, aligned=True)"
    first, *found = str(caught.value).splitlines()
    assert first.endswith(f"({array}, float64, float64):")
    assert found == [f"({array}, float32, float64) -> none", f"({array}, float64, float32) -> none"]
