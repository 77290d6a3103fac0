"""LLVM's optimisation pipeline for the CPU device.

LLVM's SLP vectoriser narrows integers to the bits that it finds needed. If a zero-extended integer is compared with a
sign-extended one, it takes the original width to be enough, and compares 61035 as -4501 (LLVM issue 221240; LLVM 20 and
22; LLVM 20 also converts such integers to floating point this way). The resulting code does not show it, so kernels
with both extensions are compiled without the SLP vectoriser. Others keep it: with one thread after another, unpacking
pixels is twice as fast with it, and a product of complex numbers 1.5 times. Only kernels all of whose threads run in
gangs are compiled without it, where it took up to three quarters of the time of all passes and changed nothing.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import llvmlite.binding as llvm

from hip_runtime.drivers.cpu.abi.worker import WORKER_SYMBOL

_NARROW = ("i8", "i16", "i32")


def optimise(module: Any, machine: Any, *, as_vectors: bool = False) -> None:
    """LLVM's O3 pipeline for *machine*, with the loop vectoriser and, if it is safe and the threads do not run *as
    vectors*, the SLP vectoriser."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = not as_vectors and is_slp_safe(str(module))
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def is_slp_safe(text: str) -> bool:
    """Whether the SLP vectoriser compiles the module *text*, as LLVM printed it, correctly.

    Extensions of integers that are known not to be negative (``nneg``) do not count: zero and sign extension are the
    same for them. Neither does the worker, which extends the extents of the grid but compares them with nothing.
    """
    start = text.find(f"@{WORKER_SYMBOL}(")
    end = text.find("\n}", start) if start >= 0 else -1
    kernel = (text[:start], text[end:]) if start >= 0 else (text,)
    return not all(
        any(f" = {widening} {kind} " in part for kind, part in product(_NARROW, kernel))
        for widening in ("zext", "sext")
    )
