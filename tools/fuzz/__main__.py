"""Try random kernels: ``python -m tools.fuzz --seed 0 --cases 150``. One that fails is written as a program."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from tools.fuzz.check import Mismatch, check_case, check_typed
from tools.fuzz.generator import make_case
from tools.fuzz.typed import make_typed_case


def main(arguments: list[str] | None = None) -> int:
    """Try as many cases as asked for; 1 where some failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next has the next")
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--kinds", choices=("both", "typed", "branching"), default="both")
    parser.add_argument("--scripts", type=Path, default=Path(), help="the folder for programs that fail")
    parser.add_argument("--tally", type=Path, help="a file to which the counts are added as a line of JSON")
    chosen = parser.parse_args(arguments)
    taken: Counter[str] = Counter()
    failed = []
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        print(f"seed {seed}", file=sys.stderr, flush=True)  # the last of these tells which kernel ended the process
        try:
            typed = chosen.kinds == "typed" or (chosen.kinds == "both" and seed % 2 == 0)
            forms = check_typed(make_typed_case(seed)) if typed else check_case(make_case(seed))
            taken.update(form.split(": ")[1].split(" ")[0] for form in forms)
        except Mismatch as error:
            told, _, text = str(error).partition("\n")
            script = chosen.scripts / f"kernel_{seed}.py"
            script.write_text(text)
            print(f"{told}\n    written to {script}", flush=True)
            failed.append(seed)
    print(
        f"{chosen.cases - len(failed)} of {chosen.cases} kernels gave what plain Python gives; runs by form:", end=" "
    )
    print(", ".join(f"{form} {count}" for form, count in sorted(taken.items())))
    if chosen.tally:
        with chosen.tally.open("a") as file:
            file.write(json.dumps({"kernels": chosen.cases, "runs": taken, "failed": failed}) + "\n")
    if failed:
        print(f"failed: seeds {', '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
