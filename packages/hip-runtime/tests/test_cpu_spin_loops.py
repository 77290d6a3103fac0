"""Spin loops. Most give up in the end, so that a thread that would wait forever is a failed test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel, launch

from hip_runtime import Device, config, to_device
from hip_runtime.errors import KernelFault

FORMS = ["auto", "loop", "regions", "vectors"]
BLOCKS: list[Any] = [1, 2, 31, 64, 65, (8, 3, 2), 130]

POLLS = {
    "adds nothing": "%seen = atomicrmw add ptr %theirs, i32 0 monotonic",
    "same again": "%seen = atomicrmw or ptr %theirs, i32 0 seq_cst",
    "exchange": "%pair = cmpxchg ptr %theirs, i32 1, i32 1 acquire monotonic\n %seen = extractvalue {i32, i1} %pair, 0",
    "volatile": "%seen = load volatile i32, ptr %theirs",
    "atomic": "%seen = load atomic i32, ptr %theirs acquire, align 4",
    "fence": "fence seq_cst\n %seen = load i32, ptr %theirs",
}

PATIENCE = 100_000
"""Rounds after which a thread gives up: more than any thread of these blocks has to wait for."""

SPIN = """
  br label %spin{n}
spin{n}:
  %tries{n} = phi i32 [ 0, %{before} ], [ %tried{n}, %again{n} ]
  {poll}
  %there{n} = icmp eq i32 {seen}, {wanted}
  br i1 %there{n}, label %behind{n}, label %again{n}
again{n}:
  %tried{n} = add i32 %tries{n}, 1
  %tired{n} = icmp eq i32 %tried{n}, {patience}
  br i1 %tired{n}, label %give.up, label %spin{n}
behind{n}:
"""

GIVE_UP = """
give.up:
  call void @spmd.fault(ptr %item, i32 99)
  ret void
"""


def spin(poll: str, before: str, n: str = "", seen: str = "%seen", wanted: str = "1") -> str:
    return SPIN.format(poll=poll, before=before, n=n, seen=seen, wanted=wanted, patience=PATIENCE)


def chain(poll: str, step: int) -> str:
    """Each thread waits for the flag of the one that is *step* away, and then sets its own and takes a number."""
    return f"""
  %their = add i32 %t, {step}
  %last = icmp uge i32 %their, %threads
  %mine = getelementptr i32, ptr %flags, i32 %t
  %theirs = getelementptr i32, ptr %flags, i32 %their
  %counter = getelementptr i32, ptr %flags, i32 %threads
  br i1 %last, label %behind, label %wait
wait:
{spin(poll, "wait")}
  %number = atomicrmw add ptr %counter, i32 1 monotonic
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %number, ptr %p
  %set = atomicrmw xchg ptr %mine, i32 1 release
  ret void
{GIVE_UP}"""


def count_threads(block: Any) -> int:
    return int(np.prod(block))


def run_chain(device: Device, poll: str, step: int, block: Any) -> tuple[np.ndarray, Any]:
    threads = count_threads(block)
    flags, out = (to_device(np.zeros(threads + 1, np.int32)) for _ in range(2))
    made = kernel(chain(poll, step), [("flags", "ptr"), ("out", "ptr")])
    function = launch(device, made, 1, block, flags.address, out.address)
    return out.copy_to_host()[:threads], function


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("form", "block", "step"),
    [*((form, block, 1) for block in BLOCKS for form in ("auto", "vectors")), ("vectors", 70, -1), ("loop", 70, -1)],
    ids=str,
)
def test_threads_wait_for_their_neighbours(device: Device, form: str, block: Any, step: int) -> None:
    with config.cpu_form.scope(form):
        numbers, function = run_chain(device, POLLS["adds nothing"], step, block)
    order = np.arange(count_threads(block))
    np.testing.assert_array_equal(numbers, order[::-1] if step > 0 else order)
    assert ("threads wait for one another in a loop" in function.form) == (count_threads(block) > 1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["loop", "vectors"])
@pytest.mark.parametrize("poll", POLLS)
def test_what_threads_poll_with(device: Device, form: str, poll: str) -> None:
    with config.cpu_form.scope(form):
        numbers, _ = run_chain(device, POLLS[poll], 1, 70)
    np.testing.assert_array_equal(numbers, np.arange(70)[::-1])


@pytest.mark.sample(1)
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32, 64])
def test_groups_of_any_width_take_turns(device: Device, width: int) -> None:
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        numbers, function = run_chain(device, POLLS["atomic"], 1, 77)
    np.testing.assert_array_equal(numbers, np.arange(77)[::-1])
    assert f"run {width} threads at a time" in function.form


SHARED = "declare ptr @spmd.shared.s.4096.16(ptr)\n"

LOCKED = """
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %lock = getelementptr i32, ptr %s, i32 1
  %flag = getelementptr i32, ptr %s, i32 2
  %zeroth = icmp eq i32 %t, 0
  br i1 %zeroth, label %clear, label %start
