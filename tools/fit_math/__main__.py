"""Fits the polynomials and splits the constants of the CPU device's math, and writes them as a Python module.

    python -m tools.fit_math [--check]

With ``--check`` nothing is written: the exit status tells whether the shipped module is what the fit gives. Needs
mpmath.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.fit_math.module_text import write

TARGET = Path(__file__).parents[2] / "packages/hip-devicelib/src/hip_devicelib/cpu/coefficients.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    text = write()
    if check:
        same = TARGET.read_text() == text
        print(f"{TARGET.name} is {'up to date' if same else 'not what the fit says'}")
        return 0 if same else 1
    TARGET.write_text(text)
    print(f"{TARGET.name}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
