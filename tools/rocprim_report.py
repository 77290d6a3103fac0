"""Compares the kernels of `numba_hip.algorithms`, `block` and `wave` on AMD GPUs with rocPRIM's; no GPU is needed.

    python -m tools.rocprim_report FOLDER --targets gfx942 gfx1100

rocPRIM, HIP's headers and clang are Debian's, unpacked in FOLDER without root (see `tools.debian_packages`). Either
side's figures are read from its assembly in the same way. `under way` is the most loads of global memory that a thread
has asked for when it first waits for one of them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.debian_packages import LIBRARIES, UnavailableError, unpack_packages

PACKAGES = ("librocprim-dev", "libamdhip64-dev", "clang-21", "rocm-device-libs-21", "libstdc++-15-dev")
SUITE = "sid"
LLVM = "usr/lib/llvm-21"
TARGETS = ("gfx90a", "gfx942", "gfx1100")
SOURCE = Path(__file__).with_suffix("").with_name("rocprim_kernels.hip")
FIGURES = {
    "vgprs": "TotalNumVgprs|NumVgprs",
    "sgprs": "TotalNumSgprs",
    "lds": "LDSByteSize",
    "scratch": "ScratchSize",
    "occupancy": "Occupancy",
}
"""LLVM's names for them in the comments after a kernel; sizes are bytes, occupancy is waves per SIMD."""
COLUMNS = (*FIGURES, "instructions", "under way")
UNAVAILABLE = 75


def compile_theirs(root: Path, target: str) -> str:
    """Assembly of all that `SOURCE` names of rocPRIM."""
    clang, resources = root / LLVM / "bin/clang-21", root / LLVM / "lib/clang/21"
    libraries = f"{root / LIBRARIES}:{root / LLVM}/lib:/{LIBRARIES}"
    command = [root / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, clang, "-x", "hip", "-w"]
    command += ["--cuda-device-only", f"--offload-arch={target}", "-O3", "-std=c++17", "-S", "-o", "-", SOURCE]
    command += [f"--rocm-path={root}/usr", f"--sysroot={root}", "-resource-dir", resources]
    command += [f"--rocm-device-lib-path={resources}/amdgcn/bitcode"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(f"clang cannot compile {SOURCE.name} for {target}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def functions(assembly: str) -> Iterator[tuple[str, str, str]]:
    """The name of each function in *assembly*, its instructions, and LLVM's figures in the comments behind it."""
    starts = [*re.finditer(r"^(\w+):.*; @\1$", assembly, re.MULTILINE)]
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        text = assembly[start.end() : following.start() if following else len(assembly)]
        body, _, behind = text.partition("\n.Lfunc_end")
        yield start[1], body, behind


def measure(body: str, behind: str) -> dict[str, int]:
    """The figures of a function: those of `FIGURES`, its instructions, and its loads that are under way at once."""
    found: dict[str, int] = {}
    for name, words in FIGURES.items():
        told = re.search(rf"^; (?:{words}): (\d+)", behind, re.MULTILINE)
        if told is None:
            raise SystemExit(f"the assembly does not tell {name}; was it made by another LLVM?")
        found[name] = int(told[1])
    codes = [line.split()[0] for line in body.splitlines() if re.match(r"\t[a-z]\w+", line)]
    found |= {"instructions": len(codes), "under way": loads_under_way(body)}
    return found


def loads_under_way(body: str) -> int:
    """The most loads of global memory between two waits for such."""
    most = now = 0
    for line in body.splitlines():
        if line.startswith(("\tglobal_load_", "\tflat_load_", "\tbuffer_load_")):
            now += 1
            most = max(most, now)
        elif re.match(r"\ts_wait_loadcnt|\ts_waitcnt .*vmcnt", line):
            now = 0
    return most


def find_theirs(assembly: str, part: str) -> dict[str, int]:
    """The figures of the longest function with *part* in its name."""
    named = [(body, behind) for name, body, behind in functions(assembly) if part in name]
    if not named:
        raise SystemExit(f"this rocPRIM has no kernel with {part} in its name")
    return measure(*max(named, key=lambda one: len(one[0])))


def compile_ours(kernel: object, signature: str, target: str) -> dict[str, int]:
    """The figures of our *kernel*."""
    import numba_hip as hip

    text, _ = hip.compile(kernel, signature, target=target, output="asm")
    ((_, body, behind),) = functions(str(text))
    return measure(body, behind)


def report(root: Path | None, targets: Sequence[str]) -> list[str]:
    """The lines of a table: ours, and rocPRIM's after a slash where *root* has it."""
    from tools.rocprim_kernels import pairs

    lines = ["| kernel | target | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for target in targets:
        theirs = compile_theirs(root, target) if root else ""
        for pair in pairs(64 if target.startswith("gfx9") else 32):
            sides = [compile_ours(pair.kernel, pair.signature, target)]
            if root and pair.theirs:
                sides.append(find_theirs(theirs, pair.theirs))
            figures = [" / ".join(str(side[column]) for side in sides) for column in COLUMNS]
            lines.append(f"| {pair.name} | {target} | " + " | ".join(figures) + " |")
    return lines


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the packages are, or will be")
    parser.add_argument("--targets", nargs="+", default=TARGETS, help="AMD GPUs to compile for")
    arguments = parser.parse_args()
    try:
        root = unpack_packages(arguments.folder.resolve(), SUITE, PACKAGES)
    except UnavailableError as error:
        print(f"rocprim_report: {error}", file=sys.stderr)
        return UNAVAILABLE
    print("\n".join(report(root, arguments.targets)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
