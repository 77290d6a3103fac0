"""Where threads access shared arrays, where that is a constant and a multiple of the thread's index."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Instruction, Value

_NO_WRAP = {"zext": "nuw", "sext": "nsw"}
"""The flag of an operation whose result may be extended so before the operation as well as behind it."""


@dataclass(frozen=True)
class SharedPlace:
    """An address in the shared array at *base*, which has *nbytes* and is aligned to *align*: *offset* bytes behind its
    beginning, and *stride* bytes more for each thread before, or for each lane. *index* is the index of the thread
    along the lanes, or the place of the lane, a number of 32 bits."""

    base: Value
    index: Value
    nbytes: int
    align: int
    offset: int
    stride: int


@dataclass(frozen=True)
class _Multiple:
    """A number: *factor* times *index*, and *rest*."""

    index: Value
    factor: int
    rest: int


def find_shared_place(pointer: Value, item: WorkItem, size_of: SizeOf) -> SharedPlace | None:
    """What *pointer* is in blocks of one row, if it is such an address."""
    address = take_apart(pointer, size_of)
    indices = (spmd.thread_idx(item.order.along), intrinsics.LANE_PLACE)
    bases, index, offset, stride = [], None, address.offset, 0
    for value, scale in address.terms:
        found = _read_multiple(value, indices)
        if found is None:
            bases += [value] * abs(scale)
        else:
            index, offset, stride = found.index, offset + scale * found.rest, stride + scale * found.factor
    base = bases[0] if len(bases) == 1 else None
    array = item.measure_shared(base.callee) if isinstance(base, Instruction) else None
    if base is None or array is None or index is None or (base, 1) not in address.terms:
        return None
    return SharedPlace(base, index, *array, offset, stride)


def _read_multiple(value: Value, indices: Collection[str], flag: str = "") -> _Multiple | None:
    """*value* as a multiple of what a function of *indices* returns, computed by operations with *flag*."""
    if not isinstance(value, Instruction):
        return None
    if value.callee in indices:
        return _Multiple(value, 1, 0)
    if value.opcode in _NO_WRAP and not flag:
        return _read_multiple(value.operands[0], indices, _NO_WRAP[value.opcode])
    number = signed_number(value.operands[1]) if len(value.operands) == 2 else None
    if number is None or not (flag in value.flags or (value.opcode == "or" and "disjoint" in value.flags)):
        return None
    number = number % (1 << value.type.width) if flag == "nuw" else number
    found = _read_multiple(value.operands[0], indices, flag)
    if found is None:
        return None
    if value.opcode in ("add", "or"):
        return _Multiple(found.index, found.factor, found.rest + number)
    if value.opcode == "shl" and 0 <= number < 32:
        number = 1 << number
    elif value.opcode != "mul":
        return None
    return _Multiple(found.index, found.factor * number, found.rest * number)
