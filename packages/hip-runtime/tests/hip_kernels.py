"""The kernels that the stand-in for the HIP runtime knows, as code objects for AMD GPUs.

Their machine code is never run, so their bodies are empty. The metadata is what LLVM writes: it says where the
arguments of a launch must lie.
"""

from __future__ import annotations

from functools import cache

from hip_devicelib import describe, object_code, optimise
from hip_devicelib.codeobject import CodeObject

SIGNATURES: dict[str, list[tuple[str, str]]] = {
    "saxpy": [("y", "ptr"), ("x", "ptr"), ("a", "float"), ("n", "i64")],
    "count": [("counter", "ptr")],
    "fault": [("seen", "ptr"), ("where", "i64"), ("code", "i32")],
    "spin": [("place", "ptr"), ("turns", "i64")],
    "where": [("out", "ptr")],
    "mixed": [
        ("flag", "i8"),
        ("short", "i16"),
        ("single", "float"),
        ("long", "i64"),
        ("place", "ptr"),
        ("real", "double"),
        ("half", "half"),
    ],
    "deep": [("place", "ptr"), ("n", "i64")],
    "empty": [],
}

BODIES = {"deep": "  %sum = call i64 @add_up(i64 %1)\n  store i64 %sum, ptr addrspace(1) %0\n"}
"""Where the metadata says more than the signature: a function that calls itself has a stack of unknown size."""

TARGETS = ("gfx90a", "gfx1100")
"""Of the stand-in's devices 0 and 1."""

GLOBALS = """
@table = addrspace(1) global [6 x i32] zeroinitializer
@primes = addrspace(1) global [4 x i32] [i32 2, i32 3, i32 5, i32 7]
@fault.fault = addrspace(1) global { ptr, i32, i32 } zeroinitializer

define internal i64 @add_up(i64 %n) noinline {
  %low = icmp sle i64 %n, 0
  br i1 %low, label %end, label %more
more:
  %less = sub i64 %n, 1
  %rest = call i64 @add_up(i64 %less)
  %kept = add i64 %rest, %n
  %odd = xor i64 %kept, %rest
  br label %end
end:
  %result = phi i64 [0, %0], [%odd, %more]
  ret i64 %result
}
"""


ELF_KIND, LINKED = 16, 3
"""Where the header of an ELF file says what it is, and what it says of linked code (``ET_DYN``)."""


@cache
def code(*names: str, target: str = TARGETS[0], threads: int = 1024) -> CodeObject:
    """A code object with these kernels, and with the global variables ``table`` of 24 bytes and ``primes``.

    Blocks have at most so many *threads*.
    """
    text = f'{GLOBALS}attributes #0 = {{ "amdgpu-flat-work-group-size"="1,{threads}" }}\n'
    for name in names:
        types = ("ptr addrspace(1)" if kind == "ptr" else kind for _, kind in SIGNATURES[name])
        text += f"define amdgpu_kernel void @{name}({', '.join(types)}) #0 {{\n{BODIES.get(name, '')}  ret void\n}}\n"
    keep = ("table", "primes", *(("fault.fault",) if "fault" in names else ()))
    image = bytearray(object_code(optimise(text, target, keep=keep), target))
    image[ELF_KIND] = LINKED  # it refers to nothing, and no linker is needed for tests
    return describe(bytes(image), {name: SIGNATURES[name] for name in names})


def sample(name: str) -> CodeObject:
    """The code object of one kernel for device 0."""
    return code(name)
