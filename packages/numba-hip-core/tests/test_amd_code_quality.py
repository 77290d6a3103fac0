"""What code for AMD GPUs is made of where that decides how fast it is: structure, not text."""

import operator
import re

import numba
import numpy as np
import pytest
from numba import float32, int32

import numba_hip as hip
from numba_hip.algorithms.radix_blocks import columns_of, move_by_block
from numba_hip.algorithms.radix_sort import _digit_of
from numba_hip.algorithms.reductions import column_kernel
from numba_hip.algorithms.tiled_scan import total_kernel
from numba_hip.cooperative import values
from numba_hip.cooperative.ordered_bits import ordering

TARGETS = ["gfx90a", "gfx942", "gfx1100"]
TILE = 16
MATRIX = "float32[:, ::1]"


@hip.jit(fastmath=True)
def multiply(a, b, c):
    tile_a = hip.shared.array((TILE, TILE), float32)
    tile_b = hip.shared.array((TILE, TILE), float32)
    tx, ty = hip.threadIdx.x, hip.threadIdx.y
    j, i = hip.grid(2)
    total = float32(0)
    for k in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[i, k + tx]
        tile_b[ty, tx] = b[k + ty, j]
        hip.syncthreads()
        for inner in range(TILE):
            total += tile_a[ty, inner] * tile_b[inner, tx]
        hip.syncthreads()
    c[i, j] = total


@hip.jit
def add_up(values, sums):
    total = int32(0)
    for i in range(hip.grid(1), values.size, hip.gridsize(1)):
        total += values[i]
    sums[hip.grid(1)] = total


@hip.jit
def of_blocks(values, target):
    target[hip.blockIdx.x] = values[hip.blockIdx.x, hip.threadIdx.y]


@hip.jit
def double(values):
    i = hip.grid(1)
    if i < values.size:
        values[i] += values[i]


@hip.jit
def before(values, target, distance):
    i = hip.grid(1)
    target[i] = values[i - distance]


def assembly(kernel, signature, target):
    text, _ = hip.compile(kernel, signature, target=target, output="asm")
    body = text.partition(f"\n{kernel.__name__}:")[2].partition(".Lfunc_end")[0]
    return [line.partition(";")[0].strip() for line in body.splitlines() if line.partition(";")[0].strip()]


def loop_of(code):
    """The instructions from the label that the last branch backwards goes to, up to that branch."""
    labels = {line[:-1]: number for number, line in enumerate(code) if line.endswith(":")}
    back = [(labels.get(line.split()[-1], len(code)), number) for number, line in enumerate(code) if "branch" in line]
    start, end = [(start, end) for start, end in back if start < end][-1]
    return [line.split()[0] for line in code[start:end] if not line.endswith(":") and not line.startswith(".")]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.sample(1)
def test_the_loop_over_tiles_reads_rows_at_once_and_checks_no_index(target):
    loop = loop_of(assembly(multiply, f"({MATRIX}, {MATRIX}, {MATRIX})", target))
    assert sum(name in ("ds_read_b128", "ds_load_b128") for name in loop) == TILE // 4, "a row of the one tile"
    assert sum(re.match("v_(pk_)?(fma|mac|fmac|dual_fmac|mul)", name) is not None for name in loop) >= TILE // 2
    assert not [name for name in loop if re.match("v_cndmask|v_ashr|v_mul_lo|v_mad_u64|s_mul|s_cselect", name)]
    assert len([name for name in loop if "_cmp_" in name]) == 1, "whether there is another tile"


@pytest.mark.parametrize("target", TARGETS)
def test_loops_over_a_whole_grid_check_no_index_and_do_not_divide(target):
    code = assembly(add_up, "(int32[::1], int32[::1])", target)
    loop = loop_of(code)
    assert len([name for name in loop if name.startswith("global_load")]) == 1
    assert len(loop) <= 12
    assert not [line for line in code if re.match("v_cndmask|v_ashr|v_rcp|v_cvt", line)]


def llvm_of(kernel, signature, target="gfx942"):
    return hip.compile(kernel, signature, target=target, output="llvm")[0]


def test_indices_of_blocks_and_threads_are_known_not_to_be_negative():
    text = llvm_of(of_blocks, f"({MATRIX}, float32[::1])")
    assert "select" not in text
    assert "sext" not in text


def test_an_index_that_may_be_negative_is_checked():
    text = llvm_of(before, "(float32[::1], float32[::1], int64)")
    assert len(re.findall(r"\bselect\b", text)) == 1, "of the two indices, one"


