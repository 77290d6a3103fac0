"""`hip_runtime.profiling`: what is measured within a profile, how it is shown, and that nothing is measured outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hip_standin import compiler
from spmd_kernels import pack, sample

from hip_runtime import Device, Function, KernelFault, Stream, activity, device_array_like, to_device
from hip_runtime.errors import ProfileError
from hip_runtime.profiling import Profile, Span, benchmark, profile, range, roctx
from hip_runtime.profiling.spans import add_up

VALUES = np.arange(1000.0)


@pytest.fixture
def count(device: Device) -> Function:
    return device.load(sample("count")).function("count")


def test_kernels_copies_graphs_and_ranges(count: Function) -> None:
    stream = Stream()
    with profile() as taken:
        with range("all of it"):
            counter = to_device(np.zeros(1, np.int64))
            values = to_device(VALUES, stream=stream)
            launch = count.configure((2, 1), (3, 1, 1))
            for _ in (1, 2, 3):
                launch(pack(count.kernel, counter.address), counter)
            count.launch(5, 7, pack(count.kernel, counter.address), stream=stream, owners=counter)
            device_array_like(values).copy_to_device(values)
        assert list(values.copy_to_host(stream=stream)) == list(VALUES)
        with stream.capture() as graph:
            count.launch(1, 1, pack(count.kernel, counter.address), stream=stream, owners=counter)
        graph.instantiate().launch(stream)
    assert counter[0] == 3 * 6 + 35 + 1
    found = {(each.kind, each.name, each.stream): each for each in taken.sums() if each.kind != "compile"}
    number = int(stream)
    assert {key: each.count for key, each in found.items()} == {
        ("kernel", "count", 0): 3,
        ("kernel", "count", number): 1,
        ("copy", "host to device", 0): 1,
        ("copy", "host to device", number): 1,
        ("copy", "device to device", 0): 1,
        ("copy", "device to host", number): 1,
        ("graph", "graph", number): 1,
        ("range", "all of it", None): 1,
    }
    assert found["copy", "host to device", number].nbytes == VALUES.nbytes
    assert found["copy", "device to host", number].nbytes == VALUES.nbytes
    shapes = [(span.grid, span.block) for span in taken.spans if span.kind == "kernel"]
    assert shapes == [((2, 1, 1), (3, 1, 1))] * 3 + [((5, 1, 1), (7, 1, 1))]
    (whole,) = (span for span in taken.spans if span.kind == "range")
    assert all(0 <= span.start <= span.end for span in taken.spans)
    assert all(whole.start <= span.start for span in taken.spans)


def test_compiling_is_apart_from_the_first_launch(count: Function) -> None:
    counter = to_device(np.zeros(1, np.int64))
    with profile() as taken:
        for _ in (1, 2):
            count.launch(1, 1, pack(count.kernel, counter.address), owners=counter)
    kinds = [(span.kind, span.name) for span in taken.spans]
    assert kinds == [("compile", "count"), ("kernel", "count"), ("kernel", "count")]
    compiled, first, _ = taken.spans
    assert compiled.end <= first.start
    assert compiled.duration > first.duration


def test_nothing_is_observed_outside(count: Function) -> None:
    counter = to_device(np.zeros(1, np.int64))
    launch = count.configure(1, 1)
    with profile() as outer, profile() as inner:
        launch(pack(count.kernel, counter.address), counter)
        assert activity.observer is not None
    launch(pack(count.kernel, counter.address), counter)
    assert activity.observer is None
    for taken in (outer, inner):
        assert [span.kind for span in taken.spans if span.kind != "compile"] == ["kernel"]


def test_work_of_other_threads(count: Function) -> None:
    counter = to_device(np.zeros(1, np.int64))

    def work() -> None:
        with range("thread"):
            count.launch(1, 1, pack(count.kernel, counter.address), owners=counter)

    with profile() as taken:
        threads = [threading.Thread(target=work) for _ in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    names = [(span.kind, span.name) for span in taken.spans if span.kind != "compile"]
    assert sorted(names) == [("kernel", "count")] * 3 + [("range", "thread")] * 3


def test_errors_of_the_work(device: Device) -> None:
    """They are raised as without a profile, on a stream at the end of the block; what was done before is there."""
    fault, stream = device.load(sample("fault")).function("fault"), Stream()
    values = to_device(VALUES)
    arguments = pack(fault.kernel, values.address, 0, 7)
    taken = profile()
    with pytest.raises(KernelFault), taken:
        fault.launch(1, 1, arguments)
    assert [span.name for span in taken.spans if span.kind == "kernel"] == []
    taken = profile()
    with pytest.raises(KernelFault), taken:
        fault.launch(1, 1, arguments, stream=stream)
    assert [span.name for span in taken.spans if span.kind == "kernel"] == ["fault"]
    taken = profile()
    with pytest.raises(ZeroDivisionError), taken:
        print(1 // len(values.copy_to_host()[:0]))
    assert "device to host" in [span.name for span in taken.spans]


def test_a_profile_is_taken_once_and_looked_at_afterwards(device: Device) -> None:
    taken = profile()
    with pytest.raises(ProfileError, match="after its with block"):
        taken.spans  # noqa: B018 - raises
    with taken, pytest.raises(ProfileError, match="was used before"):
        taken.__enter__()
    with pytest.raises(ProfileError, match="was used before"):
        taken.__enter__()
    assert str(taken) == "nothing was done on a device"
    assert repr(taken) == "<Profile of 0 spans>"


SPANS = [
    Span("copy", "host to device", 0.0, 2.0, 0, 0, 8_000_000),
    Span("kernel", "<lambda>", 2.0, 8.0, 0, 0, grid=(4, 1, 1), block=(64, 1, 1)),
    Span("kernel", "<lambda>", 8.0, 10.0, 0, 16, grid=(4, 1, 1), block=(64, 1, 1)),
    Span("range", "step", 0.0, 20.0),
]


def shown(spans: list[Span]) -> Profile:
    taken = Profile()
    taken._spans = spans
    return taken


def test_the_table() -> None:
    assert str(shown(SPANS)).splitlines() == [
        "what    name             stream  count  total ms  mean us   min us  GB/s  share",
        "kernel  <lambda>        default      1     6.000   6000.0   6000.0          60%",
        "copy    host to device  default      1     2.000   2000.0   2000.0  4.00    20%",
        "kernel  <lambda>           0x10      1     2.000   2000.0   2000.0          20%",
        "range   step                         1    20.000  20000.0  20000.0",
    ]
    html = shown(SPANS)._repr_html_()
    assert html.count("<tr>") == 5
    assert "<td>&lt;lambda&gt;</td><td>0x10</td>" in html
    (copy,) = (found for found in add_up(SPANS) if found.kind == "copy")
    assert copy.bytes_per_second == 4e9


def test_the_trace_for_chrome(device: Device, tmp_path: Path) -> None:
    path = shown(SPANS).to_chrome_trace(tmp_path / "trace.json")
    events = json.loads(path.read_text())["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["dur"], event["pid"], event["tid"]) for event in complete] == [
        ("host to device", 0, 2000, 0, 0),
        ("<lambda>", 2000, 6000, 0, 0),
        ("<lambda>", 8000, 2000, 0, 16),
        ("step", 0, 20000, -1, 0),
    ]
    assert complete[0]["args"] == {"bytes": 8_000_000}
    assert complete[1]["args"] == {"grid": [4, 1, 1], "block": [64, 1, 1]}
    named = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert named == {(0, 0): "default stream", (0, 16): "stream 0x10", (-1, 0): "host"}


class Axes:
    """Takes what is drawn, as matplotlib's do."""

    def __init__(self) -> None:
        self.bars: list[tuple[list[tuple[float, float]], float, str | None]] = []
        self.rows: list[str] = []

    def broken_barh(
        self, bars: list[tuple[float, float]], height: tuple[float, float], facecolors: str, label: str | None
    ) -> None:
        self.bars.append((bars, height[0], label))

    def set_yticks(self, places: object, labels: list[str]) -> None:
        self.rows = labels

    def set_xlabel(self, label: str) -> None:
        assert label == "ms"

    def legend(self, **how: object) -> None:
        pass


