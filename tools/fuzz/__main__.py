"""Try random kernels: ``python -m tools.fuzz --seed 0 --cases 150``. A case that fails is printed as a program."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from tools.fuzz.check import Mismatch, check_case
from tools.fuzz.generator import make_case


def main(arguments: list[str] | None = None) -> int:
    """Try as many cases as asked for; 1 where some failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next has the next")
    parser.add_argument("--cases", type=int, default=150)
    chosen = parser.parse_args(arguments)
    taken: Counter[str] = Counter()
    failed = []
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        print(f"seed {seed}", file=sys.stderr, flush=True)  # the last of these tells which kernel ended the process
        try:
            taken.update(form.split(": ")[1].split(" ")[0] for form in check_case(make_case(seed)))
        except Mismatch as error:
            print(error, flush=True)
            failed.append(seed)
    print(
        f"{chosen.cases - len(failed)} of {chosen.cases} kernels gave what plain Python gives; runs by form:", end=" "
    )
    print(", ".join(f"{form} {count}" for form, count in sorted(taken.items())))
    if failed:
        print(f"failed: seeds {', '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
