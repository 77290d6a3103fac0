"""Algorithms that treat each element by itself: transforming, gathering, scattering, searching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hip_runtime.array import StreamLike
from numba_hip.algorithms.iterators import ZipIterator
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.place_checks import check_places
from numba_hip.algorithms.readers import count_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError
from numba_hip.language.untyped_names import grid

THREADS = 256


def transform(
    function: Callable[..., Any],
    *sources: Any,
    count: int | None = None,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """What *function* makes of the values of *sources* at each place, as many as the shortest of them has.

    The result is stored in *out* if given, and returned: an array of the host if a source is one.
    """
    if not sources:
        raise AlgorithmError("transform needs at least one source")
    if not callable(function):
        raise AlgorithmError(f"function is {type(function).__name__}; pass the function first, then its sources")
    operands = Operands(stream)
    reader = operands.reader(ZipIterator(*sources), "")
    number = count_of(reader, count, "sources")
    read = _read_called(reader.read, in_kernels(function, "function", len(sources)))
    return _store_each(operands, read, number, out, sources)


def gather(source: Any, indices: Any, *, check: bool = True, out: Any = None, stream: StreamLike = None) -> Any:
    """The values of *source*, which has an end, at *indices*, one after another.

    Raises `AlgorithmError` for an index outside of it, which takes a pass over *indices* and a wait; with
    ``check=False`` such an index gives the value that is nearest to it.
    """
    operands = Operands(stream)
    source_reader = operands.reader(source, "source", anywhere=True)
    index_reader = operands.reader(indices, "indices")
    limit, number = count_of(source_reader, None, "source"), count_of(index_reader, None, "indices")
    if not number:
        return operands.finish(operands.output(out, "out", 0, operands.type_of(source_reader.read, "source")), out)
    if not limit:
        raise AlgorithmError("source has no values to gather")
    if check:
        check_places(operands, indices, index_reader.read, number, limit)
    read = _read_within(source_reader.read, index_reader.read, operands.add(limit - 1))
    return _store_each(operands, read, number, out)


def scatter(
    source: Any, indices: Any, out: Any, *, count: int | None = None, check: bool = True, stream: StreamLike = None
) -> Any:
    """Store each value of *source* in *out* at the place that *indices* has for it; returns *out*.

    There are as many indices as values, or more. If two have the same place, either may be there. Raises
    `AlgorithmError` for an index outside of *out*, which takes a pass over *indices* and a wait; with ``check=False``
    such values are left out.
    """
    operands = Operands(stream)
    reader, index_reader = operands.reader(source, "source"), operands.reader(indices, "indices")
    number = count_of(index_reader if reader.size is None else reader, count, "source")
    if index_reader.size is not None and index_reader.size < number:
        raise AlgorithmError(f"indices has {index_reader.size} values for {number} of source")
    kind = operands.type_of(reader.read, "source")
    target = operands.output(out, "out", 0, kind)
    operands.keep_contents()
    if number:
        if check:
            check_places(operands, indices, index_reader.read, number, target.size)
        store = _write_at(operands.writer(target, kind), operands.add(target.size))
        kernel = store_kernel(values.read_together((reader.read, index_reader.read)), store)
        kernel[-(-number // THREADS), THREADS, operands.launch_stream](number, *operands.leaves)
    return operands.finish(target, out)


def _store_each(operands: Operands, read: Any, count: int, out: Any, over: Sequence[Any] = ()) -> Any:
    kind = operands.type_of(read, "function")
    target = operands.output(out, "out", count, kind, over)
    if count:
        kernel = store_kernel(read, operands.writer(target, kind))
        kernel[-(-count // THREADS), THREADS, operands.launch_stream](count, *operands.leaves)
    return operands.finish(target, out)


@kept
def store_kernel(read: Any, write: Any) -> Any:
    """A kernel in which each thread stores what *read* returns for its place."""

    @jit
    def store(count, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        i = grid(1)
        if i < count:
            write(leaves, i, read(leaves, i))

    return store


@kept
def _read_called(read: Any, function: Any) -> Any:
    return jit(device=True)(lambda leaves, i: function(*read(leaves, i)))


@kept
def _read_within(read: Any, read_index: Any, last: int) -> Any:
    return jit(device=True)(lambda leaves, i: read(leaves, min(max(read_index(leaves, i), 0), leaves[last])))


@kept
def _write_at(write: Any, limit: int) -> Any:
    @jit(device=True)
    def store(leaves, i, pair):  # type: ignore[no-untyped-def]
        place = pair[1]
        if 0 <= place < leaves[limit]:
            write(leaves, place, pair[0])

    return store
