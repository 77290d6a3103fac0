"""Try random calls of hip.algorithms, and kernels around functions of hip.block and hip.wave, on the current device:
``python -m tools.fuzz_algorithms --seed 0 --cases 100``. A call that fails is written as a program. NUMBA_HIP_DEVICE
chooses the device, by default the CPU device."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from tools.fuzz_algorithms.check import Mismatch, check_calls
from tools.fuzz_algorithms.group_check import GroupMismatch, TooLargeError, check_group
from tools.fuzz_algorithms.script import describe, write_script

GROUPS = 4
"""Of so many seeds one is of groups, if both kinds are tried."""


@dataclass
class Tally:
    """How often each function was right, the seeds that failed, and how many kernels needed too much memory."""

    done: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)
    too_large: int = 0

    def __str__(self) -> str:
        good = self.done.total()
        told = ", ".join(f"{function} {count}" for function, count in sorted(self.done.items()))
        lines = [f"{good} of {good + len(self.failed)} cases gave what NumPy gives: {told}"]
        lines += [f"left out {self.too_large}: more shared memory than there is"] if self.too_large else []
        lines += [f"failed: seeds {', '.join(map(str, self.failed))}"] if self.failed else []
        return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Try the requested number of cases; returns 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_algorithms", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next has the next")
    parser.add_argument("--cases", type=int, default=100, help="each compiles kernels, and runs them several times")
    parser.add_argument("--kinds", choices=("both", "calls", "groups"), default="both")
    parser.add_argument("--calls", type=int, default=16, help="how many calls a case makes, with other values")
    parser.add_argument("--scripts", type=Path, default=Path(), help="the folder for programs that fail")
    chosen = parser.parse_args(arguments)
    tally = Tally()
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        # the last of these lines tells which call crashed the process
        print(f"seed {seed}", file=sys.stderr, flush=True)
        if chosen.kinds == "groups" or (chosen.kinds == "both" and seed % GROUPS == 0):
            try_group(seed, chosen.calls, tally)
        else:
            try_calls(seed, chosen.calls, chosen.scripts, tally)
    print(tally)
    return 1 if tally.failed else 0


def try_calls(seed: int, calls: int, folder: Path, tally: Tally) -> None:
    """Make the *calls* of *seed*. If one fails, write the program of the smallest that does."""
    try:
        tally.done[check_calls(seed, calls).algorithm] += 1
    except Mismatch as error:
        tally.failed.append(seed)
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / f"call_{seed}.py"
        script.write_text(write_script(error.call, seed, str(error)))
        print(f"# seed {seed}, {describe(error.call)}: {error}\n    written to {script}", flush=True)


def try_group(seed: int, calls: int, tally: Tally) -> None:
    """Run the kernel of *seed* so often. If it fails, tell how to repeat that."""
    try:
        use = check_group(seed, calls)
    except TooLargeError:
        tally.too_large += 1
    except GroupMismatch as error:
        tally.failed.append(seed)
        again = f"python -m tools.fuzz_algorithms --kinds groups --seed {seed} --cases 1"
        print(f"# seed {seed}, {error}\n    again: {again}", flush=True)
    else:
        tally.done[f"{use.makers}.{use.function}"] += 1


if __name__ == "__main__":
    sys.exit(main())
