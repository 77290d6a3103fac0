"""Texts and sequences: distances by dynamic programming, and search."""

from __future__ import annotations

import numpy as np
from numba import hip, int32

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, kernel, peer

THREADS = 128
LONGEST = 128
LINE = LONGEST + 1


def random_text(*shape: int, letters: int = 4) -> np.ndarray:
    """Bytes, of so many different *letters*."""
    return (np.random.default_rng(sum(shape)).integers(0, letters, shape) + 65).astype(np.uint8)


@hip.jit
def distance_diagonal(left, right, before, last, current, diagonal):
    i = hip.grid(1)
    j = diagonal - i
    if i <= left.size and j >= 0 and j <= right.size:
        if i == 0 or j == 0:
            current[i] = i + j
        else:
            changed = before[i - 1] + (1 if left[i - 1] != right[j - 1] else 0)
            current[i] = min(changed, min(last[i - 1], last[i]) + 1)


@peer
def distance_by_rows(left, right, row):
    for j in range(right.size + 1):
        row[j] = j
    for i in range(1, left.size + 1):
        corner, row[0] = row[0], i
        for j in range(1, right.size + 1):
            changed = corner + (left[i - 1] != right[j - 1])
            corner = row[j]
            row[j] = min(changed, min(row[j], row[j - 1]) + 1)


@peer
def distance_of_diagonal(left, right, before, last, current, diagonal):
    for i in range(max(diagonal - right.size, 0), min(diagonal, left.size) + 1):
        j = diagonal - i
        if i == 0 or j == 0:
            current[i] = diagonal
        else:
            changed = before[i - 1] + (1 if left[i - 1] != right[j - 1] else 0)
            current[i] = min(changed, min(last[i - 1], last[i]) + 1)


@kernel("edit-distance", translated=True, opencl=True)
def EDIT(quick: bool) -> UserKernel:
    """the edit distance of two texts, a launch for each anti-diagonal; the peer goes by rows"""
    size = 50 if quick else 1000
    left, right = random_text(size), random_text(size + 1)

    def launch(on: Arrays) -> None:
        lines = [on.first, on.second, on.third]
        for diagonal in range(left.size + right.size + 1):
            before, last, current = (lines[(diagonal + k) % 3] for k in (1, 2, 0))
            distance_diagonal[blocks(left.size + 1, THREADS), THREADS](
                on.left, on.right, before, last, current, diagonal
            )
        on.distance.copy_to_device(lines[(left.size + right.size) % 3][left.size : left.size + 1])

    def translated(on: Arrays) -> None:
        lines = [on.first, on.second, on.third]
        for diagonal in range(left.size + right.size + 1):
            before, last, current = (lines[(diagonal + k) % 3] for k in (1, 2, 0))
            distance_of_diagonal(on.left, on.right, before, last, current, diagonal)
        on.distance[:] = lines[(left.size + right.size) % 3][left.size : left.size + 1]

    def loops(on: Arrays) -> None:
        distance_by_rows(on.left, on.right, on.row)
        on.distance[0] = on.row[right.size]

    lines = {name: np.zeros(left.size + 1, np.int32) for name in ("first", "second", "third")}
    arrays = {"left": left, "right": right, "row": np.zeros(right.size + 1, np.int32), **lines}
    arrays["distance"] = np.zeros(1, np.int32)
    return UserKernel(arrays, ("distance",), launch, loops, translated=translated)


@hip.jit
def align(first, second, scores):
    lines = hip.shared.array((3, LINE), int32)
    best = hip.shared.array(LONGEST, int32)
    pair, i = hip.blockIdx.x, hip.threadIdx.x + 1
    length = first.shape[1]
    for line in range(3):
        lines[line, i] = 0
    if i == 1:
        for line in range(3):
            lines[line, 0] = 0
    highest = 0
    hip.syncthreads()
    for diagonal in range(2, 2 * length + 1):
        j = diagonal - i
        if j >= 1 and j <= length:
            match = 2 if first[pair, i - 1] == second[pair, j - 1] else -1
            score = lines[(diagonal - 2) % 3, i - 1] + match
            gap = max(lines[(diagonal - 1) % 3, i - 1], lines[(diagonal - 1) % 3, i]) - 1
            score = max(0, max(score, gap))
            lines[diagonal % 3, i] = score
            highest = max(highest, score)
        else:
            lines[diagonal % 3, i] = 0
        hip.syncthreads()
    best[i - 1] = highest
    hip.syncthreads()
    if i == 1:
        for k in range(length):
            highest = max(highest, best[k])
        scores[pair] = highest


