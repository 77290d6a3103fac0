"""Waves in lock step: the lanes of a wave make each memory access together, as on an AMD GPU.

A gang is a wave, and runs as lanes of vectors from one block-wide barrier to the next: each instruction is executed for
all active lanes before the next one. What is scalarized is a single instruction. Accesses are made in the order of the
code that was handed in: it is inlined, but not optimised any more as the code of a single thread, which would keep in a
register what another lane overwrites.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime import config
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.elementwise import mark_elementwise_calls
from hip_runtime.drivers.cpu.analyses.spin_loops import find_spin_loops
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.passes.float_extremes import is_extreme, update_extremes
from hip_runtime.drivers.cpu.passes.freeze_loads import LOADS_ARE_LATE, freeze_loads
from hip_runtime.drivers.cpu.passes.half_products import halve_products
from hip_runtime.drivers.cpu.passes.inline import prepare_in_order
from hip_runtime.drivers.cpu.passes.odd_widths import widen_odd_integers
from hip_runtime.drivers.cpu.passes.packed_choices import unpack_choices
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused
from hip_runtime.drivers.cpu.passes.take_apart import take_apart
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.strategies.form_choice import LOOP, REGIONS
from hip_runtime.drivers.cpu.strategies.kernel_graph import KernelGraph
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.plan import Plan
from hip_runtime.drivers.cpu.strategies.region import write_regions
from hip_runtime.drivers.cpu.vectorize.wave_operations import waves_are_gangs
from hip_runtime.errors import UnsupportedError

REASON = "NUMBA_HIP_CPU_LOCKSTEP asks for waves in lock step"
"""The reason for the kernel's form."""


def plan_lockstep(request: KernelRequest) -> Plan:
    """A plan whose gangs are waves; `UnsupportedError` if they cannot run in lock step throughout the kernel."""
    try:
        gangs = _plan_waves(request)
        graph = _read_in_step(request)
        return write_regions(request, graph, REGIONS, REASON, gangs)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"kernel {request.kernel.name!r} cannot run with waves in lock step (NUMBA_HIP_CPU_LOCKSTEP=1): {error}"
        ) from None


def _plan_waves(request: KernelRequest) -> GangPlan:
    """Gangs that are waves; `UnsupportedError` if threads have to run one after another, because of the requested form
    or because they are observed."""
    requested_form = config.cpu_form()
    if requested_form in (LOOP, REGIONS):
        raise UnsupportedError(
            f"the form {requested_form!r}, which NUMBA_HIP_CPU_FORM asks for, runs one thread after another; unset it"
        )
    if request.reach.observed:
        raise UnsupportedError("its threads run one after another while races are looked for; ask for one of the two")
    wave_size = request.kernel.wave_size
    numbered = not waves_are_gangs(request.block, wave_size)
    return GangPlan(wave_size, everywhere=True, waves=True, numbered=numbered, lockstep=True)


def _read_in_step(request: KernelRequest) -> KernelGraph:
    """The kernel's graph, with memory accesses in the order of the code that was handed in."""
    kernel = request.kernel
    module = request.take_module()
    item = request.make_item(module)
    module = request.declare_intrinsics(module, item)
    prepare_in_order(module, kernel.name, request.machine, request.context)
    printed, context = PrintedModule(module), item.module.context
    item.has_lines = printed.has_lines
    function = read_function(printed, kernel.name, context)
    update_extremes(function)
    record("read", function)
    if unpack_choices(function) | halve_products(function):
        remove_unused(function)
    widen_odd_integers(function)
    record("widen_odd_integers", function)
    take_apart(function)
    record("take_apart", function)
    mark_elementwise_calls(function, printed, context)
    record("mark_elementwise_calls", function)
    elementwise = {value.callee for value in function.instructions() if value.elementwise is not None}
    for name in printed.functions:
        if name in elementwise | {kernel.name} or is_extreme(name):
            continue
        if _touches_memory(printed, name, context):
            raise UnsupportedError(
                f"it calls {name!r}, which reads or writes memory and cannot be inlined: it calls itself, its address "
                "is taken, or it forbids that"
            )
    frozen = LOADS_ARE_LATE and freeze_loads(function)
    record("freeze_loads", function)
    for loop in find_spin_loops(function):
        place = f" ({loop.poll.location})" if loop.poll.location else ""
        raise UnsupportedError(
            f"its threads wait for one another in a loop{place}, and lanes that left the loop would wait after it for "
            "those that are still in it"
        )
    return KernelGraph(function, module, item, frozen, spin_loops=0)


def _touches_memory(printed: PrintedModule, name: str, context: ir.Context) -> bool:
    try:
        function = read_function(printed, name, context)
    except UnsupportedError:
        return True
    return any(value.opcode == "load" or has_effect(value) for value in function.instructions())
