"""The code generator that targets share: it creates modules and libraries, and checks what becomes bitcode."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import LoweringError

from hip_devicelib.errors import UnsupportedError
from numba_hip._numba.codegen import CodeGenerator
from numba_hip.targets.code_library import HipCodeLibrary
from numba_hip.targets.unsafe_intrinsics import is_foreign

MANGLED_PREFIX = "_Z"
"""What symbols of functions that Numba compiled start with."""


class HipCodegen(CodeGenerator):
    """Creates modules and libraries for one compile target."""

    library_class = HipCodeLibrary
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
        """Instrument a complete *module*; returns the sizes in bytes of the accesses that it reports."""
        del module
        return set()

    def has_large_choice(self, module: ir.Module) -> bool:
        """Whether *module* chooses between so many values that the target does something about it."""
        del module
        return False

    def note_definitions(self, module: ir.Module, library: HipCodeLibrary) -> list[str]:
        """Record that the functions of *module* are defined in *library*; returns their symbols."""
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

    def to_bitcode(self, module: ir.Module, doubtful: set[str] | None = None) -> bytes:
        """Check a complete *module* and return its bitcode; what may make LLVM abort is added to *doubtful*."""
        for function in module.functions:
            if not function.name.startswith("llvm.") and "readnone" not in function.attributes:
                function.attributes.add("convergent")  # until LLVM has found that it reaches no barrier
        text = str(module)
        try:
            if any(is_foreign(function) for function in module.functions):
                from hip_devicelib.isolated_codegen import read_apart

                read_apart(text)  # LLVM ends the process on such an intrinsic with other types
            if doubtful is not None:
                from hip_runtime.drivers.cpu.backend_limits import doubts

                doubtful.update(doubts(text))
            parsed = llvm.parse_assembly(text)
            parsed.verify()
        except (RuntimeError, UnsupportedError) as error:
            raise LoweringError(
                f"LLVM rejects the module {module.name}, to which an intrinsic has written: {error}"
            ) from None
        return bytes(parsed.as_bitcode())

    @abstractmethod
    def link_kernel(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """Bitcode of one optimised module with kernel *name* and what it needs, everything else internal.

        *external* is the result of `HipCodeLibrary.external_modules`.
        """

    @abstractmethod
    def link_function(
        self, library: HipCodeLibrary, name: str, options: Any, external: Sequence[llvm.ModuleRef]
    ) -> bytes:
        """The same for a function, not a kernel, that other code links."""
