"""From SPMD bitcode to machine code of this machine, for one block shape.

The steps: read the bitcode; plan how the threads of a block run, and write a worker that runs them (a strategy does
both); link worker and kernel; run LLVM's passes; replace patterns that LLVM miscompiles; define large constants; emit
an object file; and, once every symbol that it refers to exists, load the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import llvmlite.binding as llvm

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.large_constants import define_data
from hip_runtime.compile_notice import enter_stage
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.worker import PROGRAM_SYMBOL
from hip_runtime.drivers.cpu.backend_limits import doubts
from hip_runtime.drivers.cpu.dump import KernelDump
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.object_code.jit import emit_assembly, emit_object, hide_all_but, load_object, locked
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.drivers.cpu.passes.codegen_workarounds import avoid_miscompiled_patterns
from hip_runtime.drivers.cpu.passes.optimize import optimise
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.plan import Plan
from hip_runtime.drivers.cpu.strategies.selection import select_plan
from hip_runtime.errors import ModuleLoadError

T = TypeVar("T")

_ENTRIES = (PROGRAM_SYMBOL,)
"""What stays visible of a program."""


def finalise_kernel(code: CodeObject, kernel: Kernel, block: Dim3) -> Program:
    """Machine code of *kernel* for blocks of the shape *block*; its entry is a `launch_frame.PROGRAM`.

    Raises `UnsupportedError` if no strategy can run it.
    """
    dump = KernelDump(kernel.name, block)
    with locked(), LlvmContext() as context:
        plan, module, risks = _optimised(KernelRequest(code, kernel, block, context, target_machine()), dump)
        dump.show("asm", f"assembly, as {plan.form}", lambda: emit_assembly(module, target_machine()))
        _define_large_constants(module, code.data, context)
        enter_stage("emitting machine code")
        return _describe(load_object(emit_object(module, kernel, risks), _ENTRIES), plan, block)


def list_kernel(code: CodeObject, kernel: Kernel, block: Dim3, machine: Any = None) -> tuple[str, str]:
    """The optimised LLVM IR and the assembly of what `finalise_kernel` makes; for LLVM's target *machine*, by default
    this processor."""
    machine = machine or target_machine()
    with locked(), LlvmContext() as context:
        request = KernelRequest(code, kernel, block, context, machine)
        plan, module, _ = _optimised(request, KernelDump(kernel.name, block))
        head = f"{kernel.name}, blocks of {'x'.join(map(str, block))} threads, as {plan.form}: {plan.reason}"
        return f"; {head}\n{module}", f"# {head}\n{emit_assembly(module, machine)}"


def view_kernel(code: CodeObject, kernel: Kernel, block: Dim3, view: Callable[[Plan, Any], T]) -> T:
    """What *view* gives for the plan and the optimised module of what `finalise_kernel` makes; machine code is emitted,
    too, for who listens."""
    with locked(), LlvmContext() as context:
        plan, module, risks = _optimised(
            KernelRequest(code, kernel, block, context, target_machine()), KernelDump(kernel.name, block)
        )
        seen = view(plan, module)
        enter_stage("emitting machine code")
        emit_object(module, kernel, risks)
        return seen


def _optimised(request: KernelRequest, dump: KernelDump) -> tuple[Plan, Any, list[str]]:
    """The plan for the kernel, the optimised module of its program, and reasons why LLVM may abort on it."""
    kernel, context = request.kernel, request.context
    enter_stage("choosing the form and vectorising")
    dump.show("ir", "LLVM IR that was handed in", request.text)
    with dump.passes():
        plan = select_plan(request)
    _link_worker(plan, kernel, context)
    enter_stage("LLVM's passes")
    optimise(plan.module, request.machine, as_vectors=plan.in_gangs)
    module, risks = _avoid_miscompilation(plan.module, context)
    dump.show("ir", f"LLVM IR, optimised, as {plan.form}: {plan.reason}", lambda: str(module))
    return plan, module, risks


def _link_worker(plan: Plan, kernel: Kernel, context: LlvmContext) -> None:
    """Link the worker into the kernel's module, and drop what the worker does not need, so that it is not optimised."""
    module = plan.module
    worker = context.read_text(str(plan.worker))
    worker.triple, worker.data_layout = module.triple, module.data_layout
    try:
        module.link_in(worker)
    except RuntimeError as error:
        raise ModuleLoadError(f"kernel {kernel.name!r} cannot be linked for the CPU device: {error}") from None
    module.verify()
    hide_all_but(_ENTRIES, module)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options()))


def _avoid_miscompilation(module: Any, context: LlvmContext) -> tuple[Any, list[str]]:
    """The optimised *module* without patterns that LLVM miscompiles, and reasons why LLVM may abort on it."""
    optimised = str(module)
    text = avoid_miscompiled_patterns(optimised)
    if text is not optimised:
        module = context.read_text(text)
        module.verify()
    return module, doubts(optimised)


def _define_large_constants(module: Any, data: Mapping[str, bytes], context: LlvmContext) -> None:
    """Define those of the large constants *data* that *module* still refers to: now, as it is printed no more."""
    if not data:
        return
    wanted = {variable.name for variable in module.global_variables} & data.keys()
    definitions = context.read_text(str(define_data({name: data[name] for name in sorted(wanted)})))
    definitions.triple, definitions.data_layout = module.triple, module.data_layout
    module.link_in(definitions)
    hide_all_but(_ENTRIES, module)


def _describe(program: Program, plan: Plan, block: Dim3) -> Program:
    program.form, program.reason = plan.form, plan.reason
    program.locations = tuple(point.call.location for point in plan.sync_points)
    program.point_kinds = tuple(point.kind for point in plan.sync_points)
    program.takes_dynamic_shared = plan.item.dynamic_limit is not None
    program.context_bytes = plan.item.context_bytes
    program.made_for, program.lengths, program.narrow = block, plan.lengths, plan.narrow
    program.has_short_indices = plan.item.has_short_indices
    return program