clear:
  store i32 0, ptr %s
  store i32 0, ptr %lock
  store i32 0, ptr %flag
  br label %start
start:
  call void @spmd.barrier(ptr %item)
  br label %ask
ask:
  {try}
  %has = icmp eq i32 %found, 0
  br i1 %has, label %do, label %ask
do:
  %v = load volatile i32, ptr %s
  %v1 = add i32 %v, %t
  {within}
  store volatile i32 %v1, ptr %s
  %gone = atomicrmw xchg ptr %lock, i32 0 release
  call void @spmd.barrier(ptr %item)
  %sum = load i32, ptr %s
  %p = getelementptr i32, ptr %out, i32 %t
  store i32 %sum, ptr %p
  ret void
"""

ATTEMPTS = {
    "cmpxchg": "%pair = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic\n %found = extractvalue {i32, i1} %pair, 0",
    "xchg": "%found = atomicrmw xchg ptr %lock, i32 1 acquire",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_threads_pass_on_a_lock(device: Device, form: str, attempt: str) -> None:
    out = to_device(np.zeros(40, np.int32))
    body = LOCKED.replace("{try}", ATTEMPTS[attempt]).replace("{within}", "")
    made = kernel(body, [("out", "ptr")], SHARED, shared_bytes=4096)
    with config.cpu_form.scope(form):
        function = launch(device, made, 1, 40, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(40, np.arange(40).sum()))
    assert "threads wait for one another in a loop" in function.form


@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.sample(1)
def test_a_thread_has_a_lock_for_several_turns(device: Device, form: str) -> None:
    """It polls a flag, which nobody sets, three times."""
    within = """
  %helper = icmp eq i32 %t, 39
  br i1 %helper, label %free, label %hold
hold:
  br label %rounds
rounds:
  %k = phi i32 [ 0, %hold ], [ %k1, %rounds ]
  %again = atomicrmw add ptr %flag, i32 0 monotonic
  %k1 = add i32 %k, 1
  %more = icmp slt i32 %k1, 3
  %unset = icmp ne i32 %again, 5
  %both = and i1 %more, %unset
  br i1 %both, label %rounds, label %free
free:
"""
    out = to_device(np.zeros(40, np.int32))
    made = kernel(
        LOCKED.replace("{try}", ATTEMPTS["xchg"]).replace("{within}", within), [("out", "ptr")], SHARED,
        shared_bytes=4096,
    )  # fmt: skip
    with config.cpu_form.scope(form):
        launch(device, made, 1, 40, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(40, np.arange(40).sum()))


TOKEN = f"""
  %late = icmp uge i32 %t, %n
  br i1 %late, label %out.early, label %start
start:
  br label %head
head:
  %r = phi i32 [ 0, %start ], [ %r1, %passed ]
  %sum = phi i32 [ 0, %start ], [ %sum1, %passed ]
  %turn0 = mul i32 %r, %n
  %turn = add i32 %turn0, %t
{spin("%now = atomicrmw add ptr %token, i32 0 acquire", "head", seen="%now", wanted="%turn")}
  %have = load i32, ptr %sums
  %sum1 = add i32 %sum, %have
  %have1 = add i32 %have, 1
  store i32 %have1, ptr %sums
  %next = atomicrmw add ptr %token, i32 1 release
  br label %passed
