"""``hip.matrix``: products of small matrices, which AMD GPUs with matrix cores compute in one instruction.

A *fragment* is a small matrix that a wave has together: each lane has some of its elements. All lanes of a wave call
these functions together, with the same arguments: a wave has to be whole, and its lanes must not be on different sides
of a branch. A kernel computes ``d = a @ b + c`` for matrices of any size by taking them tile by tile::

    sums = hip.matrix.fragment("accumulator", (16, 16, 16), np.float32)
    left = hip.matrix.fragment("a", (16, 16, 16), np.float16)
    right = hip.matrix.fragment("b", (16, 16, 16), np.float16)
    hip.matrix.fill(sums, 0)
    for k in range(0, a.shape[1], 16):
        hip.matrix.load(left, a, row, k)
        hip.matrix.load(right, b, k, column)
        hip.matrix.mma(sums, left, right, sums)
    hip.matrix.store(sums, product, row, column)

``fragment[i]`` is the element number *i* of those that this lane has, of which there are ``len(fragment)``, or none;
`position` tells its row and column. ``fragment.shape`` is that of the whole matrix. Several lanes may have the same
element of an *a* or a *b*: assign what depends on the old value and on the position alone, and to all of them.
"""

from __future__ import annotations

from numba_hip.language.matrix import elements as _elements  # noqa: F401 - enters what fragments have as values
from numba_hip.language.matrix.functions import fill, fragment, mma, position
from numba_hip.language.matrix.transfers import load, store

__all__ = ["fill", "fragment", "load", "mma", "position", "store"]
