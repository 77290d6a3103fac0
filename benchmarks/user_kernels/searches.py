"""Searches that one thread does by itself: the first of a block, or each in a row of bytes, and results that a thread
leaves out with an early ``return`` or a ``continue``."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, hip, int32, int64

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, kernel, peer

THREADS = 64
MOST = 50
"""Different values in each group, at most."""


@hip.jit
def find_distinct(values, found, counts):
    loaded = hip.shared.array(THREADS, int64)
    seen = hip.shared.array(MOST, int64)
    count = hip.shared.array(1, int32)
    group, thread = hip.blockIdx.x, hip.threadIdx.x
    if thread == 0:
        count[0] = 0
    for first in range(0, values.shape[1], THREADS):
        if first + thread < values.shape[1]:
            loaded[thread] = values[group, first + thread]
        hip.syncthreads()
        if thread == 0:
            for k in range(min(THREADS, values.shape[1] - first)):
                is_new = True
                for i in range(count[0]):
                    if seen[i] == loaded[k]:
                        is_new = False
                        break
                if is_new:
                    seen[count[0]] = loaded[k]
                    count[0] += 1
        hip.syncthreads()
    for i in range(thread, count[0], THREADS):
        found[group, i] = seen[i]
    if thread == 0:
        counts[group] = count[0]


@peer
def find_distinct_by_loop(values, found, counts):
    for group in range(values.shape[0]):
        seen, count = found[group], 0
        for value in values[group]:
            for i in range(count):
                if seen[i] == value:
                    break
            else:
                seen[count] = value
                count += 1
        counts[group] = count


@kernel("distinct-by-one")
def DISTINCT(quick: bool) -> UserKernel:
    """the different int64 of each group of 500, which a block loads and its first thread compares with those so far"""
    groups = 3 if quick else 50
    values = np.random.default_rng(721).integers(1, MOST + 1, (groups, 500))

    def distinct(on: Arrays) -> dict[str, np.ndarray]:
        for group in range(groups):
            different = list(dict.fromkeys(on.values[group].tolist()))
            on.counts[group] = len(different)
            on.found[group, : len(different)] = different
        return {"found": on.found, "counts": on.counts}

    return UserKernel(
        {"values": values, "found": np.zeros((groups, MOST), np.int64), "counts": np.zeros(groups, np.int32)},
        ("found", "counts"),
        lambda on: find_distinct[groups, THREADS](on.values, on.found, on.counts),
        lambda on: find_distinct_by_loop(on.values, on.found, on.counts),
        expected=distinct,
    )


@hip.jit
def widest_gap(peaks, widest):
    profile = hip.grid(1)
    if profile < widest.size:
        gap = 0
        for i in range(peaks.shape[1]):
            if peaks[profile, i] == 1:
                j = i + 1
                while j < peaks.shape[1] and peaks[profile, j] != 1:
                    j += 1
                gap = max(gap, j - i)
        widest[profile] = gap


@peer
def widest_gap_by_loop(peaks, widest):
    for profile in range(widest.size):
        gap = last = 0
        known = False
        for i in range(peaks.shape[1]):
            if peaks[profile, i] == 1:
                if known:
                    gap = max(gap, i - last)
                last, known = i, True
        widest[profile] = max(gap, peaks.shape[1] - last) if known else 0


@kernel("peaks-in-bytes")
def PEAKS(quick: bool) -> UserKernel:
    """the widest gap between the peaks of each profile of 64 bytes, by a search for the next from each"""
    profiles = 200 if quick else 3000
    peaks = (np.random.default_rng(722).random((profiles, 64)) < 0.05).astype(np.uint8)

    def gaps(on: Arrays) -> dict[str, np.ndarray]:
        ends = [np.append(np.flatnonzero(row), row.size) for row in on.peaks]
        return {"widest": np.array([np.diff(end).max(initial=0) for end in ends])}

    return UserKernel(
        {"peaks": peaks, "widest": np.zeros(profiles, np.int32)},
        ("widest",),
        lambda on: widest_gap[blocks(profiles, THREADS), THREADS](on.peaks, on.widest),
        lambda on: widest_gap_by_loop(on.peaks, on.widest),
        expected=gaps,
    )


COMMA, ZERO = ord(","), ord("0")


@hip.jit
def read_field(lines, field, numbers):
    i = hip.grid(1)
    if i >= lines.shape[0]:
        return
    place = commas = 0
    while place < lines.shape[1] and commas < field:
        if lines[i, place] == COMMA:
            commas += 1
        place += 1
    number = 0
    while place < lines.shape[1]:
        letter = lines[i, place]
        if letter == COMMA:
            break
        number = 10 * number + (letter - ZERO)
        place += 1
    numbers[i] = number


@peer
def read_field_by_loop(lines, field, numbers):
    for i in range(lines.shape[0]):
        place = commas = 0
        while place < lines.shape[1] and commas < field:
            if lines[i, place] == COMMA:
                commas += 1
            place += 1
        number = 0
        while place < lines.shape[1]:
            letter = lines[i, place]
            if letter == COMMA:
                break
            number = 10 * number + (letter - ZERO)
            place += 1
        numbers[i] = number


@kernel("fields-of-text")
def FIELDS(quick: bool) -> UserKernel:
    """the fourth number of each line of bytes, a thread for each line, which counts commas"""
    count = 200 if quick else 20_000
    written = 10 ** np.random.default_rng(723).uniform(0, 5, (count, 7))
    texts = [",".join(str(int(number)) for number in row).ljust(48, ",").encode() for row in written]
    lines = np.frombuffer(b"".join(texts), np.uint8).reshape(count, 48).copy()
    return UserKernel(
        {"lines": lines, "numbers": np.zeros(count, np.int64)},
        ("numbers",),
        lambda on: read_field[blocks(count, THREADS), THREADS](on.lines, 3, on.numbers),
        lambda on: read_field_by_loop(on.lines, 3, on.numbers),
        expected=lambda on: {"numbers": written[:, 3].astype(np.int64)},
    )


@hip.jit
def keep_corners(scores, limit, kept):
    x, y = hip.grid(2)
    height, width = scores.shape
    if x >= width or y >= height:
        return
    kept[y, x] = 0
    score = scores[y, x]
    if score < limit or x < 1 or y < 1 or x >= width - 1 or y >= height - 1:
        return
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            if dx == 0 and dy == 0:
                continue
            if scores[y + dy, x + dx] > score:
                return
    kept[y, x] = score


@peer
def keep_corners_by_loop(scores, limit, kept):
    height, width = scores.shape
    kept[:] = 0
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            score = scores[y, x]
            if score < limit:
                continue
            highest = True
            for dy in range(-1, 2):
                for dx in range(-1, 2):
                    highest &= scores[y + dy, x + dx] <= score
            if highest:
                kept[y, x] = score


@kernel("local-maxima")
def CORNERS(quick: bool) -> UserKernel:
    """scores of pixels above a limit that no neighbour exceeds; a thread returns as soon as one does"""
    size = 50 if quick else 400
    scores = np.random.default_rng(724).random((size, size + 3), np.float32)
    grid = (blocks(size + 3, 32), blocks(size, 8))
    limit = np.float32(0.7)

    def maxima(on: Arrays) -> dict[str, np.ndarray]:
        windows = np.lib.stride_tricks.sliding_window_view(on.scores, (3, 3)).max(axis=(2, 3))
        inner, kept = on.scores[1:-1, 1:-1], np.zeros_like(on.scores)
        kept[1:-1, 1:-1] = np.where((inner >= limit) & (inner >= windows), inner, 0)
        return {"kept": kept}

    return UserKernel(
        {"scores": scores, "kept": np.full_like(scores, 7)},
        ("kept",),
        lambda on: keep_corners[grid, (32, 8)](on.scores, limit, on.kept),
        lambda on: keep_corners_by_loop(on.scores, limit, on.kept),
        expected=maxima,
    )


READINGS = 15


@hip.jit
def median_of_valid(readings, medians):
    i = hip.grid(1)
    if i >= medians.size:
        return
    ordered = hip.local.array(READINGS, float32)
    count = 0
    for k in range(READINGS):
        reading = readings[k, i]
        if math.isnan(reading):
            continue
        place = count
        while place > 0 and ordered[place - 1] > reading:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = reading
        count += 1
    if count == 0:
        medians[i] = math.nan
        return
    medians[i] = (ordered[(count - 1) // 2] + ordered[count // 2]) * float32(0.5)


@peer
def median_of_valid_by_loop(readings, medians):
    ordered = np.empty(READINGS, np.float32)
    for i in range(medians.size):
        count = 0
        for k in range(READINGS):
            reading = readings[k, i]
            if math.isnan(reading):
                continue
            place = count
            while place > 0 and ordered[place - 1] > reading:
                ordered[place] = ordered[place - 1]
                place -= 1
            ordered[place] = reading
            count += 1
        if count == 0:
            medians[i] = math.nan
        else:
            medians[i] = (ordered[(count - 1) // 2] + ordered[count // 2]) * float32(0.5)


@kernel("medians-of-valid")
def MEDIANS(quick: bool) -> UserKernel:
    """medians of up to 15 float32, NaNs left out by ``continue``, sorted by insertion in a private array"""
    generator = np.random.default_rng(725)
    size = 300 if quick else 5000
    readings = generator.random((READINGS, size), np.float32)
    readings[generator.random(readings.shape) < generator.choice([0.1, 0.6], size)] = np.nan
    readings[:, 5] = np.nan

    def medians(on: Arrays) -> dict[str, np.ndarray]:
        ordered, valid = np.sort(on.readings, axis=0), np.sum(~np.isnan(on.readings), axis=0)
        every = np.arange(size)
        middle = (ordered[(valid - 1) // 2, every] + ordered[valid // 2, every]) * np.float32(0.5)
        return {"medians": np.where(valid > 0, middle, np.float32(np.nan))}

    return UserKernel(
        {"readings": readings, "medians": np.zeros(size, np.float32)},
        ("medians",),
        lambda on: median_of_valid[blocks(size, THREADS), THREADS](on.readings, on.medians),
        lambda on: median_of_valid_by_loop(on.readings, on.medians),
        expected=medians,
    )


@hip.jit
def collatz_of_marked(marked, numbers, steps):
    i = hip.grid(1)
    if i >= steps.size:
        return
    if not marked[i]:
        return
    number, count = numbers[i], 0
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        count += 1
    steps[i] = count


@peer
def collatz_of_marked_by_loop(marked, numbers, steps):
    for i in range(steps.size):
        if marked[i]:
            number, count = numbers[i], 0
            while number != 1:
                number = 3 * number + 1 if number % 2 else number // 2
                count += 1
            steps[i] = count


@kernel("few-marked")
def MARKED(quick: bool) -> UserKernel:
    """steps of Collatz from those numbers that are marked, three of a hundred"""
    size = 1000 if quick else 100_000
    generator = np.random.default_rng(725)
    return UserKernel(
        {
            "marked": generator.random(size) < 0.03,
            "numbers": generator.integers(1, 10_000, size),
            "steps": np.zeros(size, np.int64),
        },
        ("steps",),
        lambda on: collatz_of_marked[blocks(size, 256), 256](on.marked, on.numbers, on.steps),
        lambda on: collatz_of_marked_by_loop(on.marked, on.numbers, on.steps),
    )


@hip.jit
def count_subsets(weights, behind, targets, counts):
    i = hip.grid(1)
    if i < targets.size:
        items, rests = hip.local.array(32, int32), hip.local.array(32, int32)
        items[0], rests[0] = 0, targets[i]
        height, count = 1, 0
        while height > 0:
            height -= 1
            item, rest = items[height], rests[height]
            if rest == 0:
                count += 1
            elif item < weights.size and rest <= behind[item]:
                items[height] = item + 1
                rests[height] = rest
                height += 1
                if weights[item] <= rest:
                    items[height] = item + 1
                    rests[height] = rest - weights[item]
                    height += 1
        counts[i] = count


@peer
def count_subsets_by_loop(weights, behind, targets, counts):
    items, rests = np.empty(32, np.int32), np.empty(32, np.int32)
    for i in range(targets.size):
        items[0], rests[0] = 0, targets[i]
        height, count = 1, 0
        while height > 0:
            height -= 1
            item, rest = items[height], rests[height]
            if rest == 0:
                count += 1
            elif item < weights.size and rest <= behind[item]:
                items[height] = item + 1
                rests[height] = rest
                height += 1
                if weights[item] <= rest:
                    items[height] = item + 1
                    rests[height] = rest - weights[item]
                    height += 1
        counts[i] = count


@kernel("subset-sums")
def SUBSETS(quick: bool) -> UserKernel:
    """how many subsets of sixteen weights have a sum, by a search with a stack in private arrays"""
    weights = np.random.default_rng(726).integers(5, 90, 16).astype(np.int32)
    size = 100 if quick else 2000
    targets = np.random.default_rng(727).integers(1, weights.sum(), size).astype(np.int32)
    sums = np.zeros(1, np.int64)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
    return UserKernel(
        {
            "weights": weights,
            "behind": np.cumsum(weights[::-1])[::-1].astype(np.int32),
            "targets": targets,
            "counts": np.zeros(size, np.int32),
        },
        ("counts",),
        lambda on: count_subsets[blocks(size, THREADS), THREADS](on.weights, on.behind, on.targets, on.counts),
        lambda on: count_subsets_by_loop(on.weights, on.behind, on.targets, on.counts),
        expected=lambda on: {"counts": np.bincount(sums)[targets].astype(np.int32)},
    )
