"""Explanations of kernels: what the methods of dispatchers for that have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from numba.core import types
from numba.core.errors import NumbaDebugInfoWarning

from hip_devicelib.forking import compiling
from hip_runtime import current_device
from hip_runtime.launch_limits import dim3
from numba_hip._numba.typing import is_signature, normalize_signature
from numba_hip.compilation.kernel_code import KernelCode, compile_kernel
from numba_hip.compilation.options import CompileOptions
from numba_hip.dispatch.function_checks import check_function
from numba_hip.dispatch.launch import Dim3, LaunchConfig
from numba_hip.dispatch.launch_context import compiling_for
from numba_hip.dispatch.parameters import Parameters
from numba_hip.errors import NotCompiledError, without_own_frames

if TYPE_CHECKING:
    from numba_hip.dispatch.dispatcher import Dispatcher
    from numba_hip.explanation.model import Explanation

Types = tuple[types.Type, ...]

DEFAULT_BLOCK = (256, 1, 1)
"""The shape of blocks that kernels are explained for that were not launched."""


class Explained:
    """The part of a dispatcher that explains what became of its kernel."""

    py_func: Callable[..., Any]
    options: CompileOptions
    parameters: Parameters
    is_device_function: bool
    overloads: dict[Types, KernelCode]
    _explicit: list[Types]

    def launched_shape(self, code: KernelCode) -> Dim3 | None:
        """The last new shape of blocks that *code* was launched with."""
        raise NotImplementedError

    def _refuse_device_function(self, what: str) -> None:
        raise NotImplementedError

    def _types_of(self, given: Sequence[Any]) -> Types:
        raise NotImplementedError

    def _choose(self, given: Types, target: str) -> Types:
        raise NotImplementedError

    @without_own_frames
    def explain(self, *args: Any, target: str | None = None, block: Any = None) -> Explanation:
        """What becomes of this kernel for *args*, which are passed at a launch, or for a signature: its form and the
        reason, how each line accesses memory, what is computed as float64, private arrays, registers, compile time, and
        what is slow.

        The kernel is compiled once more, and not launched. *target* is such as ``"gfx942"``, without such a GPU; by
        default the current device. *block* is the shape of blocks, by default that of the newest launch, or 256 threads
        along x; ``kernel[grid, block].explain(*args)`` is for its own. Without *args*, a kernel that was compiled for
        one signature is explained for that; of more or of none, `NotCompiledError` is raised.
        """
        return self._explain(args, target, block, None)

    def _explain(self, args: Sequence[Any], target: str | None, block: Any, chosen: LaunchConfig | None) -> Explanation:
        from numba_hip.explanation.analysis import explain

        self._refuse_device_function("explain what became")
        check_function(self.py_func, device=False, launched=True)
        wanted = current_device().target if target is None else target
        kinds = self._types_to_explain(args, wanted)
        if block is None:
            code = self.overloads.get(kinds)
            block = (code and self.launched_shape(code)) or DEFAULT_BLOCK
        shape = dim3("block", block)
        config = chosen or LaunchConfig((1, 1, 1), shape)
        options = replace(self.options, lineinfo=True)

        def compile_for(target: str) -> KernelCode:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NumbaDebugInfoWarning)  # of functions without source
                return compile_kernel(self.py_func, kinds, options, target)

        with compiling, compiling_for(cast("Dispatcher", self), config, args):
            return explain(compile_for, wanted, shape)

    def _types_to_explain(self, args: Sequence[Any], target: str) -> Types:
        """The types that this kernel is compiled for if it is launched with *args*, or that a signature names."""
        if len(args) == 1 and is_signature(args[0]):
            kinds, _ = normalize_signature(args[0])
            return tuple(kinds)
        if not args and (self.parameters.required or self.parameters.rest):
            return self._only_signature()
        given = self.parameters.complete(args)
        return self._choose(self._types_of(given), target)

    def _only_signature(self) -> Types:
        """The signature that this kernel was compiled for, if it was for one."""
        known = self._explicit or list(self.overloads)
        if len(known) == 1:
            return known[0]
        signatures = "; ".join(f"({', '.join(map(str, one))})" for one in known) or "none yet"
        raise NotCompiledError(
            f"which code of kernel {self.py_func.__name__} is to be explained? Pass arguments as at a launch, or a "
            f"signature; it was compiled for: {signatures}"
        )

    def _warn_if_slow(self, kinds: Types, config: LaunchConfig) -> None:
        """Warn of what is slow in the code for *kinds* in such blocks, once."""
        from numba_hip.explanation.analysis import warn_of

        advised = self.__dict__.setdefault("_advised", set())
        if (kinds, config.block) not in advised:
            advised.add((kinds, config.block))
            warn_of(self._explain(kinds, None, config.block, config))