@peer
def align_by_rows(first, second, scores):
    length = first.shape[1]
    row = np.empty(length + 1, np.int32)
    for pair in range(first.shape[0]):
        row[:] = 0
        highest = 0
        for i in range(length):
            corner = 0
            for j in range(1, length + 1):
                score = corner + (2 if first[pair, i] == second[pair, j - 1] else -1)
                corner = row[j]
                score = max(max(score, 0), max(row[j - 1], row[j]) - 1)
                row[j] = score
                highest = max(highest, score)
        scores[pair] = highest


@kernel("smith-waterman")
def ALIGN(quick: bool) -> UserKernel:
    """the best local alignment of pairs of 128 letters, a block for each, anti-diagonals in shared memory"""
    pairs = 4 if quick else 32
    arrays = {"first": random_text(pairs, LONGEST), "second": random_text(pairs, LONGEST)[::-1].copy()}
    return UserKernel(
        arrays | {"scores": np.zeros(pairs, np.int32) - 1},
        ("scores",),
        lambda on: align[pairs, LONGEST](on.first, on.second, on.scores),
        lambda on: align_by_rows(on.first, on.second, on.scores),
    )


@hip.jit
def distances_of_words(words, word, distances):
    i = hip.grid(1)
    if i < words.shape[0]:
        row = hip.local.array(17, int32)
        for j in range(word.size + 1):
            row[j] = j
        for k in range(words.shape[1]):
            corner = row[0]
            row[0] = k + 1
            for j in range(word.size):
                changed = corner + (0 if words[i, k] == word[j] else 1)
                corner = row[j + 1]
                row[j + 1] = min(changed, min(row[j], row[j + 1]) + 1)
        distances[i] = row[word.size]


@peer
def distances_of_words_by_loop(words, word, distances):
    row = np.empty(17, np.int32)
    for i in range(words.shape[0]):
        for j in range(word.size + 1):
            row[j] = j
        for k in range(words.shape[1]):
            corner = row[0]
            left = row[0] = np.int32(k + 1)
            for j in range(word.size):
                changed = corner + (words[i, k] != word[j])
                corner = row[j + 1]
                left = min(changed, min(left, corner) + 1)
                row[j + 1] = left
        distances[i] = row[word.size]


@kernel("levenshtein-words")
def WORDS(quick: bool) -> UserKernel:
    """the edit distances of many words of 16 letters and one other, a row in a private array"""
    count = 200 if quick else 4000
    words = random_text(count, 16)
    return UserKernel(
        {"words": words, "word": random_text(16), "distances": np.zeros(count, np.int32) - 1},
        ("distances",),
        lambda on: distances_of_words[blocks(count, THREADS), THREADS](on.words, on.word, on.distances),
        lambda on: distances_of_words_by_loop(on.words, on.word, on.distances),
    )


@hip.jit
def find(text, pattern, found):
    i = hip.grid(1)
    if i <= text.size - pattern.size:
        matches = 1
        for j in range(pattern.size):
            if text[i + j] != pattern[j]:
                matches = 0
                break
        found[i] = matches


@peer
def find_by_loop(text, pattern, found):
    first = pattern[0]
    for i in range(text.size - pattern.size + 1):
        found[i] = 0
        if text[i] == first:
            j = 1
            while j < pattern.size and text[i + j] == pattern[j]:
                j += 1
            found[i] = j == pattern.size


@kernel("string-search")
def FIND(quick: bool) -> UserKernel:
    """at which places of a text a pattern of eight letters begins, each compared letter by letter"""
    size = 2000 if quick else 300_000
    text = random_text(size)
    return UserKernel(
        {"text": text, "pattern": text[1000:1008].copy(), "found": np.zeros(size, np.uint8)},
        ("found",),
        lambda on: find[blocks(size, THREADS), THREADS](on.text, on.pattern, on.found),
        lambda on: find_by_loop(on.text, on.pattern, on.found),
    )
