"""Try random calls of hip.algorithms on the current device: ``python -m tools.fuzz_algorithms --seed 0 --cases 100``.
A call that fails is written as a program. NUMBA_HIP_DEVICE chooses the device, by default the CPU device."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from tools.fuzz_algorithms.check import Mismatch, check_calls
from tools.fuzz_algorithms.script import describe, write_script


def main(arguments: list[str] | None = None) -> int:
    """Try the requested number of cases; returns 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_algorithms", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next has the next")
    parser.add_argument("--cases", type=int, default=100, help="each compiles kernels, and calls them several times")
    parser.add_argument("--calls", type=int, default=16, help="how many calls a case makes, with other values")
    parser.add_argument("--scripts", type=Path, default=Path(), help="the folder for programs that fail")
    chosen = parser.parse_args(arguments)
    done: Counter[str] = Counter()
    failed: list[int] = []
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        # the last of these lines tells which call crashed the process
        print(f"seed {seed}", file=sys.stderr, flush=True)
        try:
            done[check_calls(seed, chosen.calls).algorithm] += 1
        except Mismatch as error:
            failed.append(seed)
            chosen.scripts.mkdir(parents=True, exist_ok=True)
            script = chosen.scripts / f"call_{seed}.py"
            script.write_text(write_script(error.call, seed, str(error)))
            print(f"# seed {seed}, {describe(error.call)}: {error}\n    written to {script}", flush=True)
    told = ", ".join(f"{algorithm} {count}" for algorithm, count in sorted(done.items()))
    print(f"{chosen.cases - len(failed)} of {chosen.cases} cases gave what NumPy gives: {told}")
    if failed:
        print(f"failed: seeds {', '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
