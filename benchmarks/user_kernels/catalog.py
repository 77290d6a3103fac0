"""All kernels of the collection by name."""

from __future__ import annotations

from benchmarks.case import Benchmark
from benchmarks.user_kernels import (
    bits,
    counting,
    courses,
    edges,
    filters,
    finance,
    fractals,
    geometry,
    graphs,
    grids,
    hashes,
    idioms,
    indices,
    learning,
    linear_algebra,
    lookups,
    physics,
    pixels,
    records,
    reductions,
    scans,
    scatters,
    searches,
    sequences,
    small_matrices,
    sorting,
    sparse,
    stencils,
    tiles,
    tuples,
)

SUBJECTS = (
    graphs,
    sparse,
    counting,
    scatters,
    geometry,
    physics,
    fractals,
    stencils,
    filters,
    pixels,
    learning,
    linear_algebra,
    small_matrices,
    sequences,
    hashes,
    bits,
    finance,
    scans,
    sorting,
    reductions,
    idioms,
    courses,
    indices,
    grids,
    edges,
    tiles,
    lookups,
    records,
    searches,
    tuples,
)

KERNELS: dict[str, Benchmark] = {
    found.name: found for subject in SUBJECTS for found in vars(subject).values() if isinstance(found, Benchmark)
}
