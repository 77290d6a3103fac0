"""Which devices there are and which one is used: settings, the probe for AMD GPUs, and the current device."""

from __future__ import annotations

import copy
import enum
import os
import pickle
import re
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import hip_runtime as rt
from hip_devicelib.forking import compiling
from hip_runtime import Device, DeviceFallbackWarning, DeviceUnavailableError, SettingError, UnknownDeviceError, config
from hip_runtime import device as devices
from hip_runtime.device import compute_capability
from hip_runtime.drivers.cpu import device_attributes
from hip_runtime.drivers.hip.probe import State, probe
from hip_runtime.processors import usable_processors


class hipError_t(enum.IntEnum):
    hipSuccess = 0
    hipErrorInvalidValue = 1
    hipErrorNoDevice = 100


def install_hip(monkeypatch: pytest.MonkeyPatch, init: Any = (hipError_t.hipSuccess,), count: Any = None) -> None:
    """Put a stand-in for hip-python in place, whose two functions give these answers, or raise them."""

    def answer(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    package, module = types.ModuleType("hip"), types.ModuleType("hip.hip")
    module.hipInit = lambda flags: answer(init)  # type: ignore[attr-defined]
    module.hipGetDeviceCount = lambda: answer(count)  # type: ignore[attr-defined]
    package.hip = module  # type: ignore[attr-defined]
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "hip", package)
    monkeypatch.setitem(sys.modules, "hip.hip", module)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has asked for devices yet."""
    monkeypatch.setattr(devices, "_registry", devices._Registry())
    monkeypatch.delenv("NUMBA_HIP_DEVICE", raising=False)


CASES = {
    "no GPU": ({"count": (hipError_t.hipErrorNoDevice, 0)}, State.NO_DEVICE, "finds no AMD GPU"),
    "no GPU at init": ({"init": (hipError_t.hipErrorNoDevice,)}, State.NO_DEVICE, "finds no AMD GPU"),
    "zero GPUs": ({"count": (hipError_t.hipSuccess, 0)}, State.NO_DEVICE, "finds no AMD GPU"),
    "one GPU": ({"count": (hipError_t.hipSuccess, 1)}, State.FOUND, "1 AMD GPU"),
    "two GPUs": ({"count": (hipError_t.hipSuccess, 2)}, State.FOUND, "2 AMD GPUs"),
    "status alone": ({"init": hipError_t.hipSuccess, "count": (hipError_t.hipSuccess, 1)}, State.FOUND, "1 AMD GPU"),
    "no library": (
        {"init": RuntimeError("failed to dlopen 'libamdhip64.so': no such file")},
        State.NO_RUNTIME,
        "no HIP runtime library was found .*libamdhip64",
    ),
    "error code": ({"count": (hipError_t.hipErrorInvalidValue, 0)}, State.BROKEN, r"hipErrorInvalidValue \(1\)"),
    "other error": ({"init": OSError("permission denied")}, State.BROKEN, "OSError: permission denied"),
}


@pytest.mark.parametrize("case", CASES)
def test_probe(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    answers, state, reason = CASES[case]
    install_hip(monkeypatch, **answers)
    found = probe()
    assert found.state is state
    assert re.search(reason, found.reason)
    assert found.devices == (int(reason[0]) if state is State.FOUND else 0)


def test_probe_without_hip_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hip", None)
    assert probe().state in (State.NOT_INSTALLED, State.BROKEN)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_HIP")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**clean, **environment}
    )


def test_probe_of_hip_python_that_is_not_installed() -> None:
    code = (
        "import sys; from hip_runtime.drivers.hip.probe import probe; sys.modules['hip'] = None\n"
        "p = probe(); print(p.state.name, p.reason)"
    )
    done = run_python(code)
    assert done.stdout.startswith("NOT_INSTALLED hip-python is not installed"), done


def test_probe_of_the_real_hip_python() -> None:
    pytest.importorskip("hip", reason="hip-python is not installed")
    done = run_python("from hip_runtime.drivers.hip.probe import probe; p = probe(); print(p.state.name, p.reason)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] in {"NO_RUNTIME", "NO_DEVICE", "FOUND"}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("case", ["no GPU", "no library"])
def test_auto_says_once_why_it_is_the_cpu(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    answers, _, reason = CASES[case]
    install_hip(monkeypatch, **answers)
    with pytest.warns(DeviceFallbackWarning, match=rf"{reason}.*NUMBA_HIP_DEVICE=cpu") as caught:
        assert rt.current_device().is_cpu
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(rt.devices()) == 1


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("case", ["error code", "other error"])
def test_auto_shows_what_is_broken(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    answers, _, reason = CASES[case]
    install_hip(monkeypatch, **answers)
    for _ in range(2):
        with pytest.raises(DeviceUnavailableError, match=rf"{reason}.*Repair .*NUMBA_HIP_DEVICE=cpu"):
            rt.devices()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("case", ["no GPU", "no library", "other error"])
def test_hip_is_an_error_where_there_is_none(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    answers, _, reason = CASES[case]
    install_hip(monkeypatch, **answers)
    with config.device.scope("hip"), pytest.raises(DeviceUnavailableError, match=rf"NUMBA_HIP_DEVICE=hip .*{reason}"):
        rt.current_device()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("choice", ["auto", "hip"])
def test_gpus_that_cannot_be_used_are_an_error(monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    install_hip(monkeypatch, count=(hipError_t.hipSuccess, 2))
    monkeypatch.setitem(sys.modules, "hip.chip", None)  # where the functions are that Cython exports
    reason = r"2 AMD GPUs, but cannot use them: .*hip\.chip.*NUMBA_HIP_DEVICE=cpu"
    with config.device.scope(choice), pytest.raises(DeviceUnavailableError, match=reason):
        rt.devices()


@pytest.mark.usefixtures("fresh")
def test_cpu_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    install_hip(monkeypatch, init=AssertionError("asked"))
    with config.device.scope("cpu"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [device.target for device in rt.devices()] == ["cpu"]


@pytest.mark.usefixtures("fresh")
def test_unknown_choice_names_the_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "gpu")
    with pytest.raises(SettingError, match=r"NUMBA_HIP_DEVICE='gpu': must be one of 'auto', 'hip' and 'cpu'"):
        rt.devices()


def test_selection(device: Device) -> None:
    for choice in (0, "cpu", device.name, device):
        assert rt.select_device(choice) is device
        assert rt.current_device() is device
    for wrong in (1, -1, "gfx90a", None, True, 0.0):
        with pytest.raises(UnknownDeviceError, match=rf"{wrong!r}; the devices are: 0 \("):
            rt.select_device(wrong)  # type: ignore[arg-type]
    assert rt.current_device() is device


def test_devices_can_be_withheld(device: Device) -> None:
    rt.select_device(device)
    asks = (rt.devices, rt.current_device, lambda: rt.select_device(0), lambda: rt.device_array(1))
    try:
        for why in ("by order", "by another order"):
            devices.withhold_devices(why)
            for ask in asks:
                with pytest.raises(rt.DeviceUnavailableError, match=f"^{why}$"):
                    ask()
    finally:
        devices.withhold_devices(None)
    assert rt.current_device() is device
    assert device in rt.devices()


def test_each_thread_has_a_current_device(device: Device) -> None:
    found: list[Device] = []
    thread = threading.Thread(target=lambda: found.append(rt.current_device()))
    thread.start()
    thread.join()
    assert found == [device]


def test_attributes_by_both_names(device: Device) -> None:
    assert device.MAX_THREADS_PER_BLOCK == device.max_threads_per_block == 1024
    assert device.max_block_dim[2] == device.MAX_BLOCK_DIM_Z
    assert device.wave_size == device.WARP_SIZE
    assert device.MULTIPROCESSOR_COUNT == device.compute_units == config.cpu_threads()
    assert device.COMPUTE_CAPABILITY == device.compute_capability == (9, 0)
    assert (device.COMPUTE_CAPABILITY_MAJOR, device.COMPUTE_CAPABILITY_MINOR) == (9, 0)
    for spelling in devices.ATTRIBUTE_SPELLINGS:
        assert getattr(device, spelling) is not None
    with pytest.raises(AttributeError, match="no attribute 'MAX_SPEED'"):
        _ = device.MAX_SPEED
    assert not hasattr(device, "_private")
    assert repr(device) == f"<Device 0: {device.name} (cpu)>"
    assert not device.can_access_peer(device)


# settings


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_threads_must_be_positive(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NUMBA_HIP_CPU_THREADS", text)
    with pytest.raises(SettingError, match=rf"NUMBA_HIP_CPU_THREADS='{text}': must be a whole number, 1 or more"):
        config.cpu_threads()


@pytest.mark.parametrize(("text", "value"), [("1000", 1000), ("4k", 4096), (" 2G ", 2 << 30), ("1T", 1 << 40)])
def test_memory_has_units(monkeypatch: pytest.MonkeyPatch, text: str, value: int) -> None:
    monkeypatch.setenv("NUMBA_HIP_CPU_MEMORY", text)
    assert config.cpu_memory() == value


@pytest.mark.parametrize("text", ["G", "-4k", "1X", "0"])
def test_memory_must_be_a_size(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NUMBA_HIP_CPU_MEMORY", text)
    with pytest.raises(SettingError, match="NUMBA_HIP_CPU_MEMORY=.*K, M, G or T"):
        config.cpu_memory()


def test_settings_have_defaults_scopes_and_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in config.SETTINGS:
        monkeypatch.delenv(setting.variable, raising=False)
        assert setting.__doc__
        assert not setting.is_set
        setting()
    assert config.device() == "auto"
    assert config.cpu_threads() == usable_processors() <= len(os.sched_getaffinity(0))
    with config.cpu_threads.scope(7):
        with config.cpu_threads.scope("9"):
            assert config.cpu_threads() == 9
        assert config.cpu_threads() == 7
        assert config.cpu_threads.is_set
    assert not config.cpu_threads.is_set
    with pytest.raises(SettingError), config.cpu_threads.scope("x"):
        pass


def test_memory_limit_comes_from_the_setting() -> None:
    done = run_python(
        "import hip_runtime as rt, numpy as np\n"
        "print(rt.current_device().memory_info())\n"
        "try: rt.device_array(1 << 20)\n"
        "except rt.OutOfDeviceMemoryError as error: print(error)",
        NUMBA_HIP_DEVICE="cpu",
        NUMBA_HIP_CPU_MEMORY="1M",
    )
    assert done.stdout.splitlines()[0] == "(1048576, 1048576)"
    assert "8388608 bytes of device memory: 1048576 of 1048576 bytes are free" in done.stdout


def test_import_looks_for_nothing_and_compiles_nothing() -> None:
    code = """
