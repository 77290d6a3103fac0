"""From SPMD bitcode to machine code of this machine, for one block shape.

The steps, in order: read the bitcode, check that it is what the `Kernel` says, link it with the worker that `worker.py`
builds, make everything but the worker internal, optimise (inlining, loop and SLP vectorisation for the host's
processor), emit an object, check that every symbol it refers to exists in this process, and only then let MCJIT load
it: MCJIT ends the process on a symbol that it cannot find.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_devicelib.codeobject import CPU_TARGET, SCALAR_SIZES, CodeObject, Kernel
from hip_devicelib.constants import define_data
from hip_devicelib.emission import BITCODE_MAGICS, emit_for_host_apart, make_host_machine
from hip_devicelib.errors import UnsupportedError as NoCodeError
from hip_devicelib.forking import compiling
from hip_devicelib.hazards import find_oversized
from hip_runtime import config
from hip_runtime.driver import Dim3, block_threads
from hip_runtime.drivers.cpu.abi.declarations import build_declarations
from hip_runtime.drivers.cpu.abi.intrinsics import (
    FAULT,
    GRID_BARRIER,
    OBSERVE,
    SYNCHRONISING,
    WAVE_WIDE,
    YIELD,
    SharedArray,
    lay_out_shared,
)
from hip_runtime.drivers.cpu.abi.observer import OBSERVER, OBSERVER_STATE, build_observer
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import (
    PROGRAM_SYMBOL,
    WORKER_SYMBOL,
    Body,
    build_worker,
    kernel_type,
    run_threads,
)
from hip_runtime.drivers.cpu.analyses.callgraph import Reach, survey
from hip_runtime.drivers.cpu.analyses.spin_loops import find_spin_loops
from hip_runtime.drivers.cpu.analyses.stack_usage import stack_bytes
from hip_runtime.drivers.cpu.backend_limits import MACHINES, doubts
from hip_runtime.drivers.cpu.bfloat_conversions import FROM_DOUBLE, FROM_FLOAT, build_conversions
from hip_runtime.drivers.cpu.diagnostics.line_table import LineTable
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.limits import SHARED_BYTES
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_file import read_object
from hip_runtime.drivers.cpu.passes.codegen_workarounds import avoid_miscompiled_patterns
from hip_runtime.drivers.cpu.passes.freeze_loads import LOADS_ARE_LATE, freeze_loads
from hip_runtime.drivers.cpu.passes.inline import find_functions, inline_functions, prepare
from hip_runtime.drivers.cpu.passes.insert_yields import insert_yields
from hip_runtime.drivers.cpu.passes.lower_overloads import define_overloads
from hip_runtime.drivers.cpu.passes.optimize import optimise
from hip_runtime.drivers.cpu.regions.block_function import run_block
from hip_runtime.drivers.cpu.regions.form import cut_at_sync_points
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.strategies.choice import (
    AUTO,
    LEAST_LANES,
    LOOP,
    REGIONS,
    VECTORS,
    check_callees,
    check_private,
    choose_form,
    choose_width,
    explain_refusal,
    fit_stack,
)
from hip_runtime.drivers.cpu.strategies.lockstep import REASON, explain_no_step, plan_lockstep, read_in_step
from hip_runtime.drivers.cpu.vectorize.gangs import GangBody
from hip_runtime.drivers.cpu.vectorize.wave_operations import waves_are_gangs
from hip_runtime.errors import ModuleLoadError, SymbolError, UnsupportedError

LIBRARIES = ("libm.so.6", "libgcc_s.so.1", "libSystem.dylib")
"""Libraries with functions that machine code may call."""


_INTRINSIC_PREFIXES = {"x86_64": "x86", "aarch64": "aarch64"}

_lock = threading.RLock()


def renew_lock() -> None:
    """Replace the lock in a forked child, where the thread that held it does not exist."""
    global _lock
    _lock = threading.RLock()


@cache
def target_machine() -> Any:
    """LLVM's description of the processor that we run on; also makes the C math library's symbols known to LLVM."""
    machine = make_host_machine()
    for library in LIBRARIES:
        try:
            llvm.load_library_permanently(library)
        except RuntimeError:
            continue  # one of another system; a symbol that is missing is found and named when code is loaded
    return machine


class Program:
    """Machine code that was loaded.

    ``image`` is the object file, ``entries`` the addresses of what it was compiled for, ``entry`` the first of them.
    The code is freed when the last reference goes.
    """

    __slots__ = (
        "__weakref__",
        "_engine",
        "_name",
        "block",
        "code_end",
        "code_start",
        "context_bytes",
        "describe_place",
        "entries",
        "entry",
        "form",
        "image",
        "kernel_name",
        "lines",
        "locations",
        "point_kinds",
        "reason",
        "takes_dynamic_shared",
    )

    def __init__(self, image: bytes, entries: Sequence[str]) -> None:
        self.image = image
        self._engine = _load(image)
        self.entries = [int(self._engine.get_global_value_address(entry)) for entry in entries]
        self.entry = self.entries[0]
        self.code_start = self.code_end = 0
        if PROGRAM_SYMBOL in entries:
            self._note_code()
        self.form = self.reason = ""
        self.locations: tuple[str, ...] = ()
        self.point_kinds: tuple[int, ...] = ()
        """Where the points stand at which threads wait, and what they do there, see `thread_states`."""
        self.takes_dynamic_shared = False
        self.context_bytes = 0
        self.kernel_name = ""
        self.block: Dim3 = (1, 1, 1)
        """The shape of the blocks that it runs."""
        self.describe_place: Callable[[Sequence[int]], str] | None = None
        """Where in the source code at some addresses stands, as the layer above knows it."""
        self.lines: LineTable | None = None
        """See `source_lines`; made when first asked for."""

    def _note_code(self) -> None:
        """Find out where the machine code lies, and tell those who come across it in a signal handler."""
        words = _ProgramWords.from_address(self.entry)
        image = read_object(self.image)
        worker = image.symbol(WORKER_SYMBOL)
        self.code_start = words.worker - worker.value
        self.code_end = self.code_start + image.sections[worker.section].size
        words.code_start, words.code_end = self.code_start, self.code_end

    def name_kernel(self, name: str) -> None:
        """Say which kernel this is, for reports."""
        self.kernel_name = name
        self._name = ctypes.create_string_buffer(name.encode())
        _ProgramWords.from_address(self.entry).name = ctypes.addressof(self._name)


class _ProgramWords(ctypes.Structure):
    """A `launch_frame.PROGRAM` in memory."""

    _fields_ = (
        ("worker", ctypes.c_uint64),
        ("cost", ctypes.c_double),
        ("code_start", ctypes.c_uint64),
        ("code_end", ctypes.c_uint64),
        ("name", ctypes.c_void_p),
    )


def check(code: CodeObject) -> list[str]:
    """Raise `ModuleLoadError` where *code* is not code of the CPU device, is not what its kernels say, or would take
    LLVM minutes; gives what LLVM may not survive of it."""
    if code.target != CPU_TARGET:
        raise ModuleLoadError(
            f"a code object for target {code.target!r} cannot be loaded on the CPU device; compile for target "
            f"{CPU_TARGET!r}"
        )
    if not code.image.startswith(BITCODE_MAGICS):
        raise ModuleLoadError(
            f"the image of a code object for target {CPU_TARGET!r} must be LLVM bitcode; this one, of "
            f"{len(code.image)} bytes, starts with {code.image[:4]!r}"
        )
    with compiling, _lock, LlvmContext() as scratch:
        module = _read(code, scratch)
        _check_machine(module)
        for kernel in code.kernels:
            _check_kernel(module, kernel)
        text = str(module)
    oversized = find_oversized(text)
    if oversized:
        raise ModuleLoadError(f"code with kernels {', '.join(kernel.name for kernel in code.kernels)} has {oversized}")
    return doubts(text)


def _read(code: CodeObject, scratch: LlvmContext) -> Any:
    try:
        module = scratch.read_bitcode(code.image)
        module.verify()
    except RuntimeError as error:
        raise ModuleLoadError(f"the bitcode of this code object is damaged: {error}") from None
    return module


def _check_machine(module: Any) -> None:
    """LLVM ends the process on an intrinsic of another machine, so there must be none."""
    arch = target_machine().triple.partition("-")[0]
    if module.triple and module.triple.partition("-")[0] != arch:
        raise ModuleLoadError(
            f"the bitcode is for {module.triple!r}; this machine is {arch!r}, or leave the triple empty"
        )
    native = _INTRINSIC_PREFIXES.get(arch, "")
    for function in module.functions:
        name = function.name
        prefix = name.split(".")[1] if name.startswith("llvm.") else ""
        if prefix in MACHINES and prefix != native:
            raise ModuleLoadError(f"the bitcode calls {name!r}, which only {prefix} has, not the CPU device")


def _check_kernel(module: Any, kernel: Kernel) -> None:
    try:
        function = module.get_function(kernel.name)
    except NameError:
        raise SymbolError(f"the code object lists kernel {kernel.name!r}, but its bitcode does not define it") from None
    if function.is_declaration:
        raise SymbolError(f"the code object lists kernel {kernel.name!r}, but its bitcode only declares it")
    found = [str(argument.type) for argument in function.arguments]
    expected = ["ptr", *(parameter.type for parameter in kernel.parameters)]
    if found != expected:
        raise ModuleLoadError(
            f"kernel {kernel.name!r} has parameters ({', '.join(found)}) in its bitcode; the code object says "
            f"({', '.join(expected)}), the first being the work item"
        )
    for parameter in kernel.parameters:
        end = parameter.offset + SCALAR_SIZES[parameter.type]
        if parameter.offset < 0 or end > kernel.argument_bytes:
            raise ModuleLoadError(
                f"parameter {parameter.name!r} of kernel {kernel.name!r} lies at bytes {parameter.offset} to {end} of "
                f"an argument buffer of {kernel.argument_bytes} bytes"
            )


def finalise(code: CodeObject, kernel: Kernel, block: Dim3) -> Program:
    """Machine code of *kernel* for blocks of the shape *block*; its entry is a `launch_frame.PROGRAM`."""
    with _lock, LlvmContext() as scratch:
        module = _read_for_here(code, scratch)
        reach = survey(module, kernel.name)
        wanted, width = config.cpu_form(), choose_width(block[0], config.cpu_width())
        if reach.observed and wanted != LOOP:
            wanted = REGIONS  # one thread at a time, so that there is an order of what they do
        form, why = choose_form(reach, wanted, width)
        _check_shared(kernel, reach.shared_arrays)
        private = stack_bytes(module, target_machine().target_data)
        check_private(kernel.name, private)
        form, why, wanted = fit_stack(form, why, wanted, private, width)
        grouping = _group(reach, wanted, width, block, kernel.wave_size)
        whole = form != LOOP or LOADS_ARE_LATE or block_threads(block) > 1
        foreign: dict[bool, list[str]] = {}
        if config.cpu_lockstep() and block_threads(block) > 1:
            try:
                form, why, grouping = REGIONS, REASON, plan_lockstep(reach.observed, block, kernel.wave_size)
                return _finalise_as(
                    form, why, module, kernel, block, reach, grouping, whole, scratch, foreign, code.data
                )
            except UnsupportedError as error:
                raise explain_no_step(kernel.name, error) from None
        while True:
            try:
                return _finalise_as(
                    form, why, module, kernel, block, reach, grouping, whole, scratch, foreign, code.data
                )
            except UnsupportedError as error:
                if form == VECTORS:
                    form, why, whole = LOOP, explain_refusal(error), LOADS_ARE_LATE
                elif grouping.waves:
                    why = f"{why}; waves are no groups: {error}"
                elif form == LOOP and whole:
                    whole = False
                else:
                    raise
            module, grouping = _read_for_here(code, scratch), GangPlan(width, grouping.everywhere)


def _group(reach: Reach, wanted: str, width: int, block: Dim3, wave_size: int) -> GangPlan:
    """Which regions run how many threads at a time, where the kernel is cut into some."""
    everywhere = wanted == VECTORS
    waves = not WAVE_WIDE.isdisjoint(reach.functions)
    across = block_threads(block) if waves else block[0]
    if wanted == REGIONS or across < (2 if everywhere else LEAST_LANES):
        return GangPlan(1)
    if waves:
        return GangPlan(wave_size, everywhere, True, numbered=not waves_are_gangs(block, wave_size))
    return GangPlan(width, everywhere, exact=config.cpu_width() is not None)


def _read_for_here(code: CodeObject, scratch: LlvmContext) -> Any:
    machine = target_machine()
    module = _read(code, scratch)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    define_overloads(module, scratch.read_text)
    return module


def _finalise_as(
    form: str, why: str, module: Any, kernel: Kernel, block: Dim3, reach: Reach, grouping: GangPlan, whole: bool,
    scratch: LlvmContext, foreign: dict[bool, list[str]], data: Mapping[str, bytes],
) -> Program:  # fmt: skip
    """The program in *form*. Where the kernel is not read as a *whole* it stays as it is, which `LOOP` can do.

    *foreign* keeps, from one form that is tried to the next, which functions have to be a part of the kernel; by
    whether loops were written out."""
    machine = target_machine()
    limit = max(SHARED_BYTES - kernel.shared_bytes, 0) if reach.uses_dynamic_shared else None
    worker = ir.Module("spmd.worker", context=ir.Context())
    item = WorkItem(
        worker, block, kernel.wave_size, reach.shared_arrays, limit, GRID_BARRIER in reach.functions,
        stack_bytes(module, machine.target_data) if reach.watches_stack else None, reach.observed,
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    kinds: tuple[int, ...] = ()
    body: Body
    if not whole:
        body = run_threads(kernel, item)
    elif grouping.in_step:
        module = _declare_first(module, reach, item, scratch)
        function = read_in_step(module, kernel, machine, item)
        cut = cut_at_sync_points(function, SYNCHRONISING - WAVE_WIDE)
        body = run_block(cut, item, kernel_type(kernel), module, machine.target_data, grouping)
        notes = tuple(point.call.location for point in cut.points)
    else:
        module = _declare_first(module, reach, item, scratch)
        in_memory = not (grouping.waves or WAVE_WIDE.isdisjoint(reach.functions))  # nothing is won by more operations
        unroll = form == REGIONS and not in_memory
        prepare(module, kernel.name, reach.synchronising, machine, unroll)
        if form != LOOP:
            check_callees(kernel.name, stack_bytes(module, machine.target_data, kernel.name))
        alone = block_threads(block) == 1
        printed = PrintedModule(module)
        if unroll not in foreign:
            is_foreign = partial(_is_foreign, alone=alone)
            foreign[unroll] = find_functions(printed, kernel.name, item.module.context, is_foreign)
        if foreign[unroll]:
            inline_functions(module, kernel.name, foreign[unroll], machine)
            printed = PrintedModule(module)
        item.has_lines = printed.has_lines
        function = read_function(printed, kernel.name, item.module.context)
        shielded = LOADS_ARE_LATE and freeze_loads(function)
        spins = 0 if alone else insert_yields(function)
        if spins:
            form, why, grouping = _take_turns(form, why, spins, grouping, choose_width(block[0], config.cpu_width()))
        if form == LOOP and not shielded:
            body = run_threads(kernel, item)
        elif form == VECTORS:
            body = GangBody(
                function, item, kernel_type(kernel), module, machine.target_data, grouping.width,
                judge=config.cpu_form() == AUTO, exact=config.cpu_width() is not None,
            )  # fmt: skip
        else:
            cut = cut_at_sync_points(
                function, (SYNCHRONISING - WAVE_WIDE if grouping.waves else SYNCHRONISING) | {YIELD}
            )
            body = run_block(cut, item, kernel_type(kernel), module, machine.target_data, grouping)
            notes = tuple(point.call.location for point in cut.points)
            kinds = tuple(point.kind for point in cut.points)
    build_worker(kernel, item, body)
    if isinstance(body, GangBody):
        why = f"{why}; {body.describe()}"
    if form == REGIONS and grouping.describe():
        why = f"{why}; {grouping.describe()}"
    _link(module, worker, kernel, scratch)
    program = _compile(module, kernel, data, scratch)
    program.form, program.reason, program.locations, program.point_kinds = form, why, notes, kinds
    program.takes_dynamic_shared = reach.uses_dynamic_shared
    program.context_bytes = item.context_bytes
    return program


def _is_foreign(function: Function, alone: bool) -> bool:
    """Whether *function* has to be a part of the kernel for what is in it to be run right; *alone* is whether a block
    has one thread."""
    return (LOADS_ARE_LATE and freeze_loads(function)) or not (alone or not find_spin_loops(function))


def _take_turns(form: str, why: str, loops: int, grouping: GangPlan, width: int) -> tuple[str, str, GangPlan]:
    """The form of a kernel whose threads wait for one another in *loops* loops, why, and which regions are groups."""
    found = f"threads wait for one another in {'a loop' if loops == 1 else f'{loops} loops'}"
    if grouping.waves or config.cpu_form() == LOOP:
        grouping = GangPlan(1 if config.cpu_form() == LOOP else width, grouping.everywhere)
    return REGIONS, f"{why}; {found}" if form == REGIONS else found, grouping


def _check_shared(kernel: Kernel, arrays: list[SharedArray]) -> None:
    nbytes = lay_out_shared(array.symbol for array in arrays)
    if nbytes > kernel.shared_bytes:
        raise ModuleLoadError(
            f"the arrays of shared memory that kernel {kernel.name!r} uses take {nbytes} bytes; the code object says "
            f"{kernel.shared_bytes}"
        )


def _declare_first(module: Any, reach: Reach, item: WorkItem, scratch: LlvmContext) -> Any:
    """*module* linked into one that declares the operations it calls with attributes that hold, or defines them."""
    names = sorted(name for name in reach.functions if name.startswith("spmd.") and name not in (FAULT, OBSERVE))
    declarations = scratch.read_text(str(build_declarations(names, item.known)))
    declarations.triple, declarations.data_layout = module.triple, module.data_layout
    declarations.link_in(module)
    return declarations


def _link(module: Any, worker: ir.Module, kernel: Kernel, scratch: LlvmContext) -> None:
    parsed = scratch.read_text(str(worker))
    parsed.triple, parsed.data_layout = module.triple, module.data_layout
    try:
        module.link_in(parsed)
    except RuntimeError as error:
        raise ModuleLoadError(f"kernel {kernel.name!r} cannot be linked for the CPU device: {error}") from None
    module.verify()
    passes = llvm.create_new_module_pass_manager()
    kernel_function = module.get_function(kernel.name)
    kernel_function.linkage = "internal"  # where the worker does not call it, it need not be optimised
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options()))


def _define_data(module: Any, data: Mapping[str, bytes], scratch: LlvmContext) -> None:
    """Define the large constants that *module* still refers to."""
    wanted = {variable.name for variable in module.global_variables} & data.keys()
    parsed = scratch.read_text(str(define_data({name: data[name] for name in sorted(wanted)})))
    parsed.triple, parsed.data_layout = module.triple, module.data_layout
    module.link_in(parsed)


def compile_quickly(module: Any, *entries: str) -> Program:
    """Machine code of the llvmlite module *module*, whose functions *entries* are there to be called.

    For code that spends its time in calls and locked instructions: LLVM's full pipeline takes seven times as long and
    makes such code no faster.
    """
    with _lock:
        return _compile_quickly(module, entries)


def _compile_quickly(module: Any, entries: Sequence[str]) -> Program:
    with LlvmContext() as scratch:
        machine = target_machine()
        parsed = scratch.read_text(str(module))
        parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
        _hide_all_but(entries, parsed)
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        return _load_checked(make_host_machine(0).emit_object(parsed), entries)


def _compile(module: Any, kernel: Kernel, data: Mapping[str, bytes], scratch: LlvmContext) -> Program:
    """Optimise *module*, of which only the program stays visible, put its large constants *data* beside it, load it."""
    entries = (PROGRAM_SYMBOL,)
    _hide_all_but(entries, module)
    optimise(module, target_machine())
    optimised = str(module)
    reworded = avoid_miscompiled_patterns(optimised)
    if reworded is not optimised:
        module = scratch.read_text(reworded)
        module.verify()
    if data:
        _define_data(module, data, scratch)  # now, as it is printed no more
        _hide_all_but(entries, module)
    return _load_checked(_emit(module, kernel, doubts(optimised)), entries)


_emits_here = False


def emit_here() -> None:
    """Make all machine code in this process, which may die of it."""
    global _emits_here
    _emits_here = True


def _emit(module: Any, kernel: Kernel, reasons: Sequence[str]) -> bytes:
    """The object file of *module*: made in another process where there are *reasons* to fear for this one."""
    if _emits_here or not reasons:
        return bytes(target_machine().emit_object(module))
    try:
        return emit_for_host_apart(bytes(module.as_bitcode()), "object", loads="asm" in reasons)
    except NoCodeError as error:
        raise ModuleLoadError(
            f"kernel {kernel.name!r}: LLVM has no machine code of this processor for it ({', '.join(reasons)}): {error}"
        ) from None


def _hide_all_but(entries: Sequence[str], module: Any) -> None:
    for function in module.functions:
        if not function.is_declaration and function.name not in entries:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration and variable.name not in entries and variable.linkage.name != "appending":
            variable.linkage = "internal"


def load_image(image: bytes) -> Program:
    """The program whose object file is *image*, which `finalise` made, in this process or another."""
    with _lock:
        target_machine()
        return _load_checked(image, (PROGRAM_SYMBOL,))


def _load_checked(image: bytes, entries: Sequence[str]) -> Program:
    symbols = read_object(image).undefined_symbols()
    observed = OBSERVER in symbols
    if observed:
        _define_observer()
    missing = [name for name in symbols if not llvm.address_of_symbol(name)]
    if not {FROM_FLOAT, FROM_DOUBLE}.isdisjoint(missing):
        _define_conversions()
        missing = [name for name in missing if not llvm.address_of_symbol(name)]
    if missing:
        raise SymbolError(
            f"code for the CPU device refers to {', '.join(map(repr, missing))}, which neither it nor the C math "
            "library defines; link the code that defines it"
        )
    program = Program(image, entries)
    (_observed.add if observed else _observed.discard)(program.entry)
    return program


_observed: set[int] = set()


def is_observed(entry: int) -> bool:
    """Whether the program whose first entry is at address *entry* tells what its threads do."""
    return entry in _observed


@cache
def _define_conversions() -> Program:
    """Make the conversions to bfloat16 known to LLVM. The result keeps them loaded."""
    names = [name for name in (FROM_FLOAT, FROM_DOUBLE) if not llvm.address_of_symbol(name)]
    program = _compile_quickly(build_conversions(), names)
    for name, address in zip(names, program.entries, strict=True):
        llvm.add_symbol(name, address)
    return program


@cache
def _define_observer() -> Any:
    """Make the observer known to LLVM; gives its two words. They and its code live as long as the process."""
    program = _compile_quickly(build_observer(), (OBSERVER, OBSERVER_STATE))
    observer, state = program.entries
    llvm.add_symbol(OBSERVER, observer)
    words = (ctypes.c_int64 * 2).from_address(function_at(state, ctypes.c_int64)())
    return words, program


def observer_words() -> Any:
    """What `observer.OBSERVER` looks at: the address of the function that is told, or 0, and its first argument."""
    with _lock:
        return _define_observer()[0]


def observer_address() -> int:
    """The address of `observer.OBSERVER`."""
    with _lock:
        return int(_define_observer()[1].entry)


@cache
def _engine_context() -> Any:
    """The LLVM context of the empty modules that engines are made with. It outlives every engine: the garbage collector
    may dispose an engine after a context that went with it, and LLVM would then read freed memory."""
    return llvm.create_context()


def _load(image: bytes) -> Any:
    machine = target_machine.__wrapped__()  # an engine owns the target machine that it is given
    empty = llvm.parse_assembly("", _engine_context())
    empty.triple = machine.triple
    engine = llvm.create_mcjit_compiler(empty, machine)
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(image))
    engine.finalize_object()
    return engine


def function_at(address: int, result: Any, *arguments: Any) -> Any:
    """A function at *address* as something to call; the call lets other Python threads run."""
    return ctypes.CFUNCTYPE(result, *arguments)(address)
