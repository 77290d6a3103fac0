"""Filling the cache on disk ahead of a job: `hip.precompile`, and ``python -m numba_hip precompile MODULE``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hip_devicelib.codeobject import CPU_TARGET
from hip_runtime import current_device
from hip_runtime.launch_limits import dim3
from hip_runtime.said_names import our
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.dispatch.launch import ConfiguredKernel
from numba_hip.dispatch.loading import keep_machine_code
from numba_hip.errors import HipError, PrecompilationError
from numba_hip.progress import with_progress

LISTED = "PRECOMPILE"
"""The name under which a module lists what `main` compiles, besides its kernels with signatures."""


class Precompiled(NamedTuple):
    """How many kernels, each for a signature and a target, this process has compiled, and found in the cache."""

    compiled: int
    found: int


class _Task(NamedTuple):
    kernel: Dispatcher
    signature: Any
    block: Any
    target: str


def precompile(kernels: Iterable[Any], target: str | Sequence[str] | None = None) -> Precompiled:
    """Compile *kernels* into the cache on disk, for processes that need them later.

    Each is a kernel with signatures, or a tuple of a kernel, a signature and maybe a block shape; ``kernel[grid,
    block]`` stands for a kernel and the shape. The CPU device has machine code for each shape, which is made if one is
    given. *target* is ``"cpu"``, the name of an AMD GPU architecture, or several of them; by default the current
    device's. A bar shows the progress where tqdm is installed. Raises `PrecompilationError` for what cannot be kept
    (a kernel needs ``cache=True``) or has no signature, before anything is compiled, and what compiling raises.
    """
    if isinstance(kernels, (Dispatcher, ConfiguredKernel)):
        raise PrecompilationError(f"kernels is one, {kernels!r}: pass a list of kernels")
    targets = [current_device().target] if target is None else [target] if isinstance(target, str) else list(target)
    entries = [entry for given in kernels for entry in _entries(given)]
    tasks = [_Task(*entry, name) for entry in entries for name in targets]
    compiled = sum(_compile(task) for task in with_progress(tasks, "precompile"))
    return Precompiled(compiled, len(tasks) - compiled)


def _entries(given: Any) -> list[tuple[Dispatcher, Any, Any]]:
    """The kernel, a signature, and a block shape or ``None``: one for each signature that the kernel has, if *given* is
    a kernel alone."""
    parts: list[Any] = list(given) if isinstance(given, tuple) else [given]
    kernel, signature, block, *more = parts + [None] * (3 - len(parts))
    if isinstance(kernel, ConfiguredKernel):
        block = kernel.config.block
        kernel = kernel.dispatcher
    if more or not isinstance(kernel, Dispatcher):
        raise PrecompilationError(
            f"{given!r} cannot be compiled ahead: give a kernel with signatures, (kernel, signature) or (kernel, "
            "signature, block)"
        )
    if kernel.is_device_function:
        raise PrecompilationError(f"{kernel.__name__} is a device function, compiled with the kernels that call it")
    if not kernel.options.cache:
        raise PrecompilationError(f"kernel {kernel.__name__} is not kept: decorate it with {our('jit')}(cache=True)")
    if block is not None:
        block = dim3("block", block)
    signatures = kernel.signatures if signature is None else [signature]
    if not signatures:
        raise PrecompilationError(
            f"kernel {kernel.__name__} has no signature: give one, as in ({kernel.__name__}, 'void(float32[:])')"
        )
    return [(kernel, each, block) for each in signatures]


def _compile(task: _Task) -> bool:
    """Whether this process compiled the kernel of *task*: now, or with the signature that it was decorated with."""
    before = task.kernel.stats.cache_misses.total()
    code = task.kernel.compile(task.signature, task.target)
    if task.block is not None and task.target == CPU_TARGET and current_device().is_cpu:
        _make_machine_code(code, task.block)
    misses = task.kernel.stats.cache_misses
    return misses.total() > before or (task.target == current_device().target and misses[code.argument_types] > 0)


def _make_machine_code(code: KernelCode, block: Any) -> None:
    function = current_device().load(code.code_object).function(code.name)
    keep_machine_code(function)
    function.configure(1, block, cooperative=code.cooperative).prepare()


def main(arguments: Sequence[str]) -> int:
    """``precompile MODULE...``: compile the kernels of modules that have signatures, and what these modules list."""
    parser = argparse.ArgumentParser(
        prog="python -m numba_hip precompile",
        description="Compile kernels with cache=True into the cache on disk, so that a job finds them there: those "
        f"with signatures, and what a module lists in {LISTED}, as for hip.precompile.",
    )
    parser.add_argument("module", nargs="+", help="a module with kernels, as it is imported")
    parser.add_argument(
        "--target", action="append", help="cpu, or an AMD GPU such as gfx942; may be repeated (default: the device)"
    )
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        listed, left_out = _collect(given.module)
        done = precompile(listed, given.target)
    except (HipError, ImportError) as error:
        print(f"precompile: {error}", file=sys.stderr)
        return 1
    print(f"{done.compiled} compiled, {done.found} found in the cache")
    if left_out:
        print(f"without a signature, so not compiled: {', '.join(left_out)}; list them in {LISTED}")
    return 0 if listed else 1


def _collect(modules: Iterable[str]) -> tuple[list[Any], list[str]]:
    """What is compiled of *modules*, and the names of their kernels that have no signature and are not listed."""
    listed: list[Any] = []
    kernels: list[Dispatcher] = []
    for name in modules:
        module = importlib.import_module(name)
        listed += getattr(module, LISTED, [])
        found = [value for value in vars(module).values() if isinstance(value, Dispatcher) and value.options.cache]
        kernels += [kernel for kernel in found if not kernel.is_device_function]
    known = {kernel for given in listed for kernel, _, _ in _entries(given)}
    listed += [kernel for kernel in kernels if kernel.signatures and kernel not in known]
    return listed, [kernel.__name__ for kernel in kernels if not kernel.signatures and kernel not in known]
