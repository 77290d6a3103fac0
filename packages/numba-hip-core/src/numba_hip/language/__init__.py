"""The kernel language, one feature per module: its names, their types, and their lowering."""

from __future__ import annotations

from functools import cache
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


@cache
def _load_features() -> None:
    # Importing a feature enters it into the registries. Once: looking all of them up among what is imported takes as
    # long as a tenth of a small kernel's typing, and Numba asks for the registries a hundred times for a kernel.
    from numba_hip.language import (  # noqa: F401
        assignment,
        atomic,
        bf16,
        bits,
        byte_permutation,
        cache_hints,
        captured_arrays,
        cg,
        complex_numbers,
        const,
        dates,
        division,
        dtypes,
        enumerations,
        extremes,
        fast_division,
        foreign_pointers,
        fp8,
        fp16,
        function_choice,
        half_complex,
        lane_operations,
        linear_algebra,
        local,
        match_operations,
        math,
        matrix,
        numpy_numbers,
        optional_indices,
        powers,
        printing,
        ranges,
        record_arrays,
        records,
        reductions,
        rounding,
        saturation,
        shared,
        sorting,
        sync,
        text_values,
        thread_index,
        timing,
        transposition,
        tuple_members,
        ufuncs,
        vector,
        vector_arithmetic,
        vector_types,
        views,
        warp,
    )
