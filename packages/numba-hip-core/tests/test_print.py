"""``print`` in kernels: whole lines, in the order of each thread, on standard output once the kernel is done."""

# ruff: noqa: F541, UP031, UP032 - all ways to format text are what is tested

import ctypes
import os
import struct
import subprocess
import sys
import threading
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.errors import NumbaError

import numba_hip as hip
from hip_devicelib.codeobject import Parameter
from hip_runtime import Buffer
from hip_runtime.errors import HipRuntimeError, LaunchError
from numba_hip import config
from numba_hip.abi.print_record import CAPACITY_WORDS, HEADER_WORDS, PARAMETER, Tag
from numba_hip.compilation.kernel_code import compile_kernel
from numba_hip.compilation.options import CompileOptions
from numba_hip.dispatch.print_output import OutputBuffer, OutputWarning, PrintingLaunch


@hip.jit(device=True)
def report(i, x):
    print("   element", i, "is", x)


@hip.jit
def kernel(x):
    i = hip.grid(1)
    print("thread", i)
    report(i, x[i])
    if x[i] > 1:
        print(i, "is large")


def wanted_of(x):
    return {i: [f"thread {i}", f"   element {i} is {v}"] + [f"{i} is large"] * bool(v > 1) for i, v in enumerate(x)}


def by_thread(text):
    lines = {}
    for line in text.splitlines():
        number = int("".join(character for character in line.partition("is")[0] if character.isdigit()))
        lines.setdefault(number, []).append(line)
    return lines


def test_lines_come_in_the_order_of_each_thread(capsys):
    x = np.linspace(0, 2, 24)
    kernel[3, 8](x)
    assert by_thread(capsys.readouterr().out) == wanted_of(x)


def test_lines_come_before_a_synchronisation_returns(capsys):
    x = hip.to_device(np.linspace(0, 2, 8))
    streams = [hip.stream(), hip.stream()]
    for stream in streams:
        kernel[1, 8, stream](x)
    for stream in streams:
        stream.synchronize()
    text = capsys.readouterr().out
    assert sorted(text.splitlines()) == sorted(
        2 * [line for lines in wanted_of(x.copy_to_host()).values() for line in lines]
    )


Point = namedtuple("Point", "x label")


def test_tuples_indices_and_vectors(capsys):
    @hip.jit
    def show(numbers, nested, point):
        print(numbers, nested, (), (True,))
        print(point, hip.float32x3(1, 2.5, -0.0))
        print("at", hip.threadIdx, hip.blockDim, hip.gridDim)

    show[1, (1, 1, 2)]((1, 2, 3), (1, ((2, 4), 3.0), (4,), 5), Point(np.float32(0.1), (7, 1j)))
    hip.synchronize()
    lines = capsys.readouterr().out.splitlines()
    tuples = "(1, 2, 3) (1, ((2, 4), 3.0), (4,), 5) () (True,)"
    ends = [f"at (0, 0, {z}) (1, 1, 2) (1, 1, 1)" for z in range(2)]
    assert sorted(lines) == sorted([tuples, "Point(x=0.1, label=(7, 1j)) (1.0, 2.5, -0.0)"] * 2 + ends)


def test_what_is_in_a_tuple_and_cannot_be_printed():
    with pytest.raises(NumbaError, match="text in quotes and tuples of numbers, not a array"):
        hip.jit(lambda a: print((1, a)))[1, 1](np.zeros(1))


def test_every_kind_of_value(capsys):
    @hip.jit
    def show(f32, f64, c64, c128, i8, u64, flag):
        print("a", f32, f64, c64, c128)
        print(i8, u64, flag, not flag, True, -3, 0.1, "größer\t§")
        print()
        print("")
        print(f64 * np.inf, f64 * np.nan - np.inf)

    show[1, 1](np.float32(0.1), 0.1, np.complex64(0.1 + 2j), 0.1 - 2j, np.int8(-5), np.uint64(2**64 - 1), True)
    hip.synchronize()
    assert capsys.readouterr().out.splitlines() == [
        "a 0.1 0.1 (0.1+2j) (0.1-2j)",
        "-5 18446744073709551615 True False True -3 0.1 größer\t§",
        "",
        "",
        "inf nan",
    ]


def test_floats_as_c_writes_them(capsys):
    @hip.jit
    def show(f32, f64, c64, number):
        print(f32, f64, c64, number, True, (f64, number), hip.bfloat16(0.9375), "0.1")
        print(f64 * np.inf, f64 * np.nan)

    with config.print_six_digits.scope(True):
        show[1, 1](np.float32(0.1), 1e-7, np.complex64(0.1 + 2j), 5)
        hip.synchronize()
    assert capsys.readouterr().out.splitlines() == [
        "0.100000 0.000000 (0.1+2j) 5 True (0.000000, 5) 0.937500 0.1",
        "inf nan",
    ]