import subprocess, sys, threading, numpy, llvmlite.binding, llvmlite.ir
class Guard:
    def find_spec(self, name, path=None, target=None):
        assert name.partition(".")[0] not in ("hip", "clang", "numba"), name
sys.meta_path.insert(0, Guard())
def forbidden(*args, **kws):
    raise AssertionError("importing compiles, or starts a process or thread")
binding = llvmlite.binding
for name in ("parse_assembly", "parse_bitcode", "create_context", "create_mcjit_compiler", "create_pass_builder"):
    assert hasattr(binding, name)
    setattr(binding, name, forbidden)
binding.Target.create_target_machine = subprocess.Popen.__init__ = threading.Thread.start = forbidden
before = set(sys.modules)
import hip_runtime
assert not hip_runtime.device._registry.devices
loaded = set(sys.modules) - before
print(sorted({name.partition(".")[0] for name in loaded} - sys.stdlib_module_names))
print(sorted(name for name in loaded if name.startswith("hip_runtime.drivers.cpu.") or name.endswith(".loader")))
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['hip_devicelib', 'hip_runtime']", "[]"]


@pytest.mark.parametrize(
    ("target", "capability"),
    [("gfx906", (9, 0)), ("gfx90a:sramecc+:xnack-", (9, 0)), ("gfx942", (9, 4)), ("gfx1030", (10, 3)),
     ("gfx1103", (11, 0)), ("gfx1201", (12, 0)), ("cpu", (9, 0))],
)  # fmt: skip
def test_compute_capability_is_read_from_the_name(target: str, capability: tuple[int, int]) -> None:
    assert compute_capability(target) == capability


