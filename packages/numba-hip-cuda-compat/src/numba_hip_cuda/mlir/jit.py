"""``@cuda.jit`` of `numba_cuda_mlir`: `numba_hip.jit` with that decorator's options and annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numba_hip
from numba_hip.errors import KernelSignatureError, OptionError
from numba_hip_cuda.mlir.annotations import annotated_signature
from numba_hip_cuda.mlir.rewriting import Rewriter, needs_rewriting, target_options

PASSED_ON = frozenset(
    "cache debug device extensions fastmath forceinline inline launch_bounds lineinfo link max_registers opt "
    "shared_memory_carveout".split()
)
"""Options that `numba_hip.jit` has under the same name."""

OURS = frozenset("annotations_as_signatures experimental_ast_transforms fast_math help opt_level signature".split())
"""Options that this module handles."""

WITHOUT_EFFECT = frozenset(
    "abi abi_info capi cc chip dump dump_ast dump_ast_after_all dump_cubin dump_llvmir dump_mlir dump_numba_ir "
    "dump_ptx features lto no_cpython_wrapper nopython print_after_all print_before_all "
    "profile_jit ptxas_options _dbg_optnone _nrt".split()
)
"""Options for NVIDIA's compiler and GPUs, without effect here."""


class _Chosen(NamedTuple):
    """The options of one use of `jit`, sorted."""

    given: dict[str, Any]
    options: dict[str, Any]
    signatures: Any
    annotated: bool
    """Whether a function's annotations are used as its signature."""
    inferred: bool
    """Whether they must give a signature."""


def jit(function_or_signature: Any = None, **options: Any) -> Any:
    """`numba_hip.jit`, for programs of `numba_cuda_mlir`.

    If all parameters are annotated with types (of Numba, NumPy or `ctypes`), the function is compiled for them at once,
    unless ``annotations_as_signatures=False``. A signature in addition is a `KernelSignatureError`. ``opt_level`` is
    ``opt``. Options for NVIDIA's compiler have no effect. An unknown option is an `OptionError`.
    """
    chosen = _choose(options)
    if callable(function_or_signature) and not _is_signature(function_or_signature):
        return _compile(function_or_signature, chosen)
    if function_or_signature is not None:
        chosen = chosen._replace(signatures=function_or_signature)
    return lambda function: _compile(function, chosen)


def _is_signature(given: Any) -> bool:
    from numba.core import sigutils

    return bool(sigutils.is_signature(given))


def _choose(given: dict[str, Any]) -> _Chosen:
    """Sort the options; `OptionError` if they contradict each other or do not exist."""
    if "help" in given:
        raise SystemExit(_explain("help was specified"))
    unknown = given.keys() - PASSED_ON - OURS - WITHOUT_EFFECT
    if unknown:
        raise OptionError(_explain(f"Got invalid options: {', '.join(sorted(unknown))}."))
    if {"opt", "opt_level"} <= given.keys():
        raise OptionError("Cannot specify both opt and opt_level at the same time.")
    options = {name: value for name, value in given.items() if name in PASSED_ON}
    if given.get("fast_math") is not None:
        options["fastmath"] = given["fast_math"]
    if "opt_level" in given:
        options["opt"] = _check_level(given["opt_level"]) > 0
    elif isinstance(options.get("opt"), int):
        options["opt"] = options["opt"] != 0
    signature = given.get("signature")
    inferred = signature == "infer"
    annotated = bool(given.get("annotations_as_signatures", True)) or inferred
    return _Chosen(given, options, None if inferred else signature, annotated, inferred)


def _check_level(level: Any) -> int:
    if not isinstance(level, int):
        raise OptionError(_explain(f"Expected opt_level to be of type {int}, got {level}"))
    if not 0 <= level <= 3:
        raise OptionError(_explain(f"opt_level: Expected opt_level to be between 0 and 3, got {level}"))
    return level


def _explain(reason: str) -> str:
    """The options, and *reason*, which goes into the message."""
    return (
        f"Printing the options because: {reason}\nnumba_cuda_mlir.cuda.jit takes\n"
        f"  {', '.join(sorted(PASSED_ON | OURS - {'help'}))}\n"
        f"and, without effect on AMD GPUs,\n  {', '.join(sorted(WITHOUT_EFFECT))}"
    )


def _compile(function: Callable[..., Any], chosen: _Chosen) -> Any:
    annotated = annotated_signature(function) if chosen.annotated and inspect.isfunction(function) else None
    name = getattr(function, "__name__", function)
    if annotated is not None and chosen.signatures is not None:
        raise KernelSignatureError(
            f"Conflicting signature sources for {name!r}: it has a signature, and annotations that are one. Remove "
            "either, or let annotations_as_signatures=False make them mere annotations"
        )
    if chosen.inferred and annotated is None:
        raise KernelSignatureError(f"signature='infer': not every parameter of {name!r} is annotated with a type")
    signatures = chosen.signatures if annotated is None else annotated
    options = chosen.options
    if chosen.given.get("experimental_ast_transforms") is not False and needs_rewriting(function):
        options = {**options, "rewrite": Rewriter(target_options(chosen.given))}
    if signatures is None:
        return numba_hip.jit(function, **options)
    return numba_hip.jit(signatures, **options)(function)
