"""SPMD bitcode for the CPU device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core.errors import LoweringError

from hip_devicelib import spmd
from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.declarations import SYMBOL_PREFIX
from hip_devicelib.errors import UnsupportedError
from hip_devicelib.large_constants import define_data
from numba_hip.targets.code_library import HipCodeLibrary
from numba_hip.targets.codegen import HipCodegen
from numba_hip.targets.cpu.large_choices import has_large_choice
from numba_hip.targets.linking import check_defined, check_shared, keep_only, link_in

MOST_INLINED = 8
"""Calls of a function of the CPU device's math that are inlined: where there are more, it stays a function, of which
the CPU device makes one variant for all lanes."""


class CpuCodegen(HipCodegen):
    """SPMD bitcode for the processor of this machine."""

    target = CPU_TARGET
    most_shared_bytes = spmd.SHARED_BYTES

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        self.triple = llvm.get_process_triple()
        self._machine = llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
        )
        self._target_data = self._machine.target_data
        super().__init__()

    @property
    def target_data(self) -> llvm.TargetData:
        """LLVM's sizes and alignments on this processor."""
        return self._target_data

    def has_large_choice(self, module: ir.Module) -> bool:
        """Whether LLVM had better make tables of what *module* chooses between."""
        return has_large_choice(module)

    def link_kernel(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """Link, inline and simplify; vectorising waits until the block shape is known."""
        made = self._link(library.linked(), library, name, options, external)
        if external:
            left = llvm.parse_bitcode(made).functions
            missing = (function.name for function in left if function.is_declaration)
            check_defined(name, missing, _has_processor, "the C math library")
        return made

    def _link(
        self,
        module: llvm.ModuleRef,
        library: HipCodeLibrary,
        name: str,
        options: Any,
        external: Sequence[llvm.ModuleRef],
    ) -> bytes:
        reasons = library.all_doubts(external)
        for part in external:  # it no longer exists then
            link_in(module, part)
        self._link_device_library(module)
        keep_only(module, name)
        module = self._simplify(module, name, 2 if options.opt else 0, reasons)
        total = spmd.lay_out_shared(function.name for function in module.functions)
        check_shared(library, name, self.target, self.most_shared_bytes, total)
        return bytes(module.as_bitcode())

    def _simplify(self, module: llvm.ModuleRef, name: str, level: int, reasons: Sequence[str]) -> llvm.ModuleRef:
        """*module*, or another one, optimised: in another process where there are *reasons* to fear for this one."""
        from hip_devicelib.isolated_codegen import (  # not needed when this module is imported
            run_simplification,
            simplify,
        )

        if not reasons:
            run_simplification(module, self._machine, level)
            return module
        from hip_devicelib.backend_limits import find_oversized
        from hip_devicelib.isolated_call import call_apart

        oversized = find_oversized(str(module))
        if oversized:
            raise LoweringError(f"kernel {name} has {oversized}")
        try:
            return llvm.parse_bitcode(call_apart(simplify, bytes(module.as_bitcode()), level))
        except (RuntimeError, UnsupportedError) as error:
            raise LoweringError(f"LLVM cannot compile kernel {name} with {', '.join(reasons)}: {error}") from None

    def link_function(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """The same for a function that others link, which is no kernel: with its large constants."""
        module, data = library.linked(), library.all_data()
        if data:
            link_in(module, llvm.parse_assembly(str(define_data(data))))
        return self._link(module, library, name, options, external)

    def _link_device_library(self, module: llvm.ModuleRef) -> None:
        """Link what the kernel calls of the CPU device's math, and of HIP's functions by their symbols.

        They are right on any processor, and written for this one.
        """
        from hip_devicelib.cpu import FUNCTIONS, bitcode_of, has_fma  # its formulas take long to load

        declared = [function.name for function in module.functions if function.is_declaration]
        math = [name for name in declared if name in FUNCTIONS]
        wrappers = [name for name in declared if name.startswith(SYMBOL_PREFIX)]
        if not math and not wrappers:
            return
        text = str(module)
        calls = Counter({name: text.count(f"@{name}(") - 1 for name in (*math, *wrappers)})  # one declares it
        if wrappers:
            from hip_devicelib.cpu import functions

            for wrapper in wrappers:
                for name, count in functions.math_calls(wrapper).items():
                    calls[name] += count * calls[wrapper]
        often = [name for name, count in calls.items() if count > MOST_INLINED and name in FUNCTIONS]
        if math:
            module.link_in(llvm.parse_bitcode(bitcode_of(math, often, fused=has_fma())))
        if wrappers:
            module.link_in(llvm.parse_bitcode(functions.bitcode_of(wrappers, often, fused=has_fma())))

    def assembly(self, bitcode: bytes) -> str:
        """Assembly of this processor."""
        from hip_devicelib.isolated_codegen import emit_for_host_apart
        from hip_runtime.drivers.cpu.backend_limits import doubts

        module = llvm.parse_bitcode(bitcode)
        if doubts(str(module)):
            return emit_for_host_apart(bitcode, "assembly").decode()
        return str(self._machine.emit_assembly(module))


def _has_processor(symbol: str) -> bool:
    """Whether code for the CPU device that is loaded here may call *symbol*."""
    return symbol.startswith(("llvm.", spmd.PREFIX)) or bool(llvm.address_of_symbol(symbol))


class ObservedCodegen(CpuCodegen):
    """The same, in which threads tell what they do with memory."""

    observes = True

    def instrument(self, module: ir.Module) -> set[int]:
        """Put in calls of the observer."""
        from numba_hip.targets.cpu.instrumentation import instrument

        return instrument(module, self.target_data)
