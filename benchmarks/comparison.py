"""One operation in several libraries: their results are compared, and then they take turns."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import hip

Call = Callable[[], Any]
MISSING = None


@dataclass(frozen=True)
class Comparison:
    """What is measured, and a call of each library that does it; the first is ours."""

    name: str
    calls: Mapping[str, Call]


def library(name: str) -> Any:
    """The module *name*, or `MISSING`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return MISSING


def measure(comparison: Comparison, rounds: int) -> dict[str, tuple[float, float]]:
    """Milliseconds of processor time and on the clock for each library. Raises `AssertionError` for another result."""
    ours = _on_host(comparison.calls["ours"]())
    for name, call in comparison.calls.items():
        for one, other in zip(ours, _on_host(call()), strict=True):
            np.testing.assert_array_equal(one, other, f"{comparison.name} of {name}")
    least = dict.fromkeys(comparison.calls, (np.inf, np.inf))
    for _ in range(rounds):
        for name, call in comparison.calls.items():
            start, used = time.perf_counter(), time.process_time()
            call()
            took = time.process_time() - used, time.perf_counter() - start
            least[name] = min(least[name][0], took[0]), min(least[name][1], took[1])
    return {name: (used * 1e3, took * 1e3) for name, (used, took) in least.items()}


def _on_host(result: Any) -> list[Any]:
    """The arrays of *result*, which is one or a tuple of some."""
    parts = result if isinstance(result, tuple) else (result,)
    return [part.copy_to_host() if hip.is_device_array(part) else part for part in parts]
