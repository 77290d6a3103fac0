"""Atomic operations of AMD GPUs: instructions of the hardware where it has them, else loops that compare and swap."""

from collections import Counter

import pytest
from llvmlite.binding import llvm_version_info
from numba.core.errors import TypingError

import numba_hip as hip
from numba_hip.targets.amd import option_checks
from numba_hip.targets.amd.option_checks import HOST_ATOMICS_SINCE

TARGETS = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"]
LOOP = "cmpswap"

INSTRUCTIONS = {
    ("add", "float32"): (LOOP, "add_f32", "add_f32", LOOP, "add_f32", "add_f32"),
    ("sub", "float32"): (LOOP, "add_f32", "add_f32", LOOP, "add_f32", "add_f32"),
    ("add", "float64"): ("add_f64", "add_f64", "add_f64", LOOP, LOOP, LOOP),
    ("nanmax", "float32"): (LOOP, LOOP, LOOP, "fmax", "max_f32", "max_num_f32"),
    ("nanmin", "float64"): ("min_f64", "min_f64", "min_f64", "fmin_x2", LOOP, LOOP),
    ("max", "int64"): ("smax_x2", "smax_x2", "smax_x2", "smax_x2", "max_i64", "max_i64"),
    ("inc", "uint32"): ("inc", "inc", "inc", "inc", "inc_u32", "inc_u32"),
    ("and_", "uint64"): ("and_x2", "and_x2", "and_x2", "and_x2", "and_b64", "and_b64"),
    ("add", "float16"): (LOOP,) * 6,
    ("max", "int8"): (LOOP,) * 6,
}
"""What becomes of an operation on global memory, for each of TARGETS: the end of the instruction's name."""

HOST_MEMORY = {
    "gfx90a": (LOOP,) * 10,
    "gfx942": tuple(endings[1] for endings in INSTRUCTIONS.values()),
    "gfx1100": (LOOP,) * 10,
}


def kernel_of(*names):
    """A kernel that does the operations *names*, each on an array of its own."""
    arrays = [f"a{number}" for number in range(len(names))]
    lines = [f"def kernel({', '.join(arrays)}, operand):", "    i = hip.grid(1)"]
    lines += [f"    hip.atomic.{name}({array}, i, operand)" for name, array in zip(names, arrays, strict=True)]
    namespace = {"hip": hip}
    exec("\n".join(lines), namespace)
    return namespace["kernel"]


def instructions(operations, target, **options):
    """Endings of the names of the atomic instructions on global memory in a kernel that does *operations*."""
    names, kinds = zip(*operations, strict=True)
    signature = ", ".join(f"{kind}[::1]" for kind in kinds)
    text, _ = hip.compile(kernel_of(*names), f"({signature}, int8)", target=target, **options)
    words = [line.split()[0] for line in text.splitlines() if line.split()]
    found = [word.removeprefix("global_atomic_") for word in words if word.startswith("global_atomic_")]
    assert not [word for word in words if word.startswith("flat_atomic")]
    return Counter(LOOP if one.startswith(LOOP) else one for one in found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", range(len(TARGETS)), ids=TARGETS)
def test_the_hardware_s_instructions(number):
    expected = Counter(endings[number] for endings in INSTRUCTIONS.values())
    assert instructions(INSTRUCTIONS, TARGETS[number]) == expected


needs_new_llvm = pytest.mark.skipif(llvm_version_info[0] < HOST_ATOMICS_SINCE, reason="needs an LLVM that knows them")


@needs_new_llvm
@pytest.mark.parametrize("target", HOST_MEMORY)
@pytest.mark.sample(1)
def test_memory_of_the_host_takes_what_works_there(target):
    assert instructions(INSTRUCTIONS, target, host_atomics=True) == Counter(HOST_MEMORY[target])
    assert instructions([("add", "int32")], target, host_atomics=True) == instructions([("add", "int32")], target)


def test_instructions_that_lose_denormal_numbers_are_asked_for():
    for options, expected in (
        ({}, LOOP),
        ({"unsafe_fp_atomics": True}, "add_f32"),
    ):
        assert instructions([("add", "float32")], "gfx90a", **options) == {expected: 1}


@hip.jit(device=True)
def count(values, i):
    hip.atomic.max(values, i, 1)


@needs_new_llvm
def test_the_options_hold_for_what_a_kernel_calls():
    def kernel(values):
        count(values, hip.grid(1))

    near, far = (
        hip.compile(kernel, "(int32[::1],)", target="gfx90a", host_atomics=chosen)[0]
        for chosen in (
            False,
            True,
        )
    )
    assert "global_atomic_smax" in near
    assert "global_atomic_smax" not in far
    assert "global_atomic_cmpswap" in far


INTEGERS_ONLY = frozenset({"and_", "or_", "xor", "inc", "dec"})
OPERATIONS = "add sub and_ or_ xor exch max min nanmax nanmin inc dec cas".split()


@pytest.mark.parametrize(("kind", "target"), [("int8", "gfx1030"), ("float16", "gfx90a"), ("float64", "gfx1201")])
@pytest.mark.sample(1)
def test_every_operation_can_be_compiled(kind, target):
    names = [name for name in OPERATIONS if not (kind.startswith("float") and name in INTEGERS_ONLY)]
    lines = ["def kernel(values, operand):", "    tile = hip.shared.array(64, values.dtype)", "    i = hip.grid(1)"]
    for name in names:
        operands = "operand, operand" if name == "cas" else "operand"
        lines += [f"    hip.atomic.{name}({array}, i, {operands})" for array in ("values", "tile")]
    lines.append("    values[i] = tile[i]")
    namespace = {"hip": hip}
    exec("\n".join(lines), namespace)
    image, _ = hip.compile(namespace["kernel"], f"({kind}[::1], {kind})", target=target, output="object")
    assert image[:4] == b"\x7fELF"


def test_an_llvm_that_does_not_know_memory_of_the_host(monkeypatch):
    monkeypatch.setattr(option_checks, "HOST_ATOMICS_SINCE", 1000)
    with pytest.raises(TypingError, match=r"host_atomics=True: needs LLVM 1000; llvmlite has LLVM \d+") as caught:
        hip.compile(kernel_of("add"), "(int32[::1], int32)", target="gfx90a", host_atomics=True)
    assert "(kernel kernel)" in str(caught.value)
    assert hip.compile(kernel_of("add"), "(int32[::1], int32)", target="cpu", host_atomics=True, output="llvm")
