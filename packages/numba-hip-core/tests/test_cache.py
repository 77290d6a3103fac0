"""Compiled kernels on disk: found by other processes, and not found where anything that matters has changed."""

import dataclasses
import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.errors import NumbaWarning

import numba_hip as hip
from hip_devicelib.errors import CacheError
from numba_hip import config
from numba_hip.abi.fault import Fault
from numba_hip.caching import code_cache, fingerprint
from numba_hip.compilation.options import CompileOptions

MODULE = """
import sys
import numpy as np
import numba_hip as hip
import helper

SCALE = 2

@hip.jit(device=True)
def inner(x):
    return x * SCALE

@hip.jit(cache=True, exceptions=True)
def kernel(values):
    i = hip.grid(1)
    if values[i] < 0:
        raise ValueError("negative")
    values[i] = inner(values[i]) + helper.OFFSET + helper.table[0]

values = np.ones(4)
kernel[1, 4](values)
error = ""
try:
    kernel[1, 4](-np.ones(4))
except ValueError as caught:
    error = str(caught)
hits, misses = (sum(counter.values()) for counter in kernel.stats[1:])
print(values[0], hits, misses, error.partition(" (")[0])
"""
HELPER = "import numpy as np\nOFFSET = 10\ntable = np.array([100.0])\n"
ERROR = "tid=[0, 0, 0] ctaid=[0, 0, 0]: negative"


class Workplace:
    """A program in a directory of its own, with a cache of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.cache = folder / "cache"
        self.write("program.py", MODULE)
        self.write("helper.py", HELPER)

    def write(self, name, text):
        (self.folder / name).write_text(textwrap.dedent(text))

    def change(self, name, old, new):
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def environment(self, **variables):
        return {**os.environ, "NUMBA_HIP_CACHE_DIR": str(self.cache), **variables}

    def start(self, **variables):
        # No bytecode: two edits within a second are the same to Python's own cache of it.
        return subprocess.Popen(
            [sys.executable, "-B", "program.py"], cwd=self.folder, env=self.environment(**variables), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, **variables):
        """Value, hits, misses and message of the error."""
        process = self.start(**variables)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        value, hits, misses, message = out.strip().split(" ", 3)
        assert message == ERROR
        return float(value), int(hits), int(misses)

    def entries(self):
        """Files of kernels; machine code of the CPU device is in a folder of its own."""
        return sorted(path for path in self.cache.glob("??/*") if path.is_file())

    def machine_code(self):
        return sorted(self.cache.glob("machine-code/??/*"))


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path)


def test_another_process_finds_a_kernel(workplace):
    assert workplace.run() == (112, 0, 1)
    assert len(workplace.entries()) == 1
    assert workplace.run() == (112, 1, 0)
    assert len(workplace.entries()) == 1
    assert stat.S_IMODE(workplace.cache.stat().st_mode) == 0o700


COUNTED = """
from hip_runtime.drivers.cpu import finalise
made, make = [], finalise.finalise_kernel
finalise.finalise_kernel = lambda *what: made.append(what) or make(*what)
import program
print(len(made))
"""


@pytest.mark.long
def test_another_process_finds_machine_code(workplace):
    workplace.write("counted.py", COUNTED)
    command = [sys.executable, "-B", "counted.py"]
    counts = []
    for _ in range(2):
        run = subprocess.run(
            command, cwd=workplace.folder, env=workplace.environment(), capture_output=True, text=True, check=True
        )
        counts.append(int(run.stdout.split()[-1]))
        assert run.stdout.startswith("112.0 ")
    assert counts == [1, 0]
    assert len(workplace.machine_code()) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "old", "new", "value"),
    [
        ("program.py", "SCALE = 2", "SCALE = 3", 113),
        ("program.py", "x * SCALE", "x * SCALE + 1", 113),
        ("helper.py", "OFFSET = 10", "OFFSET = 20", 122),
        ("helper.py", "100.0", "200.0", 212),
        ("program.py", "cache=True", "cache=True, fastmath=True", 112),
    ],
)
def test_what_changed_is_compiled_anew(workplace, file, old, new, value):
    assert workplace.run() == (112, 0, 1)
    workplace.change(file, old, new)
    assert workplace.run() == (value, 0, 1)
    assert workplace.run() == (value, 1, 0)
    workplace.change(file, new, old)
    assert workplace.run()[0] == 112


BOTH = """
import math
import numpy as np
import numba_hip as hip

