"""Write the manifest that hip-devicelib ships: the declarations of the HIP header of a ROCm.

    python tools/make_manifest.py [--rocm ROOT] [--check]

With ``--check`` nothing is written: the exit status tells whether the shipped manifest matches the header.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hip_devicelib.header_parser import parse_header
from hip_devicelib.hip_header import read_header
from hip_devicelib.manifest import REFERENCE, load, save
from hip_devicelib.rocm import find_rocm

TARGET = Path(__file__).parents[1] / "packages/hip-devicelib/src/hip_devicelib/data" / REFERENCE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rocm", metavar="ROOT", help="the root of the ROCm to read")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    declarations = parse_header(read_header(find_rocm(arguments.rocm)))
    data = save(declarations)
    counts = (
        f"{len(declarations.functions)} functions, {len(declarations.omissions)} omissions, ROCm {declarations.version}"
    )
    if arguments.check:
        same = load(TARGET.read_bytes()) == declarations
        print(f"{TARGET.name} is {'up to date' if same else 'not what the header says'}: {counts}")
        return 0 if same else 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(data)
    print(f"{TARGET.name}: {counts}, {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
