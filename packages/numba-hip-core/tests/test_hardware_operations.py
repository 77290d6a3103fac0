"""Operations under the names of the hardware: bytes of words, clocks, lanes and masks of lanes."""

import itertools

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip

WORDS = np.array([0, 1, 0x80000000, 0xFFFFFFFF, 0x01234567, 0x89ABCDEF], np.uint32)


def test_bytes_of_two_words():
    @hip.jit
    def kernel(x, y, s, out):
        i = hip.grid(1)
        out[i] = hip.byte_perm(x[i], y[i], s[i])

    selectors = np.array([0x3210, 0x7654, 0x0123, 0x5410, 0x7777, 0xBA98], np.uint32)
    x, y, s = (np.array(part, np.uint32) for part in zip(*itertools.product(WORDS, WORDS, selectors), strict=True))
    out = np.zeros(x.size, np.uint32)
    kernel[1, x.size](x, y, s, out)
    for left, right, selector, got in zip(x.tolist(), y.tolist(), s.tolist(), out.tolist(), strict=True):
        every = (right << 32 | left).to_bytes(8, "little")
        assert got == int.from_bytes(bytes(every[selector >> 4 * i & 7] for i in range(4)), "little")


def test_shifts_of_two_words():
    @hip.jit
    def kernel(lo, hi, n, out):
        i = hip.grid(1)
        out[0, i] = hip.funnelshift_l(lo[i], hi[i], n[i])
        out[1, i] = hip.funnelshift_lc(lo[i], hi[i], n[i])
        out[2, i] = hip.funnelshift_r(lo[i], hi[i], n[i])
        out[3, i] = hip.funnelshift_rc(lo[i], hi[i], n[i])

    cases = itertools.product(WORDS, WORDS, np.array([0, 1, 8, 31, 32, 33, 64], np.uint32))
    lo, hi, n = (np.array(part, np.uint32) for part in zip(*cases, strict=True))
    out = np.zeros((4, lo.size), np.uint32)
    kernel[1, lo.size](lo, hi, n, out)
    mask = 2**32 - 1
    for low, high, count, *got in zip(lo.tolist(), hi.tolist(), n.tolist(), *out.tolist(), strict=True):
        both, wrapped, most = high << 32 | low, count & 31, min(count, 32)
        assert got == [
            both << wrapped >> 32 & mask, both << most >> 32 & mask, both >> wrapped & mask, both >> most & mask
        ]  # fmt: skip


@hip.jit
def lanes(values, targets, out, wide):
    i = hip.threadIdx.x
    out[0, i] = hip.readlane(values[i], 5)
    out[1, i] = hip.readfirstlane(values[i])
    out[2, i] = hip.mbcnt(0xF0F0)
    out[3, i] = hip.mbcnt(-1, 100)
    out[4, i] = hip.ds_bpermute(targets[i] * 4, values[i])
    out[5, i] = hip.ds_permute(targets[i] * 4, values[i])
    if i % 4 == 2:
        out[6, i] = hip.readfirstlane(values[i])
        out[7, i] = hip.ds_permute((i ^ 4) * 4, values[i])
    wide[i] = hip.readlane(wide[i], 3) + hip.readfirstlane(wide[i])


def test_lanes():
    size = hip.get_current_device().attributes.wave_size
    rng = np.random.default_rng(0)
    values, targets = rng.integers(0, 1000, size).astype(np.int32), rng.integers(0, size, size).astype(np.int32)
    out, wide = np.full((8, size), -1, np.int32), np.arange(size) + 2.0**40
    lanes[1, size](values, targets, out, wide)
    pushed = np.zeros(size, np.int32)
    for lane in range(size):
        pushed[targets[lane]] = values[lane]
    np.testing.assert_array_equal(out[0], values[5])
    np.testing.assert_array_equal(out[1], values[0])
    np.testing.assert_array_equal(out[2], [bin(0xF0F0 & (1 << lane) - 1).count("1") for lane in range(size)])
    np.testing.assert_array_equal(out[3], np.arange(size) + 100)
    np.testing.assert_array_equal(out[4], values[targets])
    np.testing.assert_array_equal(out[5], pushed)
    some = np.arange(size) % 4 == 2
    np.testing.assert_array_equal(out[6], np.where(some, values[2], -1))
    np.testing.assert_array_equal(out[7], np.where(some, values[np.arange(size) ^ 4], -1))
    np.testing.assert_array_equal(wide, 2 * 2.0**40 + 3)


@hip.jit
def rows_of_waves(values, out):
    i = hip.threadIdx.x
    row = i // hip.warpsize
    first = hip.readfirstlane(row)
    total = 0
    for k in range(first, first + 3 * row + 2):
        total += values[k]
    out[0, i] = total
    if i % 3 == 1:
        out[1, i] = hip.shfl(row * 5 + total, (1 - row * hip.warpsize) % 3) + hip.readfirstlane(first)
    count = 0
    while count < i % 7:
        out[2, i] += hip.readfirstlane(count) + hip.readfirstlane(row)
        count += 1


