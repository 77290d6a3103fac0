"""Kernels whose threads wait for one another in loops, without a barrier."""

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config

pytestmark = pytest.mark.cpu_device("threads of a wave wait for one another, which an AMD GPU does not promise to end")

FORMS = ["auto", "loop", "regions", "vectors"]


def fresh(kernel):
    """The kernel without the machine code of other forms."""
    return hip.jit(kernel.py_func)


@hip.jit
def pass_on(flag, last):
    i = hip.threadIdx.x
    done = False
    while not done:
        if i == last or hip.atomic.add(flag, i + 1, 0) == 1:
            hip.atomic.add(flag, i, 1)
            done = True


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [2, 31, 130])
def test_threads_wait_for_their_neighbours(form, threads):
    flag = np.zeros(threads, np.int64)
    with config.cpu_form.scope(form):
        fresh(pass_on)[1, threads](flag, threads - 1)
    np.testing.assert_array_equal(flag, np.ones(threads))


@hip.jit
def alignments(log_probs, alphas, counts, steps):
    """The sums of a transducer's loss: thread ``u`` is at step ``t`` when its neighbour has passed it."""
    u = hip.threadIdx.x
    alphas[0, u] = 0.0 if u == 0 else -np.inf
    if u > 0:
        while hip.atomic.add(counts, u - 1, 0) < 1:
            pass
        alphas[0, u] = alphas[0, u - 1] + log_probs[0, u - 1, 1]
    hip.threadfence()
    hip.atomic.add(counts, u, 1)
    for t in range(1, steps):
        best = alphas[t - 1, u] + log_probs[t - 1, u, 0]
        if u > 0:
            while hip.atomic.add(counts, u - 1, 0) <= t:
                hip.threadfence()
            other = alphas[t, u - 1] + log_probs[t, u - 1, 1]
            best = max(best, other)
        alphas[t, u] = best
        hip.threadfence()
        hip.atomic.add(counts, u, 1)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("form", "lanes"), [("auto", 5), ("loop", 70), ("regions", 70), ("vectors", 70)])
def test_a_loss_that_goes_through_a_table_in_diagonals(form, lanes):
    steps = 9
    log_probs = np.log(np.random.default_rng(3).uniform(0.1, 1, (steps, lanes, 2)))
    alphas, counts = np.zeros((steps, lanes)), np.zeros(lanes, np.int32)
    with config.cpu_form.scope(form):
        fresh(alignments)[1, lanes](log_probs, alphas, counts, steps)
    expected = np.full((steps, lanes), -np.inf)
    expected[0, 0] = 0
    for t in range(steps):
        for u in range(lanes):
            if t > 0:
                expected[t, u] = max(expected[t, u], expected[t - 1, u] + log_probs[t - 1, u, 0])
            if u > 0:
                expected[t, u] = max(expected[t, u], expected[t, u - 1] + log_probs[t, u - 1, 1])
    np.testing.assert_allclose(alphas, expected)
    np.testing.assert_array_equal(counts, np.full(lanes, steps))


@hip.jit(device=True)
def acquire(lock, at):
    while True:
        if hip.atomic.cas(lock, at, 0, 1) == 0:
            break
    hip.threadfence()


@hip.jit(device=True)
def release(lock, at):
    hip.threadfence()
    hip.atomic.exch(lock, at, 0)


@hip.jit
def with_a_lock(lock, state):
    acquire(lock, 0)
    state[0] = (state[0] * 5 + 7) % 1000003
    release(lock, 0)


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (6, 33)])
def test_threads_of_all_blocks_pass_on_a_lock(form, blocks, threads):
    lock, state = np.zeros(1, np.int32), np.zeros(1, np.int64)
    with config.cpu_form.scope(form):
        fresh(with_a_lock)[blocks, threads](lock, state)
    expected = 0
    for _ in range(blocks * threads):
        expected = (expected * 5 + 7) % 1000003
    assert (lock[0], state[0]) == (0, expected)


@hip.jit
def ring(out, rounds):
    """A token in shared memory goes round the threads; behind that all meet, and some have left."""
    token = hip.shared.array(2, np.int32)
    t, n = hip.threadIdx.x, hip.blockDim.x
    if t < 2:
        token[t] = 0
    hip.syncthreads()
    if t == n - 1:
        out[hip.blockIdx.x, t] = -1
        return
    for k in range(rounds):
        tries = 0
        while hip.atomic.or_(token, 0, 0) != k * (n - 1) + t:
            tries += 1
        hip.threadfence_block()
        token[1] += t
        hip.threadfence_block()
        hip.atomic.inc(token, 0, 1 << 30)
    hip.syncthreads()
    out[hip.blockIdx.x, t] = token[1]