WIDTH = 9


def show_formatted(x, whole, small, flag):
    i = hip.grid(1)
    v = x[i]
    print(f"{i}: {v:.3f}")
    print(f"{whole:>8d}|{small:#x}|{small:08b}|{v:10.2e}|{v:+g}|{v:<8}|{v:^12.1f}|{whole:,}|{v:%}|{flag}|{flag:d}")
    print(f"{v}", f"{v!s} {whole!r} {'text'}{{}} {v * 2 + 1:{WIDTH}.2f}", f"{whole if whole > 3 else small}|")
    print("%d %g" % (whole, v), "%5.2f%%" % v, "%-5d|%+d|%x|%s|%r" % (whole, whole, small, whole, flag))
    print("{} {}".format(whole, v), "{1:>6} {0} {name:.1f}".format(whole, small, name=v))
    print(str(v), str(whole) + " and " + str(small), format(v, ".2f"), format(whole), "plain", whole)
    print(f"{(whole, i)}", f"{i:}", f"", "%d%%" % 5)


def test_formatted_text_is_that_of_python(capsys):
    compiled = hip.jit(show_formatted)
    with config.simulator.scope(True):
        python = hip.jit(show_formatted)
    texts = []
    for kernel in (compiled, python):
        for value in (1234.56789, -0.0, 5e-324, np.inf, np.nan):
            for kind in (np.float32, np.float64):
                kernel[1, 1](np.array([value], kind), -42, np.uint8(200), True)
        hip.synchronize()
        texts.append(capsys.readouterr().out.splitlines())
    assert texts[0] == texts[1]
    assert texts[0][0] == "0: 1234.568"
    assert len(texts[0]) == 70


def test_formatted_text_of_functions_and_of_many_threads(capsys):
    @hip.jit(device=True)
    def tell(i, value):
        print(f"<{i:03d} {value:.1f}>")

    @hip.jit
    def show(x):
        i = hip.grid(1)
        if i % 2 == 0:
            tell(i, x[i])
        else:
            print("odd %d" % i, i)

    show[2, 4](np.arange(8) / 2)
    hip.synchronize()
    wanted = [f"odd {i} {i}" if i % 2 else f"<{i:03d} {i / 2:.1f}>" for i in range(8)]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(wanted)


def launch_and_wait(launch, *arguments):
    """Where launches are asynchronous, what a kernel does wrong is raised where the host waits."""
    launch(*arguments)
    hip.synchronize()


def test_what_was_printed_before_an_exception(capsys):
    @hip.jit(exceptions=True)
    def fail(x):
        print("before", x)
        if x > 1:
            raise ValueError("too large")
        print("after", x)

    with pytest.raises(ValueError, match="too large"):
        launch_and_wait(fail[1, 1], 2)
    assert capsys.readouterr().out == "before 2\n"
    fail[1, 1](1)
    hip.synchronize()
    assert capsys.readouterr().out == "before 1\nafter 1\n"


def test_more_lines_than_there_is_room_for(capsys):
    @hip.jit
    def count():
        print(hip.grid(1))

    most = CAPACITY_WORDS // 3
    with pytest.warns(OutputWarning, match=f"kernel count printed more than .*; {65536 - most} lines are missing"):
        launch_and_wait(count[64, 1024])
    assert len(set(capsys.readouterr().out.splitlines())) == most
    count[1, 2]()
    hip.synchronize()
    assert sorted(capsys.readouterr().out.splitlines()) == ["0", "1"]


def test_a_kernel_that_does_not_print_has_no_buffer():
    def silent(x):
        x[0] = 1

    def loud(x):
        print(x[0])

    from numba.core import types

    for target in ("cpu", "gfx90a"):
        codes = [compile_kernel(f, (types.float64[::1],), CompileOptions(), target) for f in (silent, loud)]
        assert [code.parameters[-1].name == PARAMETER for code in codes] == [False, True]
        assert codes[1].argument_bytes == codes[0].argument_bytes + 8


