"""Searches in sorted values."""

from __future__ import annotations

from typing import Any, Literal

from numba.core import types

from hip_runtime.array import StreamLike
from numba_hip.algorithms.elementwise import THREADS, store_kernel
from numba_hip.algorithms.operands import Operands, Operator
from numba_hip.algorithms.readers import count_of
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.orders import comparing, order_of
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError


def searchsorted(
    source: Any,
    wanted: Any,
    side: Literal["left", "right"] = "left",
    less: Operator | None = None,
    *,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """Where each value of *wanted* would go in *source*, which is sorted by *less*, for it to stay sorted (int64).

    Before the values that are equal to it (``side="left"``), or behind them ("right"). Without *less* the order is that
    of `sort`, NaN and NaT last. *less* compares values of *source* and of *wanted*, in either order.
    """
    if side not in ("left", "right"):
        raise AlgorithmError(f"side is {side!r}; pass 'left' or 'right'")
    operands = Operands(stream)
    reader, asked = operands.reader(source, "source"), operands.reader(wanted, "wanted")
    limit, number = count_of(reader, None, "source"), count_of(asked, None, "wanted")
    kinds = operands.type_of(reader.read, "source"), operands.type_of(asked.read, "wanted")
    compare = _comparison(kinds, less, is_right=side == "right")
    target = operands.output(out, "out", number, types.int64)
    if number:
        find = _find(reader.read, asked.read, compare, operands.add(limit), side == "right")
        kernel = store_kernel(find, operands.writer(target, types.int64))
        kernel[-(-number // THREADS), THREADS, operands.launch_stream](number, *operands.leaves)
    return operands.finish(target, out)


def _comparison(kinds: tuple[types.Type, types.Type], less: Operator | None, *, is_right: bool) -> Any:
    """Whether a value comes before another: one of the source before a wanted one, or with *is_right* the other way
    round."""
    kind, other = reversed(kinds) if is_right else kinds
    return order_of(kind, other, "source") if less is None else comparing(less, (kind, other))


@kept
def _find(read: Any, read_wanted: Any, less: Any, limit: int, is_right: bool) -> Any:
    """A function of (leaves, i): where value i goes."""

    @jit(device=True)
    def find(leaves, i):  # type: ignore[no-untyped-def]  # for kernels alone
        wanted = read_wanted(leaves, i)
        low, high = types.int64(0), types.int64(leaves[limit])
        while low < high:
            middle = (low + high) // 2
            value = read(leaves, middle)
            is_behind = not less(wanted, value) if is_right else less(value, wanted)
            if is_behind:
                low = middle + 1
            else:
                high = middle
        return low

    return find
