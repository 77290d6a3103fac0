"""Libraries of LLVM modules: what Numba's lowering writes into, and what is linked into a kernel."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils
from numba.core.codegen import Codegen, CodeLibrary
from numba.core.errors import LoweringError

from hip_devicelib import spmd
from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.constants import define_data
from hip_devicelib.declarations import SYMBOL_PREFIX
from hip_devicelib.errors import InvalidIRError, UnsupportedError
from hip_devicelib.shared_memory import lay_out_shared_memory
from hip_devicelib.target import Target
from numba_hip.compilation.external import ExternalFunction, build_adapters, link_modules
from numba_hip.compilation.linked_code import LinkedCode
from numba_hip.errors import LinkedCodeError, SharedMemoryError
from numba_hip.targets.callconv import Fault
from numba_hip.targets.fault_record import variable_name
from numba_hip.targets.variant import Variant

MANGLED_PREFIX = "_Z"
"""What symbols of functions that Numba compiled start with."""

"""What declarations of shared memory on the CPU device start with; size and alignment follow a name."""

OWN_MACHINES = ("llvm.amdgcn.",)
"""Starts of intrinsics of a machine that our own lowering calls."""


def is_foreign(function: Any) -> bool:
    """Whether *function* of llvmlite is an intrinsic that only somebody else's lowering calls: one of some machine, or
    one that LLVM may not survive to read."""
    name = function.name
    if not name.startswith("llvm.") or name.startswith(OWN_MACHINES):
        return False
    from hip_runtime.drivers.cpu.backend_limits import is_rare  # its tables are large, and an import needs none

    return is_rare(name, len(function.args))


def is_visible(variable: llvm.ValueRef) -> bool:
    """Whether *variable* of linked code is one that the host can find: defined there, and for all of its threads."""
    own = variable.is_declaration or variable.linkage.name in ("internal", "private", "appending")
    return not own and str(variable.type) in ("ptr", "ptr addrspace(1)", "ptr addrspace(4)")


Modules = Sequence[llvm.ModuleRef]


def symbol_of(python_name: str) -> str:
    """A symbol that every assembler takes, for the function called *python_name* (``<lambda>`` is a name, too)."""
    return re.sub(r"\W", "_", python_name.rpartition(".")[2]).strip("_") or "function"


class HipCodeLibrary(CodeLibrary):
    """The LLVM modules of one function, and the libraries of the functions that it calls.

    Nothing is optimised here: the modules of a kernel and of all that it calls are linked first.
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
        self.rare: dict[str, str] = {}
        """Intrinsics that functions of this library itself call and that kernels have no need of: where they do."""

    def add_ir_module(self, ir_module: ir.Module) -> None:
        """Take over a module that is complete."""
        self._raise_if_finalized()
        self._codegen.supply_helpers(ir_module)
        self.access_sizes |= self._codegen.instrument(ir_module)
        self._bitcode.append(self._codegen.to_bitcode(ir_module, self.doubts))
        self.symbols += self._codegen.note_definitions(ir_module, self)

    def add_linking_library(self, library: HipCodeLibrary) -> None:
        """Note that this library's functions call those of *library*."""
        self._linked[id(library)] = library

    def add_unresolved(self, symbol: str) -> None:
        """Note that this library calls *symbol*, of a library that may not be complete yet: recursion."""
        self._unresolved.add(symbol)

    def note_shared(self, what: str, size: int) -> None:
        """Note that the function being lowered has a shared array, *what*, of *size* bytes."""
        self.shared.append((f"{size} bytes, {what}, {self.location}", size))

    def add_linked_code(self, codes: Iterable[LinkedCode]) -> None:
        """Note that kernels with this library are linked with *codes*."""
        self.linked_code.update({code.identity: code for code in codes})

    def external_modules(self, context: Any) -> list[llvm.ModuleRef]:
        """Modules with the adapters of the closure's external functions, first, and the code that defines those."""
        closure = self.closure()
        functions = {symbol: one for library in closure for symbol, one in library.externals.items()}
        codes = {code.digest: code for library in closure for code in library.linked_code.values()}
        if not functions and not codes:
            return []
        modules = link_modules(codes.values(), self._codegen.triple, str(self._codegen.target_data))
        told = {code.digest for code in self.codes_with_callbacks()}
        for digest, module in zip(codes, modules.values(), strict=True):
            if digest in told:
                self.visible += [variable.name for variable in module.global_variables if is_visible(variable)]
        adapters = self._codegen.to_bitcode(build_adapters(functions.values(), modules, context))
        return [llvm.parse_bitcode(adapters), *modules.values()]

    def codes_with_callbacks(self) -> tuple[LinkedCode, ...]:
        """What of the code that is linked with the closure wants to know of the modules that it is loaded in."""
        codes = {key: code for library in self.closure() for key, code in library.linked_code.items()}
        return tuple(code for code in codes.values() if code.has_callbacks)

    def finalize(self) -> None:
        """Nothing more can be added after this."""
        self._finalized = True

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
        """Exceptions that any function of the closure can raise, by code."""
        return {code: fault for library in self.closure() for code, fault in library.faults.items()}

    def can_fault(self) -> bool:
        """Whether any function of the closure raises, or is of linked code that may give an error code."""
        linked = (one for library in self.closure() for one in library.externals.values())
        return bool(self.all_faults()) or any(function.abi == "numba" for function in linked)

    def all_data(self) -> dict[str, bytes]:
        """Large constants of any function of the closure, by symbol."""
        return {symbol: data for library in self.closure() for symbol, data in library.data.items()}

    def all_doubts(self, external: Modules = ()) -> list[str]:
        """What LLVM may not survive of the closure and of *external* modules, with where intrinsics are called."""
        from hip_runtime.drivers.cpu.backend_limits import doubts

        closure = self.closure()
        found = {doubt for library in closure for doubt in library.doubts}
        found.update(doubt for part in external for doubt in doubts(str(part)))
        places = {name: place for library in closure for name, place in library.rare.items()}
        return sorted(f"{doubt} ({places[doubt]})" if doubt in places else doubt for doubt in found)

    def all_access_sizes(self) -> set[int]:
        """Bytes of the accesses that any function of the closure tells of."""
        return {size for library in self.closure() for size in library.access_sizes}

    def all_sources(self) -> frozenset[str]:
        """Files of all functions of the closure."""
        return frozenset(library.source for library in self.closure() if library.source is not None)

    def linked(self) -> llvm.ModuleRef:
        """One module with everything of the closure, not optimised."""
        first, *rest = (llvm.parse_bitcode(module) for module in self.all_bitcode())
        for module in rest:
            first.link_in(module)
        self._name_alike(first)
        return first

    def _name_alike(self, module: llvm.ModuleRef) -> None:
        """Give what is named after Numba's running numbers a name that is the same whatever was compiled before."""
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
        """LLVM IR of the closure, as it was lowered."""
        return str(self.linked())

    def get_asm_str(self) -> str:
        """There is no assembly before a kernel is linked: see ``Kernel.inspect_asm``."""
        raise NotImplementedError("a device function has no assembly of its own; inspect the kernel that calls it")


