"""Graphs: a thread for each vertex or edge."""

from __future__ import annotations

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, kernel, peer

THREADS = 256


def random_graph(vertices: int, degree: int, *, symmetric: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Starts of rows and columns, in order, of a graph with *degree* edges for each vertex on average."""
    rng = np.random.default_rng(1)
    edges = rng.integers(0, vertices, (2, vertices * degree))
    edges = edges[:, edges[0] != edges[1]]
    if symmetric:
        edges = np.concatenate((edges, edges[::-1]), axis=1)
    edges = np.unique(edges[0] * vertices + edges[1])
    starts = np.searchsorted(edges, np.arange(vertices + 1) * vertices)
    return starts.astype(np.int32), (edges % vertices).astype(np.int32)


@hip.jit
def bfs_step(starts, columns, levels, level, found):
    vertex = hip.grid(1)
    if vertex < levels.size and levels[vertex] == level:
        for edge in range(starts[vertex], starts[vertex + 1]):
            neighbour = columns[edge]
            if hip.atomic.cas(levels, neighbour, -1, level + 1) == -1:
                hip.atomic.add(found, 0, 1)


@peer
def bfs_step_by_loop(starts, columns, levels, level, found):
    count = 0
    for vertex in range(levels.size):
        if levels[vertex] == level:
            for edge in range(starts[vertex], starts[vertex + 1]):
                neighbour = columns[edge]
                if levels[neighbour] == -1:
                    levels[neighbour] = level + 1
                    count += 1
    found[0] = count


@kernel("bfs-step")
def BFS(quick: bool) -> UserKernel:
    """a step of a breadth-first search: each vertex of a level claims its neighbours by compare-and-swap"""
    size = 1000 if quick else 60_000
    starts, columns = random_graph(size, 8)
    levels = np.where(np.random.default_rng(2).random(size) < 0.15, 3, -1).astype(np.int32)
    level = np.int32(3)
    arrays = {"starts": starts, "columns": columns, "levels": levels, "found": np.zeros(1, np.int32)}
    return UserKernel(
        arrays,
        ("levels", "found"),
        lambda on: bfs_step[blocks(size, THREADS), THREADS](on.starts, on.columns, on.levels, level, on.found),
        lambda on: bfs_step_by_loop(on.starts, on.columns, on.levels, level, on.found),
        restored=("levels", "found"),
    )


@hip.jit
def relax(sources, targets, weights, distances, shorter):
    edge = hip.grid(1)
    if edge < sources.size:
        distance = distances[sources[edge]] + weights[edge]
        if distance < distances[targets[edge]]:
            hip.atomic.min(shorter, targets[edge], distance)


@peer
def relax_by_loop(sources, targets, weights, distances, shorter):
    for edge in range(sources.size):
        target = targets[edge]
        distance = distances[sources[edge]] + weights[edge]
        shorter[target] = min(shorter[target], distance)


def edge_list(size: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of each edge of a random graph."""
    starts, columns = random_graph(size, degree)
    return np.repeat(np.arange(size, dtype=np.int32), np.diff(starts)), columns


@kernel("bellman-ford")
def RELAX(quick: bool) -> UserKernel:
    """edges shorten the distances of their targets by an atomic minimum"""
    size = 1000 if quick else 40_000
    sources, targets = edge_list(size, 8)
    rng = np.random.default_rng(3)
    distances = rng.integers(0, 1000, size).astype(np.int32)
    arrays = {
        "sources": sources,
        "targets": targets,
        "weights": rng.integers(1, 100, sources.size).astype(np.int32),
        "distances": distances,
        "shorter": distances.copy(),
    }
    return UserKernel(
        arrays,
        ("shorter",),
        lambda on: relax[blocks(sources.size, THREADS), THREADS](
            on.sources, on.targets, on.weights, on.distances, on.shorter
        ),
        lambda on: relax_by_loop(on.sources, on.targets, on.weights, on.distances, on.shorter),
        restored=("shorter",),
    )


@hip.jit
def propagate(starts, columns, labels, updated):
    vertex = hip.grid(1)
    if vertex < labels.size:
        best, best_count = labels[vertex], 0
        for edge in range(starts[vertex], starts[vertex + 1]):
            label, count = labels[columns[edge]], 0
            for other in range(starts[vertex], starts[vertex + 1]):
                if labels[columns[other]] == label:
                    count += 1
            if count > best_count or (count == best_count and label < best):
                best, best_count = label, count
        updated[vertex] = best


@peer
def propagate_by_loop(starts, columns, labels, updated):
    counts = np.zeros(labels.size, np.int32)
    for vertex in range(labels.size):
        best, best_count = labels[vertex], 0
        for edge in range(starts[vertex], starts[vertex + 1]):
            counts[labels[columns[edge]]] += 1
        for edge in range(starts[vertex], starts[vertex + 1]):
            label = labels[columns[edge]]
            count = counts[label]
            if count > best_count or (count == best_count and label < best):
                best, best_count = label, count
        for edge in range(starts[vertex], starts[vertex + 1]):
            counts[labels[columns[edge]]] = 0
        updated[vertex] = best


@peer
def propagate_as_kernel(starts, columns, labels, updated):
    for vertex in range(labels.size):
        best, best_count = labels[vertex], 0
        for edge in range(starts[vertex], starts[vertex + 1]):
            label, count = labels[columns[edge]], 0
            for other in range(starts[vertex], starts[vertex + 1]):
                if labels[columns[other]] == label:
                    count += 1
            if count > best_count or (count == best_count and label < best):
                best, best_count = label, count
        updated[vertex] = best


@kernel("label-propagation", translated=True)
def LABELS(quick: bool) -> UserKernel:
    """each vertex takes the label that most of its neighbours have"""
    size = 1000 if quick else 20_000
    starts, columns = random_graph(size, 8, symmetric=True)
    labels = np.random.default_rng(4).integers(0, 50, size).astype(np.int32)
    return UserKernel(
        {"starts": starts, "columns": columns, "labels": labels, "updated": np.zeros_like(labels) - 1},
        ("updated",),
        lambda on: propagate[blocks(size, THREADS), THREADS](on.starts, on.columns, on.labels, on.updated),
        lambda on: propagate_by_loop(on.starts, on.columns, on.labels, on.updated),
        translated=lambda on: propagate_as_kernel(on.starts, on.columns, on.labels, on.updated),
    )


@hip.jit
def page_rank(starts, columns, degrees, ranks, updated, damping):
    vertex = hip.grid(1)
    if vertex < ranks.size:
        total = np.float32(0)
        for edge in range(starts[vertex], starts[vertex + 1]):
            source = columns[edge]
            total += ranks[source] / degrees[source]
        updated[vertex] = (1 - damping) / ranks.size + damping * total


@peer
def page_rank_by_loop(starts, columns, degrees, ranks, updated, damping):
    for vertex in range(ranks.size):
        total = np.float32(0)
        for edge in range(starts[vertex], starts[vertex + 1]):
            source = columns[edge]
            total += ranks[source] / degrees[source]
        updated[vertex] = (1 - damping) / ranks.size + damping * total


@kernel("pagerank-step")
def PAGE_RANK(quick: bool) -> UserKernel:
    """a vertex adds up the ranks of those that refer to it, divided by how many edges these have"""
    size = 1000 if quick else 40_000
    starts, columns = random_graph(size, 8)
    rng = np.random.default_rng(5)
    arrays = {
        "starts": starts,
        "columns": columns,
        "degrees": rng.integers(1, 20, size).astype(np.float32),
        "ranks": rng.random(size, np.float32),
        "updated": np.zeros(size, np.float32),
    }
    damping = np.float32(0.85)
    return UserKernel(
        arrays,
        ("updated",),
        lambda on: page_rank[blocks(size, THREADS), THREADS](
            on.starts, on.columns, on.degrees, on.ranks, on.updated, damping
        ),
        lambda on: page_rank_by_loop(on.starts, on.columns, on.degrees, on.ranks, on.updated, damping),
        rtol=1e-5,
    )


@hip.jit
def count_triangles(starts, columns, triangles):
    vertex = hip.grid(1)
    if vertex >= starts.size - 1:
        return
    count = 0
    for edge in range(starts[vertex], starts[vertex + 1]):
        neighbour = columns[edge]
        if neighbour > vertex:
            mine, theirs = starts[vertex], starts[neighbour]
            while mine < starts[vertex + 1] and theirs < starts[neighbour + 1]:
                if columns[mine] == columns[theirs]:
                    if columns[mine] > neighbour:
                        count += 1
                    mine += 1
                    theirs += 1
                elif columns[mine] < columns[theirs]:
                    mine += 1
                else:
                    theirs += 1
    hip.atomic.add(triangles, 0, count)


@peer
def count_triangles_by_loop(starts, columns, triangles):
    count = 0
    for vertex in range(starts.size - 1):
        end = starts[vertex + 1]
        for edge in range(starts[vertex], end):
            neighbour = columns[edge]
            if neighbour <= vertex:
                continue
            mine, theirs, their_end = edge + 1, starts[neighbour], starts[neighbour + 1]
            while mine < end and theirs < their_end:
                left, right = columns[mine], columns[theirs]
                count += left == right
                mine += left <= right
                theirs += left >= right
    triangles[0] = count


@peer
def count_triangles_as_kernel(starts, columns, triangles):
    count = 0
    for vertex in range(starts.size - 1):
        for edge in range(starts[vertex], starts[vertex + 1]):
            neighbour = columns[edge]
            if neighbour > vertex:
                mine, theirs = starts[vertex], starts[neighbour]
                while mine < starts[vertex + 1] and theirs < starts[neighbour + 1]:
                    if columns[mine] == columns[theirs]:
                        if columns[mine] > neighbour:
                            count += 1
                        mine += 1
                        theirs += 1
                    elif columns[mine] < columns[theirs]:
                        mine += 1
                    else:
                        theirs += 1
    triangles[0] = count


@kernel("triangles", translated=True)
def TRIANGLES(quick: bool) -> UserKernel:
    """triangles of a graph, by merging the lists of neighbours of two ends of an edge"""
    size = 500 if quick else 3000
    starts, columns = random_graph(size, 8, symmetric=True)
    return UserKernel(
        {"starts": starts, "columns": columns, "triangles": np.zeros(1, np.int64)},
        ("triangles",),
        lambda on: count_triangles[blocks(size, THREADS), THREADS](on.starts, on.columns, on.triangles),
        lambda on: count_triangles_by_loop(on.starts, on.columns, on.triangles),
        translated=lambda on: count_triangles_as_kernel(on.starts, on.columns, on.triangles),
        restored=("triangles",),
    )


@hip.jit
def hook(sources, targets, components, smaller):
    edge = hip.grid(1)
    if edge < sources.size:
        one, other = components[sources[edge]], components[targets[edge]]
        if one < other:
            hip.atomic.min(smaller, other, one)
        elif other < one:
            hip.atomic.min(smaller, one, other)


@hip.jit
def jump(smaller, components):
    vertex = hip.grid(1)
    if vertex < components.size:
        parent = smaller[vertex]
        while parent != smaller[parent]:
            parent = smaller[parent]
        components[vertex] = parent


@peer
def hook_and_jump_by_loop(sources, targets, components, smaller):
    for edge in range(sources.size):
        one, other = components[sources[edge]], components[targets[edge]]
        low, high = min(one, other), max(one, other)
        smaller[high] = min(smaller[high], low)
    for vertex in range(components.size):
        components[vertex] = components[smaller[vertex]] if smaller[vertex] < vertex else vertex


@kernel("components-step")
def COMPONENTS(quick: bool) -> UserKernel:
    """a step to the connected components: edges hook trees by an atomic minimum, then each vertex finds its root"""
    size = 1000 if quick else 40_000
    sources, targets = edge_list(size, 4)
    components = np.arange(size, dtype=np.int32)

    def launch(on: Arrays) -> None:
        hook[blocks(sources.size, THREADS), THREADS](on.sources, on.targets, on.components, on.smaller)
        jump[blocks(size, THREADS), THREADS](on.smaller, on.components)

    return UserKernel(
        {"sources": sources, "targets": targets, "components": components, "smaller": components.copy()},
        ("components",),
        launch,
        lambda on: hook_and_jump_by_loop(on.sources, on.targets, on.components, on.smaller),
        restored=("components", "smaller"),
    )