def test_the_wave_size_of_the_cpu_device_is_a_setting(device: Device) -> None:
    with config.cpu_wave_size.scope("32"):
        assert device.wave_size == device.WARP_SIZE == device.attributes.wave_size == 32
    with config.cpu_wave_size.scope(64):
        assert device.wave_size == 64
    with pytest.raises(SettingError, match="NUMBA_HIP_CPU_WAVE_SIZE='16': must be 32 or 64"):
        config.cpu_wave_size.scope("16").__enter__()


def test_a_preset_holds_in_all_threads_where_nobody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_HIP_CPU_WAVE_SIZE", raising=False)
    config.cpu_wave_size.preset(32)
    try:
        seen: list[int] = []
        thread = threading.Thread(target=lambda: seen.append(config.cpu_wave_size()))
        thread.start()
        thread.join()
        assert seen == [32]
        assert not config.cpu_wave_size.is_set
        monkeypatch.setenv("NUMBA_HIP_CPU_WAVE_SIZE", "64")
        assert config.cpu_wave_size() == 64
        monkeypatch.delenv("NUMBA_HIP_CPU_WAVE_SIZE")
    finally:
        config.cpu_wave_size.preset(None)
    assert config.cpu_wave_size() == 64


@pytest.mark.skipif(config.device() != "cpu", reason="values of the CPU device")
def test_attributes_by_cudas_names() -> None:
    device = rt.current_device()
    assert device.ASYNC_ENGINE_COUNT == device.GPU_OVERLAP == device.UNIFIED_ADDRESSING == 1
    assert device.MAX_THREADS_PER_MULTIPROCESSOR == device.MAX_THREADS_PER_BLOCK == 1024
    assert device.shared_bytes_per_block == device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    assert device.CLOCK_RATE == device.clock_rate >= 0
    assert device.L2_CACHE_SIZE >= 0
    assert device.registers_per_block == device.MAX_REGISTERS_PER_MULTIPROCESSOR
    assert device.CLUSTER_LAUNCH == device.ECC_ENABLED == device.MAXIMUM_TEXTURE1D_WIDTH == 0
    with pytest.raises(AttributeError, match="no attribute 'ASYNC_ENGINES'; did you mean 'ASYNC_ENGINE_COUNT'"):
        device.ASYNC_ENGINES  # noqa: B018


