"""Selects the strategy for a kernel: the first of the candidates that does not refuse."""

from __future__ import annotations

from hip_runtime import config
from hip_runtime.drivers.cpu.abi import operation_counters
from hip_runtime.drivers.cpu.analyses.cost_model import UnprofitableError
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.strategies.form_choice import (
    LOOP,
    MIN_LANES,
    REGIONS,
    VECTORS,
    check_private,
    choose_form,
    explain_refusal,
    fit_stack,
    has_vector_masks,
)
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.lockstep import plan_lockstep
from hip_runtime.drivers.cpu.strategies.loop import plan_loop, plan_unread_loop
from hip_runtime.drivers.cpu.strategies.operation_counting import plan_counting
from hip_runtime.drivers.cpu.strategies.plan import Plan, attempt
from hip_runtime.drivers.cpu.strategies.region import plan_regions
from hip_runtime.drivers.cpu.strategies.vector import plan_vectors
from hip_runtime.drivers.cpu.vectorize.wave_operations import waves_are_gangs


def select_plan(request: KernelRequest) -> Plan:
    """The plan of the first strategy that does not refuse; raises `UnsupportedError` if all do."""
    counters = operation_counters.wanted()
    if counters is not None:
        return plan_counting(request, counters)
    form, reason = choose_form(request.reach, request.requested_form, request.most_lanes)
    check_private(request.kernel.name, request.private_bytes)
    form, reason, requested_form = fit_stack(
        form, reason, request.requested_form, request.private_bytes, request.most_lanes
    )
    if config.cpu_lockstep() and not request.is_single_thread:
        return plan_lockstep(request)
    gangs = _plan_gangs(request, requested_form)
    if form == REGIONS:
        return _plan_regions(request, reason, gangs)
    are_slower = False
    if form == VECTORS:
        outcome = attempt(lambda: plan_vectors(request, reason, gangs))
        if isinstance(outcome, Plan):
            return outcome
        reason, gangs = explain_refusal(outcome.error), _without_waves(request, gangs)
        are_slower = isinstance(outcome.error, UnprofitableError)
    outcome = attempt(lambda: plan_loop(request, reason, gangs, as_scalars=are_slower))
    if isinstance(outcome, Plan):
        return outcome
    return plan_unread_loop(request, reason, as_scalars=are_slower)


def _plan_regions(request: KernelRequest, reason: str, gangs: GangPlan) -> Plan:
    """Regions with *gangs*; if these are waves and vectors cannot run them, with gangs that are not."""
    if gangs.waves:
        outcome = attempt(lambda: plan_regions(request, reason, gangs))
        if isinstance(outcome, Plan):
            return outcome
        reason = f"{reason}; waves are not gangs: {outcome.error}"
        gangs = _without_waves(request, gangs)
    return plan_regions(request, reason, gangs)


def _without_waves(request: KernelRequest, gangs: GangPlan) -> GangPlan:
    return GangPlan(request.widest, gangs.everywhere, has_masks=has_vector_masks())


def _plan_gangs(request: KernelRequest, requested_form: str) -> GangPlan:
    """The gangs of a kernel that is cut into regions."""
    everywhere = requested_form == VECTORS
    waves = request.has_wave_operations
    wave_size = request.kernel.wave_size
    threads = request.block[0] * request.block[1] * request.block[2]
    across = threads if waves else request.widest
    if requested_form in (LOOP, REGIONS) or across < (2 if everywhere else MIN_LANES):
        return GangPlan(1)
    if waves:
        return GangPlan(wave_size, everywhere, True, numbered=not waves_are_gangs(request.block, wave_size))
    exact = request.chosen_width is not None
    return GangPlan(request.widest, everywhere, exact=exact, has_masks=has_vector_masks())
