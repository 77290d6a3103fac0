"""The kernel language in the simulator: index and barriers, memory, atomics, bits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime.said_names import our
from numba_hip._numba.typing import as_dtype
from numba_hip.language.atomic import SCOPES, no_scope
from numba_hip.language.stub import INTERPRETED
from numba_hip.language.vector_types import VECTORS, VectorStub
from numba_hip.simulator.frames import array_site
from numba_hip.simulator.scalars import Word
from numba_hip.simulator.schedule import SimulatedThread

UNDEFINED = 0xFF
"""What fills memory that is not initialised: NaN as floats, -1 as integers, so that it is seen."""

HostArray = np.ndarray[Any, Any]
Function = Callable[..., Any]


def means(name: str) -> Callable[[Function], Function]:
    """Make the decorated function the simulator's implementation of ``hip.<name>``."""

    def enter(function: Function) -> Function:
        INTERPRETED[name] = function
        return function

    return enter


INTERPRETED["threadIdx.axis"] = lambda thread, axis: thread.index[axis]
INTERPRETED["blockIdx.axis"] = lambda thread, axis: thread.block.index[axis]
INTERPRETED["blockDim.axis"] = lambda thread, axis: thread.block.grid.block_dim[axis]
INTERPRETED["gridDim.axis"] = lambda thread, axis: thread.block.grid.grid_dim[axis]
INTERPRETED["laneid"] = lambda thread: thread.lane
INTERPRETED["warpsize"] = lambda thread: thread.block.grid.wave_size


def _axes(ndim: int, values: list[int]) -> int | tuple[int, ...]:
    if ndim not in (1, 2, 3):
        raise ValueError(f"the number of axes can be 1, 2 or 3, not {ndim!r}")
    return values[0] if ndim == 1 else tuple(values[:ndim])


@means("grid")
def _grid(thread: SimulatedThread, ndim: int) -> int | tuple[int, ...]:
    block = thread.block
    extents = block.grid.block_dim
    return _axes(ndim, [at * n + i for at, n, i in zip(block.index, extents, thread.index, strict=True)])


@means("gridsize")
def _gridsize(thread: SimulatedThread, ndim: int) -> int | tuple[int, ...]:
    grid = thread.block.grid
    return _axes(ndim, [blocks * n for blocks, n in zip(grid.grid_dim, grid.block_dim, strict=True)])


# Barriers.

INTERPRETED["syncthreads"] = lambda thread: thread.wait("block", None, lambda met, one: None)
INTERPRETED["syncthreads_count"] = lambda thread, predicate: thread.wait(
    "block", bool(predicate), lambda met, one: sum(met.values())
)
INTERPRETED["syncthreads_and"] = lambda thread, predicate: thread.wait(
    "block", bool(predicate), lambda met, one: int(all(met.values()))
)
INTERPRETED["syncthreads_or"] = lambda thread, predicate: thread.wait(
    "block", bool(predicate), lambda met, one: int(any(met.values()))
)
for _fence in ("threadfence", "threadfence_block", "threadfence_system"):
    INTERPRETED[_fence] = lambda thread: None


class _GridGroup:
    def __init__(self, thread: SimulatedThread) -> None:
        self._thread = thread

    def sync(self) -> int:
        """Wait for all threads of the grid."""
        self._thread.wait("grid", None, lambda met, one: None)
        return 0


INTERPRETED["cg.this_grid"] = _GridGroup

# Memory.


def to_dtype(given: Any) -> np.dtype[Any]:
    """NumPy's dtype for what a kernel names as one."""
    if isinstance(given, VectorStub):
        element = as_dtype(given.kind.base)
        return np.dtype([(name, element) for name in "xyzw"[: given.kind.count]])
    found: np.dtype[Any] = np.dtype(as_dtype(given) if isinstance(given, types.Type) else given)
    return found


def _undefined(shape: Any, dtype: np.dtype[Any]) -> Any:
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    memory = np.full(math.prod(extents) * dtype.itemsize, UNDEFINED, np.uint8)
    return _seen(memory.view(dtype).reshape(extents))


def _seen(array: HostArray) -> Any:
    return array if array.dtype.names is None else array.view(np.recarray)