@pytest.mark.parametrize(("form", "threads"), [("auto", 5), ("regions", 64), ("vectors", 100)])
@pytest.mark.sample(2)
def test_a_token_goes_round_the_threads_of_each_block(form, threads):
    out = np.zeros((3, threads), np.int32)
    with config.cpu_form.scope(form):
        fresh(ring)[3, threads](out, 4)
    expected = np.full(threads, 4 * np.arange(threads - 1).sum())
    expected[-1] = -1
    np.testing.assert_array_equal(out, np.tile(expected, (3, 1)))


@hip.jit
def in_step_with_the_wave(flags, sums):
    i = hip.threadIdx.x
    done = False
    while not done:
        if i == hip.blockDim.x - 1 or hip.atomic.add(flags, i + 1, 0) == 1:
            hip.atomic.add(flags, i, 1)
            done = True
        hip.syncwarp()
    sums[i] = hip.ballot(1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("threads", [64, 150])
def test_waves_that_wait_for_waves(form, threads):
    flags, sums = np.zeros(threads, np.int32), np.zeros(threads, np.uint64)
    with config.cpu_form.scope(form):
        fresh(in_step_with_the_wave)[1, threads](flags, sums)
    np.testing.assert_array_equal(flags, np.ones(threads))
    wave = hip.get_current_device().WARP_SIZE
    lanes = [min(wave, threads - i // wave * wave) for i in range(threads)]
    np.testing.assert_array_equal(sums, [np.uint64((1 << count) - 1) for count in lanes])


@hip.jit
def sleeps_until_the_next_is_through(flag, last):
    i = hip.threadIdx.x
    while i < last and flag[i + 1] == 0:
        hip.nanosleep(100)
    flag[i] = 1


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_loop_that_sleeps_reads_again(form):
    flag = np.zeros(40, np.int64)
    with config.cpu_form.scope(form):
        fresh(sleeps_until_the_next_is_through)[1, 40](flag, 39)
    np.testing.assert_array_equal(flag, np.ones(40))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1201"])
def test_a_loop_that_sleeps_reads_again_on_amd_gpus(target):
    """From memory that the compute units share: the load is in the loop, behind what empties the cache."""
    text, _ = hip.compile(sleeps_until_the_next_is_through, "(int64[::1], int64)", target=target, output="asm")
    loop = text[text.index("s_sleep") :]
    assert "inv" in loop
    assert "global_load" in loop[loop.index("inv") :]


def test_code_for_debuggers_takes_turns():
    debugged = hip.jit(debug=True, opt=False)(pass_on.py_func)
    flag = np.zeros(40, np.int64)
    debugged[1, 40](flag, 39)
    np.testing.assert_array_equal(flag, np.ones(40))


@hip.jit
def fails_while_others_wait(flag):
    i = hip.threadIdx.x
    if i == 3:
        raise ValueError("no flag")
    while hip.atomic.add(flag, 0, 0) == 0:
        pass


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sample(2)
def test_an_exception_ends_those_that_wait(form):
    with config.cpu_form.scope(form), pytest.raises(ValueError, match="no flag"):
        fresh(fails_while_others_wait)[1, 40](np.zeros(1, np.int32))


@hip.jit
def fails_in_one_block_while_another_waits(flag, failing):
    if hip.blockIdx.x == failing:
        raise ValueError("no flag")
    while hip.atomic.add(flag, 0, 0) == 0:
        pass


@pytest.mark.skipif(config.cpu_threads() < 2, reason="needs two threads of the processor, which run a block each")
@pytest.mark.parametrize("failing", [0, 1])
def test_an_exception_ends_the_blocks_that_wait(failing):
    """The launching thread runs one of the two blocks, and a helper the other."""
    with pytest.raises(ValueError, match="no flag"):
        fresh(fails_in_one_block_while_another_waits)[2, 2](np.zeros(1, np.int32), failing)


@hip.jit
def largest(values, found):
    """A maximum of numbers by comparing and swapping, as there was before atomics on floats."""
    i = hip.grid(1)
    old = found[0]
    while values[i] > old:
        assumed = old
        old = hip.atomic.cas(found, 0, assumed, values[i])
        if old == assumed:
            break


def test_an_attempt_that_only_fails_where_others_went_on_is_no_waiting():
    values = np.random.default_rng(5).permutation(4096).astype(np.int64)
    found = np.zeros(1, np.int64)
    largest[32, 128](values, found)
    assert found[0] == 4095
