"""The kernel language, one feature a module: the names, what types they have, and how they are lowered."""

from __future__ import annotations

from typing import Any


def typing_registry() -> Any:
    """The registry with the typing of all features."""
    from numba_hip.language.registry import typing

    _load_features()
    return typing


def lowering_registry() -> Any:
    """The registry with the lowering of all features."""
    from numba_hip.language.registry import lowering

    _load_features()
    return lowering


def _load_features() -> None:
    # Importing a feature enters it into the registries.
    from numba_hip.language import (  # noqa: F401
        assignment,
        atomic,
        bf16,
        bits,
        cache_hints,
        captured,
        cg,
        complex_numbers,
        const,
        division,
        dtypes,
        fast_division,
        fp16,
        index,
        lanes,
        linear_algebra,
        local,
        matches,
        math,
        numpy_numbers,
        optional_indices,
        output,
        ranges,
        records,
        reductions,
        rounding,
        saturation,
        shared,
        sorting,
        sync,
        timing,
        ufuncs,
        vector,
        vector_arithmetic,
        vectors,
        views,
        warp,
        words,
    )