@means("local.array")
def _local(thread: SimulatedThread, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    del alignment
    return _undefined(shape, to_dtype(dtype))


@means("shared.array")
def _shared(thread: SimulatedThread, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    del alignment
    block, kind = thread.block, to_dtype(dtype)
    if shape in (0, (0,)):
        size = block.grid.dynamic_shared
        memory = block.shared.setdefault(("dynamic", 0, 0), np.full(size, UNDEFINED, np.uint8))
        return _seen(memory[: size - size % kind.itemsize].view(kind))
    site = array_site()
    if site not in block.shared:
        block.shared[site] = _undefined(shape, kind)
    return block.shared[site]


@means("shared.load")
def _load(thread: SimulatedThread, target: HostArray, source: HostArray, start: Any = 0) -> None:
    """This thread's share of the elements."""
    starts = start if isinstance(start, tuple) else (start,) * target.ndim
    for number in range(thread.number, target.size, math.prod(thread.block.grid.block_dim)):
        place = np.unravel_index(number, target.shape)
        there = tuple(first + behind for first, behind in zip(starts, place, strict=True))
        inside = all(0 <= at < extent for at, extent in zip(there, source.shape, strict=True))
        target[place] = source[there] if inside else 0


@means("const.array_like")
def _constant(thread: SimulatedThread, ndarray: Any) -> HostArray:
    made = np.array(ndarray)
    made.flags.writeable = False
    return made


for _name in ("ldca", "ldcg", "ldcs", "ldcv", "ldlu"):
    INTERPRETED[_name] = lambda thread, ary, idx: ary[idx]
for _name in ("stcg", "stcs", "stwb", "stwt"):
    INTERPRETED[_name] = lambda thread, ary, idx, val: ary.__setitem__(idx, val)

# Atomics: no other thread can come between, as only one runs.


def _check_scope(name: str, scope: str) -> None:
    if scope not in SCOPES:
        raise ValueError(no_scope(name))


def _atomic(name: str, update: Callable[[Any, Any], Any]) -> None:
    def apply(thread: SimulatedThread, ary: HostArray, idx: Any, val: Any, scope: str = "device") -> Any:
        _check_scope(name, scope)
        index = tuple(map(int, idx)) if isinstance(idx, tuple) else int(idx)
        old = ary[index]
        ary[index] = update(old, np.asarray(val).astype(ary.dtype)[()])
        return old

    INTERPRETED[f"atomic.{name}"] = apply


UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, val: old + val,
    "sub": lambda old, val: old - val,
    "and_": lambda old, val: old & val,
    "or_": lambda old, val: old | val,
    "xor": lambda old, val: old ^ val,
    "exch": lambda old, val: val,
    "max": lambda old, val: val if val > old else old,
    "min": lambda old, val: val if val < old else old,
    "nanmax": np.fmax,
    "nanmin": np.fmin,
    "inc": lambda old, val: 0 if old >= val else old + 1,
    "dec": lambda old, val: val if old == 0 or old > val else old - 1,
}
for _name, _update in UPDATES.items():
    _atomic(_name, _update)


@means("atomic.cas")
def _cas(thread: SimulatedThread, ary: HostArray, idx: Any, old: Any, val: Any, scope: str = "device") -> Any:
    _check_scope("cas", scope)
    found = ary[idx]
    if found == old:
        ary[idx] = val
    return found


INTERPRETED["atomic.compare_and_swap"] = lambda thread, ary, old, val, scope="device": _cas(
    thread, ary, 0, old, val, scope
)

# Numbers.


def _bits(x: Any) -> tuple[int, int]:
    """The bits of an integer and their number: 64 for one of Python's."""
    width = 8 * x.dtype.itemsize if isinstance(x, (np.generic, Word)) else 64
    return int(x) & ((1 << width) - 1), width


@means("brev")
def _brev(thread: SimulatedThread, x: Any) -> Any:
    bits, width = _bits(x)
    found = int(f"{bits:0{width}b}"[::-1], 2)
    if not isinstance(x, (np.generic, Word)):
        return found
    number = np.uint64(found).astype(x.dtype)
    return Word(number, x.dtype) if isinstance(x, Word) else number


INTERPRETED["popc"] = lambda thread, x: bin(_bits(x)[0]).count("1")
INTERPRETED["clz"] = lambda thread, x: _bits(x)[1] - _bits(x)[0].bit_length()
INTERPRETED["ffs"] = lambda thread, x: (_bits(x)[0] & -_bits(x)[0]).bit_length()
INTERPRETED["cbrt"] = lambda thread, x: np.cbrt(x)
INTERPRETED["selp"] = lambda thread, predicate, a, b: a if predicate else b
INTERPRETED["clock64"] = INTERPRETED["wall_clock64"] = lambda thread: time.perf_counter_ns()
INTERPRETED["nanosleep"] = lambda thread, ns: None


@means("fma")
def _fma(thread: SimulatedThread, a: Any, b: Any, c: Any) -> Any:
    from fractions import Fraction

    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return np.result_type(a, b, c).type(float(exact))


def _vector(stub: VectorStub) -> None:
    element = as_dtype(stub.kind.base).type
    dtype = to_dtype(stub)

    def make(thread: SimulatedThread, *parts: Any) -> Any:
        numbers = [number for part in parts for number in (part.item() if isinstance(part, np.void) else (part,))]
        if len(parts) == len(numbers) == 1:
            numbers *= stub.kind.count
        if len(numbers) != stub.kind.count:
            raise TypeError(f"{our(str(stub.kind))} has {stub.kind.count} components; {len(numbers)} were given")
        return np.array([tuple(map(element, numbers))], dtype).view(np.recarray)[0]

    INTERPRETED[stub.__qualname__] = make


for _stub in set(VECTORS.values()):
    _vector(_stub)


def _covered(array: HostArray, indices: Any, shape: tuple[int, ...]) -> HostArray:
    """The elements that a vector of *shape* begins with at *indices*: a view."""
    if not isinstance(indices, tuple):
        line = array.reshape(-1) if array.ndim > 1 else array
        start = indices + line.size if indices < 0 else indices
        return line[start : start + math.prod(shape)].reshape(shape)
    starts = [index + extent if index < 0 else index for index, extent in zip(indices, array.shape, strict=True)]
    extents = (1,) * (array.ndim - len(shape)) + shape
    part = array[tuple(slice(start, start + extent) for start, extent in zip(starts, extents, strict=True))]
    return part.reshape(shape)


@means("vector.load")
def _load_vector(
    thread: SimulatedThread, array: HostArray, indices: Any, shape: Any, alignment: int | None = None
) -> Any:
    del alignment
    part = _covered(array, indices, shape if isinstance(shape, tuple) else (shape,))
    names = [*"xyzw", *(f"component{index}" for index in range(4, part.size))][: part.size]
    return np.array([tuple(part.ravel())], [(name, part.dtype) for name in names]).view(np.recarray)[0]


@means("vector.store")
def _store_vector(
    thread: SimulatedThread, array: HostArray, index: Any, vector: Any, alignment: int | None = None
) -> None:
    del alignment
    numbers = np.array(vector.item(), array.dtype)
    _covered(array, index, numbers.shape)[...] = numbers


# libdevice's.


def _as_integer(value: Any, kind: str) -> Any:
    """The low bits of *value* as an integer of NumPy's type *kind*."""
    bits = 8 * np.dtype(kind).itemsize
    return np.array(int(value) & (1 << bits) - 1, f"u{bits // 8}").view(kind)[()]


def _extreme(name: str, kind: str, choose: Function) -> None:
    INTERPRETED[f"libdevice.{name}"] = lambda thread, x, y: choose(_as_integer(x, kind), _as_integer(y, kind))


for _prefix, _kind in (("ll", "i8"), ("ull", "u8"), ("u", "u4")):
    _extreme(f"{_prefix}max", _kind, max)
    _extreme(f"{_prefix}min", _kind, min)
INTERPRETED["libdevice.saturatef"] = lambda thread, x: np.float32(min(x, 1) if x > 0 else 0)
INTERPRETED["libdevice.float2half_rn"] = lambda thread, f: np.float16(f).view(np.int16)
INTERPRETED["libdevice.half2float"] = lambda thread, h: np.float32(_as_integer(h, "i2").view(np.float16))
