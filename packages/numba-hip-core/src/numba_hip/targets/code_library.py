"""Libraries of LLVM modules: Numba's lowering writes into them, and they are linked into a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import binding as llvm
from llvmlite import ir

from hip_devicelib import spmd
from hip_devicelib.interrupts import interrupts_held
from numba_hip._numba.codegen import LoweringLibrary
from numba_hip.abi.fault import Fault
from numba_hip.language.external_functions import ExternalFunction, build_adapters, link_modules
from numba_hip.linked_code import LinkedCode

if TYPE_CHECKING:
    from numba_hip.targets.codegen import HipCodegen

Modules = Sequence[llvm.ModuleRef]


def is_visible(variable: llvm.ValueRef) -> bool:
    """Whether the host can look up *variable* of linked code: it is defined there, and shared by all threads."""
    own = variable.is_declaration or variable.linkage.name in ("internal", "private", "appending")
    return not own and str(variable.type) in ("ptr", "ptr addrspace(1)", "ptr addrspace(4)")


def symbol_of(python_name: str) -> str:
    """A symbol that every assembler accepts, for the function called *python_name* (which can be ``<lambda>``)."""
    return re.sub(r"\W", "_", python_name.rpartition(".")[2]).strip("_") or "function"


class HipCodeLibrary(LoweringLibrary):
    """The LLVM modules of one function, and the libraries of the functions that it calls.

    Nothing is optimised here: the modules of a kernel and of everything that it calls are linked first.
    """

    def __init__(self, codegen: HipCodegen, name: str) -> None:
        super().__init__(codegen, name)
        self._bitcode: list[bytes] = []
        self._linked: dict[int, HipCodeLibrary] = {}
        self._unresolved: set[str] = set()
        self.symbols: list[str] = []
        """Symbols of the functions that Numba compiled into this library."""
        self.externals: dict[str, ExternalFunction] = {}
        """Functions of linked code that this library itself calls, by the symbols of their adapters."""
        self.linked_code: dict[Any, LinkedCode] = {}
        """Code to link, by its identity."""
        self.visible: list[str] = []
        """Variables of linked code that the host may look for; complete once `external_modules` was called."""
        self.location: str | None = None
        """The place in the source of what is being lowered."""
        self.accessed: str | None = None
        """The array that the statement being lowered indexes, where indices are checked and it has a name."""
        self.data: dict[str, bytes] = {}
        """Large constants of the functions of this library itself, by symbol."""
        self.shared: list[tuple[str, int]] = []
        """Shared arrays of the functions of this library itself: what and where each is, and its bytes."""
        self.source: str | None = None
        """The file of the function, where there is one."""
        self.access_sizes: set[int] = set()
        """Bytes of the accesses that functions of this library itself tell of, where code is observed."""
        self.faults: dict[int, Fault] = {}
        """Exceptions that functions of this library itself can raise, by code."""
        self.doubts: set[str] = set()
        """What LLVM may not survive of this library itself."""
        self.has_large_choice = False
        """Whether functions of this library itself choose between many values, as elements of a tuple."""
        self.rare: dict[str, str] = {}
        """Intrinsics that functions of this library itself call and that kernels have no need of: where they do."""

    def add_ir_module(self, ir_module: ir.Module) -> None:
        """Add a completed module."""
        self.require_open()
        self._codegen.supply_helpers(ir_module)
        self.access_sizes |= self._codegen.instrument(ir_module)
        self.has_large_choice |= self._codegen.has_large_choice(ir_module)
        with interrupts_held():
            self._bitcode.append(self._codegen.to_bitcode(ir_module, self.doubts))
        self.symbols += self._codegen.note_definitions(ir_module, self)

    def add_linking_library(self, library: HipCodeLibrary) -> None:
        """Record that this library's functions call those of *library*."""
        self._linked[id(library)] = library

    def add_unresolved(self, symbol: str) -> None:
        """Record that this library calls *symbol*, of a library that may not be complete yet: recursion."""
        self._unresolved.add(symbol)

    def note_shared(self, what: str, size: int) -> None:
        """Record that the function being lowered has a shared array, *what*, of *size* bytes."""
        self.shared.append((f"{size} bytes, {what}, {self.location}", size))

    def add_linked_code(self, codes: Iterable[LinkedCode]) -> None:
        """Record that kernels with this library are linked with *codes*."""
        self.linked_code.update({code.identity: code for code in codes})

    def external_modules(self, context: Any) -> list[llvm.ModuleRef]:
        """The modules to link: first those with the adapters of the closure's external functions, then the code that
        defines these functions."""
        closure = self.closure()
        functions = {symbol: one for library in closure for symbol, one in library.externals.items()}
        codes = {code.digest: code for library in closure for code in library.linked_code.values()}
        if not functions and not codes:
            return []
        made = [code.for_target(str(self._codegen.target)) for code in codes.values()]
        modules = link_modules(made, self._codegen.triple, str(self._codegen.target_data))
        told = {code.digest for code in self.codes_with_callbacks()}
        for digest, module in zip(codes, modules.values(), strict=True):
            if digest in told:
                self.visible += [variable.name for variable in module.global_variables if is_visible(variable)]
        adapters = self._codegen.to_bitcode(build_adapters(functions.values(), modules, context))
        return [llvm.parse_bitcode(adapters), *modules.values()]

    def codes_with_callbacks(self) -> tuple[LinkedCode, ...]:
        """The linked code of the closure with callbacks for the modules that it is loaded in."""
        codes = {key: code for library in self.closure() for key, code in library.linked_code.items()}
        return tuple(code for code in codes.values() if code.has_callbacks)

    def closure(self) -> list[HipCodeLibrary]:
        """This library and all that it needs, each once, this one first."""
        found: dict[int, HipCodeLibrary] = {}
        waiting: list[HipCodeLibrary] = [self]
        while waiting:
            library = waiting.pop()
            if id(library) not in found:
                found[id(library)] = library
                waiting += library._linked.values()
                waiting += [self._codegen.definition(symbol) for symbol in library._unresolved]
        return list(found.values())

    def all_bitcode(self) -> list[bytes]:
        """Bitcode of every module of the closure."""
        return [module for library in self.closure() for module in library._bitcode]

    def all_faults(self) -> dict[int, Fault]:
        """The exceptions that any function of the closure can raise, by code."""
        return {code: fault for library in self.closure() for code, fault in library.faults.items()}

    def can_fault(self) -> bool:
        """Whether any function of the closure raises, or belongs to linked code that may return an error code."""
        linked = (one for library in self.closure() for one in library.externals.values())
        return bool(self.all_faults()) or any(function.abi == "numba" for function in linked)

    def is_cooperative(self) -> bool:
        """Whether any function of the closure calls linked code that is declared to wait for the whole grid."""
        return any(function.use_cooperative for one in self.closure() for function in one.externals.values())

    def all_data(self) -> dict[str, bytes]:
        """The large constants of all functions of the closure, by symbol."""
        return {symbol: data for library in self.closure() for symbol, data in library.data.items()}

    def all_doubts(self, external: Modules = ()) -> list[str]:
        """What may make LLVM abort in the closure and in *external* modules, with the places that call intrinsics."""
        from hip_runtime.drivers.cpu.backend_limits import doubts

        closure = self.closure()
        found = {doubt for library in closure for doubt in library.doubts}
        found.update(doubt for part in external for doubt in doubts(str(part)))
        places = {name: place for library in closure for name, place in library.rare.items()}
        return sorted(f"{doubt} ({places[doubt]})" if doubt in places else doubt for doubt in found)

    def all_access_sizes(self) -> set[int]:
        """The sizes in bytes of the accesses that functions of the closure report."""
        return {size for library in self.closure() for size in library.access_sizes}

    def all_sources(self) -> frozenset[str]:
        """The source files of all functions of the closure."""
        return frozenset(library.source for library in self.closure() if library.source is not None)

    def linked(self) -> llvm.ModuleRef:
        """One module with the whole closure, not optimised."""
        first, *rest = (llvm.parse_bitcode(module) for module in self.all_bitcode())
        for module in rest:
            first.link_in(module)
        self._name_alike(first)
        return first

    def _name_alike(self, module: llvm.ModuleRef) -> None:
        """Rename what contains Numba's running numbers, so that names do not depend on what was compiled before."""
        places = {symbol: library.name for library in self.closure() for symbol in library.symbols}
        for number, function in enumerate(module.functions):
            if function.name in places:
                function.name = f"{symbol_of(places[function.name])}.{number}"
            elif function.name.startswith(spmd.SHARED):
                _, size, alignment = function.name.rsplit(".", 2)
                function.name = f"{spmd.SHARED}{number}.{size}.{alignment}"
        for number, variable in enumerate(module.global_variables):
            if variable.linkage is llvm.Linkage.internal:
                variable.name = f"variable.{number}"

    def get_function(self, name: str) -> llvm.ValueRef:
        """The LLVM function *name*."""
        return self.linked().get_function(name)

    def get_llvm_str(self) -> str:
        """The closure's LLVM IR before optimisation."""
        return str(self.linked())

    def get_asm_str(self) -> str:
        """There is no assembly before a kernel is linked: see ``Kernel.inspect_asm``."""
        raise NotImplementedError("a device function has no assembly of its own; inspect the kernel that calls it")
