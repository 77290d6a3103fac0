"""Operations of a wave, against a plain evaluation in Python."""

import numpy as np
import pytest

import numba_hip as hip

WAVE = hip.get_current_device().wave_size
LANES = np.arange(WAVE)


def source_lane(kind, lane, operand, width):
    """The lane that *lane* reads from, or itself."""
    first = lane // width * width
    if kind == "idx":
        return first + operand % width
    other = {"up": lane - operand, "down": lane + operand, "xor": lane ^ operand}[kind]
    within = other >= first if kind == "up" else other < first + width
    return other if within else lane


SHUFFLES = {
    "idx": (hip.shfl, hip.shfl_sync), "up": (hip.shfl_up, hip.shfl_up_sync),
    "down": (hip.shfl_down, hip.shfl_down_sync), "xor": (hip.shfl_xor, hip.shfl_xor_sync),
}  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("kind", SHUFFLES)
def test_shuffles(kind, dtype):
    plain, masked = SHUFFLES[kind]

    @hip.jit
    def kernel(values, operand, out, grouped):
        t = hip.threadIdx.x
        out[t] = masked(-1, values[t], operand)
        grouped[t] = plain(values[t], operand, 8)

    values = np.random.default_rng(13).integers(0, 100, 2 * WAVE).astype(dtype)
    for operand in (0, 1, 3, 5, WAVE - 1):
        out, grouped = np.zeros_like(values), np.zeros_like(values)
        kernel[1, 2 * WAVE](values, operand, out, grouped)
        waves = values.reshape(2, WAVE)
        wanted = waves[:, [source_lane(kind, lane, operand, WAVE) for lane in LANES]]
        np.testing.assert_array_equal(out.reshape(2, WAVE), wanted)
        in_groups = waves[:, [source_lane(kind, lane, operand, 8) for lane in LANES]]
        np.testing.assert_array_equal(grouped.reshape(2, WAVE), in_groups)


