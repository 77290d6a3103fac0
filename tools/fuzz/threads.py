# The threads of a grid in plain Python, one after another, or in turns if they wait for each other. A thread is called
# with what stands for `hip` in the kernel.

from collections.abc import Callable, Generator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np


def make_cast(kind: Any) -> Callable[[Any], Any]:
    """Numbers as ones of type *kind*, as kernels convert them."""
    return lambda value: np.asarray(value).astype(kind)[()]


to_int8, to_int16, to_int32, to_int64 = map(make_cast, (np.int8, np.int16, np.int32, np.int64))
to_uint8, to_uint16, to_uint32, to_uint64 = map(make_cast, (np.uint8, np.uint16, np.uint32, np.uint64))


def span(*bounds: Any) -> Iterator[Any]:
    """A range of `numpy.int64`."""
    return map(np.int64, range(*map(int, bounds)))


def put(array: Any, place: Any, value: Any) -> None:
    """Store *value*, converted to the type of *array*."""
    array[place] = np.asarray(value).astype(array.dtype)


class Atomic:
    """The atomic operations."""

    def update(self, array: Any, place: Any, change: Callable[[Any], Any]) -> Any:
        """Store what *change* makes of the number, and return that."""
        old = array[place]
        put(array, place, change(old if old.dtype.kind == "f" else int(old)))
        return old

    def add(self, array: Any, place: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: old + value)

    def sub(self, array: Any, place: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: old - value)

    def max(self, array: Any, place: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: max(old, value))

    def min(self, array: Any, place: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: min(old, value))

    def xor(self, array: Any, place: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: old ^ int(value))

    def or_(self, array: Any, place: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: old | int(value))

    def exch(self, array: Any, place: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: value)

    def cas(self, array: Any, place: Any, wanted: Any, value: Any) -> Any:
        return self.update(array, place, lambda old: value if old == wanted else old)

    def inc(self, array: Any, place: Any, most: Any) -> Any:
        return self.update(array, place, lambda old: 0 if old >= most else old + 1)


class Place:
    """What `hip` is for one thread; *shared* are the arrays of its block."""

    atomic = Atomic()
    local = SimpleNamespace(array=np.zeros)

    def __init__(
        self, blocks: Sequence[int], block: Sequence[int], at: Sequence[int], thread: Sequence[int],
        shared: dict[int, Any], wave: int,
    ) -> None:  # fmt: skip
        whole = range(3)
        sizes = [np.int64(blocks[axis] * block[axis]) for axis in whole]
        places = [np.int64(at[axis] * block[axis] + thread[axis]) for axis in whole]
        for name, numbers in (("gridDim", blocks), ("blockDim", block), ("blockIdx", at), ("threadIdx", thread)):
            setattr(self, name, SimpleNamespace(**dict(zip("xyz", map(np.int64, numbers), strict=True))))
        self.sizes, self.places = sizes, places
        flat = thread[0] + block[0] * (thread[1] + block[1] * thread[2])
        self.laneid, self.wave = np.int64(flat % wave), flat // wave
        self.arrays, self.made = shared, 0
        self.shared = SimpleNamespace(array=self.share)

    def grid(self, axes: int) -> Any:
        return self.places[0] if axes == 1 else tuple(self.places[:axes])

    def gridsize(self, axes: int) -> Any:
        return self.sizes[0] if axes == 1 else tuple(self.sizes[:axes])

    def share(self, count: int, kind: Any) -> Any:
        """The block's array for this call."""
        self.made += 1
        return self.arrays.setdefault(self.made, np.zeros(count, kind))

    def popc(self, mask: Any) -> int:
        return int(mask).bit_count() if hasattr(int, "bit_count") else bin(mask).count("1")

    def ffs(self, mask: Any) -> int:
        return (int(mask) & -int(mask)).bit_length()


Thread = Callable[..., Generator[Any, Any, None] | None]
"""What one thread does; a generator if it waits."""


def expect(thread: Thread, made: Any, block: Sequence[int], wave: int) -> tuple[list[Any], str]:
    """The buffers after all threads have run, and the name of the error that one raised."""
    arrays, blocks, numbers = made
    right = [placed.buffer.copy() for placed in arrays]
    views = [placed.view(buffer) for placed, buffer in zip(arrays, right, strict=True)]
    return right, run_threads(thread, views, [int(number) for number in numbers], blocks, block, wave)


def run_threads(
    thread: Thread,
    arrays: Sequence[Any],
    numbers: Sequence[Any],
    blocks: Sequence[int],
    block: Sequence[int],
    wave: int,
) -> str:
    """Run all threads of all blocks; returns the name of the error that one raised."""
    with np.errstate(all="ignore"):
        try:
            for at in np.ndindex(*blocks[::-1]):
                shared: dict[int, Any] = {}
                running: list[tuple[Place, Any]] = []
                for place in np.ndindex(*block[::-1]):
                    hip_of_one = Place(blocks, block, at[::-1], place[::-1], shared, wave)
                    found = thread(hip_of_one, *arrays, *numbers)
                    if found is not None:
                        running.append((hip_of_one, found))
                take_turns(running)
        except IndexError:
            return "IndexError"
    return ""


def take_turns(running: Sequence[tuple[Place, Any]]) -> None:
    """Run generators until all are done. Each asks for operations with a key; keys grow, and those of a wave with the
    least one do the operation together."""
    asked: dict[int, Any] = {}

    def go_on(number: int, answer: Any) -> None:
        try:
            asked[number] = running[number][1].send(answer)
        except StopIteration:
            asked.pop(number, None)

    for number in range(len(running)):
        go_on(number, None)
    while asked:
        keys = {number: found[1] for number, found in asked.items() if found[0] != "barrier"}
        if not keys:
            for number in list(asked):
                go_on(number, None)
            continue
        wave = min(running[number][0].wave for number in keys)
        lanes = [number for number in keys if running[number][0].wave == wave]
        least = min(keys[number] for number in lanes)
        together = {running[number][0].laneid: (number, asked[number]) for number in lanes if keys[number] == least}
        for lane, (number, found) in list(together.items()):
            go_on(number, answer_one(lane, found, {other: given for other, (_, given) in together.items()}))


def answer_one(lane: int, found: tuple[Any, ...], lanes: dict[int, Any]) -> Any:
    """The result for *lane* of an operation that *lanes* do together."""
    if found[0] == "ballot":
        return sum(1 << int(other) for other, given in lanes.items() if given[2])
    if found[0] in ("any", "all"):
        return {"any": any, "all": all}[found[0]](bool(given[2]) for given in lanes.values())
    source = int(found[3])
    return lanes[source][2] if source in lanes else found[2]
