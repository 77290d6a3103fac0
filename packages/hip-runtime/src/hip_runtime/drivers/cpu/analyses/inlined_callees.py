"""Which functions of the user become part of a kernel although LLVM finds them too large to be inlined.

A function that is left is called for one lane after another, and what is called more than once LLVM inlines up to some
50 operations only. Numba's functions return their results through memory, so they are not elementwise either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Function

MOST_COPIED = 6000
"""Instructions that all copies of a function may have: kernels of that size compile in two seconds, and hardly faster
where lanes call the function one after another, which takes ten times as long."""

_NUMBERS = ir.IntType | ir.FloatType | ir.DoubleType


def find_affordable(kernel: Function, others: Mapping[str, Function]) -> list[str]:
    """Those of the functions *others* that *kernel* calls, itself or through them, whose copies are few enough, and
    which have no private arrays; none if any calls itself."""
    graphs = {**others, kernel.name: kernel}
    calls = {name: _calls(graph, others) for name, graph in graphs.items()}
    try:
        callees_first = list(TopologicalSorter(calls).static_order())
    except CycleError:
        return []
    copies = Counter({kernel.name: 1})
    for name in reversed(callees_first):
        for callee, count in calls[name].items():
            copies[callee] += count * copies[name]
    return [
        name
        for name, graph in others.items()
        if 0 < copies[name] * sum(1 for _ in graph.instructions()) <= MOST_COPIED and not _has_arrays(graph)
    ]


def _calls(function: Function, others: Mapping[str, Function]) -> Counter[str]:
    """How many calls of each of *others* there are."""
    return Counter(value.callee for value in function.instructions() if value.call and value.callee in others)


def _has_arrays(function: Function) -> bool:
    allocated = (value.source_type for value in function.instructions() if value.opcode == "alloca")
    return not all(isinstance(kind, _NUMBERS) for kind in allocated)
