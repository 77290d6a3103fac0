"""The host's side: devices, streams, events, and what the package shows of itself."""

import inspect
import io
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import SettingError
from hip_runtime import config as runtime_config
from numba_hip import config
from numba_hip.errors import KernelArgumentError, NotCompiledError


@hip.jit
def add(values, step):
    i = hip.grid(1)
    if i < values.size:
        values[i] += step


@hip.jit
def spin(values, rounds):
    i = hip.grid(1)
    if i < values.size:
        x = values[i]
        for _ in range(rounds):
            x = x * 1.0000001 + 1e-9
        values[i] = x


def run(code, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)


def test_devices():
    assert hip.is_available()
    device = hip.get_current_device()
    assert device in hip.list_devices()
    assert hip.select_device(device.id) is device
    assert device.MAX_THREADS_PER_BLOCK == device.max_threads_per_block == 1024
    assert device.wave_size in (32, 64)
    assert device.compute_units >= 1
    assert device.total_memory > 2**20


def test_detect():
    out = io.StringIO()
    assert hip.detect(out)
    device = hip.get_current_device()
    assert "Found 1 HIP device" in out.getvalue()
    assert device.name in out.getvalue()


def test_work_on_a_stream_is_in_order_and_asynchronous(scaled):
    stream = hip.stream()
    host = np.zeros(scaled(100_000))
    blocks = -(-host.size // 256)
    device = hip.to_device(host, stream=stream)
    spin[blocks, 256](hip.to_device(host), 10)  # compiles
    spin[blocks, 256, stream](device, 1)
    stream.synchronize()
    spin[blocks, 256, stream](device, 6000)
    add[blocks, 256, stream](device, 1.0)
    back = device.copy_to_host(stream=stream)
    finished = hip.event()
    finished.record(stream)
    assert not finished.query(), "the host did not wait"
    finished.synchronize()
    assert (back >= 1.0).all()


def test_host_arrays_on_a_stream_are_back_when_the_call_returns():
    stream = hip.stream()
    values = np.arange(1000.0)
    add[4, 256, stream](values, 2.0)
    np.testing.assert_array_equal(values, np.arange(1000.0) + 2)


def test_arrays_that_nobody_holds_live_until_their_kernel_is_done(scaled):
    stream = hip.stream()
    total = hip.to_device(np.zeros(64))

    @hip.jit
    def accumulate(into, values):
        i = hip.grid(1)
        into[i] += values[i]

    elements = scaled(64 * 256)
    spin[-(-elements // 256), 256, stream](hip.device_array(elements), 2000)
    for number in range(20):
        accumulate[1, 64, stream](total, hip.to_device(np.full(64, float(number))))
    stream.synchronize()
    np.testing.assert_array_equal(total.copy_to_host(), sum(range(20)))


def test_events_measure_time():
    start, end = hip.event(), hip.event(timing=True)
    values = hip.to_device(np.zeros(10_000))
    add[40, 256](values, 1.0)
    start.record()
    spin[40, 256](values, 1000)
    end.record()
    end.synchronize()
    assert 0 < hip.event_elapsed_time(start, end) < 60_000


def test_an_exception_on_a_stream_surfaces_when_it_is_waited_for():
    @hip.jit(exceptions=True)
    def kernel(values):
        if hip.grid(1) == 5:
            raise IndexError("five")
        values[hip.grid(1)] = 1

    stream = hip.stream()
    values = hip.to_device(np.zeros(8))
    kernel[1, 8, stream](values)
    with pytest.raises(IndexError, match=r"tid=\[5, 0, 0\] ctaid=\[0, 0, 0\]: five"):
        stream.synchronize()
    add[1, 8, stream](values, 1.0)
    stream.synchronize()
    assert values.copy_to_host()[0] == 2


def test_synchronize_waits_for_every_stream():
    values = [hip.to_device(np.zeros(50_000)) for _ in range(3)]
    for array in values:
        add[200, 256, hip.stream()](array, 1.0)
    hip.synchronize()
    for array in values:
        assert (array.copy_to_host() == 1).all()


def test_kernels_run_from_many_threads(scaled):
    import concurrent.futures

    elements = scaled(5000)
    launches = 20 if elements == 5000 else 2  # on an emulator, from which the threads that wait take the processors

    def work(number):
        values = np.zeros(elements)
        for _ in range(launches):
            add[-(-elements // 256), 256](values, number)
        return values

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for number, values in enumerate(pool.map(work, range(8))):
            np.testing.assert_array_equal(values, launches * number)


def test_a_kernel_is_compiled_once_when_threads_race_for_it():
    import concurrent.futures

    @hip.jit
    def kernel(values):
        values[hip.grid(1)] = 7

    compiled = []

    def work(_):
        values = np.zeros(16)
        kernel[1, 16](values)
        compiled.append(kernel.compile("(float64[::1],)"))
        return values

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all((values == 7).all() for values in pool.map(work, range(16)))
    assert len(set(map(id, compiled))) == 1


@pytest.mark.cpu_device("the HIP runtime does not work in a forked process")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kernels_run_after_fork():
    values = np.zeros(5000)
    add[20, 256](values, 1.0)
    code = 1
    pid = os.fork()
    if pid == 0:
        try:
            add[20, 256](values, 1.0)
            code = 0 if (values == 2).all() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_import_is_quick_and_loads_no_more_than_it_needs():
    code = """
import sys
calls = 0

def count(frame, event, argument):
    global calls
    calls += event == "call"

sys.setprofile(count)
import numba
of_numba, calls, before = calls, 0, set(sys.modules)
import numba_hip
sys.setprofile(None)
late = "asyncio", "clang", "hip", "hip_runtime.drivers.cpu.driver", "msgpack", "numba.cuda", "platformdirs"
ours = sum(name.startswith(("numba_hip", "hip_")) for name in set(sys.modules) - before)
print(calls / of_numba, ours, *(name for name in late if name in sys.modules))
"""
    # A session that executes a GPU's code loads hip-python into processes that may ask for a GPU before all else.
    share, modules, *loaded = run(code, NUMBA_HIP_DEVICE="cpu").stdout.split()
    assert not loaded
    assert float(share) < 0.25, "of the calls of `import numba`, which take a microsecond or two each"
    assert int(modules) < 177, "a module of ours takes half a millisecond"


@pytest.mark.long
def test_an_unknown_choice_of_device():
    result = run("import numba_hip; numba_hip.list_devices()", NUMBA_HIP_DEVICE="gpu")
    assert "NUMBA_HIP_DEVICE" in result.stderr
    assert all(name in result.stderr for name in ("auto", "hip", "cpu"))


@pytest.mark.long
def test_the_fallback_to_the_cpu_device_is_said_once():
    code = "import numba_hip as hip; print(hip.get_current_device().target); hip.list_devices(); hip.device_array(3)"
    result = run(code, NUMBA_HIP_DEVICE="auto")
    if result.stdout.strip() != "cpu":
        pytest.skip("needs a machine with no AMD GPU")
    assert result.stderr.count("DeviceFallbackWarning") == 1
    assert "<string>:1: DeviceFallbackWarning" in result.stderr, "the user's line"
    assert "NUMBA_HIP_DEVICE=cpu" in result.stderr


def test_asking_for_a_gpu_where_there_is_none():
    result = run("import numba_hip as hip; print(hip.is_available()); hip.get_current_device()", NUMBA_HIP_DEVICE="hip")
    if "True" in result.stdout:
        pytest.skip("needs a machine with no AMD GPU")
    assert result.stdout.strip() == "False"
    assert "DeviceUnavailableError" in result.stderr


def test_a_lower_layer_takes_no_setting_of_this_one_for_a_misspelt_one(monkeypatch):
    monkeypatch.setattr(runtime_config, "_variables", {setting.variable for setting in runtime_config.SETTINGS})
    for setting in config.SETTINGS:
        monkeypatch.setenv(setting.variable, "1")
    assert runtime_config.misspelt_variables() == {}


@pytest.mark.parametrize("setting", config.SETTINGS, ids=lambda setting: setting.variable)
@pytest.mark.parametrize("text", ["nan", "2", "-1", "yes", "true", "01"])
def test_switches_are_0_or_1(setting, text, monkeypatch):
    if setting in (config.cache_dir, config.include_paths):
        assert text in str(setting._read(text))  # any name may be one of a directory
        return
    monkeypatch.setenv(setting.variable, text)
    with pytest.raises(SettingError, match=f"{setting.variable}='{text}': must be 0 or 1"):
        setting()
    with pytest.raises(SettingError, match=f"{setting.variable}="), setting.scope(float("nan")):
        pass


def test_numba_lists_us_in_its_own_report():
    code = """
from numba.misc.numba_sysinfo import get_sysinfo

info = get_sysinfo()
print("numba-hip-core" in str(info["Installed Packages"]), "NUMBA_HIP_DEVICE" in info["Numba Env Vars"])
"""
    # In a process of its own: it imports Numba's `numba.cuda`, and nothing can pose as that afterwards.
    result = run(code, NUMBA_HIP_DEVICE="cpu")
    assert result.stdout.split() == ["True", "True"], result.stderr


def test_names_of_packages_above_are_explained():
    import importlib.metadata

    if importlib.metadata.entry_points(group=hip.EXTENSIONS, name="pose_as_cuda"):
        assert callable(hip.pose_as_cuda)
    else:
        with pytest.raises(AttributeError, match="pip install numba-hip-cuda-compat"):
            hip.pose_as_cuda  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        hip.no_such_name  # noqa: B018


def test_what_numba_asks_every_module_for_costs_nothing(monkeypatch):
    from numba_hip.language import hip_functions

    monkeypatch.setattr(hip_functions, "find", None)  # which reads HIP's declarations
    for name in ("name", "_name", "_numba_type_", "__cuda_array_interface__"):
        assert not hasattr(hip, name)


def test_entry_points_are_read_again_when_something_was_installed(tmp_path, monkeypatch):
    from importlib import metadata

    from numba_hip.installed_packages import entry_points

    def install(name):
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[a group]\n{name} = math:sqrt\n")

    install("one")
    assert not entry_points("a group")
    monkeypatch.syspath_prepend(tmp_path)
    assert [found.load() for found in entry_points("a group")] == [math.sqrt]
    install("two")
    assert {found.name for found in entry_points("a group")} == {"one", "two"}
    assert [found.name for found in entry_points("a group", "two")] == ["two"]
    monkeypatch.setattr(metadata, "entry_points", None)
    assert len(entry_points("a group")) == 2


def test_stubs_survive_pickling():
    import pickle

    for stub in (hip.grid, hip.threadIdx, hip.gridsize):
        assert pickle.loads(pickle.dumps(stub)) is stub


def test_shapes_of_blocks_that_keep_a_device_busy():
    @hip.jit(launch_bounds=96)
    def small(out):
        out[0] = 1

    @hip.jit
    def shared(out):
        held = hip.shared.array(256, np.float32)
        held[hip.threadIdx.x] = 1
        hip.syncthreads()
        out[0] = held[0]

    context = hip.current_context()
    device = context.device
    for kernel, most in ((small, 96), (shared, device.MAX_THREADS_PER_BLOCK)):
        kernel.compile("void(float32[:])")
        (code,) = kernel.overloads.values()
        function = device.load(code.code_object).function(code.name)
        assert function.name == code.name
        attrs = function.attrs
        assert (attrs.shared, attrs.maxthreads) == (code.shared_mem_per_block, most)
        for limit in (0, 64):
            grid, block = context.get_max_potential_block_size(function, 0, 0, limit)
            assert 1 <= block <= (limit or most)
            active = context.get_active_blocks_per_multiprocessor(function, block, 0)
            assert grid == active * device.MULTIPROCESSOR_COUNT
            by_size = context.get_max_potential_block_size(function, lambda threads: 0 * threads, 1 << 30, limit)
            assert by_size == (grid, block)
            assert context.get_active_blocks_per_multiprocessor(kernel, block, 0) == active
            assert context.get_max_potential_block_size(kernel, 0, 0, limit) == (grid, block)
        suggested = context.get_max_potential_block_size(function, None, 0, 0)[1]
        assert hip.suggest_block_size(kernel) == suggested
        assert hip.suggest_block_size(kernel, "void(float32[:])") == suggested
    assert context.get_max_potential_block_size(function, None, 0, 1)[1] == 1
    with pytest.raises(NotCompiledError, match="kernel fresh was not compiled yet: launch it before, or name a sign"):
        hip.suggest_block_size(hip.jit(fresh))
    with pytest.raises(KernelArgumentError, match="expected a kernel, or a function loaded on a device, got 3"):
        context.get_active_blocks_per_multiprocessor(3, 64, 0)


def fresh(out):
    out[0] = 1


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("select_device", ["device_id"]),
        ("event_elapsed_time", ["evtstart", "evtend"]),
        ("set_memory_manager", ["mm_plugin"]),
        ("require_context", ["fn"]),
        ("current_context", ["devnum"]),
        ("event", ["timing"]),
        ("to_device", ["obj", "stream", "copy", "to"]),
        ("device_array", ["shape", "dtype", "strides", "order", "stream"]),
        ("declare_device", ["name", "sig"]),
    ],
)
def test_arguments_have_numba_cudas_names(name, parameters):
    """Programs pass them by these."""
    assert list(inspect.signature(getattr(hip, name)).parameters)[: len(parameters)] == parameters


def test_bytes_that_are_no_number():
    for wrong in ("64", 10.5, None):
        with pytest.raises(TypeError, match=f"bytesize is {wrong!r}; it must be a whole number of bytes"):
            hip.current_context().memalloc(wrong)
    with pytest.raises(TypeError, match="evtstart is 3; it must be an event of hip.event"):
        hip.event_elapsed_time(3, hip.event())