passed:
  %r1 = add i32 %r, 1
  %more = icmp ult i32 %r1, 5
  br i1 %more, label %head, label %end
end:
  call void @spmd.barrier(ptr %item)
  %all = load i32, ptr %sums
  %p = getelementptr i32, ptr %out, i32 %t
  %both = add i32 %sum1, %all
  store i32 %both, ptr %p
  ret void
out.early:
  ret void
{GIVE_UP}"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("form", "block", "n"), [("auto", 65, 40), ("regions", 64, 64), ("regions", 130, 129), ("vectors", 31, 31)]
)
def test_loop_in_a_loop_behind_an_early_return_and_before_a_barrier(
    device: Device, form: str, block: int, n: int
) -> None:
    """A token is passed around the threads five times."""
    token, sums = (to_device(np.zeros(1, np.int32)) for _ in range(2))
    out = to_device(np.zeros(block, np.int32))
    made = kernel(TOKEN, [("token", "ptr"), ("sums", "ptr"), ("out", "ptr"), ("n", "i32")])
    with config.cpu_form.scope(form):
        launch(device, made, 1, block, token.address, sums.address, out.address, n)
    ranks = np.arange(n)
    expected = sum(ranks + n * turn for turn in range(5)) + 5 * n
    np.testing.assert_array_equal(out.copy_to_host(), np.concatenate([expected, np.zeros(block - n, np.int32)]))


LONG = "  %a0 = load i32, ptr %place\n" + "".join(
    f"  %m{number} = mul i32 %a{number}, {number + 3}\n  %a{number + 1} = xor i32 %m{number}, {number * 77}\n"
    for number in range(60)
)

IN_FUNCTION = f"""
define void @wait_for(ptr %item, ptr %place, ptr %theirs) {{
entry:
{LONG}
  store i32 %a60, ptr %place
{spin(POLLS["adds nothing"], "entry")}
  ret void
{GIVE_UP}}}
"""


@pytest.mark.parametrize("form", ["loop", "regions"])
def test_function_that_llvm_would_not_inline(device: Device, form: str) -> None:
    body = """
  %their = add i32 %t, 1
  %last = icmp uge i32 %their, %threads
  %mine = getelementptr i32, ptr %flags, i32 %t
  %theirs = getelementptr i32, ptr %flags, i32 %their
  %p = getelementptr i32, ptr %out, i32 %t
  br i1 %last, label %set, label %wait
wait:
  call void @wait_for(ptr %item, ptr %p, ptr %theirs)
  %k1 = atomicrmw add ptr %mine, i32 1 release
  call void @wait_for(ptr %item, ptr %p, ptr %theirs)
  ret void
set:
  %k2 = atomicrmw add ptr %mine, i32 1 release
  ret void
"""
    flags, out = (to_device(np.zeros(40, np.int32)) for _ in range(2))
    made = kernel(body, [("flags", "ptr"), ("out", "ptr")], IN_FUNCTION)
    with config.cpu_form.scope(form):
        launch(device, made, 1, 40, flags.address, out.address)
    np.testing.assert_array_equal(flags.copy_to_host(), np.ones(40))


