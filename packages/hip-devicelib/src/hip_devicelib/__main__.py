"""The command line: ``hip-devicelib``, or ``python -m hip_devicelib``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hip_devicelib import __version__
from hip_devicelib.errors import CodeObjectError, DevicelibError


def _doctor(arguments: argparse.Namespace) -> int:
    from hip_devicelib.doctor import examine

    findings = examine(arguments.rocm)
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{finding.verdict:8} {finding.name:{width}}  {finding.detail}")
    return 1 if any(finding.verdict == "problem" for finding in findings) else 0


def _inspect(arguments: argparse.Namespace) -> int:
    from hip_devicelib.metadata import describe

    try:
        image = Path(arguments.file).read_bytes()
    except OSError as error:
        raise CodeObjectError(f"cannot read {arguments.file!r}: {error.strerror}") from None
    code = describe(image)
    if arguments.json:
        print(json.dumps({"target": code.target, "kernels": [asdict(kernel) for kernel in code.kernels]}, indent=2))
        return 0
    print(f"target {code.target}, {len(code.kernels)} kernel(s)")
    for kernel in code.kernels:
        listed = ", ".join(f"{p.type} {p.name} at {p.offset}" for p in kernel.parameters)
        print(f"{kernel.name}({listed})")
        print(
            f"  shared {kernel.shared_bytes} B, private {kernel.private_bytes} B, arguments {kernel.argument_bytes} B, "
            f"wave {kernel.wave_size}, block at most {kernel.max_block_threads}, "
            f"VGPR {kernel.vector_registers}, SGPR {kernel.scalar_registers}"
        )
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="hip-devicelib", description="Code objects for AMD GPUs, without a GPU.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="what is on this machine, and whether it fits together")
    doctor.add_argument("--rocm", metavar="ROOT", help="the root of the ROCm to look at")
    doctor.set_defaults(run=_doctor)

    inspect = commands.add_parser("inspect", help="kernels of an object or a code object")
    inspect.add_argument("file", metavar="CODEOBJECT")
    inspect.set_defaults(run=_inspect)

    for command in (doctor, inspect):
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0, 1 for an error or a problem found, 2 for wrong usage."""
    parsed = make_parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except DevicelibError as error:
        print(f"hip-devicelib: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
