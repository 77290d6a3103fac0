"""``lineinfo`` and ``debug``: lines of the source, read back from the code by a reader of DWARF that is not ours."""

import inspect
import io
import os

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import numba_hip as hip
from hip_devicelib import find_rocm
from hip_devicelib.errors import NotFoundError
from hip_devicelib.linkers import find_linkers
from hip_runtime.errors import BarrierDivergenceError

TARGETS = ["gfx90a", "gfx942", "gfx1100"]
SIGNATURE = "(float32[::1], float32[::1])"


@hip.jit(device=True)
def twice(value):
    return value + value


@hip.jit(device=True, lineinfo=True)
def shifted(values, i):
    return values[i] - 1


def kernel(x, out):
    tile = hip.shared.array(64, np.float32)
    i = hip.grid(1)
    tile[i % 64] = x[i]
    hip.syncthreads()
    total = np.float32(0)
    for j in range(64):
        total += tile[j] * tile[63 - j]
    out[i] = twice(total) + shifted(x, i)


def line_of(function, text):
    """The number of the line of *function* that holds *text*."""
    lines, first = inspect.getsourcelines(getattr(function, "py_func", function))
    return first + next(number for number, line in enumerate(lines) if text in line)


def section(image, name):
    return ELFFile(io.BytesIO(image)).get_section_by_name(name)


def has_linker():
    try:
        rocm = find_rocm()
    except NotFoundError:
        rocm = None
    return next(find_linkers(rocm), None) is not None


@pytest.mark.sample(1)
@pytest.mark.skipif(not has_linker(), reason="needs ld.lld or ziglang")
@pytest.mark.parametrize("option", ["lineinfo", "debug"])
@pytest.mark.parametrize("target", TARGETS)
def test_lines_of_a_code_object(target, option):
    image, _ = hip.compile(kernel, SIGNATURE, target=target, output="codeobject", **{option: True})
    dwarf = ELFFile(io.BytesIO(image)).get_dwarf_info()
    lines, names = set(), set()
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE().attributes
        assert os.path.join(top["DW_AT_comp_dir"].value.decode(), top["DW_AT_name"].value.decode()) == __file__
        names |= {die.attributes["DW_AT_name"].value for die in unit.iter_DIEs() if die.tag == "DW_TAG_subprogram"}
        entries = dwarf.line_program_for_CU(unit).get_entries()
        lines |= {entry.state.line for entry in entries if entry.state is not None}
    wanted = {line_of(kernel, text) for text in ("tile[i % 64] =", "total +=", "out[i] =")}
    assert wanted | {line_of(shifted, "return")} <= lines
    assert line_of(twice, "return") not in lines, "it counts as the line of its call"
    assert {name.rpartition(b".")[2] for name in names} == {b"kernel", b"shifted"}


def loop(x, out):
    for i in range(hip.grid(1), out.size, hip.gridsize(1)):
        if x[i] > 0:
            out[i] += x[-i] / x[i]


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [kernel, loop])
def test_the_instructions_are_the_same(target, function):
    plain, located = (
        hip.compile(function, SIGNATURE, target=target, output="object", lineinfo=chosen)[0] for chosen in (False, True)
    )
    assert section(plain, ".text").data() == section(located, ".text").data()
    assert section(plain, ".rodata").data() == section(located, ".rodata").data(), "registers and memory"
    assert section(located, ".debug_line").data_size
    assert section(plain, ".debug_line") is None


def test_the_same_every_time():
    first, second = (
        hip.compile(kernel, SIGNATURE, target="gfx942", output="object", lineinfo=True)[0] for _ in range(2)
    )
    assert first == second


@hip.jit(device=True)
def wait_there():
    hip.syncthreads()  # the other


def parted(out):
    if hip.threadIdx.x < 5:
        hip.syncthreads()  # the one
    else:
        out[0] = 1
        wait_there()


@pytest.mark.cpu_device("it notices barriers that not all threads reach")
@pytest.mark.parametrize("options", [{}, {"lineinfo": True}, {"debug": True}, {"debug": True, "opt": False}])
@pytest.mark.sample(2)
def test_barriers_that_not_all_threads_reach_are_named_by_their_lines(options):
    with pytest.raises(BarrierDivergenceError) as caught:
        hip.jit(**options)(parted)[1, 64](np.zeros(1))
    for function, text in ((parted, "# the one"), (wait_there.py_func, "# the other")):
        place = f"test_line_tables.py:{line_of(function, text)} in {function.__name__}"
        assert place in str(caught.value)
        assert any(one.endswith(place) for one in caught.value.places)


@pytest.mark.sample(1)
@pytest.mark.parametrize("options", [{"lineinfo": True}, {"debug": True}, {"debug": True, "opt": False}])
def test_results_are_the_same(options):
    x = np.arange(64, dtype=np.float32)
    expected, found = np.zeros((2, 64), np.float32)
    for out, given in ((expected, {}), (found, options)):
        hip.jit(**given)(kernel)[1, 64](x, out)
    np.testing.assert_array_equal(found, expected)
    assert expected.any()
