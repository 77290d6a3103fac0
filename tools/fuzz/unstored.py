"""Places on the stack that kernels load and never store, in what the CPU device's vectoriser writes:
``python -m tools.fuzz.unstored --seed 0 --cases 300``. Nothing is optimised or run, so that a kernel takes a fraction
of a second. The kernels are those with computed indices; passes are checked, and refusals that tell of a mistake in the
vectoriser are told, too."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from benchmarks.processors import FEATURES, pretend_processor
from hip_runtime import config, current_device
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.object_code.jit import locked
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.selection import select_plan
from numba_hip.arguments.argument_types import argument_type
from tools.fuzz.indexed import make_indexed_case
from tools.fuzz.indexed_program import IndexedCase
from tools.fuzz.placement import Region
from tools.fuzz.runs import load_program

OWN_REASONS = ("has no value for the block", "nothing keeps the speculated base")
"""Of refusals that tell of a mistake in the vectoriser, and not of what it cannot do."""

WIDTHS = (None, 4, 16, 64)
"""The numbers of lanes that are tried."""

EFFECTS = ("call", "br", "switch", "ret", "atomicrmw", "cmpxchg")
"""What makes a difference by itself, beside stores to memory that something loads."""


class Uses:
    """The instructions of *function*, and which of them use each value."""

    def __init__(self, function: Any) -> None:
        self.instructions = [one for block in function.blocks for one in block.instructions]
        self._made = {one: one for one in self.instructions}
        self.of: defaultdict[Any, list[Any]] = defaultdict(list)
        for instruction in self.instructions:
            for operand in instruction.operands:
                self.of[operand].append(instruction)

    def matters(self, value: Any) -> bool:
        """Whether anything that makes a difference depends on *value*."""
        seen, left = {value}, [value]
        while left:
            current = left.pop()
            for user in self.of[current]:
                found = [user]
                if user.opcode == "store":
                    kept, place = user.operands
                    memory = self._memory(place)
                    if kept != current or memory is None:
                        return True
                    found = self._accesses(memory)
                elif user.opcode in EFFECTS:
                    return True
                left += [one for one in found if one not in seen]
                seen.update(found)
        return False

    def _memory(self, place: Any) -> Any:
        """The place on the stack that *place* is in, if it is in one."""
        made = self._made.get(place)
        while made is not None and made.opcode == "getelementptr":
            made = self._made.get(next(made.operands))
        return made if made is not None and made.opcode == "alloca" else None

    def _accesses(self, place: Any) -> list[Any]:
        """The loads from *place*, and what else gets its address."""
        found = []
        for user in self.of[place]:
            if user.opcode == "getelementptr":
                found += self._accesses(user)
            elif user.opcode != "store" or next(user.operands) == place:
                found.append(user)
        return found


def find_unstored(module: Any) -> Iterator[str]:
    """The places of each function in *module* that are loaded and never stored, where something depends on what is
    loaded."""
    for function in module.functions:
        uses = Uses(function)
        for place in uses.instructions:
            loads = uses.of[place] if place.opcode == "alloca" else []
            if loads and all(load.opcode == "load" for load in loads) and any(map(uses.matters, loads)):
                yield f"{function.name}: {str(place).strip()}"


def sweep_case(case: IndexedCase, width: int | None) -> list[str]:
    """What is wrong with the kernel of *case* as vectors of *width* lanes."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        program = load_program(Path(directory) / f"indexed_{case.seed}.py", case.importing_text)
        arrays, _, numbers = program["make_launch"](0)
        given = [*(Region(placed, behind=False, guarded=False).array for placed in arrays), *numbers]
        code = program["kernel"].compile(tuple(argument_type(value, "argument") for value in given))
        function = current_device().load(code.code_object).function(code.name)
        stack.enter_context(config.cpu_form.scope("vectors"))
        stack.enter_context(config.cpu_width.scope(width))
        stack.enter_context(config.verify_passes.scope(True))
        stack.enter_context(locked())
        context = stack.enter_context(LlvmContext())
        plan = select_plan(KernelRequest(function.module.code, function.kernel, case.block, context, target_machine()))
        told = [f"refused: {plan.reason}"] if any(reason in plan.reason for reason in OWN_REASONS) else []
        return told + [f"never stored: {place}" for place in find_unstored(context.read_text(str(plan.worker)))]


def main(arguments: list[str] | None = None) -> int:
    """Look at the requested number of kernels; returns 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.unstored", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first kernel; the next has the next")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--processor", choices=FEATURES, help="what the CPU device takes the processor for")
    chosen = parser.parse_args(arguments)
    pretend_processor(chosen.processor)
    found: Counter[bool] = Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        try:
            told = sweep_case(make_indexed_case(seed), WIDTHS[seed % len(WIDTHS)])
        except Exception as error:
            told = [" ".join(f"{type(error).__name__}: {error}".split())[:500]]
        found[bool(told)] += 1
        for one in told:
            print(f"seed {seed}: {one}", flush=True)
    print(f"{found[False]} of {found.total()} kernels store what they load")
    return 1 if found[True] else 0


if __name__ == "__main__":
    sys.exit(main())