class HipCodegen(Codegen):
    """Makes modules and libraries for one compile target."""

    _library_class = HipCodeLibrary
    triple: str
    target_data: llvm.TargetData
    calling_library: Callable[[], HipCodeLibrary]
    """The library that is being written; the target context sets this."""
    supply_helpers: Callable[[ir.Module], None]
    """Defines what a complete module calls of Numba's functions in C; the target context sets this, too."""

    def __init__(self) -> None:
        self._data_layout = str(self.target_data)
        self._definitions: WeakValueDictionary[str, HipCodeLibrary] = WeakValueDictionary()

    observes = False
    """Whether code tells what its threads do; see `numba_hip.races`."""

    def instrument(self, module: ir.Module) -> set[int]:
        """Put into a complete *module* what observes it; gives the bytes of the accesses that are told of."""
        del module
        return set()

    def note_definitions(self, module: ir.Module, library: HipCodeLibrary) -> list[str]:
        """Remember that the functions of *module* are defined in *library*; returns their symbols."""
        defined = [function.name for function in module.functions if not function.is_declaration]
        self._definitions.update(dict.fromkeys(defined, library))
        return [symbol for symbol in defined if symbol.startswith(MANGLED_PREFIX)]

    def definition(self, symbol: str) -> HipCodeLibrary:
        """The library that defines *symbol*."""
        return self._definitions[symbol]

    def insert_unresolved_ref(self, builder: ir.IRBuilder, kind: ir.FunctionType, name: str) -> ir.Function:
        """Numba's hook for a call of a function that is still being compiled: declared here, found when linking."""
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        self.calling_library().add_unresolved(name)
        return function

    def empty_module(self, name: str) -> ir.Module:
        """An empty module with the triple and data layout of the target."""
        module = ir.Module(name)
        module.triple = self.triple
        module.data_layout = self._data_layout
        return module

    _create_empty_module = empty_module

    def _add_module(self, module: llvm.ModuleRef) -> None:
        """Numba's hook for execution engines; code of this target runs on a device."""

    def to_bitcode(self, module: ir.Module, doubtful: set[str] | None = None) -> bytes:
        """Check a complete *module* and write it as bitcode; what LLVM may not survive of it goes into *doubtful*."""
        for function in module.functions:
            if not function.name.startswith("llvm.") and "readnone" not in function.attributes:
                function.attributes.add("convergent")  # until LLVM has seen that it reaches no barrier
        text = str(module)
        try:
            if any(is_foreign(function) for function in module.functions):
                from hip_devicelib.emission import read_apart

                read_apart(text)  # LLVM ends the process on such an intrinsic of other types
            if doubtful is not None:
                from hip_runtime.drivers.cpu.backend_limits import doubts

                doubtful.update(doubts(text))
            parsed = llvm.parse_assembly(text)
            parsed.verify()
        except (RuntimeError, UnsupportedError) as error:
            raise LoweringError(f"LLVM takes no module like {module.name}, which an intrinsic wrote: {error}") from None
        return bytes(parsed.as_bitcode())

    @abstractmethod
    def link_kernel(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """Bitcode of one module with kernel *name* and what it needs, everything else internal, optimised.

        *external* is what `HipCodeLibrary.external_modules` gives.
        """

    @abstractmethod
    def link_function(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """The same for a function that others link, which is no kernel."""


def _link_in(module: llvm.ModuleRef, part: llvm.ModuleRef) -> None:
    try:
        module.link_in(part)
    except RuntimeError as error:
        raise LinkedCodeError(f"link: {error}") from None


def keep_only(module: llvm.ModuleRef, name: str) -> None:
    """Make every definition of *module* but *name* internal, so that what is not needed can go."""
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != name:
            value.linkage = "internal"


def check_shared(library: HipCodeLibrary, name: str, target: str, most: int, total: int) -> None:
    """Raise `SharedMemoryError` where the shared arrays of kernel *name*, *total* bytes, are over *most*."""
    if total > most:
        arrays = [array for part in library.closure() for array in part.shared]
        listed = "; ".join(text for text, _ in sorted(arrays, key=lambda array: -array[1]))
        raise SharedMemoryError(
            f"kernel {name}: its shared arrays have {total} bytes; a block on {target} has {most}: {listed}"
        )


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

    def link_kernel(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """Link, inline and simplify; vectorising waits until the block shape is known."""
        return self._link(library.linked(), library, name, options, external)

    def _link(
        self,
        module: llvm.ModuleRef,
        library: HipCodeLibrary,
        name: str,
        options: Any,
        external: Sequence[llvm.ModuleRef],
    ) -> bytes:
        reasons = library.all_doubts(external)
        for part in external:  # which is gone then
            _link_in(module, part)
        self._link_device_library(module)
        keep_only(module, name)
        module = self._simplify(module, name, 2 if options.opt else 0, reasons)
        total = spmd.lay_out_shared(function.name for function in module.functions)
        check_shared(library, name, self.target, self.most_shared_bytes, total)
        return bytes(module.as_bitcode())

    def _simplify(self, module: llvm.ModuleRef, name: str, level: int, reasons: Sequence[str]) -> llvm.ModuleRef:
        """*module*, or another one, optimised: in another process where there are *reasons* to fear for this one."""
        from hip_devicelib.emission import run_simplification, simplify  # an import of this module needs none of it

        if not reasons:
            run_simplification(module, self._machine, level)
            return module
        from hip_devicelib.apart import call_apart
        from hip_devicelib.hazards import find_oversized

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
            _link_in(module, llvm.parse_assembly(str(define_data(data))))
        return self._link(module, library, name, options, external)

    def _link_device_library(self, module: llvm.ModuleRef) -> None:
        """Link what the kernel calls of the CPU device's math, and of HIP's functions by their symbols."""
        from hip_devicelib.cpu import FUNCTIONS, bitcode_of  # its formulas take their time to load

        declared = [function.name for function in module.functions if function.is_declaration]
        math = [name for name in declared if name in FUNCTIONS]
        if math:
            text = str(module)
            often = [name for name in math if text.count(f"@{name}(") - 1 > MOST_INLINED]  # one declares it
            module.link_in(llvm.parse_bitcode(bitcode_of(math, often)))
        wrappers = [name for name in declared if name.startswith(SYMBOL_PREFIX)]
        if wrappers:
            from hip_devicelib.cpu import functions

            module.link_in(llvm.parse_bitcode(functions.bitcode_of(wrappers)))

    def assembly(self, bitcode: bytes) -> str:
        """Assembly of this processor."""
        from hip_devicelib.emission import emit_for_host_apart
        from hip_runtime.drivers.cpu.backend_limits import doubts

        module = llvm.parse_bitcode(bitcode)
        if doubts(str(module)):
            return emit_for_host_apart(bitcode, "assembly").decode()
        return str(self._machine.emit_assembly(module))


class ObservedCodegen(CpuCodegen):
    """The same, in which threads tell what they do with memory."""

    observes = True

    def instrument(self, module: ir.Module) -> set[int]:
        """Put in calls of the observer."""
        from numba_hip.races.instrumentation import instrument

        return instrument(module, self.target_data)


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
        from numba_hip.targets.private_memory import keep_phis_in_memory, place_in_private_memory

        if not self.variant.optimised:
            keep_phis_in_memory(module)
        place_in_private_memory(module)
        return super().to_bitcode(module, doubtful)

    def link_kernel(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """Link, inline and optimise for this GPU. Kernels that linked code has of its own are left out."""
        return self._link(library, name, options, external, [variable_name(name)])

    def link_function(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """The same for a function that others link, which is no kernel."""
        return self._link(library, name, options, external, [name])

    def _link(
        self,
        library: HipCodeLibrary,
        name: str,
        options: Any,
        external: Sequence[llvm.ModuleRef],
        kept: Sequence[str],
    ) -> bytes:
        """One module in which *kept*, where they are defined, stay visible."""
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
        """What *optimise* gives, in another process where there are *doubts* that this one survives it."""
        reasons = [doubt for doubt in doubts if not doubt.startswith(OWN_MACHINES)]
        if not reasons:
            return optimise()
        from hip_devicelib.apart import call_apart

        try:
            return call_apart(optimise)
        except UnsupportedError as error:
            raise LoweringError(f"LLVM cannot compile kernel {name} with {', '.join(reasons)}: {error}") from None

    def _check_shared(self, library: HipCodeLibrary, name: str, bitcode: bytes) -> None:
        """Raise `SharedMemoryError` where all shared arrays of the kernel together are more than a block has."""
        most, _ = self.limits
        if any(part.shared for part in library.closure()):
            left = llvm.parse_bitcode(bitcode)  # without the arrays that are not used
            check_shared(library, name, str(self.target), most, lay_out_shared_memory(left))
