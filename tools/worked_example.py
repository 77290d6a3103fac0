"""Writes a document that follows one kernel from Python to assembly: ``python -m tools.worked_example > DOCUMENT``.

The processor and the number of lanes are fixed here, so that the document is the same on every machine with the LLVM
release that it names. A test compares it with the output of this tool.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba import float32, void

import numba_hip as hip
from hip_runtime import config
from hip_runtime.drivers.cpu.finalise import list_kernel
from hip_runtime.drivers.cpu.ir import trace
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.printer import Note, print_function
from numba_hip.compilation.kernel_code import compile_kernel
from numba_hip.compilation.options import CompileOptions

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "design" / "worked-example.md"
LLVM_RELEASE = 22
"""The LLVM release for which the document is written."""

PROCESSOR, LANES, BLOCK = "x86-64-v3", 8, (64, 1, 1)

TEMPLATE = """\
# From Python to vectors: a worked example

`python -m tools.worked_example` writes this page from what the compiler does, with LLVM {release}, for blocks of
{block} threads, {lanes} lanes and the processor `{processor}`. A test compares the two. `NUMBA_HIP_DUMP=ir,passes,asm`
shows the same of any kernel; the words are in the [glossary](index.md#glossary).

## Python

```python
{python}
```

It has what a kernel has: an index, a check of bounds, a load of neighbours, and a branch on what was loaded.

## What the compiler hands over

LLVM IR for one thread. What it is, the thread asks its work item, by functions of the
[SPMD contract](spmd-bitcode.md); an array is an address and an extent.

```llvm
{bitcode}
```

## The graph, and how values differ among lanes

`ir/reader` reads the function into a graph once LLVM has simplified it. The block's extent stays a question to the work
item: threads that do not wait for each other run the same code in blocks of several lengths, here 64 and more.
`analyses/vector_shapes` finds for each value how it differs from one lane of a gang to the next: not at all
(*uniform*), by a fixed stride, or in any way (*varying*). Addresses with the stride of an element are loads and stores
of whole vectors. A branch on a varying condition is *divergent*, unless the gang need not follow both of its paths:
`vectorize/early_exit` finds branches of which one side only returns.

```llvm
{shapes}
```

The check of bounds is such an early exit: most gangs are within bounds as a whole. The branch on what was loaded is
none: lanes seldom agree on data. So the kernel is written twice. In the first copy all lanes are within bounds, and
what is behind the second branch runs under the mask of the lanes that take it; a gang with a lane out of bounds goes
over to the second copy, in which each block runs under the mask of the lanes that came to it.

## Vectors

`vectorize/predicated_function` writes both copies, `vectorize/widen` one instruction after another, LLVM optimises.
The block `gang` counts the gangs of a block of threads; it compares the lanes that are left with those of a gang, and
the index of the last lane with the extent: the index has stride 1, so one comparison answers for all lanes.
`under.mask.i` begins the second copy, with the mask of the lanes that are there and within bounds.

```llvm
{vectors}
```

## Assembly

`.{loop}` is the loop over the gangs of a block: one load, one comparison, one product and one masked store for
{lanes} threads, as long as all lanes are within bounds; behind it, the copy with masks.

```asm
{assembly}
```
"""


def halve(values: Any, out: Any) -> None:
    i = hip.grid(1)
    if i < out.size:
        value = values[i]
        if value > 0:
            out[i] = value * float32(0.5)


def make_machine() -> Any:
    """LLVM's description of the processor that the document is for."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    return target.create_target_machine(cpu=PROCESSOR, opt=3, jit=True)


def write_document() -> str:
    """The whole document."""
    stages: dict[str, str] = {}

    def note(stage: str, function: Function, said: Note | None) -> None:
        stages[stage.partition(" ")[0]] = print_function(function, said).rstrip()

    code = compile_kernel(halve, void(float32[::1], float32[::1]).args, CompileOptions(), "cpu")
    with ExitStack() as scopes:
        scopes.enter_context(config.cpu_width.scope(LANES))
        scopes.enter_context(config.cpu_form.scope("vectors"))
        scopes.enter_context(trace.listening(note))
        text, assembly = list_kernel(code.code_object, code.kernel, BLOCK, make_machine())
    shown = _loop(assembly)
    return TEMPLATE.format(
        release=LLVM_RELEASE,
        processor=PROCESSOR,
        lanes=LANES,
        block=BLOCK[0],
        python=inspect.getsource(halve).rstrip(),
        bitcode=_definition(code.llvm(), "halve"),
        shapes=stages["vector_shapes"],
        vectors=_definition(text, "spmd.worker", "block:"),
        assembly=shown,
        loop=shown.lstrip(".").partition(":")[0],
    )


def _definition(text: str, name: str, start: str = "") -> str:
    """The function *name* of the module *text*, as LLVM prints it, from the block whose label begins with *start*."""
    lines = str(llvm.parse_assembly(text, llvm.create_context()).get_function(name)).strip().split("\n")
    if start:
        first = next(number for number, line in enumerate(lines) if line.startswith(start))
        lines = ["  ...", *lines[first:]]
    return "\n".join(line for line in lines if not line.startswith(";"))


def _loop(assembly: str) -> str:
    """The assembly from the first vector load of numbers to the end of the loop around it, with labels."""
    lines = [line.expandtabs(8) for line in assembly.split("\n")]
    (first,) = [number for number, line in enumerate(lines) if line.strip() == "spmd.worker:"]
    end = next(number for number, line in enumerate(lines) if line.startswith(".Lfunc_end0"))
    load = next(number for number in range(first, end) if "vmovups" in lines[number])
    start = max(number for number in range(first, load) if lines[number].startswith(".LBB"))
    return "\n".join(line for line in lines[start:end] if ".p2align" not in line)


if __name__ == "__main__":
    sys.stdout.write(write_document())
