"""A program as bytes, for a file or another process: a header in JSON, and the object file."""

from __future__ import annotations

import json

from hip_runtime.drivers.cpu.abi.block_lengths import Lengths
from hip_runtime.drivers.cpu.abi.narrow_grids import NarrowGrids
from hip_runtime.drivers.cpu.object_code import jit
from hip_runtime.drivers.cpu.object_code.program import Program

_LENGTH_BYTES = 8


def write_program(program: Program) -> bytes:
    """What `read_program` makes *program* of again."""
    header = {
        "form": program.form,
        "reason": program.reason,
        "locations": program.locations,
        "point_kinds": program.point_kinds,
        "takes_dynamic_shared": program.takes_dynamic_shared,
        "context_bytes": program.context_bytes,
        "made_for": program.made_for,
        "lengths": program.lengths,
        "narrow": program.narrow,
        "has_short_indices": program.has_short_indices,
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + program.image


def read_program(data: bytes) -> Program:
    """Load the program that *data* holds."""
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    header = json.loads(data[_LENGTH_BYTES:start])
    program = jit.load_image(data[start:])
    program.form, program.reason = header["form"], header["reason"]
    program.locations = tuple(header["locations"])
    program.point_kinds = tuple(header["point_kinds"])
    program.takes_dynamic_shared = header["takes_dynamic_shared"]
    program.context_bytes = header["context_bytes"]
    x, y, z = header["made_for"]
    program.made_for = x, y, z
    program.lengths = Lengths(*header["lengths"]) if header["lengths"] else None
    program.narrow = NarrowGrids(*header["narrow"]) if header["narrow"] else None
    program.has_short_indices = header["has_short_indices"]
    return program
