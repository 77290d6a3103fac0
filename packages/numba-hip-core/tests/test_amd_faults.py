"""Exceptions of kernels on AMD GPUs: what the code holds so that the driver learns of them, and what the host makes of
what the driver reports (``docs/design/hip-driver.md``)."""

import llvmlite.binding as llvm
import pytest

import numba_hip as hip
from hip_devicelib import find_rocm
from hip_devicelib.errors import NotFoundError
from hip_devicelib.linkers import find_linkers
from hip_runtime.errors import KernelFault
from numba_hip.dispatch.faults import exception_describer

TARGETS = ["gfx90a", "gfx942", "gfx1100"]
SIGNATURE = "(float32[::1], float32[::1])"
SYMBOL = b"\0kernel.fault\0"
"""The name in a table of names of ELF."""


@hip.jit(device=True)
def pick(values, i):
    return values[i]


def kernel(x, out):
    i = hip.grid(1)
    if x[i] < 0:
        raise ValueError("negative", 7)
    if x[i] == 77:
        raise AssertionError  # pytest rewrites the statement
    out[i] = pick(x, out.size - i)


def compiled(target, **options):
    return hip.jit(**options)(kernel).compile(SIGNATURE, target)


def opcodes(code):
    module = llvm.parse_bitcode(code.bitcode)
    return [i.opcode for f in module.functions for b in f.blocks for i in b.instructions]


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("option", ["exceptions", "debug", "boundscheck"])
def test_the_variable_of_a_kernel_that_reports(target, option):
    code = compiled(target, **{option: True})
    (variable,) = (v for v in llvm.parse_bitcode(code.bitcode).global_variables if v.name == "kernel.fault")
    assert str(variable.type) == "ptr addrspace(1)"
    assert variable.linkage is llvm.Linkage.external
    assert str(variable.global_value_type) == "{ ptr addrspace(1), i32, i32 }", "16 bytes"
    assert SYMBOL in code.object()
    assert opcodes(code).count("cmpxchg") == 1
    assert len(code.parameters) == 4, "nothing is passed besides the arguments"
    assert code.local_mem_per_thread == 0, "the index that was out of range is kept in registers"


@pytest.mark.parametrize("target", TARGETS)
def test_without_the_option_it_costs_nothing(target):
    code = compiled(target)
    assert not list(llvm.parse_bitcode(code.bitcode).global_variables)
    assert "cmpxchg" not in opcodes(code)
    assert SYMBOL not in code.object()


def test_a_kernel_that_cannot_fail_has_no_variable():
    def copy(x, out):
        out[hip.grid(1)] = x[hip.grid(1)]

    plain, reporting = (
        hip.compile(copy, SIGNATURE, target="gfx942", output="object", exceptions=chosen)[0] for chosen in (False, True)
    )
    assert plain == reporting


def test_the_record_is_written_before_it_is_released():
    code = compiled("gfx942", boundscheck=True)
    module = llvm.parse_bitcode(code.bitcode)
    blocks = [b for f in module.functions for b in f.blocks]
    (block,) = (b for b in blocks if any(i.opcode == "store" and " release" in str(i) for i in b.instructions))
    stores = [str(i) for i in block.instructions if i.opcode == "store"]
    assert "store atomic i32 1" in stores[-1]
    assert "syncscope" not in stores[-1], "for the whole system"
    words = sum(2 if " i64 " in text else 1 for text in stores[:-1])
    assert words == 15 or any("<" in text for text in stores), "code, block, thread and four details"
    assert all("ptr addrspace(1)" in text for text in stores)


def test_what_the_host_makes_of_a_report():
    code = compiled("gfx942", boundscheck=True)
    describe = exception_describer(code.faults)

    def raised(kind, details=()):
        (number,) = (number for number, fault in code.faults.items() if fault.exception is kind)
        return describe(KernelFault("kernel", number, (1, 0, 2), (3, 4, 5), details))

    place = r"tid=\[3, 4, 5\] ctaid=\[1, 0, 2\]"
    error = raised(ValueError)
    assert str(error.args[0]).startswith("tid=[3, 4, 5] ctaid=[1, 0, 2]: negative (")
    assert error.args[1] == 7
    with pytest.raises(AssertionError, match=place):
        raise raised(AssertionError)
    locations = {fault.location for fault in code.faults.values() if fault.exception is IndexError}
    assert any("in pick" in location for location in locations)
    for details, says in (
        ((0, 12, 10, 1), "index 12 is out of range of dimension 0 with extent 10"),
        ((1, -1, 4, 1), "index -5 is out of range of dimension 1 with extent 4"),
        ((0, 0, 0, 1), "index 0 is out of range of dimension 0 with extent 0"),
        ((), "index is out of bounds"),
    ):
        codes = [number for number, fault in code.faults.items() if fault.exception is IndexError]
        assert codes
        for number in codes:
            error = describe(KernelFault("kernel", number, (0, 0, 0), (0, 0, 0), details))
            assert isinstance(error, IndexError)
            assert f": {says} of array '" in str(error)


def test_functions_of_both_ways_are_kept_apart():
    """A function that is compiled with checks takes one more parameter than without."""
    for _ in range(2):
        for checked in (True, False):
            found = compiled("gfx1100", boundscheck=checked)
            assert any(fault.exception is IndexError for fault in found.faults.values()) == checked


@hip.jit(device=True)
def descend(values, n):
    if n > 5:
        return values[n]
    return descend(values, n + 1)


def test_recursion_with_checks():
    def deep(x, out):
        out[0] = descend(x, hip.threadIdx.x)

    image, _ = hip.compile(deep, SIGNATURE, target="gfx942", output="object", boundscheck=True)
    assert b"\0deep.fault\0" in image


def find_any_linker():
    try:
        rocm = find_rocm()
    except NotFoundError:
        rocm = None
    return next(find_linkers(rocm), None)


@pytest.mark.skipif(find_any_linker() is None, reason="needs ld.lld or ziglang")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.sample(1)
def test_a_linked_code_object_shows_the_variable_to_the_driver(target):
    image = compiled(target, exceptions=True).code_object.image
    assert image.count(SYMBOL) == 2, "in the dynamic symbols, too"
    assert SYMBOL not in compiled(target).code_object.image
