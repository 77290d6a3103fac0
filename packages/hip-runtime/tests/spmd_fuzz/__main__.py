"""Try random programs: ``python -m spmd_fuzz --seed 0 --cases 1000``. One that fails is made small, and written as a
script that runs by itself and as a case to keep; of those that seem to have the same cause only the first."""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hip_runtime import Device
from hip_runtime.drivers.cpu.driver import CpuDriver
from spmd_fuzz.cases import Mismatch, choose_forms, find_mismatch
from spmd_fuzz.generator import make_program
from spmd_fuzz.kept import Case, write_case
from spmd_fuzz.nodes import Program
from spmd_fuzz.reduction import reduce_program
from spmd_fuzz.reproducer import write_script

MEMORY = 1 << 28


@dataclass
class Tally:
    """What was tried and what failed."""

    programs: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    failed: dict[str, list[int]] = field(default_factory=dict)
    """The seeds that failed, by what seems to be the cause."""

    def save(self, path: Path) -> None:
        """Add a line to the file *path*."""
        line = {"programs": self.programs, "runs": dict(self.runs), "failed": self.failed}
        with path.open("a") as file:
            file.write(f"{json.dumps(line)}\n")


def main() -> int:
    """Try as many programs as asked for; 1 where some failed."""
    parser = argparse.ArgumentParser(prog="python -m spmd_fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next has the next")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--forms", type=int, default=2, help="how many forms and widths each runs in; 0 for all")
    parser.add_argument("--scripts", type=Path, default=Path(), help="the folder for what is written of failures")
    parser.add_argument("--tally", type=Path, help="a file to which the counts are added as a line of JSON")
    chosen = parser.parse_args()
    device, tally = Device(CpuDriver(MEMORY), 0, 0), Tally()
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        print(f"seed {seed}", file=sys.stderr, flush=True)  # the last of these tells which program ended the process
        try_seed(device, seed, chosen.forms, chosen.scripts, tally)
    runs = ", ".join(f"{form} {count}" for form, count in sorted(tally.runs.items()))
    wrong = sum(map(len, tally.failed.values()))
    print(f"{tally.programs - wrong} of {tally.programs} programs gave what NumPy says; runs by form: {runs}")
    if chosen.tally:
        tally.save(chosen.tally)
    return 1 if tally.failed else 0


def try_seed(device: Device, seed: int, count: int, folder: Path, tally: Tally) -> None:
    """Run the program of *seed* in *count* forms, and write what is left of it where one of them is wrong."""
    program = make_program(seed)
    forms = choose_forms(program, seed, count or None)
    tally.programs += 1
    tally.runs.update(" ".join(str(part) for part in form if part) for form in forms)
    try:
        mismatch = find_mismatch(device, program, seed, forms)
    except Exception as error:
        tally.failed.setdefault(type(error).__name__, []).append(seed)
        print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
        return
    if mismatch is None:
        return
    small, shown = reduce_failure(device, program, seed, mismatch)
    cause = describe_cause(small, shown)
    tally.failed.setdefault(cause, []).append(seed)
    script = folder / f"program_{zlib.crc32(cause.encode()):08x}.py"
    if script.exists():
        print(f"seed {seed}: as {script}", flush=True)
        return
    script.write_text(write_script(small, seed, shown))
    script.with_suffix(".json").write_text(write_case(Case(small, seed, shown.form, cause)))
    print(f"seed {seed}: {shown}\n    {cause}\n    written to {script}", flush=True)


def reduce_failure(device: Device, program: Program, seed: int, mismatch: Mismatch) -> tuple[Program, Mismatch]:
    """A smaller program that is wrong in the same form and array, or ends in the same error, and what is wrong."""

    def find(tried: Program) -> Mismatch | None:
        try:
            found = find_mismatch(device, tried, seed, [mismatch.form])
        except Exception:  # what is left need not be a program that can be compiled
            return None
        return found if found is not None and found.cause == mismatch.cause else None

    small = reduce_program(program, lambda tried: find(tried) is not None)
    return small, find(small) or mismatch


def describe_cause(program: Program, mismatch: Mismatch) -> str:
    """Operations of a program that was made small: programs that share them mostly fail for one reason."""
    words = {
        " ".join(map(str, (node.kind, node.type, *node.words[:1])))
        for node in program.walk()
        if node.kind not in ("get", "const", "index", "n", "set", "store", "load")
    }
    return f"{mismatch.error or mismatch.told.split(': ')[1].split(' ')[0]}: {', '.join(sorted(words))}"


if __name__ == "__main__":
    sys.exit(main())
