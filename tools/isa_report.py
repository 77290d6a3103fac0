"""Compares the machine code of the benchmarks' kernels on AMD GPUs with clang's for HIP C++; no GPU is needed.

``python -m tools.isa_report --targets gfx90a gfx1100 --json isa.json``. The figures are read from the assembly of
either compiler in the same way: registers, memory and waves per SIMD are LLVM's own. What is counted is the innermost
loop with the most instructions, divided by how many rounds of the source were unrolled into it; of a kernel without
loops, all of it. Not here: black-scholes, which needs ROCm's device library on either side, and the empty launch.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks import histogram, mandelbrot, matmul, nbody, reduction, saxpy, stencil
from tools import isa_matrix

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201")
SOURCES = Path(__file__).parent / "isa_kernels.hip"
FIGURES = {
    "vgprs": "TotalNumVgprs|NumVgprs",
    "sgprs": "TotalNumSgprs",
    "lds": "LDSByteSize",
    "scratch": "ScratchSize",
    "occupancy": "Occupancy",
}
"""LLVM's names for them in the comments after a kernel; sizes are bytes, occupancy is waves per SIMD."""
HINTS = ("s_delay_alu",)
"""Not counted: they tell the sequencer how long to wait for a result, and are only hints."""


@dataclass(frozen=True)
class Subject:
    """A kernel: the function that builds its launch, its variable in that launch, and the types to compile it for.

    *once* is an instruction that one round of the hot loop has exactly one of: its number is how often it was unrolled,
    and a loop without it is not the one. (Of a product of matrices LLVM makes a copy for a matrix with one column.)
    *without* are targets that have no instructions for it.
    """

    name: str
    build: Any
    problem: Any
    variable: str
    signature: str
    once: str | tuple[str, ...] = ""
    without: tuple[str, ...] = ()


VECTOR, MATRIX = "float32[::1]", "float32[:, ::1]"
SUBJECTS = (
    Subject("saxpy", saxpy.hip, saxpy.Saxpy, "saxpy", f"(float32, {VECTOR}, {VECTOR})"),
    Subject("mandelbrot", mandelbrot.hip, mandelbrot.Mandelbrot, "draw", "(int32[:, ::1], float32)"),
    Subject("n_body", nbody.hip, nbody.Bodies, "attract", f"({', '.join([VECTOR] * 7)})", "v_rsq_f32"),
    Subject("matmul_naive", matmul.naive, matmul.Product, "multiply", f"({MATRIX}, {MATRIX}, {MATRIX})", "v_fmac_f32"),
    Subject("matmul_tiled", matmul.tiled, matmul.Product, "multiply", f"({MATRIX}, {MATRIX}, {MATRIX})"),
    Subject(
        "matrix_cores", isa_matrix.product, isa_matrix.Nothing, "multiply",
        f"(float16[:, ::1], float16[::1, :], {MATRIX})", ("v_mfma", "v_wmma"), ("gfx1030",),
    ),
    Subject("tree_reduction", reduction.tree, reduction.Sum, "reduce", f"({VECTOR}, int64, {VECTOR})"),
    Subject("warp_reduction", reduction.shuffles, reduction.Sum, "reduce", f"({VECTOR}, int64, {VECTOR})"),
    Subject("histogram", histogram.hip, histogram.Histogram, "count", "(uint8[::1], int32[::1])", "ds_add"),
    Subject("stencil", stencil.hip, stencil.Stencil, "average", f"({MATRIX}, {MATRIX})"),
)  # fmt: skip


def compile_ours(subject: Subject, target: str) -> str:
    """Assembly of the kernel that the benchmark launches."""
    import numba_hip as hip

    problem = subject.problem(quick=True)
    launch = subject.build(problem, SimpleNamespace(**problem.arrays))
    variables = inspect.getclosurevars(launch).nonlocals
    kernel = variables.get(subject.variable) or inspect.getclosurevars(variables["launch"]).nonlocals[subject.variable]
    text, _ = hip.compile(kernel, subject.signature, target=target, output="asm")
    return str(text)