def test_what_all_lanes_have_is_the_same_from_any_lane():
    size = hip.get_current_device().attributes.wave_size
    values, out = np.arange(20)[::-1].copy(), np.full((3, 4 * size), -1)
    out[2] = 0
    rows_of_waves[1, 4 * size](values, out)
    i = np.arange(4 * size)
    row = i // size
    totals = np.array([values[r : 4 * r + 2].sum() for r in row])
    np.testing.assert_array_equal(out[0], totals)
    np.testing.assert_array_equal(out[1], np.where(i % 3 == 1, row * 6 + totals, -1))
    np.testing.assert_array_equal(out[2], [sum(n + r for n in range(k % 7)) for k, r in zip(i, row, strict=True)])


@hip.jit
def add_to_rows(values):
    row = hip.readfirstlane(hip.threadIdx.y)
    for k in range(row * 256, row * 256 + 256, hip.warpsize):
        values[k + hip.threadIdx.x] += 1


@pytest.mark.cpu_device("the code of other devices is looked at elsewhere")
def test_what_the_first_lane_has_keeps_accesses_in_a_row():
    size = hip.get_current_device().attributes.wave_size
    values = np.zeros(512, np.float32)
    add_to_rows[1, (size, 2)](values)
    assert (values == 1).all()
    text = add_to_rows.inspect_llvm(add_to_rows.signatures[0], block=(size, 2))
    assert f"load <{size} x float>" in text


@hip.jit
def clocks(out):
    i = hip.grid(1)
    start, wall = hip.clock64(), hip.wall_clock64()
    hip.nanosleep(100)
    total = 0.0
    for k in range(1000):
        total += out[i, 2] * k
    out[i, 0] = hip.clock64() - start
    out[i, 1] = hip.wall_clock64() - wall
    out[i, 2] = total


def test_clocks_go_on():
    out = np.ones((4, 3))
    clocks[2, 2](out)
    if hip.get_current_device().target.startswith("gfx11"):
        out[:, 0] %= 2**20  # what the clock of RDNA 3 counts to, as HIP has it
    assert (out[:, :2] > 0).all()
    assert (out[:, 2] == 499500).all()


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.sample(1)
def test_for_amd_gpus(target):
    def words(x, out):
        out[0] = hip.byte_perm(x[0], x[1], 0x5410) ^ hip.funnelshift_l(x[0], x[1], x[2])
        out[1] = hip.funnelshift_rc(x[0], x[1], x[2])

    for kernel, signature, instructions in (
        (lanes, "(int32[::1], int32[::1], int32[:,::1], float64[::1])", ("v_readlane", "ds_permute", "ds_bpermute")),
        (clocks, "(float64[:,::1],)", ("s_sleep",)),
        (words, "(uint32[::1], uint32[::1])", ()),
    ):
        assert hip.compile(kernel, signature, target=target, output="object")[0][:4] == b"\x7fELF"
        text, _ = hip.compile(kernel, signature, target=target, output="asm")
        for instruction in instructions:
            assert instruction in text


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("hip.byte_perm(x[0], 1.5, 2)", "hip.byte_perm takes integers.*not a float64"),
        ("hip.funnelshift_l(x[0], 1)", r"hip.funnelshift_l takes \(lo, hi, shift\); this call passes"),
        ("hip.readlane(1j, 2)", "hip.readlane moves integers, float32 and float64"),
        ("hip.readlane(x[0], 2.5)", "hip.readlane takes an integer here, not a float64"),
        ("hip.mbcnt(1.0)", "hip.mbcnt takes an integer here"),
        ("hip.ds_permute(4, 1.5 * x[0])", "hip.ds_permute moves words of 32 bits between lanes, not float64"),
        ("hip.nanosleep(0.5)", "hip.nanosleep takes an integer, the number of nanoseconds, not a float64"),
    ],
)
def test_operands_that_do_not_fit(source, says):
    namespace = {"hip": hip}
    exec(f"def kernel(x):\n    {source}", namespace)
    with pytest.raises(TypingError, match=says):
        hip.compile(namespace["kernel"], "(int32[::1],)", target="cpu", output="llvm")


def test_a_breakpoint_without_a_debugger_is_gone_past():
    @hip.jit
    def kernel(values):
        breakpoint()
        values[hip.grid(1)] += 1

    kernel[2, 4](values := np.zeros(8))
    assert values.tolist() == [1] * 8
    assembly, _ = hip.compile(kernel, "(float64[::1],)", target="gfx90a", output="asm")
    assert "s_trap 3" in assembly


def test_masks_of_lanes():
    @hip.jit
    def kernel(out):
        i = hip.laneid
        out[i, 0], out[i, 1], out[i, 2] = hip.lanemask_lt(), hip.lanemask_le(), hip.lanemask_eq()
        out[i, 3], out[i, 4] = hip.lanemask_ge(), hip.lanemask_gt()

    waves = int(hip.get_current_device().WARP_SIZE)
    out = np.zeros((waves, 5), np.uint64)
    kernel[1, waves](out)
    every = (1 << waves) - 1
    for lane, (lt, le, eq, ge, gt) in enumerate(out.tolist()):
        assert eq == 1 << lane
        assert lt == eq - 1
        assert le == lt | eq
        assert ge == every & ~lt
        assert gt == every & ~le
