"""Runs a program on an AMD GPU whose machine code is executed here.

python -m tools.amd_executor TARGET PROGRAM [ARGUMENTS]
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from tools.amd_executor.attachment import attach
from tools.amd_executor.decoding import FAMILIES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.amd_executor", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", choices=FAMILIES)
    parser.add_argument("program", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    _, executor = attach(given.target)
    sys.argv = [str(given.program), *given.arguments]
    sys.path[0] = str(given.program.parent)
    runpy.run_path(str(given.program), run_name="__main__")
    print(f"{given.target}: {executor.summary()}", file=sys.stderr)
    if not executor.instructions:
        print(f"{given.target}: nothing was executed", file=sys.stderr)
    return int(bool(executor.errors) or not executor.instructions)


if __name__ == "__main__":
    sys.exit(main())
