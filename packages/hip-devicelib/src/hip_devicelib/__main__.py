"""The command line: ``hip-devicelib``, or ``python -m hip_devicelib``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hip_devicelib import __version__, subcommands
from hip_devicelib.errors import DevicelibError


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="hip-devicelib", description="HIP's device functions, and code objects for AMD GPUs, without a GPU."
    )
    parser.add_argument("--version", action="version", version=__version__)
    added = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    rocm, as_json = argparse.ArgumentParser(add_help=False), argparse.ArgumentParser(add_help=False)
    rocm.add_argument("--rocm", metavar="ROOT", help="the root of the ROCm to use")
    as_json.add_argument("--json", action="store_true", help="print JSON")

    listing = added.add_parser("list", parents=[rocm, as_json], help="the device functions of HIP")
    listing.add_argument("pattern", nargs="?", default="*", help="which, such as 'atomic*' (default: all)")
    listing.set_defaults(run=subcommands.run_list)

    show = added.add_parser("show", parents=[rocm, as_json], help="one device function and its overloads")
    show.add_argument("name", metavar="NAME")
    show.set_defaults(run=subcommands.run_show)

    build = added.add_parser("build", parents=[rocm, as_json], help="the device functions as a bitcode library")
    build.add_argument("--arch", required=True, metavar="TARGET", help="such as gfx90a or gfx942:xnack+")
    build.add_argument("-o", "--output", metavar="FILE", help="where to write the bitcode")
    build.set_defaults(run=subcommands.run_build)

    link = added.add_parser("link", parents=[rocm], help="LLVM IR, bitcode and objects into a code object")
    link.add_argument("files", nargs="+", metavar="FILE", help="LLVM IR as text or bitcode, or ELF objects")
    link.add_argument("--arch", metavar="TARGET", help="the target to compile LLVM IR for")
    link.add_argument("-O", dest="level", type=int, choices=range(4), default=3, help="optimisation (default: 3)")
    link.add_argument("--no-library", action="store_true", help="do not link HIP's device functions")
    link.add_argument("-o", "--output", default="a.hsaco", metavar="FILE", help="default: a.hsaco")
    link.set_defaults(run=subcommands.run_link)

    inspect = added.add_parser("inspect", parents=[as_json], help="the kernels of an object or a code object")
    inspect.add_argument("file", metavar="CODEOBJECT")
    inspect.set_defaults(run=subcommands.run_inspect)

    doctor = added.add_parser("doctor", parents=[rocm, as_json], help="what is on this machine, and whether it fits")
    doctor.set_defaults(run=subcommands.run_doctor)

    cache = added.add_parser("cache", parents=[as_json], help="what the cache holds")
    cache.add_argument("--clear", action="store_true", help="remove everything in it")
    cache.set_defaults(run=subcommands.run_cache)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0, 1 for an error or a problem found, 2 for wrong usage."""
    parsed = make_parser().parse_args(arguments)
    try:
        status = int(parsed.run(parsed))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # who reads the output, such as head, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it at its end
        return 0
    except DevicelibError as error:
        print(f"hip-devicelib: {error}", file=sys.stderr)
        return 2 if isinstance(error, subcommands.UsageError) else 1


if __name__ == "__main__":
    sys.exit(main())