def test_the_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = shown(SPANS).plot(Axes())
    assert axes.rows == ["device 0, default stream", "device 0, stream 0x10", "host"]
    assert axes.bars == [
        ([(2.0, 6.0)], -0.4, "<lambda>"),
        ([(8.0, 2.0)], 0.6, None),
        ([(0.0, 2.0)], -0.4, "host to device"),
        ([(0.0, 20.0)], 1.6, "step"),
    ]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ProfileError, match="timelines need matplotlib, which cannot be imported"):
        shown(SPANS).plot()


def test_a_benchmark(device: Device) -> None:
    measured = benchmark(time.sleep, 0.002, seconds=0.01, nbytes=1_000_000)
    assert 5 <= len(measured.seconds) == measured.launches
    assert 0.002 <= measured.least <= measured.quartiles[0] <= measured.median <= measured.quartiles[1]
    assert measured.bytes_per_second == pytest.approx(1e6 / measured.median)
    assert str(measured).startswith("sleep: median ")
    assert " ms (middle half " in str(measured)
    assert str(measured).endswith(f" GB/s; {measured.launches} launches")
    short = benchmark(lambda: None, seconds=1e-3)
    assert short.launches > len(short.seconds)
    assert "GB/s" not in str(short)
    with pytest.raises(ProfileError, match="seconds is 0"):
        benchmark(time.sleep, 0, seconds=0)