def test_the_index_in_the_grid_is_computed_with_32_bits():
    products = re.findall(r"= mul (.*?) %", llvm_of(before, "(float32[::1], float32[::1], int64)"))
    assert products == ["nuw i32"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_address_of_an_array_and_its_size_are_one_load(target):
    code = assembly(double, "(float32[::1],)", target)
    loads = sorted(line.split()[0] for line in code if line.startswith("s_load"))
    assert loads in (["s_load_dword", "s_load_dwordx4"], ["s_load_b128", "s_load_b32"]), "the other: the block's extent"


@hip.jit
def sum_of_wave(values):
    i = hip.grid(1)
    values[i] = hip.wave.reduce(values[i], operator.add)


@hip.jit
def sums_through_wave(values):
    i = hip.grid(1)
    values[i] = hip.wave.inclusive_scan(values[i], operator.add)


@hip.jit
def quad_and_half(values):
    i = hip.grid(1)
    values[i] = hip.wave.shuffle_xor(values[i], 2) + hip.wave.shuffle_xor(values[i], 16)


@hip.jit
def quad_and_half_as_in_hip(values):
    i = hip.grid(1)
    values[i] = hip.shfl_xor(values[i], 2) + hip.shfl_xor_sync(-1, values[i], 16)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.sample(1)
def test_lanes_exchange_in_rows_without_lds(target):
    for kernel, moves in ((sum_of_wave, 4), (sums_through_wave, 4), (quad_and_half, 1),
                          (quad_and_half_as_in_hip, 1)):  # fmt: skip
        code = assembly(kernel, "(float32[::1],)", target)
        assert not [line for line in code if "bpermute" in line]
        in_rows = [line for line in code if re.search(r"row_sh[lr]:[1248] |quad_perm|row_xmask", line)]
        assert len(in_rows) == moves
        through_lds = kernel in (quad_and_half, quad_and_half_as_in_hip) and target.startswith("gfx9")
        assert ("ds_swizzle" in " ".join(code)) == through_lds


@hip.jit
def neighbours(values):
    i = hip.grid(1)
    values[i] = hip.wave.shuffle_up(values[i], 1) + hip.wave.shuffle_down(values[i], 1)


@pytest.mark.parametrize("target", TARGETS)
def test_neighbours_of_all_lanes_without_lds(target):
    code = " ".join(assembly(neighbours, "(float32[::1],)", target))
    assert not re.search("bpermute|swizzle", code)
    if target.startswith("gfx9"):
        assert "wave_shr:1" in code
        assert "wave_shl:1" in code
    else:
        assert code.count("v_permlanex16_b32") == 2


@hip.jit
def from_the_first_lane(values, target):
    row = hip.readfirstlane(hip.threadIdx.x // hip.warpsize)
    for i in range(values.shape[1]):
        target[hip.grid(1)] += values[row, i]


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_first_lane_has_is_read_as_scalars(target):
    code = assembly(from_the_first_lane, "(int32[:, ::1], int32[::1])", target)
    assert sum(line.startswith("v_readfirstlane_b32") for line in code) <= 3
    assert not [line for line in code if re.match(r"ds_|v_readlane", line)]
    assert [line for line in code if re.match(r"global_load_\w+ v\d+, v\d+, s\[", line)], "the address of a row"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [total_kernel, column_kernel], ids=["ordered", "columns"])
@pytest.mark.sample(1)
def test_reductions_read_four_rows_before_they_wait(kernel, target):
    read, write = values.read_leaf(0), values.write_leaf(1)
    combine = values.combining(operator.add, float32)
    made = kernel(read, combine, write, ahead=True)
    code = assembly(made, "(int64, int64, int64, float32[::1], float32[::1])", target)
    loads = [place for place, line in enumerate(code) if line.startswith("global_load_")]
    waits = [place for place, line in enumerate(code) if line.startswith("s_waitcnt vmcnt")]
    followed = [sum(first <= load < min([wait for wait in waits if wait > first]) for load in loads) for first in loads]
    assert max(followed) >= 4


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtypes", [("u4",), ("u8", "u8"), ("u2", "u8", "V24")], ids=lambda dtypes: "-".join(dtypes))
@pytest.mark.sample(1)
def test_the_pass_of_a_radix_sort_stays_in_registers(dtypes, target):
    columns = columns_of([np.dtype(name) for name in dtypes])
    lanes = 64 if target.startswith("gfx9") else 32
    arrays = [f"{numba.from_dtype(np.dtype(name)) if name[0] == 'u' else 'uint8'}[::1]" for name in dtypes]
    digit = _digit_of(ordering(np.dtype(dtypes[0]), descending=False), 8)
    kernel = move_by_block(digit, columns, 2 * len(dtypes), lanes)
    signature = f"(int64, int64, int64, int64, {', '.join([*arrays, *arrays, 'int64[::1]'])})"
    text, _ = hip.compile(kernel, signature, target=target, output="asm")
    assert int(re.search(r"private_segment_fixed_size: +(\d+)", text)[1]) == 0
    assert int(re.search(r"group_segment_fixed_size: +(\d+)", text)[1]) <= 32 << 10, "two blocks for a compute unit"
    assert int(re.search(r"vgpr_spill_count: +(\d+)", text)[1]) == 0