def compile_theirs(target: str) -> str | None:
    """Assembly of all of `SOURCES` by the clang of the wheel ziglang; none where that is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    command = [sys.executable, "-m", "ziglang", "clang", "-x", "hip", "--cuda-device-only", f"--offload-arch={target}"]
    command += ["-nogpulib", "-nogpuinc", "-O3", "-ffast-math", "-S", str(SOURCES), "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(f"clang cannot compile {SOURCES.name} for {target}: {done.stderr.strip()}")
    return done.stdout


def measure(assembly: str, kernel: str, once: str | tuple[str, ...]) -> dict[str, float]:
    """The figures of *kernel* in *assembly*; see `FIGURES`. Spills are registers, instructions those of one round,
    arguments the bytes that a launch passes before what the runtime adds."""
    _, _, rest = assembly.partition(f"\n{kernel}:")
    body, _, after = rest.partition("\n.Lfunc_end")
    found: dict[str, float] = {}
    for name, words in FIGURES.items():
        match = re.search(rf"^; (?:{words}): (\d+)", after, re.MULTILINE)
        if match is None:
            raise SystemExit(f"the assembly of {kernel} does not tell {name}; was it made by another LLVM?")
        found[name] = int(match[1])
    metadata = assembly.partition(".amdgpu_metadata")[2]
    # The entries of a kernel are sorted by name: those of scalars come before its symbol, those of vectors after it.
    before, behind = re.split(rf"^    \.symbol: +'?{kernel}\.kd'?$", metadata, flags=re.MULTILINE)
    scalars = re.findall(r"\.sgpr_spill_count: +(\d+)", before)
    vectors = re.findall(r"\.vgpr_spill_count: +(\d+)", behind)
    found["spills"] = int(scalars[-1]) + int(vectors[0])
    hidden = re.findall(r"\.offset: +(\d+)\n +\.size: +\d+\n +\.value_kind: +hidden_block_count_x", before)
    passed = re.findall(r"\.kernarg_segment_size: +(\d+)", before)  # all that there is, if the kernel asks for no size
    found["arguments"] = int((hidden or passed)[-1])
    instructions, loop = hot_loop(body, once)
    rounds = sum(instruction.startswith(once) for instruction in loop) if once and loop else 1
    found |= {"instructions": len(instructions), "rounds": rounds or 1, "loop": len(loop)}
    found["hot"] = round(len(loop or instructions) / (rounds or 1), 2)
    return found


def hot_loop(body: str, once: str | tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The instructions of a function, and those of its longest innermost loop that contains *once*; none without a
    loop."""
    instructions: list[str] = []
    labels: dict[str, int] = {}
    loops: dict[int, int] = {}
    for line in body.splitlines():
        code = line.partition(";")[0].strip()
        if code.endswith(":"):
            labels[code[:-1]] = len(instructions)
        elif code and not code.startswith((".", *HINTS)):
            instructions.append(code)
            if code.startswith(("s_cbranch", "s_branch")) and (start := labels.get(code.split()[-1])) is not None:
                loops[start] = len(instructions)
    spans = list(loops.items())
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    inner = [(first, end) for first, end in inner if any(one.startswith(once) for one in instructions[first:end])]
    first, end = max(inner, key=lambda span: span[1] - span[0], default=(0, 0))
    return instructions, instructions[first:end]


def report(targets: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each kernel and target: our figures, clang's if available, and the ratio of instructions."""
    rows = []
    for target in targets:
        theirs = compile_theirs(target)
        for subject in (one for one in SUBJECTS if target not in one.without):
            ours = measure(compile_ours(subject, target), subject.variable, subject.once)
            row: dict[str, Any] = {"name": subject.name, "target": target, "ours": ours}
            if theirs is not None:
                row["clang"] = measure(theirs, subject.name, subject.once)
                row["ratio"] = round(ours["hot"] / row["clang"]["hot"], 2)
            rows.append(row)
    return rows


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print a table; each figure is ours, followed by clang's after a slash."""
    columns = ("vgprs", "sgprs", "lds", "scratch", "spills", "occupancy", "arguments", "hot")
    print("| kernel | target | " + " | ".join(columns) + " | ratio |")
    print("|---" * (len(columns) + 3) + "|")
    for row in rows:
        sides = [row[side] for side in ("ours", "clang") if side in row]
        figures = [" / ".join(f"{side[column]:g}" for side in sides) for column in columns]
        print(f"| {row['name']} | {row['target']} | " + " | ".join(figures) + f" | {row.get('ratio', '-')} |")
    if not any("clang" in row for row in rows):
        print("There is nothing to compare with: clang comes with the package ziglang, which is not installed.")


def main() -> None:
    """Print the report, and write it where ``--json`` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="+", default=TARGETS, help="AMD GPUs to compile for")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    arguments = parser.parse_args()
    rows = report(arguments.targets)
    show(rows)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