def test_a_benchmark_of_arrays_on_a_stream(count: Function) -> None:
    counter, stream = to_device(np.zeros(4, np.int64)), Stream()

    def work(array: object) -> None:
        count.launch(2, 3, pack(count.kernel, counter.address), stream=stream, owners=array)

    measured = benchmark(work, counter, stream=stream, seconds=0.01)
    stream.synchronize()
    first, second = 1, 1
    assert counter[0] == 6 * (first + second + measured.launches)
    assert measured.nbytes == 32


def test_ranges_in_the_traces_of_rocm(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    """They are told to ROCTX, the oldest name of which is found here, where the device is an AMD GPU."""
    told: list[str] = []

    class Library:
        def __init__(self, name: str) -> None:
            if name != "libroctx64.so.4":
                raise OSError(name)
            self.roctxRangePushA = Told(lambda name: told.append(name.decode()))
            self.roctxRangePop = Told(lambda: told.append("end"))

    roctx.library.cache_clear()
    monkeypatch.setattr(roctx.ctypes, "CDLL", Library)
    with range("on the CPU device"):
        pass
    assert told == []
    roctx.library.cache_clear()
    monkeypatch.setattr(Device, "is_cpu", False)
    with range("outer"), range("inner"):
        pass
    with pytest.raises(ZeroDivisionError), range("fails"):
        1 / 0  # noqa: B018 - raises
    roctx.library.cache_clear()
    assert told == ["outer", "inner", "end", "end", "fails", "end"]


ROCTX = """
#include <stdio.h>
int roctxRangePushA(const char *name) { printf("begin %s\\n", name); return fflush(stdout); }
int roctxRangePop(void) { puts("end"); return fflush(stdout); }
"""

PROGRAM = """
from hip_runtime.device import Device
from hip_runtime.profiling import range

Device.is_cpu = False
with range("outer"), range("r\u00e4nge"):
    pass
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs an ELF library")
def test_ranges_reach_a_library_by_its_name(tmp_path: Path) -> None:
    """A library of C that the loader finds, as it does ROCm's: names, types and encodings are those of the real one."""
    command = compiler()
    if command is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "roctx.c").write_text(ROCTX)
    library = tmp_path / "librocprofiler-sdk-roctx.so.1"
    subprocess.run([*command, "-shared", "-fPIC", str(tmp_path / "roctx.c"), "-o", str(library)], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "NUMBA_HIP_DEVICE": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().split("\n") == ["begin outer", "begin r\u00e4nge", "end", "end", ""]


class Told:
    """A function of a library: types can be set, and a call is passed on."""

    argtypes: object
    restype: object

    def __init__(self, act: object) -> None:
        self.act = act

    def __call__(self, *args: object) -> object:
        return self.act(*args)  # type: ignore[operator]