def test_a_sum_by_shuffles():
    @hip.jit
    def kernel(values, sums):
        i = hip.grid(1)
        total = values[i]
        step = hip.warpsize // 2
        while step > 0:
            total += hip.shfl_down_sync(-1, total, step)
            step //= 2
        if hip.laneid == 0:
            sums[i // hip.warpsize] = total

    values = np.random.default_rng(14).integers(0, 1000, 8 * WAVE).astype(np.float64)
    sums = np.zeros(8)
    kernel[2, 4 * WAVE](values, sums)
    np.testing.assert_array_equal(sums, values.reshape(8, WAVE).sum(axis=1))


@pytest.mark.sample(1)
@pytest.mark.parametrize("block", [WAVE, 2 * WAVE, 3 * WAVE // 2, 5, (4, 4, 4), (3, 7)])
def test_lanes_and_votes(block):
    @hip.jit
    def kernel(values, out):
        t = hip.threadIdx.x + hip.blockDim.x * (hip.threadIdx.y + hip.blockDim.y * hip.threadIdx.z)
        out[t, 0] = hip.laneid
        out[t, 1] = hip.warpsize
        out[t, 2] = hip.ballot(values[t] > 5)
        out[t, 3] = hip.activemask()
        out[t, 4] = hip.lanemask_lt()
        out[t, 5] = hip.all_sync(-1, values[t] > 5)
        out[t, 6] = hip.any_sync(-1, values[t] > 5)
        out[t, 7] = hip.eq_sync(-1, values[t] > 5)
        out[t, 8] = hip.ballot_sync(0b1010, values[t] > 5)

    threads = int(np.prod(block))
    values = np.random.default_rng(15).integers(0, 10, threads)
    values[: WAVE // 2] = 7
    out = np.zeros((threads, 9), np.uint64)
    kernel[1, block](values, out)
    for start in range(0, threads, WAVE):
        votes = values[start : start + WAVE] > 5
        mask = sum(1 << lane for lane, vote in enumerate(votes) if vote)
        for lane, vote in enumerate(votes):
            del vote
            wanted = [
                lane, WAVE, mask, (1 << votes.size) - 1, (1 << lane) - 1, votes.all(), votes.any(),
                votes.all() or not votes.any(), mask & 0b1010,
            ]  # fmt: skip
            assert [int(value) for value in out[start + lane]] == [int(value) for value in wanted]


def test_divergent_lanes_take_part_where_they_are():
    @hip.jit
    def kernel(out):
        t = hip.threadIdx.x
        if t % 3 == 0:
            out[t, 0] = hip.activemask()
            out[t, 1] = hip.shfl(t * 10, 3)
        else:
            out[t, 0] = hip.ballot(t % 2 == 0)
            out[t, 1] = hip.shfl(t * 100, 4)
        out[t, 2] = hip.activemask()

    out = np.zeros((WAVE, 3), np.uint64)
    kernel[1, WAVE](out)
    thirds = sum(1 << t for t in range(WAVE) if t % 3 == 0)
    even = sum(1 << t for t in range(WAVE) if t % 3 and t % 2 == 0)
    for t in range(WAVE):
        wanted = [thirds, 30, 2**WAVE - 1] if t % 3 == 0 else [even, 400, 2**WAVE - 1]
        assert [int(value) for value in out[t]] == wanted


def test_lanes_that_left_a_loop_are_not_active():
    @hip.jit
    def kernel(counts, masks):
        t = hip.threadIdx.x
        rounds = 0
        while rounds < t % 4:
            rounds += hip.popc(hip.activemask() & 1) + 1
        counts[t] = rounds
        masks[t] = hip.activemask()

    counts, masks = np.zeros(WAVE, np.int64), np.zeros(WAVE, np.uint64)
    kernel[1, WAVE](counts, masks)
    np.testing.assert_array_equal(counts, LANES % 4)
    assert {int(mask) for mask in masks} == {2**WAVE - 1}


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.sample(2)
def test_lanes_with_equal_values(dtype):
    @hip.jit
    def kernel(values, out, same):
        t = hip.threadIdx.x
        out[t, 0] = hip.match_any_sync(-1, values[t])
        mask, equal = hip.match_all_sync(-1, values[t])
        out[t, 1] = mask
        same[t] = equal
        out[t, 2] = hip.match_any(values[t])
        out[t, 3], _ = hip.match_all(values[t])

    for count in (1, 5):
        values = np.random.default_rng(16).integers(0, count, WAVE).astype(dtype)
        out, same = np.zeros((WAVE, 4), np.uint64), np.zeros(WAVE, np.bool_)
        kernel[1, WAVE](values, out, same)
        np.testing.assert_array_equal(out[:, 2:], out[:, :2])
        for t in range(WAVE):
            assert int(out[t, 0]) == sum(1 << lane for lane in range(WAVE) if values[lane] == values[t])
            assert (int(out[t, 1]), same[t]) == ((2**WAVE - 1, True) if count == 1 else (0, False))


def test_memory_is_seen_after_syncwarp():
    @hip.jit
    def kernel(out):
        tile = hip.shared.array(64, "int32")
        t = hip.threadIdx.x
        tile[t] = t
        hip.syncwarp()
        out[t] = tile[t ^ 1]
        hip.threadfence()
        hip.threadfence_block()
        hip.threadfence_system()

    out = np.zeros(64, np.int32)
    kernel[1, 64](out)
    np.testing.assert_array_equal(out, np.arange(64) ^ 1)


@hip.jit
def by_constants(values, out):
    t = hip.threadIdx.x
    x = values[t]
    out[0, t], out[1, t], out[2, t] = hip.shfl_xor(x, 1), hip.shfl_xor_sync(-1, x, 4), hip.shfl_xor(x, 6)
    out[3, t], out[4, t] = hip.shfl_xor(x, 15), hip.shfl_xor_sync(-1, x, 16)
    out[5, t], out[6, t], out[7, t] = hip.shfl_up(x, 1), hip.shfl_up_sync(-1, x, 3), hip.shfl_up(x, 17)
    out[8, t], out[9, t], out[10, t] = hip.shfl_down(x, 1), hip.shfl_down_sync(-1, x, 15), hip.shfl_down(x, 0)
    out[11, t], out[12, t] = hip.shfl(x, 3), hip.shfl_sync(-1, x, 31)
    out[13, t] = hip.shfl_xor(x, 4, 4)  # in groups of four, of which lower ones are in reach, as in HIP


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_lanes_at_distances_that_are_constants(dtype):
    lanes = hip.get_current_device().WARP_SIZE
    values = (np.random.default_rng(5).random(lanes) * 1e9).astype(dtype)
    out = np.zeros((14, lanes), dtype)
    by_constants[1, lanes](values, out)
    own = np.arange(lanes)
    places = [own ^ mask for mask in (1, 4, 6, 15, 16)] + [own - distance for distance in (1, 3, 17)]
    places += (
        [own + distance for distance in (1, 15, 0)]
        + [np.full(lanes, lane) for lane in (3, 31)]
        + [np.where(own & 4, own ^ 4, own)]
    )
    places = [np.where((place >= 0) & (place < lanes), place, own) for place in places]
    np.testing.assert_array_equal(out, [values[place] for place in places])
