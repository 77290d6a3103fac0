"""Compiles a Python function to LLVM modules: Numba's passes, up to lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import types, typing
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.errors import LoweringError, NumbaError, TypingError, UnsupportedBytecodeError

from hip_devicelib.errors import UnsupportedError
from hip_runtime.compile_notice import announced
from numba_hip import config
from numba_hip._numba.compiler import (
    AnnotateTypes,
    BaseNativeLowering,
    CompileResult,
    Flags,
    IRLegalization,
    compiling_for,
    run_pipeline,
    sanitize_compile_result_entries,
)
from numba_hip._numba.typing import import_more_functions
from numba_hip.bfloat import know_ml_dtypes
from numba_hip.compilation.accessed_arrays import accessed_array
from numba_hip.compilation.debug_lowering import DebugLower, HipFlags
from numba_hip.compilation.escapes import RefuseEscapes
from numba_hip.compilation.intrinsic_checks import find_oversized, goes_past_end, name_of_called
from numba_hip.compilation.options import CompileOptions
from numba_hip.errors import UnsupportedSyntaxError, are_full
from numba_hip.language.captured_arrays import TakeDeviceArrays
from numba_hip.linked_code import read_all
from numba_hip.targets import c_helpers
from numba_hip.targets.unsafe_intrinsics import is_foreign

if TYPE_CHECKING:
    from numba_hip.targets.compile_target import CompileTarget


Types = tuple[types.Type, ...]


class HipCompileResult(CompileResult):
    """A compiled function. Numba uses the entry point as a key; there is no address before code is on a device."""

    @property
    def entry_point(self) -> int:
        """A number that no other compile result of this process has."""
        return id(self)


class LocatedLower(DebugLower):
    """Numba's lowering, which also records in the library the source line of each instruction, and the accessed
    array."""

    def notify_loc(self, loc: Any) -> None:
        """Called before each instruction."""
        self.library.location = f"{loc.filename}:{loc.line} in {self.func_ir.func_id.func_name}"
        super().notify_loc(loc)

    def lower_inst(self, inst: Any) -> None:
        """Called with each instruction."""
        observes = self.context.codegen().observes
        if self.context.enable_boundscheck or observes:
            self.library.accessed = accessed_array(self.func_ir, inst, self.typeof)
        blocks, before = len(self.function.blocks), self.builder.block
        position = len(before.instructions)
        try:
            super().lower_inst(inst)
            if observes:
                self._note_sites()
        except NotImplementedError as error:  # Numba's, for an operation that is typed but that nothing lowers
            raise LoweringError(str(error), loc=self.loc) from error
        except AssertionError:  # llvmlite's, if something is written after the end of a block
            if self.builder.block.is_terminated:
                raise self._behind_end(self.builder.block, inst) from None
            raise
        made = self.function.blocks[blocks:]
        for block in (before, *made):
            if goes_past_end(block) or (block is self.builder.block and block.is_terminated and not inst.is_terminator):
                raise self._behind_end(block, inst)
        self._check_written([*before.instructions[position:], *chain.from_iterable(b.instructions for b in made)], inst)

    def _behind_end(self, block: ir.Block, inst: Any) -> LoweringError:
        """The message if instructions of *inst*, or of the next statement, follow the terminator of *block*."""
        return LoweringError(
            f"{name_of_called(self.func_ir, inst)} ends a block with {str(block.terminator).strip()!r}, and more "
            "is written after that: after a terminator, the builder must be moved to a block without one",
            loc=self.loc,
        )

    def _check_written(self, written: list[ir.Instruction], inst: Any) -> None:
        """Raise `LoweringError` for instructions of *inst* that the target, or LLVM, does not support."""
        oversized = find_oversized(written)
        if oversized:
            raise LoweringError(
                f"{name_of_called(self.func_ir, inst)} writes {oversized} at most, as it would take "
                "minutes for much larger ones: use several smaller values, or memory and a loop",
                loc=self.loc,
            )
        for instruction in written:
            if isinstance(instruction, ir.CallInstr):
                self._check_callee(instruction.callee)

    def _check_callee(self, callee: Any) -> None:
        """Raise `LoweringError` for assembly, and for functions of Numba, that the target does not have."""
        if isinstance(callee, ir.InlineAsm):
            self._check_assembly(callee)
        elif isinstance(callee, ir.Function):
            if is_foreign(callee):
                self.library.rare[callee.name] = str(self.library.location)
            try:
                c_helpers.supply(self.context, callee, in_process=self.context.runs_in_process)
            except LoweringError as error:
                raise LoweringError(error.msg, loc=self.loc) from None

    def _check_assembly(self, assembly: ir.InlineAsm) -> None:
        """Raise `LoweringError` if the target does not accept *assembly*, on which LLVM would abort later."""
        try:
            self.context.check_assembly(assembly)
        except UnsupportedError as error:
            raise LoweringError(
                f"the assembly {assembly.asm!r} with the constraints {assembly.constraint!r} is not valid for the "
                f"processor that this is compiled for: {error}",
                loc=self.loc,
            ) from None

    def _note_sites(self) -> None:
        """Record the source line of the instructions of the last statement."""
        from numba_hip.abi.source_sites import Site
        from numba_hip.targets.cpu.instrumentation import note_sites

        site = Site(self.loc.filename, self.loc.line, self.func_ir.func_id.func_name, self.library.accessed)
        note_sites(self.builder.function, site)


@register_pass(mutates_CFG=True, analysis_only=False)
class HipLowering(BaseNativeLowering):
    """The pass that lowers to LLVM IR."""

    _name = "hip_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower; type inference of the caller continues afterwards if this is a function that another one calls."""
        with announced(state.func_id.func_name, f"lowering {state.func_id.func_name} to LLVM IR"):
            return bool(super().run_pass(state))

    @property
    def lowering_class(self) -> type[LocatedLower]:
        """The class that lowers."""
        return LocatedLower