def test_what_linux_tells_of_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tmp_path / "cpu0"
    for number, (level, size) in enumerate([("1", "48K"), ("2", "1024K"), ("3", "odd")]):
        index = first / "cache" / f"index{number}"
        index.mkdir(parents=True)
        (index / "level").write_text(level + "\n")
        (index / "size").write_text(size + "\n")
    (first / "cpufreq").mkdir()
    (first / "cpufreq" / "cpuinfo_max_freq").write_text("3500000\n")
    monkeypatch.setattr(device_attributes, "FIRST", first)
    assert [device_attributes.cache_size.__wrapped__(level) for level in (1, 2, 3, 4)] == [49152, 1048576, 0, 0]
    assert device_attributes.clock_rate.__wrapped__() == 3_500_000


def test_no_process_is_forked_while_a_thread_looks_for_devices(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork takes the lock of compiling first; what the thread imports and locks would stay taken in the child."""
    taken: list[bool] = []

    def take_lock() -> None:
        taken.append(compiling.acquire(blocking=False))
        if taken[-1]:
            compiling.release()

    def find() -> tuple[Device, ...]:
        thread = threading.Thread(target=take_lock)
        thread.start()
        thread.join()
        return found

    found = (device,)
    monkeypatch.setattr(devices, "_find", find)
    monkeypatch.setattr(devices._registry, "devices", ())
    assert devices.devices() == found
    take_lock()
    assert taken == [False, True]


def test_devices_can_be_pickled_and_streams_say_that_they_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    monkeypatch.setenv("NUMBA_HIP_CPU_DEVICES", "2")
    monkeypatch.setattr(devices, "_registry", devices._Registry())
    second = rt.devices()[1]
    pickled = pickle.dumps(second)
    assert pickle.loads(pickled) is copy.deepcopy(second) is second
    for thing, maker in ((rt.Stream(second), "stream"), (rt.Event(second), "event")):
        with pytest.raises(TypeError, match=rf"is of this process; another one makes its own with hip.{maker}\(\)"):
            pickle.dumps(thing)
    monkeypatch.setenv("NUMBA_HIP_CPU_DEVICES", "1")
    monkeypatch.setattr(devices, "_registry", devices._Registry())
    with pytest.raises(rt.UnknownDeviceError, match="there is no device 1"):
        pickle.loads(pickled)
