"""Writes a case as a script that runs by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from spmd_kernels import DECLARATIONS

from spmd_fuzz.cases import Mismatch, arguments_of, block_alike, lanes_of
from spmd_fuzz.evaluation import make_memory
from spmd_fuzz.nodes import Program
from spmd_fuzz.writer import parameters, shared_arrays, shared_name, write_kernel

_SCRIPT = '''"""{title}

{told}
"""

import os

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")
os.environ.setdefault("NUMBA_HIP_CPU_FORM", "{form}")
os.environ.setdefault("NUMBA_HIP_CPU_LANES", "{lanes}")
{width}
import struct
import sys

import llvmlite.binding as llvm
import numpy as np

from hip_devicelib.codeobject import CodeObject, Kernel, lay_out
from hip_runtime import current_device, to_device

TEXT = r"""{text}"""
inf, nan = float("inf"), float("nan")
PARAMETERS = {parameters}
ARRAYS = {{
{arrays}}}
OTHERS = {others}
PLACES = {places}
EXPECTED = {expected}

module = llvm.parse_assembly(TEXT, llvm.create_context())
laid_out, nbytes = lay_out(PARAMETERS)
kernel = Kernel("k", laid_out, nbytes, shared_bytes={shared}, wave_size={waves})
function = current_device().load(CodeObject("cpu", module.as_bitcode(), (kernel,))).function("k")
arrays = {{name: to_device(array) for name, array in ARRAYS.items()}}
packed = bytearray(nbytes)
for parameter in kernel.parameters:
    name = parameter.name
    value = arrays[name].address if name in arrays else OTHERS[name]
    struct.pack_into("<Q" if name in arrays else "<q", packed, parameter.offset, value)
function.handle.worker({alike})  # its code may serve for the next one
function.launch({blocks}, {block}, bytes(packed))
found = arrays["{array}"].copy_to_host()[PLACES].tolist()
print("form:", function.form)
print("expected:", EXPECTED)
print("got:     ", found)
sys.exit(str(found) != str(EXPECTED))
'''


def write_script(program: Program, seed: int, mismatch: Mismatch) -> str:
    """A script that launches *program* as `find_mismatch` did, shows what is wrong, and fails while it is."""
    arguments = arguments_of(program, make_memory(program, seed))
    arrays = "".join(
        f"    {name!r}: np.array({_numbers(value)}, np.{value.dtype}),\n"
        for name, value in arguments
        if isinstance(value, np.ndarray)
    )
    form, width = mismatch.form[:2]
    array = mismatch.array or next(name for name, value in arguments if isinstance(value, np.ndarray))
    places = list(mismatch.places)[:12]
    return _SCRIPT.format(
        title=f"Random program {seed}: one form of the CPU device is wrong.", told=mismatch,
        form=form, lanes=lanes_of(mismatch.form),
        width=f'os.environ.setdefault("NUMBA_HIP_CPU_WIDTH", "{width}")\n' if width else "",
        text=write_kernel(program) + DECLARATIONS, parameters=parameters(program), arrays=arrays,
        others={name: value for name, value in arguments if not isinstance(value, np.ndarray)}, places=places,
        expected=mismatch.expected[places].tolist() if places else [],
        shared=sum(int(shared_name(*array).split(".")[-2]) for array in shared_arrays(program)),
        waves=program.wave_size, blocks=program.blocks, block=program.block, alike=block_alike(program.block),
        array=array,
    )  # fmt: skip


def _numbers(values: Any) -> str:
    """*values* as a list, one element times as often as it stands there where all are the same."""
    numbers = values.tolist()
    if len(set(map(str, numbers))) == 1:
        return f"[{numbers[0]}] * {len(numbers)}"
    return str(numbers)
