"""A printed function, taken apart into its instructions.

LLVM numbers metadata anew whenever it prints: an instruction printed alone counts only what its own function refers
to, a function printed as a whole what all of the module does, as the module itself does. Numbers that are looked up in
the printed module have to come from the second. It is quicker, too: printing an instruction goes through its function.

The shape of the lines is that of ``printBasicBlock`` in ``llvm/lib/IR/AsmWriter.cpp``.
"""

from __future__ import annotations

from hip_runtime.errors import UnsupportedError

_INDENT = "  "
_RECORD = "#dbg_"
"""What LLVM's records of variables start with. They stand among the instructions and are none."""


def split_function(text: str) -> list[str]:
    """The instructions of a definition that LLVM printed, in their order, with all the lines of each."""
    lines = text.split("\n")
    found: list[str] = []
    for line in lines[_opening(lines) + 1 :]:
        if line == "}":
            return found
        rest = line.lstrip(" ")
        if not line.startswith(_INDENT) or rest.startswith(_RECORD):
            continue
        if len(line) - len(rest) == len(_INDENT) and rest[0] != "]":
            found.append(line)
        elif found:  # the cases of a switch, and the bracket that ends them
            found[-1] = f"{found[-1]}\n{line}"
    raise UnsupportedError(f"cannot read a function without an end: {lines[-1] if lines else ''!r}")


def _opening(lines: list[str]) -> int:
    for number, line in enumerate(lines):
        if line.startswith("define "):
            return number
    raise UnsupportedError(f"cannot read a function that is not defined: {lines[0] if lines else ''!r}")
