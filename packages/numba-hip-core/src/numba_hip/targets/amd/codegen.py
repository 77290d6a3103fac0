"""LLVM modules for AMD GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core.errors import LoweringError

from hip_devicelib.errors import InvalidIRError, UnsupportedError
from hip_devicelib.shared_memory import lay_out_shared_memory
from hip_devicelib.target import Target
from numba_hip.abi.fault_record import variable_name
from numba_hip.abi.variant import Variant
from numba_hip.errors import LinkedCodeError
from numba_hip.targets.code_library import HipCodeLibrary
from numba_hip.targets.codegen import HipCodegen
from numba_hip.targets.linking import check_defined, check_shared
from numba_hip.targets.unsafe_intrinsics import OWN_MACHINES


class AmdCodegen(HipCodegen):
    """LLVM modules for one AMD GPU."""

    def __init__(self, target: Target, variant: Variant) -> None:
        from hip_devicelib import amdgpu

        self._amdgpu = amdgpu
        self.target = target
        self.variant = variant
        self.limits = target.lds_bytes, target.private_bytes
        """Bytes of shared memory of a block, and of private memory of a thread."""
        self.triple = amdgpu.TRIPLE
        self._target_data = llvm.create_target_data(amdgpu.data_layout(target))
        super().__init__()

    @property
    def target_data(self) -> llvm.TargetData:
        """LLVM's sizes and alignments on this GPU."""
        return self._target_data

    def to_bitcode(self, module: ir.Module, doubtful: set[str] | None = None) -> bytes:
        """As for any target, with stack slots in private memory."""
        from numba_hip.targets.amd.private_memory import keep_phis_in_memory, place_in_private_memory

        if not self.variant.optimised:
            keep_phis_in_memory(module)
        place_in_private_memory(module)
        return super().to_bitcode(module, doubtful)

    def link_kernel(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """Link, inline and optimise for this GPU. Kernels defined by linked code are dropped."""
        made = self._link(library, name, options, external, [variable_name(name)])
        if external:
            from numba_hip.targets.amd.device_library import has_function  # few kernels link code

            missing = self._amdgpu.undefined_symbols(made)
            known = partial(has_function, self.target)
            check_defined(name, missing, known, f"the device library for {self.target}")
        return made

    def link_function(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """The same for a function, not a kernel, that other code links."""
        return self._link(library, name, options, external, [name])

    def _link(
        self,
        library: HipCodeLibrary,
        name: str,
        options: Any,
        external: Sequence[llvm.ModuleRef],
        kept: Sequence[str],
    ) -> bytes:
        """One module in which the definitions of *kept* stay visible."""
        adapters, *codes = [bytes(part.as_bitcode()) for part in external] or [b""]
        linked = library.linked()
        keep = [value.name for value in (*linked.global_variables, *linked.functions) if value.name in kept]
        keep += library.visible
        own = [bytes(linked.as_bitcode()), *([adapters] if adapters else [])]
        level = 3 if options.opt else 0
        optimise = partial(self._amdgpu.optimise, own, self.target, libraries=codes, keep=keep, level=level)
        try:
            made = self._optimise(optimise, name, library.all_doubts())
            self._check_shared(library, name, made)
            return made
        except InvalidIRError as error:
            if not codes:
                raise
            raise LinkedCodeError(f"link: {error}") from error

    def _optimise(self, optimise: Callable[[], bytes], name: str, doubts: Sequence[str]) -> bytes:
        """The result of *optimise*, computed in another process if there are *doubts* that this one survives it."""
        reasons = [doubt for doubt in doubts if not doubt.startswith(OWN_MACHINES)]
        if not reasons:
            return optimise()
        from hip_devicelib.isolated_call import call_apart

        try:
            return call_apart(optimise)
        except UnsupportedError as error:
            raise LoweringError(f"LLVM cannot compile kernel {name} with {', '.join(reasons)}: {error}") from None

    def _check_shared(self, library: HipCodeLibrary, name: str, bitcode: bytes) -> None:
        """Raise `SharedMemoryError` if all shared arrays of the kernel together exceed the limit of a block."""
        most, _ = self.limits
        if any(part.shared for part in library.closure()):
            left = llvm.parse_bitcode(bitcode)  # without the arrays that are not used
            check_shared(library, name, str(self.target), most, lay_out_shared_memory(left))
