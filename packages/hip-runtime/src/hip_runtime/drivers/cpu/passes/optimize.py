"""LLVM's pipeline for code of the CPU device.

LLVM's SLP vectoriser makes vectors of what one thread does to neighbours. It finds out how many bits of a number are
needed, and computes with as few. Where a number that was widened with zeros is compared with one that was widened with
its sign, it takes the width that each had to be enough, and compares 61035 as -4501 (LLVM issue 221240; LLVM 20 and 22
do so, and LLVM 20 converts such numbers to floating point in this way, too). Nothing in the code that comes out tells.
So kernels that widen numbers in both ways are compiled without it. Others keep it: what takes pixels apart is twice as
quick with it, and a product of complex numbers one and a half times, where threads run one after another.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import llvmlite.binding as llvm

from hip_runtime.drivers.cpu.abi.worker import WORKER_SYMBOL

_NARROW = ("i8", "i16", "i32")


def optimise(module: Any, machine: Any) -> None:
    """LLVM's O3 pipeline for *machine*, with the loop vectoriser, and the SLP vectoriser where it can be trusted."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = may_join_neighbours(str(module))
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def may_join_neighbours(text: str) -> bool:
    """Whether the SLP vectoriser makes right code of the module *text*, as LLVM printed it.

    Integers that are known not to be negative (``nneg``) do not count: they are the same in both ways. Neither does the
    worker, which widens the extents of the grid and compares them with nothing.
    """
    start = text.find(f"@{WORKER_SYMBOL}(")
    end = text.find("\n}", start) if start >= 0 else -1
    kernel = (text[:start], text[end:]) if start >= 0 else (text,)
    return not all(
        any(f" = {widening} {kind} " in part for kind, part in product(_NARROW, kernel))
        for widening in ("zext", "sext")
    )