@register_pass(mutates_CFG=True, analysis_only=False)
class PackLibrary(LoweringPass):
    """The last pass: makes a compile result of the lowered function."""

    _name = "hip_pack_library"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Set ``state.cr``."""
        lowered = state["cr"]
        state.library.source = state.func_id.filename
        state.library.finalize()
        state.cr = HipCompileResult(
            **sanitize_compile_result_entries(
                {
                    "typing_context": state.typingctx,
                    "target_context": state.targetctx,
                    "typing_error": state.status.fail_reason,
                    "type_annotation": state.type_annotation,
                    "library": state.library,
                    "call_helper": lowered.call_helper,
                    "signature": typing.signature(state.return_type, *state.args),
                    "fndesc": lowered.fndesc,
                }
            )
        )
        return True


class HipCompiler(CompilerBase):
    """Numba's nopython pipeline, ending in a library of LLVM modules."""

    def define_pipelines(self) -> list[PassManager]:
        """The only pipeline."""
        from numba_hip.compilation.constant_numbers import ComputeConstants  # these when they are needed
        from numba_hip.compilation.inner_functions import InlineInnerFunctions, inlines
        from numba_hip.compilation.member_sets import TakeSetsAsTuples
        from numba_hip.compilation.printed_text import TranslateByteCode, translates

        manager = PassManager("hip")
        for made, description in DefaultPassBuilder.define_untyped_pipeline(self.state).passes:
            ours = TranslateByteCode if translates(made) else InlineInnerFunctions if inlines(made) else made
            manager.add_pass(ours, description)
        manager.add_pass(TakeDeviceArrays, "take captured device arrays as they are")
        manager.add_pass(ComputeConstants, "compute what depends on constants alone")
        manager.add_pass(TakeSetsAsTuples, "take sets as tuples where members are looked for")
        manager.passes.extend(DefaultPassBuilder.define_typed_pipeline(self.state).passes)
        manager.add_pass(RefuseEscapes, "refuse to return private arrays")
        manager.add_pass(IRLegalization, "ensure that the IR is legal")
        manager.add_pass(AnnotateTypes, "annotate types")
        manager.add_pass(HipLowering, "lower to LLVM IR")
        manager.add_pass(PackLibrary, "pack the library")
        manager.finalize()
        return [manager]


def numba_flags(options: CompileOptions, *, describes_variables: bool = False) -> Flags:
    """Numba's flags for our options: only lowering, and C's division unless ``debug`` asks for Python's."""
    flags = HipFlags()
    flags.optimised = options.opt
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "python" if options.raises_divisions else "numpy"
    if options.keeps_lines:
        flags.debuginfo = True
        flags.dbg_directives_only = not describes_variables
    if options.fastmath:
        flags.fastmath = options.fastmath
    if options.forceinline:
        flags.forceinline = True
    return flags


def compile_function(
    py_func: Callable[..., Any],
    args: Types,
    return_type: types.Type | None,
    options: CompileOptions,
    target: CompileTarget,
) -> Any:
    """Compile *py_func* for argument types *args* to LLVM modules for *target*.

    Returns Numba's compile result; raises `numba.core.errors.TypingError` and its relatives, at the user's line.
    """
    know_ml_dtypes()
    with compiling_for(target.numba_name):
        try:
            linked = read_all(options.link)
            if options.rewrite is not None:
                py_func = options.rewrite(py_func, args)
            flags = numba_flags(options, describes_variables=bool(options.debug) and target.machine is not None)
            result = _lower(target, py_func, args, return_type, flags)
        except NumbaError as error:
            code = py_func.__code__
            error.add_context(
                f"compiling {py_func.__name__}({', '.join(map(str, args))}) for {target.name}, "
                f"{code.co_filename}:{code.co_firstlineno}"
            )
            raise
        result.library.add_linked_code(linked)
        return result


def _lower(
    target: CompileTarget, py_func: Callable[..., Any], args: Types, return_type: types.Type | None, flags: Flags
) -> Any:
    """Run Numba's passes. If a name that the function uses is not declared, they are run again with all that Numba
    declares of NumPy's functions: few kernels use those, and they take long to import."""
    try:
        return run_pipeline(target.contexts, py_func, args, return_type, flags, HipCompiler)
    except TypingError:
        is_called = len(target.typing_context.callstack) > 0
        if is_called or not import_more_functions():
            raise
    return run_pipeline(target.contexts, py_func, args, return_type, flags, HipCompiler)


@contextmanager
def explained(function: Callable[..., Any], args: tuple[Any, ...], target: str) -> Iterator[None]:
    """A block that compiles *function* for *args*: what Numba raises is told in a few lines, at the user's line.

    The error that is raised has Numba's own as its ``__context__``.
    """
    try:
        yield
    except Exception as error:
        if are_full():
            if isinstance(error, UnsupportedBytecodeError):  # which is no NumbaError
                raise UnsupportedSyntaxError(str(error)) from error
            raise
        from numba_hip.compilation.diagnosis import explain

        told = explain(error, function, args, target, f"{config.full_tracebacks.variable}=1")
        if told is None:
            raise
        raise told from None
