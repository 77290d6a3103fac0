"""Compare-and-swap, minima and maxima, which look at memory before they lock it; compared with Python."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel, launch

from hip_runtime import Device, config, to_device

INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
FORMS = ("vectors", "regions")
THREADS, BLOCKS = 75, 12


def run(device: Device, body: str, arrays: list[Any], form: str, blocks: int = BLOCKS) -> list[Any]:
    """What *body* leaves in *arrays*, which are ``%a0``, ``%a1`` and so on."""
    there = [to_device(array) for array in arrays]
    with config.cpu_form.scope(form):
        made = kernel(body, [(f"a{number}", "ptr") for number in range(len(arrays))])
        launch(device, made, blocks, THREADS, *(array.address for array in there))
    return [array.copy_to_host() for array in there]


MEET = "  call void @spmd.barrier(ptr %item)\n"
"""What the form ``regions`` takes, and loops over single threads."""

START = """
  %pb = getelementptr i32, ptr %a1, i32 %i
  %bin = load i32, ptr %pb
  %pv = getelementptr {kind}, ptr %a2, i32 %i
  %v = load {kind}, ptr %pv
  %po = getelementptr {kind}, ptr %a3, i32 %i
  %taken = icmp sge i32 %bin, 0
"""

CLAIM = """
  br i1 %taken, label %in, label %end
in:
  %place = getelementptr {kind}, ptr %a0, i32 %bin
  %pair = cmpxchg ptr %place, {kind} -1, {kind} %v {orderings}
  %old = extractvalue {{ {kind}, i1 }} %pair, 0
  %won = extractvalue {{ {kind}, i1 }} %pair, 1
  %ps = getelementptr i8, ptr %a4, i32 %i
  %as.byte = zext i1 %won to i8
  store {kind} %old, ptr %po
  store i8 %as.byte, ptr %ps
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("kind", "orderings"), [
    ("i8", "monotonic monotonic"), ("i16", "acq_rel acquire"), ("i32", "monotonic monotonic"),
    ("i32", "seq_cst seq_cst"), ("i64", "release monotonic"),
])  # fmt: skip
@pytest.mark.sample(2)
def test_one_thread_claims_each_element(device: Device, kind: str, orderings: str, form: str) -> None:
    """The first one finds -1; all others find what that one has written, and write nothing."""
    total, dtype = BLOCKS * THREADS, INTEGERS[kind]
    bins = np.random.default_rng(1).integers(-3, 40, total).astype(np.int32)
    values = (np.arange(total) % 100).astype(dtype)
    taken = np.full(50, -1, dtype)
    taken[30:] = 101
    body = START + (MEET if form == "regions" else "") + CLAIM
    body = body.format(kind=kind, orderings=orderings)
    nothing = [np.full(total, 77, dtype), np.full(total, 7, np.int8)]
    found, _, _, olds, wins = run(device, body, [taken, bins, values, *nothing], form)
    for place in range(40):
        here = bins == place
        assert wins[here].sum() == (taken[place] == -1 and here.any())
        assert set(olds[here & (wins == 1)]) <= {-1}
        assert set(olds[here & (wins == 0)]) <= {found[place]}
        winner = values[here & (wins == 1)]
        assert found[place] == (winner[0] if len(winner) else taken[place])
    assert set(olds[bins < 0]) == {77}
    assert set(wins[bins < 0]) == {7}


IMPROVE = """
  br i1 %taken, label %in, label %end
in:
  %place = getelementptr {kind}, ptr %a0, i32 %bin
  %old = atomicrmw {operation} ptr %place, {kind} %v {ordering}
  store {kind} %old, ptr %po
  br label %end
end:
  ret void
"""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ordering", ["monotonic", "seq_cst"])
@pytest.mark.parametrize("operation", ["min", "max", "umin", "umax"])
@pytest.mark.parametrize("kind", list(INTEGERS))
@pytest.mark.sample(2)
def test_threads_improve_what_others_left(
    device: Device, kind: str, operation: str, ordering: str, form: str
) -> None:  # fmt: skip
    """Each element goes through the numbers that improved it, and every thread finds one of these."""
    total, dtype = BLOCKS * THREADS, np.dtype(INTEGERS[kind])
    random = np.random.default_rng(2)
    bins = random.integers(-3, 9, total).astype(np.int32)
    bins[100:300] = 5  # lanes of a gang that all update one element
    values, first = (random.integers(-90, 90, count).astype(dtype) for count in (total, 9))
    body = (START + (MEET if form == "regions" else "") + IMPROVE).format(
        kind=kind, operation=operation, ordering=ordering
    )
    found, _, _, olds = run(device, body, [first, bins, values, np.full(total, 99, dtype)], form)
    if operation[0] == "u":
        first, values, olds, found = (array.view(f"u{dtype.itemsize}") for array in (first, values, olds, found))
    best = np.minimum if operation.endswith("min") else np.maximum
    for place in range(9):
        here = bins == place
        improved = best(olds[here], values[here]) != olds[here]
        steps = dict(zip(olds[here][improved], values[here][improved], strict=True))
        assert len(steps) == improved.sum()
        seen = [first[place]]
        while seen[-1] in steps:
            seen.append(steps[seen[-1]])
        assert len(seen) == len(steps) + 1
        assert seen[-1] == found[place] == best.reduce([first[place], *values[here]])
        assert set(olds[here]) <= set(seen)
    assert set(olds[bins < 0]) == {99}


@pytest.mark.parametrize("form", FORMS)
def test_what_changes_nothing_writes_nothing(device: Device, form: str) -> None:
    """So memory that must not be written is no fault."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ)
    address = np.frombuffer(page, np.uint8).ctypes.data
    total = BLOCKS * THREADS
    there = [to_device(np.full(total, number, np.int32)) for number in (3, 4)]
    body = """
      %pb = getelementptr i32, ptr %a1, i32 %i
      %bin = load i32, ptr %pb
      {meet}
      %place = getelementptr i32, ptr %a0, i32 %bin
      %pair = cmpxchg ptr %place, i32 5, i32 6 monotonic monotonic
      %held = extractvalue {{ i32, i1 }} %pair, 0
      %old = atomicrmw max ptr %place, i32 -4 monotonic
      %least = atomicrmw umin ptr %a0, i32 9 monotonic
      %both = or i32 %held, %old
      %all = or i32 %both, %least
      %po = getelementptr i32, ptr %a2, i32 %i
      store i32 %all, ptr %po
      ret void
    """.format(meet=MEET if form == "regions" else "")
    with config.cpu_form.scope(form):
        made = kernel(body, [("a0", "ptr"), ("a1", "ptr"), ("a2", "ptr")])
        launch(device, made, BLOCKS, THREADS, address, *(array.address for array in there))
    assert not there[1].copy_to_host().any()