def measure(values, out):
    i = hip.grid(1)
    if i < values.size:
        out[i] = math.sin(values[i])

values = np.random.default_rng(3).uniform(-30, 30, 4096)
for fastmath in ("ulp4", True, False, False, True, "ulp4"):
    kernel = hip.jit(cache=True, fastmath=fastmath)(measure)
    out = np.zeros_like(values)
    kernel[64, 64](values, out)
    print(fastmath, sum(kernel.stats.cache_hits.values()), out.tobytes().hex())
"""


def test_functions_within_4_units_have_entries_of_their_own(workplace):
    workplace.write("both.py", BOTH)
    run = subprocess.run(
        [sys.executable, "-B", "both.py"], cwd=workplace.folder, env=workplace.environment(), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    lines = [line.split() for line in run.stdout.splitlines()]
    first, second = ({name: (int(hits), numbers) for name, hits, numbers in part} for part in (lines[:3], lines[3:]))
    assert [first[name][0] for name in first] == [0, 0, 0]
    assert [second[name][0] for name in second] == [1, 1, 1]
    assert all(first[name][1] == second[name][1] for name in first)
    assert first["True"][1] == first["False"][1] != first["ulp4"][1]


@pytest.mark.long
def test_an_overload_that_changed_is_noticed(workplace):
    workplace.write("helper.py", HELPER + "import overloads\nfrom overloads import shift\n")
    workplace.write(
        "overloads.py",
        """
        from numba.extending import overload

        def shift(x):
            return x

        @overload(shift, target="hip")
        def _shift(x):
            return lambda x: x + 1000
        """,
    )
    workplace.change("program.py", "helper.OFFSET", "helper.shift(values[i])")
    assert workplace.run() == (1103, 0, 1)
    assert workplace.run() == (1103, 1, 0)
    workplace.change("overloads.py", "1000", "2000")
    assert workplace.run() == (2103, 0, 1)


@pytest.mark.long
@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "directory", "link"])
def test_damaged_entries_are_repaired(workplace, damage):
    workplace.run()
    (entry,) = workplace.entries()
    content = entry.read_bytes()
    middle = len(content) // 2
    if damage == "directory":
        entry.unlink()
        entry.mkdir()
    elif damage == "link":
        entry.symlink_to(entry.rename(workplace.folder / "elsewhere"))
    else:
        entry.write_bytes(
            {
                "truncated": content[:middle],
                "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
                "empty": b"",
            }[damage]
        )
    assert workplace.run() == (112, 0, 1)
    assert workplace.run() == (112, 1, 0)


@pytest.mark.long
def test_processes_at_the_same_time(workplace):
    processes = [workplace.start() for _ in range(4)]
    for process in processes:
        out, err = process.communicate(timeout=240)
        assert out.startswith("112.0"), err
    assert len(workplace.entries()) == 1, "and nothing unfinished is left"
    assert workplace.run() == (112, 1, 0)


def test_the_toolchain_is_part_of_the_key(monkeypatch):
    def key():
        return fingerprint.fingerprint_kernel(np_kernel.py_func, (), "", "cpu")[0]

    before = key()
    assert key() == before
    monkeypatch.setattr(fingerprint, "version", lambda package: "0")
    fingerprint.fingerprint_toolchain.cache_clear()
    changed = key()
    fingerprint.fingerprint_toolchain.cache_clear()
    assert changed != before
    monkeypatch.undo()
    assert key() == before


def test_the_processor_is_part_of_the_key(monkeypatch):
    before = fingerprint.fingerprint_target("cpu")
    assert fingerprint.fingerprint_target("gfx942") != fingerprint.fingerprint_target("gfx90a") != before
    fingerprint.processor.cache_clear()
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_name", lambda: "another")
    assert fingerprint.fingerprint_target("cpu") != before
    fingerprint.processor.cache_clear()


@hip.jit
def np_kernel(values):
    values[0] = 1


@pytest.fixture
def here(tmp_path):
    with config.cache_dir.scope(tmp_path / "cache"):
        yield tmp_path / "cache"


def cached(py_func, **options):
    """A dispatcher that has compiled nothing, as in another process."""
    return hip.jit(cache=True, **options)(py_func)


def test_within_a_process(here):
    def fill(values, value):
        values[hip.grid(1)] = value

    for dispatcher, expected in ((cached(fill), (0, 1)), (cached(fill), (1, 0))):
        for dtype in (np.float64, np.int32):
            values = np.zeros(4, dtype)
            dispatcher[1, 4](values, dtype(3))
            assert (values == 3).all()
        assert [list(counter.values()) for counter in dispatcher.stats[1:]] == [[n] * 2 if n else [] for n in expected]
        assert dispatcher.stats.cache_path == str(here)
        assert "values[hip.grid(1)] = value" in str(next(iter(dispatcher.overloads.values())).annotation)
        assert dispatcher.get_max_threads_per_block() == dict.fromkeys(dispatcher.signatures, 1024)
        assert all("fill" in text for text in dispatcher.inspect_asm().values())


@pytest.mark.parametrize("pair", [(1, 2), (1, 1.0), (1, True), ((1,), (2,)), (np.int8(1), np.int16(1)), ("a", "b")])
@pytest.mark.sample(4)
def test_captured_values_are_told_apart(here, pair):
    def make(captured):
        def kernel(out):
            out[0] = len(str(captured)) if isinstance(captured, (str, tuple)) else captured

        return kernel

    keys = {fingerprint.fingerprint_kernel(make(value), (), "", "cpu")[0] for value in (*pair, *pair)}
    assert len(keys) == 2


def test_captured_arrays_and_closures(here):
    def make(table):
        def kernel(out):
            out[0] = table[0, 1]

        return kernel

    out = np.zeros(1)
    for table in (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]).T, np.array([[1, 7]])):
        kernel = cached(make(table))
        kernel[1, 1](out)
        assert out[0] == table[0, 1]
        assert not kernel.stats.cache_hits
        again = cached(make(table.copy(order="K")))
        again[1, 1](out)
        assert again.stats.cache_hits
        assert out[0] == table[0, 1]


def test_what_is_declared_of_linked_code(here):
    code = hip.LinkedCode(b"define i32 @get(ptr %out) {\n  store i32 3, ptr %out\n  ret i32 0\n}")

    def make(get):
        def kernel(out):
            out[0] = get()

        return kernel

    for cooperative in (False, True):
        kernel = make(hip.declare_device("get", "int32()", code, use_cooperative=cooperative))
        for hits in (0, 1):
            dispatcher = cached(kernel)
            dispatcher[1, 1](np.zeros(1, np.int32))
            assert len(dispatcher.stats.cache_hits) == hits
            (found,) = dispatcher.overloads.values()
            assert found.cooperative == cooperative


def test_recursive_functions_have_a_stamp(here):
    @hip.jit(device=True)
    def factorial(n):
        if n <= 1:
            return 1
        return n * factorial(n - 1)

    def kernel(out):
        out[0] = factorial(5)

    for hits in (0, 1):
        out = np.zeros(1)
        dispatcher = cached(kernel)
        dispatcher[1, 1](out)
        assert out[0] == 120
        assert len(dispatcher.stats.cache_hits) == hits


def test_recompile_with_a_cache(here):
    namespace = {"hip": hip, "VALUE": 1}
    exec("@hip.jit(cache=True)\ndef kernel(out):\n    out[0] = VALUE", namespace)
    kernel, out = namespace["kernel"], np.zeros(1)
    for value in (1, 2, 1):
        namespace["VALUE"] = value
        kernel.recompile()
        kernel[1, 1](out)
        assert out[0] == value
    assert sum(kernel.stats.cache_hits.values()) == 1


def test_amd_kernels_are_kept_too(here):
    def fill(values):
        values[hip.grid(1)] = 1

    first, second = cached(fill), cached(fill)
    args = "(float64[::1],)"
    assert first.inspect_asm(args, "gfx90a") == second.inspect_asm(args, "gfx90a")
    assert list(second.stats.cache_hits.values()) == [1]
    assert "amdgcn" in second.inspect_llvm(args, "gfx90a")
    second.inspect_asm(args, "gfx942")
    assert list(second.stats.cache_misses.values()) == [1]


def test_entries_hold_no_pickles(here):
    def kernel(values):
        if values[0] < 0:
            raise IndexError("below", 3)

    cached(kernel)[1, 1](np.zeros(1))
    (entry,) = here.glob("??/*.entry")
    data = entry.read_bytes()
    start = data.index(b'{"name"')
    header, _ = json.JSONDecoder().raw_decode(data[start:].decode("latin-1"))
    assert header["faults"][0][:3] == ["builtins", "IndexError", "('below', 3)"]
    assert __file__ in header["sources"]  # and those of extensions that other tests have registered


class LocalError(ValueError):
    """An exception of a module."""

    class Inner(ValueError):
        """An exception of a class."""


def test_exceptions_that_cannot_be_found_again(here):
    class Hidden(ValueError):
        pass

    def kernel(values):
        if values[0] < 0:
            raise Hidden("below")

    with pytest.warns(NumbaWarning, match="kernel kernel is not kept in the cache: another process could not raise"):
        cached(kernel, exceptions=True)[1, 1](np.zeros(1))
    with pytest.raises(Hidden), pytest.warns(NumbaWarning):
        cached(kernel, exceptions=True)[1, 1](-np.ones(1))


def test_what_has_no_stamp_is_not_kept(here):
    def kernel(values):
        values[0] = len(os.environ)

    with pytest.warns(NumbaWarning, match="^kernel kernel is not kept in the cache: it refers to the environment"):
        assert code_cache.KernelCache().place(kernel, (), CompileOptions(), "cpu") is None


def test_exceptions_of_modules(here):
    def kernel(values):
        if values[0] < 0:
            raise LocalError("below")

    for _ in range(2):
        dispatcher = cached(kernel, exceptions=True)
        with pytest.raises(LocalError, match="below"):
            dispatcher[1, 1](-np.ones(1))
    assert dispatcher.stats.cache_hits


def test_an_exception_whose_module_is_gone_is_a_miss():
    assert code_cache._read_fault("no_such_module", "Error", "()", None) is None
    assert code_cache._read_fault("os", "getcwd", "()", None) is None
    assert code_cache._read_fault("builtins", "ValueError", "__import__('os')", None) is None
    assert "no_such_module" not in sys.modules


def test_what_is_loaded_is_what_was_saved(here):
    def kernel(values):
        values[0] = 1

    dispatcher = hip.jit("void(float64[:])", boundscheck=True)(kernel)
    (code,) = dispatcher.overloads.values()
    fault = Fault(LocalError.Inner, ("below", 3), None)
    constants = {"one": b"12", "none": b"", "two": b"345", "three": b"6"}
    (here / "inlined.py").parent.mkdir()
    (here / "inlined.py").write_text("")
    files = frozenset([str(here / "inlined.py")])
    code = dataclasses.replace(code, faults={fault.code: fault}, data=constants, sources=files)
    cache = code_cache.KernelCache()
    place = cache.place(kernel, code.argument_types, code.options, code.target.name)
    cache.save(place, code)
    found = cache.load(place)
    sources = frozenset(fingerprint.fingerprint_files(place.files)) | files
    assert __file__ in sources
    assert found == dataclasses.replace(code, annotation=str(code.annotation), sources=sources)
    assert found.target is code.target

    linked = (SimpleNamespace(name="first.bc"), SimpleNamespace(name="second.bc"))
    other = dataclasses.replace(place, key="0" * len(place.key))
    with pytest.warns(NumbaWarning, match=r"is not kept in the cache: first\.bc, which it links, has callbacks$"):
        cache.save(other, dataclasses.replace(code, linked=linked))
    assert cache.load(other) is None


def test_a_directory_that_others_can_write_to(here):
    here.mkdir()
    here.chmod(0o777)
    values = np.zeros(1)
    with pytest.raises(CacheError, match=r"others can write to .*NUMBA_HIP_CACHE_DIR"):
        cached(np_kernel.py_func)[1, 1](values)
    assert values[0] == 0
    assert not list(here.iterdir())


def test_directories_below_that_others_can_write_to(here):
    values = np.zeros(1)
    cached(np_kernel.py_func)[1, 1](values)
    for shard in here.glob("??"):
        shard.chmod(0o777)
    values[0] = 0
    with (
        pytest.warns(NumbaWarning, match="is not looked up in the cache: others can write to .*NUMBA_HIP_CACHE_DIR"),
        pytest.warns(NumbaWarning, match="is not kept in the cache: others can write to .*NUMBA_HIP_CACHE_DIR"),
    ):
        cached(np_kernel.py_func)[1, 1](values)
    assert values[0] == 1


@pytest.mark.cpu_device("machine code is kept beside the kernel")
def test_a_directory_of_machine_code_that_others_can_write_to(here):
    values = np.zeros(1)
    cached(np_kernel.py_func)[1, 1](values)
    (here / "machine-code").chmod(0o777)
    kernel, values[0] = cached(np_kernel.py_func), 0
    with pytest.warns(RuntimeWarning, match=r"neither looked up nor kept: others can write to .*NUMBA_HIP_CACHE_DIR"):
        kernel[1, 1](values)
    assert values[0] == 1
    assert sum(kernel.stats.cache_hits.values()) == 1


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with config.cache_dir.scope(tmp_path / "file"), pytest.raises(CacheError, match="NUMBA_HIP_CACHE_DIR"):
        cached(np_kernel.py_func)[1, 1](np.zeros(1))


@pytest.mark.cpu_device("machine code is kept beside the kernel")
def test_a_kernel_runs_where_nothing_can_be_written(here, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    kernel, values = cached(np_kernel.py_func), np.zeros(1)
    monkeypatch.setattr(os, "replace", refuse)
    with (
        pytest.warns(RuntimeWarning, match="machine code .* is not kept.*No space left.*NUMBA_HIP_CACHE_DIR"),
        pytest.warns(NumbaWarning, match="not kept in the cache.*No space left.*NUMBA_HIP_CACHE_DIR"),
    ):
        kernel[1, 1](values)
    assert values[0] == 1
    assert not [path for path in here.rglob("*") if path.is_file()]


def test_the_directory_by_default(monkeypatch):
    monkeypatch.delenv("NUMBA_HIP_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert config.cache_dir() == Path("/somewhere/numba-hip")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert config.cache_dir() == Path.home() / ".cache" / "numba-hip"


SLOW = """
import time
from numba import types
from numba.extending import overload
import numpy as np
import numba_hip as hip

def slow(x):
    return x

@overload(slow, target="hip")
def slow_for_kernels(x):
    print("compiling", flush=True)
    time.sleep(1)
    return lambda x: 2 * x

@hip.jit(cache=True)
def kernel(values):
    values[0] = slow(values[0])

values = np.ones(1)
kernel[1, 1](values)
hits, misses = (sum(counter.values()) for counter in kernel.stats[1:])
print(values[0], hits, misses)
"""


@pytest.mark.long
def test_processes_that_need_a_kernel_at_once_compile_it_once(workplace):
    workplace.write("program.py", SLOW)
    first = workplace.start()
    assert first.stdout.readline() == "compiling\n"
    others = [workplace.start() for _ in range(2)]
    assert [other.communicate(timeout=60)[0] for other in others] == ["2.0 1 0\n"] * 2
    assert first.communicate()[0].splitlines()[-1] == "2.0 0 1"
