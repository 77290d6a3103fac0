"""Try random kernels on the current device: ``python -m tools.fuzz --seed 0 --cases 150``. A failing kernel is written
as a program. NUMBA_HIP_DEVICE chooses the device, by default the CPU device. Kernels that need a feature that the
device lacks are skipped and counted."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from benchmarks.processors import FEATURES, pretend_processor
from tools.fuzz.check import LackingError, Mismatch, check_case, check_typed
from tools.fuzz.generator import make_case
from tools.fuzz.indexed import make_indexed_case
from tools.fuzz.indexed_check import check_indexed
from tools.fuzz.program import TypedCase
from tools.fuzz.runs import SIMULATOR, device_name, wave_sizes
from tools.fuzz.typed import make_typed_case

KINDS = ("typed", "branching", "indexed")
"""The kinds of kernels, which take turns."""


@dataclass
class Tally:
    """The number of cases, the forms in which they ran, the failures, and the skipped ones by reason."""

    kernels: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)
    lacking: Counter[str] = field(default_factory=Counter)

    def save(self, path: Path) -> None:
        """Append a line to the file *path*."""
        line = {"kernels": self.kernels, "runs": self.runs, "failed": self.failed, "lacking": self.lacking}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def __str__(self) -> str:
        good = self.kernels - len(self.failed) - self.lacking.total()
        forms = ", ".join(f"{form} {count}" for form, count in sorted(self.runs.items()))
        lines = [
            f"{device_name()}: {good} of {self.kernels} kernels gave what plain Python gives; runs by form: {forms}"
        ]
        lines += [f"left out {count}: {reason}" for reason, count in self.lacking.most_common()]
        lines += [f"failed: seeds {', '.join(map(str, self.failed))}"] if self.failed else []
        return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Try the requested number of cases; returns 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next has the next")
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--kinds", choices=("all", *KINDS), default="all")
    parser.add_argument("--forms", type=int, default=4, help="how many forms a kernel runs in on the CPU device")
    parser.add_argument("--processor", choices=FEATURES, help="what the CPU device takes the processor for")
    parser.add_argument("--scripts", type=Path, default=Path(), help="the folder for programs that fail")
    parser.add_argument("--tally", type=Path, help="a file to which the counts are added as a line of JSON")
    chosen = parser.parse_args(arguments)
    pretend_processor(chosen.processor)
    tally = Tally()
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        # the last of these lines tells which kernel crashed the process
        print(f"seed {seed}", file=sys.stderr, flush=True)
        kind = KINDS[seed % len(KINDS)] if chosen.kinds == "all" else chosen.kinds
        try_seed(seed, kind, chosen.forms, chosen.scripts, tally)
    print(tally)
    if chosen.tally:
        tally.save(chosen.tally)
    return 1 if tally.failed else 0


def try_seed(seed: int, kind: str, count: int, folder: Path, tally: Tally) -> None:
    """Run the kernel of *seed*. If it fails, write the reduced program."""
    tally.kernels += 1
    try:
        forms = check_seed(seed, kind, count)
    except LackingError as error:
        tally.lacking[str(error).split("\n")[0]] += 1
    except Mismatch as error:
        told, _, text = str(error).partition("\n")
        script = folder / f"kernel_{seed}.py"
        script.write_text(text)
        print(f"{told}\n    written to {script}", flush=True)
        tally.failed.append(seed)
    else:
        tally.runs.update(form.split(": ")[1].split(" ")[0] for form in forms)


def check_seed(seed: int, kind: str, count: int) -> list[str]:
    """The forms in which the kernel of *seed* was right."""
    if kind == "typed":
        return check_typed(make_suitable_case(seed), count)
    if kind == "indexed":
        case, sizes = make_indexed_case(seed), wave_sizes()
        return check_indexed(case if case.wave in sizes else replace(case, wave=sizes[0]), count)
    return check_case(make_case(seed))


def make_suitable_case(seed: int) -> TypedCase:
    """The typed case of *seed*, with waves of a size that the device supports."""
    case, sizes = make_typed_case(seed, device_name() == SIMULATOR), wave_sizes()
    return case if case.wave in sizes else replace(case, wave=sizes[0])


if __name__ == "__main__":
    sys.exit(main())
