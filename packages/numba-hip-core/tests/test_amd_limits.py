"""Arrays that a GPU has no room for: the error names the array, its size and the limit, at the user's line."""

import inspect

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba.core.errors import LoweringError, TypingError

import numba_hip as hip
from hip_devicelib import kernel_metadata
from hip_devicelib.target import parse_target
from numba_hip import extending
from numba_hip.errors import SharedMemoryError

SIGNATURE = "(float64[::1],)"


def too_much_shared(x):
    tile = hip.shared.array(20_500, np.float64)
    tile[hip.threadIdx.x] = x[0]
    hip.syncthreads()
    x[1] = tile[3]


def too_much_private(x):
    own = hip.local.array((10, 200_000), np.float64)
    own[0, hip.threadIdx.x] = x[0]
    x[1] = own[1, 3]


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100"])
@pytest.mark.parametrize(
    ("kernel", "name", "says", "limit"),
    [
        (too_much_shared, "tile", r"hip.shared.array: an array of shape \(20500,\) of float64 has 164000", "lds_bytes"),
        (
            too_much_private,
            "own",
            r"hip.local.array: an array of shape \(10, 200000\) of float64 has 16000000",
            "private_bytes",
        ),
    ],
)
def test_one_array_over_the_limit(target, kernel, name, says, limit):
    with pytest.raises(TypingError, match=says) as caught:
        hip.compile(kernel, SIGNATURE, target=target)
    message = str(caught.value)
    assert f"at most {getattr(parse_target(target), limit)} for {target}" in message
    line = inspect.getsourcelines(kernel)[1] + 1
    assert f'File "{__file__}", line {line}, in {kernel.__name__}:\n    {name} = ' in message


def two_tiles(x):
    first = hip.shared.array(5000, np.float64)
    second = hip.shared.array((2, 2000), np.float64)
    first[hip.threadIdx.x] = second[1, hip.threadIdx.x] = x[0]
    hip.syncthreads()
    x[1] = first[3] + second[1, 2]


def test_all_arrays_together():
    line = inspect.getsourcelines(two_tiles)[1] + 1
    with pytest.raises(SharedMemoryError) as caught:
        hip.compile(two_tiles, SIGNATURE, target="gfx942")
    assert str(caught.value) == (
        "kernel two_tiles: its shared arrays have 72000 bytes; a block on gfx942 has 65536: "
        f"40000 bytes, shape (5000,) of float64, {__file__}:{line} in two_tiles; "
        f"32000 bytes, shape (2, 2000) of float64, {__file__}:{line + 1} in two_tiles"
    )
    image, _ = hip.compile(two_tiles, SIGNATURE, target="gfx950", output="object")
    assert kernel_metadata.read_kernels(image)[0].shared_bytes == 72000


def test_gaps_between_arrays_count():
    def fits(x):
        first, second = hip.shared.array(1, np.int8), hip.shared.array(4096, np.float64)
        third, fourth = hip.shared.array(1, np.int8), hip.shared.array(4095, np.float64)
        first[0] = third[0] = x[0]
        second[hip.threadIdx.x] = fourth[hip.threadIdx.x] = x[1]
        hip.syncthreads()
        x[1] = first[0] + second[1] + third[0] + fourth[1]

    def no_more(x):  # 65535 bytes, but LLVM aligns each for wide accesses
        first, second = hip.shared.array(21845, np.int8), hip.shared.array(21845, np.int8)
        third = hip.shared.array(21845, np.int8)
        first[hip.threadIdx.x] = second[hip.threadIdx.x] = third[hip.threadIdx.x] = x[0]
        hip.syncthreads()
        x[1] = first[3] + second[1] + third[1]

    image, _ = hip.compile(fits, SIGNATURE, target="gfx942", output="object")
    assert kernel_metadata.read_kernels(image)[0].shared_bytes == 65536
    with pytest.raises(SharedMemoryError, match="have 65557 bytes; a block on gfx942 has 65536: 21845 bytes, shape"):
        hip.compile(no_more, SIGNATURE, target="gfx942")


def test_arrays_that_are_not_used_take_nothing():
    def kernel(x):
        first = hip.shared.array(8000, np.float64)
        second = hip.shared.array(8000, np.float64)
        x[0] = first.size + second.size

    image, _ = hip.compile(kernel, SIGNATURE, target="gfx942", output="object")
    assert kernel_metadata.read_kernels(image)[0].shared_bytes == 0


@pytest.mark.parametrize(
    ("target", "wave_size", "limit"),
    [("gfx90a", 64, 131056), ("gfx1030", 32, 262112), ("gfx1030", 64, 131056), ("gfx1100", 32, 1048544)],
)
def test_private_memory_of_a_thread(target, wave_size, limit):
    assert parse_target(target, wave_size=wave_size).private_bytes == limit


def without_code(value):
    """A function that types, and that nobody has said how to lower."""


@extending.type_callable(without_code)
def _type_without_code(context):
    return lambda value: value


@pytest.mark.parametrize("target", ["cpu", "gfx90a"])
def test_an_operation_that_types_and_has_no_code(target):
    def kernel(x):
        x[0] = 1
        x[1] = without_code(x[0])

    with pytest.raises(LoweringError, match="No definition for lowering .*without_code") as caught:
        hip.compile(kernel, SIGNATURE, target=target, output="llvm")
    assert f'test_amd_limits.py", line {inspect.getsourcelines(kernel)[1] + 2}' in str(caught.value)


def test_local_arrays_are_not_filled():
    def kernel(x):
        own = hip.local.array(200, np.float64)
        own[hip.threadIdx.x] = x[0]
        x[1] = own[hip.threadIdx.y]

    text, _ = hip.compile(kernel, SIGNATURE, target="gfx942", output="llvm")
    module = llvm.parse_assembly(text)
    found = [i for f in module.functions for b in f.blocks for i in b.instructions]
    assert "alloca" in [i.opcode for i in found]
    stores = [i for i in found if i.opcode == "store" and "addrspace(5)" in str(list(i.operands)[-1].type)]
    assert len(stores) == 1, "of the one element"
    assert not [i for i in found if i.opcode == "call" and "memset" in str(i)]