# waves


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("block", [64, 100, 130, 192])
def test_lanes_that_spin_are_waited_for_where_their_ways_join(device: Device, form: str, block: int) -> None:
    """After the loop all lanes of a wave reconverge, and waves wait for each other in it."""
    body = f"""
  %their = add i32 %t, 1
  %last = icmp uge i32 %their, %threads
  %mine = getelementptr i32, ptr %flags, i32 %t
  %theirs = getelementptr i32, ptr %flags, i32 %their
  br label %go
go:
  br label %spin
spin:
  %tries = phi i32 [ 0, %go ], [ %tried, %again ]
  br i1 %last, label %set, label %look
look:
  {POLLS["adds nothing"]}
  %there = icmp eq i32 %seen, 1
  br i1 %there, label %set, label %again
again:
  %tried = add i32 %tries, 1
  %tired = icmp eq i32 %tried, {PATIENCE}
  br i1 %tired, label %give.up, label %spin
set:
  %done = atomicrmw add ptr %mine, i32 1 release
  %here = call i64 @spmd.active_lanes(ptr %item)
  %p = getelementptr i64, ptr %out, i32 %t
  store i64 %here, ptr %p
  ret void
{GIVE_UP}"""
    flags, out = to_device(np.zeros(block, np.int32)), to_device(np.zeros(block, np.uint64))
    made = kernel(body, [("flags", "ptr"), ("out", "ptr")], wave_size=64)
    with config.cpu_form.scope(form):
        launch(device, made, 1, block, flags.address, out.address)
    lanes = [min(64, block - first) for first in range(0, block, 64) for _ in range(min(64, block - first))]
    np.testing.assert_array_equal(out.copy_to_host(), [np.uint64((1 << count) - 1) for count in lanes])


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("wave_size", [32, 64])
def test_operation_of_a_wave_in_each_round(device: Device, form: str, wave_size: int) -> None:
    body = f"""
  %their = add i32 %t, 1
  %last = icmp uge i32 %their, %threads
  %mine = getelementptr i32, ptr %flags, i32 %t
  %theirs = getelementptr i32, ptr %flags, i32 %their
  br label %spin
spin:
  %tries = phi i32 [ 0, %entry ], [ %tried, %again ]
  %done = phi i1 [ false, %entry ], [ %done1, %again ]
  br i1 %last, label %set, label %look
look:
  {POLLS["adds nothing"]}
  %there = icmp eq i32 %seen, 1
  br i1 %there, label %set, label %check
set:
  store volatile i32 1, ptr %mine
  br label %check
check:
  %done1 = phi i1 [ true, %set ], [ false, %look ]
  %left = call i64 @spmd.ballot(ptr %item, i1 %done1)
  %tried = add i32 %tries, 1
  %tired = icmp eq i32 %tried, {PATIENCE}
  br i1 %tired, label %give.up, label %again
again:
  br i1 %done1, label %end, label %spin
end:
  %here = call i64 @spmd.active_lanes(ptr %item)
  %p = getelementptr i64, ptr %out, i32 %t
  store i64 %here, ptr %p
  ret void
{GIVE_UP}"""
    flags, out = to_device(np.zeros(130, np.int32)), to_device(np.zeros(130, np.uint64))
    made = kernel(body, [("flags", "ptr"), ("out", "ptr")], wave_size=wave_size)
    with config.cpu_form.scope(form):
        launch(device, made, 1, 130, flags.address, out.address)
    lanes = [min(wave_size, 130 - t // wave_size * wave_size) for t in range(130)]
    np.testing.assert_array_equal(out.copy_to_host(), [np.uint64((1 << count) - 1) for count in lanes])


# what ends a loop otherwise


@pytest.mark.parametrize("form", FORMS)
def test_a_fault_ends_threads_that_wait_for_the_one_that_stopped(device: Device, form: str) -> None:
    body = """
  %flag = getelementptr i32, ptr %flags, i32 7
  %stops = icmp eq i32 %t, 7
  br i1 %stops, label %stop, label %spin
stop:
  call void @spmd.fault(ptr %item, i32 5)
  ret void
spin:
  %seen = atomicrmw add ptr %flag, i32 0 acquire
  %there = icmp eq i32 %seen, 1
  br i1 %there, label %end, label %spin
end:
  ret void
"""
    flags = to_device(np.zeros(40, np.int32))
    with config.cpu_form.scope(form), pytest.raises(KernelFault, match=r"error code 5 .* thread \(7, 0, 0\)"):
        launch(device, kernel(body, [("flags", "ptr")]), 1, 40, flags.address)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sample(2)
def test_threads_at_a_barrier_wait_for_those_that_spin(device: Device, form: str) -> None:
    """The first thread sets the flag in front of the barrier, the last looks for it there."""
    body = f"""
  %zeroth = icmp eq i32 %t, 0
  br i1 %zeroth, label %meet.late, label %try
try:
{spin("%seen = load volatile i32, ptr %flags", "try")}
  br label %meet
meet.late:
  store volatile i32 1, ptr %flags
  br label %meet
meet:
  {{barrier}}
  %c = getelementptr i32, ptr %flags, i32 1
  %old = atomicrmw add ptr %c, i32 1 monotonic
  ret void
{GIVE_UP}"""
    flags = to_device(np.zeros(2, np.int32))
    barrier = "" if form == "loop" else "call void @spmd.barrier(ptr %item)"
    with config.cpu_form.scope(form):
        launch(device, kernel(body.format(barrier=barrier), [("flags", "ptr")]), 1, (9, 5), flags.address)
    np.testing.assert_array_equal(flags.copy_to_host(), [1, 45])


# loops in which no thread waits for another

MAXIMUM = """
  %x = uitofp i32 %t to float
  %found0 = load i32, ptr %flags
  br label %try
try:
  %old = phi i32 [ %found0, %entry ], [ %found, %more ]
  %value = bitcast i32 %old to float
  %better = fcmp ogt float %x, %value
  br i1 %better, label %swap, label %end
swap:
  %new = bitcast float %x to i32
  %pair = cmpxchg ptr %flags, i32 %old, i32 %new monotonic monotonic
  %found = extractvalue {i32, i1} %pair, 0
  %same = icmp eq i32 %found, %old
  br i1 %same, label %end, label %more
more:
  br label %try
end:
  ret void
"""

QUEUE = """
  br label %head
head:
  %k = atomicrmw add ptr %flags, i32 1 monotonic
  %limit = load i32, ptr %n
  %more = icmp slt i32 %k, %limit
  br i1 %more, label %do, label %end
do:
  %p = getelementptr i32, ptr %n, i32 %k
  %p1 = getelementptr i32, ptr %p, i32 1
  store i32 %k, ptr %p1
  br label %head
end:
  ret void
"""

PROBING = """
  %key = add i32 %t, 1
  br label %head
head:
  %slot = phi i32 [ 0, %entry ], [ %slot1, %next ]
  %p = getelementptr i32, ptr %n, i32 %slot
  %pair = cmpxchg ptr %p, i32 0, i32 %key monotonic monotonic
  %won = extractvalue {i32, i1} %pair, 1
  br i1 %won, label %end, label %next
next:
  %slot1 = add i32 %slot, 1
  br label %head
end:
  ret void
"""


@pytest.mark.parametrize("body", [MAXIMUM, QUEUE, PROBING], ids=["maximum", "queue", "probing"])
def test_threads_that_try_again_do_not_wait(device: Device, body: str) -> None:
    flags, n = to_device(np.zeros(200, np.int32)), to_device(np.zeros(200, np.int32))
    made = kernel(body, [("flags", "ptr"), ("n", "ptr")])
    function = launch(device, made, 1, 64, flags.address, n.address)
    assert "wait for one another" not in function.form
    if body is PROBING:
        assert set(n.copy_to_host()[:64]) == set(range(1, 65))


def test_loop_in_which_all_meet_in_each_round_is_no_spin_loop(device: Device) -> None:
    body = """
  br label %head
head:
  call void @spmd.barrier(ptr %item)
  %seen = load volatile i32, ptr %flags
  %more = icmp slt i32 %seen, 200
  br i1 %more, label %add, label %end
add:
  call void @spmd.barrier(ptr %item)
  %old = atomicrmw add ptr %flags, i32 1 monotonic
  br label %head
end:
  ret void
"""
    flags = to_device(np.zeros(2, np.int32))
    function = launch(device, kernel(body, [("flags", "ptr")]), 1, 64, flags.address)
    assert flags.copy_to_host()[0] == 256
    assert "wait for one another in" not in function.form
