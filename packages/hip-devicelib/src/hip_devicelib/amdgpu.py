"""LLVM's AMDGPU backend: from LLVM IR to optimised bitcode, assembly and relocatable objects, without a GPU.

Every function can be called from any thread. Each uses its own LLVM context, so that names, and therefore bytes, do not
depend on what was compiled before. Targets are names (``"gfx90a:xnack+"``) or `Target` values. Kernels are the
functions with the calling convention ``amdgpu_kernel``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache

import llvmlite.binding as llvm
import llvmlite.ir as ir

from hip_devicelib.backend_limits import check_module, check_source, has_assembly
from hip_devicelib.errors import InvalidIRError, UnsupportedError
from hip_devicelib.isolated_codegen import TRIPLE, Form, emit, emit_apart, make_machine
from hip_devicelib.llvm_context import make_context
from hip_devicelib.target import Target, parse_target

__all__ = [
    "TRIPLE",
    "assembly",
    "data_layout",
    "llvm_text",
    "make_library",
    "object_code",
    "occupancy",
    "optimise",
    "undefined_symbols",
]

Source = str | bytes
"""A module: the text of LLVM IR, or bitcode."""

_VERSION_FLAG = "amdhsa_code_object_version"
_FLAG_ERROR = 1  # llvm::Module::Error: modules with different values cannot be linked
_STRONGER = {
    llvm.Linkage.linkonce_any: llvm.Linkage.weak_any,
    llvm.Linkage.linkonce_odr: llvm.Linkage.weak_odr,
}
"""Linkages of definitions that may be dropped if nothing refers to them, and those of definitions that may not."""

_USED_LISTS = ("llvm.used", "llvm.compiler.used")


def data_layout(target: str | Target) -> str:
    """The LLVM data layout of *target*."""
    return _data_layout(_resolve(target))


@cache
def _data_layout(target: Target) -> str:
    return str(make_machine(target).target_data)


def optimise(
    modules: Source | Sequence[Source],
    target: str | Target,
    *,
    libraries: Sequence[Source] = (),
    keep: Collection[str] = (),
    level: int = 3,
) -> bytes:
    """Link *modules* and *libraries*, keep what the kernels need, optimise for *target*, and return bitcode.

    Every kernel of *modules* and every symbol named in *keep* stays visible. Everything else becomes internal, and is
    removed if nothing needs it. Kernels of *libraries* are ignored. The module flag ``amdhsa_code_object_version`` is
    added if it is missing. *level* is LLVM's optimisation level, 0 to 3.

    Raises `UnknownTargetError`, `UnsupportedError`, and `InvalidIRError` for IR that does not parse, link or verify,
    that contains no kernel and nothing to keep, or that is for another machine. Bitcode must come from LLVM, as damaged
    bitcode is only detected where LLVM detects it.
    """
    resolved = _resolve(target)
    if level not in (0, 1, 2, 3):
        raise ValueError(f"level={level!r}: the optimisation level is 0, 1, 2 or 3")
    sources: Sequence[Source] = [modules] if isinstance(modules, (str, bytes)) else modules
    if not isinstance(sources, Sequence):
        raise InvalidIRError(f"modules must be LLVM IR text, bitcode or a sequence of these, not {modules!r}")
    if not sources:
        raise InvalidIRError("modules: at least one module is needed")
    context = make_context()
    parsed = [_parse(source, context, f"module {number}") for number, source in enumerate(sources)]
    kernels = [name for module in parsed for name in _kernels(module)]
    parsed += [_parse(source, context, f"library {number}") for number, source in enumerate(libraries)]
    module = _link(parsed, resolved)
    _internalise(module, kernels, keep)
    _optimise_linked(module, resolved, level, context)
    _verify(module, f"module for {resolved.id}")
    return bytes(module.as_bitcode())


def make_library(modules: Source | Sequence[Source], target: str | Target, *, keep: Collection[str]) -> bytes:
    """Link *modules* into a library for *target*: what is named in *keep*, and everything that it needs.

    A kernel that is linked with the library takes only the functions that it needs. Raises as `optimise` does.
    """
    resolved = _resolve(target)
    context = make_context()
    sources: Sequence[Source] = [modules] if isinstance(modules, (str, bytes)) else modules
    parsed = [_parse(source, context, f"module {number}") for number, source in enumerate(sources)]
    module = _link(parsed, resolved)
    _internalise(module, (), frozenset(keep))
    machine = make_machine(resolved)
    _drop_unused(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    for function in module.functions:
        if function.name in keep and not function.is_declaration:
            function.visibility = llvm.Visibility.default
            function.linkage = llvm.Linkage.linkonce_odr
    return bytes(module.as_bitcode())


def object_code(bitcode: bytes, target: str | Target) -> bytes:
    """The relocatable ELF object of *bitcode* for *target*. Undefined symbols are left for a linker.

    Raises `UnsupportedError` for operations that the processor does not have, naming them, and `InvalidIRError`. A
    module with inline assembly needs an assembler: `CompileError` has its messages, `NotFoundError` says what to
    install.
    """
    return _emit(bitcode, _resolve(target), "object")


def assembly(bitcode: bytes, target: str | Target) -> str:
    """The assembly of *bitcode* for *target*, as `object_code` would make it; the same errors."""
    return _emit(bitcode, _resolve(target), "assembly").decode()


def occupancy(bitcode: bytes, target: str | Target, kernel: str) -> int:
    """The number of waves of *kernel* that a SIMD unit of *target* holds at a time, which LLVM computes from registers
    and LDS.

    The number is for the largest block that the kernel may have. Raises `InvalidIRError` if there is no such kernel,
    `UnsupportedError` if it calls functions that are not defined, and as `assembly` does.
    """
    _, found, rest = assembly(bitcode, target).partition(f"\n{kernel}:")
    _, told, figure = rest.partition("\n; Occupancy: ")
    if not found or not told:
        raise InvalidIRError(f"bitcode for {_resolve(target).id} has no kernel {kernel!r}")
    word = figure.split()[0]
    if not word.isdigit():  # a formula with the registers of undefined functions
        raise UnsupportedError(
            f"the occupancy of {kernel!r} is unknown, as it calls functions that are not defined here"
        )
    return int(word)


def llvm_text(bitcode: bytes) -> str:
    """*bitcode* as the text of LLVM IR. Raises `InvalidIRError`."""
    return str(_parse(bitcode, make_context(), "bitcode"))


def undefined_symbols(bitcode: bytes) -> tuple[str, ...]:
    """The sorted names of the functions and variables that *bitcode* uses and that neither it nor LLVM defines."""
    module = _parse(bitcode, make_context(), "bitcode")
    values: Iterable[llvm.ValueRef] = (*module.functions, *module.global_variables)
    # Shared memory whose size is set at the launch is an external array without elements: it needs no definition.
    return tuple(
        sorted(
            value.name
            for value in values
            if value.is_declaration and not value.name.startswith("llvm.") and str(value.type) != "ptr addrspace(3)"
        )
    )


def _resolve(target: str | Target) -> Target:
    return target if isinstance(target, Target) else parse_target(target)


def _parse(source: Source, context: llvm.ContextRef, what: str) -> llvm.ModuleRef:
    if not isinstance(source, (str, bytes)):
        raise InvalidIRError(f"{what} must be LLVM IR text (str) or bitcode (bytes), not {type(source).__name__}")
    try:
        module = (
            llvm.parse_assembly(source, context) if isinstance(source, str) else llvm.parse_bitcode(source, context)
        )
    except (RuntimeError, ValueError) as error:
        raise InvalidIRError(f"{what} does not parse: {str(error).strip()}") from None
    architecture = module.triple.split("-")[0]
    if architecture not in ("", "amdgcn", "unknown"):
        raise InvalidIRError(f"{what} is for {module.triple!r}; expected {TRIPLE!r}")
    return module


def _verify(module: llvm.ModuleRef, what: str) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise InvalidIRError(f"{what} does not verify: {str(error).strip()}") from None


def _kernels(module: llvm.ModuleRef) -> list[str]:
    """The names of the kernels that *module* defines."""
    names = []
    for function in module.functions:
        # Kernels return void. That is checked first, as printing a function to read its calling convention takes long.
        if function.is_declaration or not str(function.global_value_type).startswith("void"):
            continue
        if "amdgpu_kernel" in _header_words(function):
            if function.linkage.name in ("internal", "private"):
                raise InvalidIRError(
                    f"kernel {function.name!r} has {function.linkage.name} linkage: nobody could launch it"
                )
            names.append(function.name)
    return names


def _header_words(function: llvm.ValueRef) -> list[str]:
    """The words of a printed definition before its name: linkage, visibility, calling convention, type."""
    for line in str(function).splitlines():
        if line.startswith("define "):
            return line.partition("@")[0].split()
    return []


def _link(modules: Sequence[llvm.ModuleRef], target: Target) -> llvm.ModuleRef:
    layout = _data_layout(target)
    for module in modules:
        module.triple = TRIPLE
        module.data_layout = layout
    linked = modules[0]
    try:
        for module in modules[1:]:
            linked.link_in(module)
    except RuntimeError as error:
        raise InvalidIRError(f"the modules do not link: {str(error).strip()}") from None
    _verify(linked, f"module for {target.id}")
    return linked


def _internalise(module: llvm.ModuleRef, kernels: Collection[str], keep: Collection[str]) -> None:
    """Make every definition internal but *kernels* and *keep*."""
    missing = {*keep}
    for value in (*module.functions, *module.global_variables):
        missing.discard(value.name)
        if value.is_declaration or value.linkage is llvm.Linkage.available_externally:
            continue
        if value.name in kernels or value.name in keep:
            value.linkage = _STRONGER.get(value.linkage, value.linkage)
            value.visibility = llvm.Visibility.protected if value.name in kernels else value.visibility
        elif value.linkage is not llvm.Linkage.appending or value.name in _USED_LISTS:
            # The lists of used names keep alive what only a host compiler needs; as internal variables they are unused,
            # too.
            value.visibility = llvm.Visibility.default
            value.linkage = llvm.Linkage.internal
    if missing:
        raise InvalidIRError(f"keep: no module defines or declares {', '.join(sorted(missing))}")
    if not kernels and not keep:
        raise InvalidIRError(
            "the modules hold no kernel (a function with calling convention amdgpu_kernel), and keep is empty"
        )


def _drop_unused(module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    manager = llvm.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.add_strip_dead_prototype_pass()
    manager.run(module, builder)


def _flag_version(module: llvm.ModuleRef, target: Target, context: llvm.ContextRef) -> None:
    """Make sure that *module* states a code object version, and one that *target* supports."""
    number = ir.IntType(32)
    _, found, rest = str(module).rpartition(f'!"{_VERSION_FLAG}", i32 ')
    if not found:
        flag = ir.Module()
        flag.triple, flag.data_layout = TRIPLE, module.data_layout
        flag.add_named_metadata(
            "llvm.module.flags", [number(_FLAG_ERROR), _VERSION_FLAG, number(target.code_object_version)]
        )
        module.link_in(llvm.parse_assembly(str(flag), context))
        return
    version = int(rest.partition("}")[0])
    if version < target.code_object_version:
        raise InvalidIRError(
            f"module flag {_VERSION_FLAG} is {version}; {target.name} needs {target.code_object_version}"
        )


def _optimise_linked(module: llvm.ModuleRef, target: Target, level: int, context: llvm.ContextRef) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.slp_vectorization = level > 1  # llvmlite does not enable it; CDNA has packed instructions for two floats
    builder = llvm.create_pass_builder(make_machine(target, level), tuning)
    _drop_unused(module, builder)
    check_source(module, target)
    _flag_version(module, target, context)
    builder.getModulePassManager().run(module, builder)
    _drop_unused(module, builder)


def _emit(bitcode: bytes, target: Target, form: Form) -> bytes:
    if not isinstance(bitcode, bytes):
        raise InvalidIRError(f"bitcode must be bytes, as optimise() returns them, not {type(bitcode).__name__}")
    module = _parse(bitcode, make_context(), "bitcode")
    if module.data_layout != _data_layout(target) or module.triple != TRIPLE:
        raise InvalidIRError(f"bitcode was not made for {target.id}: pass it through optimise() for this target first")
    _verify(module, f"bitcode for {target.id}")
    reasons = check_module(module, target)
    if form == "object" and has_assembly(str(module)):
        from hip_devicelib.assemblers import find_assembler  # few kernels have any

        return find_assembler().assemble(emit_apart(bitcode, target, "assembly", reasons), target)
    return emit_apart(bitcode, target, form, reasons) if reasons else emit(bitcode, target, form)
