"""Atomic operations of those threads that a check of data lets through: none, few, many and all of them."""

from __future__ import annotations

import numpy as np
import pytest
from numba import hip

from hip_runtime import config as runtime_config

FORMS = ["auto", "loop", "regions", "vectors"]
SHARES = [0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0]


@hip.jit
def count_neighbours(image, counts):
    x, y = hip.grid(2)
    if x >= image.shape[0] or y >= image.shape[1]:
        return
    if image[x, y, 3] == 0:
        return
    hip.atomic.add(counts, 0, 1.0)
    for i in range(x - 1, x + 2):
        for j in range(y - 1, y + 2):
            if 0 <= i < image.shape[0] and 0 <= j < image.shape[1] and image[i, j, 3] > 0:
                hip.atomic.add(counts, 1, 1.0)


@hip.jit
def collect(keys, weights, bins, totals, best):
    i = hip.grid(1)
    if i >= keys.size:
        return
    if weights[i] == 0:
        return
    key = keys[i]
    hip.atomic.add(bins, key, weights[i])
    hip.atomic.add(totals, 0, weights[i])
    hip.atomic.max(best, 0, key * weights[i])
    hip.atomic.add(totals, 1, keys[(key * 7) % keys.size])


@hip.jit
def list_passed(keys, weights, found, count):
    i = hip.grid(1)
    if i >= keys.size:
        return
    if weights[i] == 0:
        return
    place = hip.atomic.add(count, 0, 1)
    found[place] = keys[i] + keys[keys[i]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", SHARES)
def test_counts_of_neighbours(share: float, form: str) -> None:
    image = np.zeros((90, 70, 4), np.int32)
    image[np.random.default_rng(13).random((90, 70)) < share] = 7
    counts = np.zeros(2)
    with runtime_config.cpu_form.scope(form):
        count_neighbours[(3, 3), (32, 32)](image, counts)
    marked = image[..., 3] > 0
    around = np.lib.stride_tricks.sliding_window_view(np.pad(marked, 1), (3, 3)).sum(axis=(2, 3))
    assert counts.tolist() == [marked.sum(), around[marked].sum()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", SHARES)
def test_sums_maxima_and_places(share: float, form: str) -> None:
    generator = np.random.default_rng(14)
    keys = generator.integers(0, 300, 3000)
    weights = np.where(generator.random(3000) < share, generator.integers(1, 5, 3000), 0)
    bins, totals, best = np.zeros(300, np.int64), np.zeros(2, np.int64), np.zeros(1, np.int64)
    found, count = np.zeros(3000, np.int64), np.zeros(1, np.int64)
    with runtime_config.cpu_form.scope(form):
        collect[12, 256](keys, weights, bins, totals, best)
        list_passed[12, 256](keys, weights, found, count)
    passed = keys[weights > 0]
    np.testing.assert_array_equal(bins, np.bincount(keys, weights, 300))
    assert totals.tolist() == [weights.sum(), keys[(passed * 7) % 3000].sum()]
    assert best[0] == (keys * weights).max()
    assert count[0] == passed.size
    np.testing.assert_array_equal(np.sort(found[: count[0]]), np.sort(passed + keys[passed]))


@pytest.mark.parametrize("arrays", [5, 9, 17])
def test_updates_of_many_arrays(arrays):
    """Of three types, which are read in between, in a loop."""
    kinds = [np.int32, np.float32, np.float64]
    names = [f"a{k}" for k in range(arrays)]
    updates = "".join(f"        hip.atomic.add({name}, places[i], values[i] + {k})\n" for k, name in enumerate(names))
    source = f"def kernel(places, values, seen, {', '.join(names)}):\n"
    source += "    for i in range(hip.grid(1), places.size, hip.gridsize(1)):\n"
    source += updates + "        seen[i] = values[i]\n"
    made = {"hip": hip}
    exec(source, made)
    random = np.random.default_rng(arrays)
    places, values = random.integers(0, 300, 4000), random.integers(0, 50, 4000).astype(np.int32)
    found = [np.zeros(300, kinds[k % 3]) for k in range(arrays)]
    seen = np.zeros_like(values)
    hip.jit(made["kernel"])[3, 64](places, values, seen, *found)
    for k, array in enumerate(found):
        np.testing.assert_array_equal(array, np.bincount(places, values + k, 300))
    np.testing.assert_array_equal(seen, values)
