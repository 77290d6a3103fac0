"""``python -m benchmarks.nas FOLDER [PROGRAM ...]``: the NAS benchmarks of a clone of danidomenico/NPB-PYTHON.

The clone is the user's own: nothing of it is part of this repository. Its programs for `numba.cuda` run unchanged on
`numba.hip`, posed as `numba.cuda`, and beside them its serial programs, written with ``njit``; both of class S, which
is the smallest, in separate processes. The output has the seconds that each program measures itself, its verdict on its
results, and the processor time of the whole process, including compiling.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PROGRAMS = ("BT", "CG", "EP", "FT", "IS", "LU", "MG", "SP")
OURS, PEER = "NPB-CUDA", "NPB-SER"

# They put a None into ``sys.path``, on which `importlib.metadata` fails, which Numba uses when it first compiles.
_START = """
import runpy, sys
folder, program, posed = sys.argv[1:]
if posed:
    import numba_hip_cuda
    numba_hip_cuda.pose_as_cuda()
from numba import njit
njit(lambda: 0)()
sys.path.insert(0, folder)
sys.argv = [program, "-c", "S"]
runpy.run_path(f"{folder}/{program}", run_name="__main__")
"""

_SECONDS = re.compile(r"Time in seconds\s*=\s*([0-9.]+)")
_VERIFIED = re.compile(r"Verification\s*=\s*(.+)")


class Outcome(NamedTuple):
    """The result of a run: the seconds that it measured, its verdict on its results, and its processor time."""

    seconds: float | None
    verdict: str
    cpu: float


def read(text: str, cpu: float) -> Outcome:
    """The result of a run that printed *text*."""
    seconds, verified = _SECONDS.search(text), _VERIFIED.search(text)
    verdict = verified[1].strip().lower() if verified else f"ended: {(text.strip().splitlines() or ['silently'])[-1]}"
    return Outcome(float(seconds[1]) if seconds else None, verdict, cpu)


def run(clone: Path, part: str, program: str, limit: float) -> Outcome:
    """Run *program* of one *part* of the clone, for *limit* seconds at most."""
    folder = (clone / part).resolve()
    command = [sys.executable, "-c", _START, str(folder), f"{program}.py", "posed" if part == OURS else ""]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    variables = {**os.environ, "NUMBA_HIP_DEVICE": "cpu"}
    try:
        said = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=limit)
        text = said.stdout if said.returncode == 0 else said.stdout + said.stderr
    except subprocess.TimeoutExpired:
        text = f"took longer than {limit:g} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return read(text, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def describe(program: str, ours: Outcome, peer: Outcome) -> str:
    """A line for *program*."""
    told = [f"{one.seconds:8.2f}" if one.seconds is not None else f"{'-':>8}" for one in (ours, peer)]
    return f"{program:4}{told[0]}{told[1]}{ours.cpu:10.1f}{peer.cpu:8.1f}  {ours.verdict} | {peer.verdict}"


def main(arguments: list[str] | None = None) -> int:
    """Run the programs that *arguments* select."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nas", description=__doc__)
    parser.add_argument("folder", type=Path, help=f"a clone, with {OURS} and {PEER}")
    parser.add_argument("program", nargs="*", default=PROGRAMS, help=f"of {', '.join(PROGRAMS)}; all by default")
    parser.add_argument("--limit", type=float, default=600, help="seconds that a run may take")
    options = parser.parse_args(arguments)
    missing = [part for part in (OURS, PEER) if not (options.folder / part).is_dir()]
    if missing:
        parser.error(f"{options.folder} has no {' and no '.join(missing)}: clone danidomenico/NPB-PYTHON from GitHub")
    if unknown := sorted(set(options.program) - set(PROGRAMS)):
        parser.error(f"there is no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    print(f"{'':4}{'hip':>8}{'njit':>8}{'hip cpu':>10}{'njit cpu':>8}  verification of hip | of njit")
    for program in options.program:
        outcomes = [run(options.folder, part, program, options.limit) for part in (OURS, PEER)]
        print(describe(program, *outcomes), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