class FarDriver:
    """A device whose memory the host cannot reach: only a driver's copies do."""

    START = 1 << 60

    def __init__(self):
        self.driver, self.ordinal = self, 0
        self.memory = bytearray(b"garbage!") * (HEADER_WORDS + CAPACITY_WORDS)
        self.asked = []
        self.broken = False

    def create_stream(self, device, blocking, priority):
        self.asked.append(("stream", blocking))
        return 7

    def destroy_stream(self, stream):
        assert stream == 7

    def allocate(self, nbytes):
        assert nbytes == len(self.memory)
        return Buffer(self.START, nbytes)

    def copy(self, target, source, nbytes, stream, owners):
        if self.broken:
            raise HipRuntimeError("this device has failed")
        assert stream == 7
        start = source - self.START
        data = bytes(self.memory[start : start + nbytes])
        assert len(data) == nbytes
        ctypes.memmove(target, data, nbytes)
        self.asked.append(("copy", nbytes))

    def fill(self, address, value, nbytes, stream):
        assert stream == 7
        start = address - self.START
        self.memory[start : start + nbytes] = bytes([value]) * nbytes
        self.asked.append(("fill", nbytes))

    def synchronize_stream(self, stream):
        self.asked.append(("wait", stream))


def test_the_host_reads_the_buffer_by_copies_on_a_stream_of_its_own(capsys):
    device = FarDriver()
    function = SimpleNamespace(device=device, kernel=SimpleNamespace(name="kernel"))
    buffer = OutputBuffer(function)
    assert device.asked == [("stream", False), ("fill", len(device.memory)), ("wait", 7)]
    record = struct.pack("<5q", 5, Tag.TEXT | 5 << 8, int.from_bytes(b"value", "little"), Tag.INT, -3)
    for written in (record, b""):
        device.asked.clear()
        buffer.begin()
        buffer.begin()
        device.memory[: 8 * HEADER_WORDS] = struct.pack("<2q", len(written) // 8, 0)
        device.memory[8 * HEADER_WORDS : 8 * HEADER_WORDS + len(written)] = written
        buffer.end()
        assert not device.asked, "another launch is running"
        buffer.end()
        assert capsys.readouterr().out == ("value -3\n" if written else "")
        assert not any(device.memory)
    assert device.asked == [("copy", 8 * HEADER_WORDS), ("wait", 7)], "nothing more where nothing was printed"


def test_numbers_are_written_as_the_launch_was_told(capsys):
    """The callback of a stream runs in a thread that knows nothing of the settings of the one that launched."""
    device = FarDriver()
    buffer = OutputBuffer(SimpleNamespace(device=device, kernel=SimpleNamespace(name="kernel")))
    record = struct.pack("<2qd", 3, Tag.FLOAT64, 0.1)
    with config.print_six_digits.scope(True):
        buffer.begin()
    device.memory[: 8 * HEADER_WORDS] = struct.pack("<2q", 3, 0)
    device.memory[8 * HEADER_WORDS : 8 * HEADER_WORDS + len(record)] = record
    thread = threading.Thread(target=buffer.end)
    thread.start()
    thread.join()
    assert capsys.readouterr().out == "0.100000\n"


def test_a_launch_that_fails_is_what_is_raised():
    device = FarDriver()
    function = SimpleNamespace(
        device=device, kernel=SimpleNamespace(name="kernel", parameters=[Parameter(PARAMETER, "ptr", 8, 8)])
    )

    def launch(arguments, grid, stream, owners):
        device.broken = True
        raise LaunchError("not enough of everything")

    launches = SimpleNamespace(launch=launch, function=function)
    device.is_capturing = lambda stream: False
    printing = PrintingLaunch(launches, OutputBuffer(function))
    with pytest.raises(LaunchError, match="not enough"):
        printing.launch(b"\0" * 8, (1, 1, 1), 0, None)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_values_that_have_no_text(target):
    def show(x):
        print("array", x)

    with pytest.raises(
        NumbaError, match="print in a kernel takes numbers, booleans, text in quotes and tuples of numbers, not a array"
    ) as caught:
        hip.compile(show, "(float64[::1],)", target=target, output="llvm")
    assert "test_print.py" in str(caught.value)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.sample(1)
def test_for_amd_gpus(target):
    image, _ = hip.compile(kernel, "(float32[::1],)", target=target, output="object")
    assert image[:4] == b"\x7fELF"
    text, _ = hip.compile(kernel, "(float32[::1],)", target=target, output="llvm")
    assert "atomicrmw add" in text
    assert 'syncscope("agent")' in text


PROGRAM = """
import numpy as np
from numba import hip

@hip.jit
def show(number):
    print("launch", number, hip.threadIdx.x)

for number in range(3):
    show[1, 2](number)
hip.synchronize()
print("waited")
show[1, 1](3)
hip.to_device(np.zeros(1)).copy_to_host()
print("copied")
"""


@pytest.mark.long
def test_lines_of_an_asynchronous_default_stream_are_there_after_a_wait():
    environment = os.environ | {"NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_ASYNC": "1"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines[:6]] == [f"launch {number}" for number in (0, 0, 1, 1, 2, 2)]
    assert lines[6:] == ["waited", "launch 3 0", "copied"]
