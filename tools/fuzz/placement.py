# Arrays in buffers of random bytes: in any order, with gaps, backwards. On the CPU device, pages before and behind the
# memory of a kernel cannot be accessed; the random bytes around arrays must stay as they are.

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import hip


class Placed:
    """The array *values* in a buffer, in the layout *kind*; *generator* makes what is around it."""

    def __init__(self, generator: np.random.Generator, values: Any, kind: str = "plain") -> None:
        size = values.itemsize
        steps = np.ascontiguousarray(values).strides
        if kind == "fortran":
            steps = np.asfortranarray(values).strides
        elif kind in ("every second", "every third"):
            steps = tuple(step * (2 if kind == "every second" else 3) for step in steps)
        elif kind == "backwards":
            steps = (*steps[:-1], -steps[-1])
        elif kind == "rows backwards":
            steps = (-steps[0], *steps[1:])
        elif kind == "gaps":
            steps = (*(step + 3 * size for step in steps[:-1]), steps[-1])
        elif kind == "one for all":
            steps = (0, *steps[1:])
        self.shape, self.dtype, self.strides = values.shape, values.dtype, steps
        reach = [(extent - 1) * step for extent, step in zip(values.shape, steps, strict=True)]
        first = -sum(step for step in reach if step < 0)
        self.offset = first + (size * int(generator.integers(1, 6)) if kind == "offset" else 0)
        self.nbytes = self.offset + sum(step for step in reach if step > 0) + size
        self.buffer = generator.integers(0, 256, self.nbytes, np.uint8)
        self.view(self.buffer)[...] = values

    def view(self, buffer: Any) -> Any:
        """The array in *buffer*."""
        return np.ndarray(self.shape, self.dtype, buffer, self.offset, self.strides)


class Region:
    """Memory of the device with a copy of *placed*, at the end of its pages or at their beginning."""

    def __init__(self, placed: Placed, behind: bool, guarded: bool) -> None:
        self.placed, self.guarded, page = placed, guarded, mmap.PAGESIZE
        if not guarded:
            self.whole = hip.to_device(placed.buffer)
            self.address = self.whole.address
            return
        length = -(-placed.nbytes // page) * page
        self.memory = mmap.mmap(-1, length + 2 * page)
        self.begin, self.length = ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) + page, length
        self.protect(0)
        ctypes.memset(self.begin, 0xA5, length)
        self.address = self.begin + ((length - placed.nbytes) & -8 if behind else 0)
        ctypes.memmove(self.address, placed.buffer.ctypes.data, placed.nbytes)

    def protect(self, rights: int) -> None:
        """Set the *rights* to access the pages around."""
        for place in (self.begin - mmap.PAGESIZE, self.begin + self.length):
            assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(place), ctypes.c_size_t(mmap.PAGESIZE), rights) == 0

    @property
    def array(self) -> Any:
        """The array of the device."""
        placed = self.placed
        described = {
            "shape": placed.shape, "typestr": placed.dtype.str, "data": (self.address + placed.offset, False),
            "strides": placed.strides, "version": 3,
        }  # fmt: skip
        return hip.as_device_array(type("Described", (), {"__cuda_array_interface__": described, "owner": self})())

    def read(self) -> tuple[Any, bool]:
        """The bytes of the buffer, and whether those around it are unchanged."""
        if not self.guarded:
            return self.whole.copy_to_host(), True
        every = np.frombuffer(ctypes.string_at(self.begin, self.length), np.uint8)
        first = self.address - self.begin
        end = first + self.placed.nbytes
        return every[first:end], bool((every[:first] == 0xA5).all() and (every[end:] == 0xA5).all())

    def free(self) -> None:
        """Let the pages around be used again."""
        if self.guarded:
            self.protect(mmap.PROT_READ | mmap.PROT_WRITE)


def differences(placed: Placed, name: str, right: Any, found: Any) -> list[str]:
    """What differs between two buffers with the array *name*, in words. Lists, which threads append to, may have any
    order."""
    one, other = placed.view(right), placed.view(np.array(found))
    if name.startswith("list_"):
        one, other = np.sort(one), np.sort(other)
    places = np.argwhere((one != other) & ~((one != one) & (other != other)))
    told = [f"{name}{list(map(int, place))} is {other[tuple(place)]}, must be {one[tuple(place)]}" for place in places]
    if not told:
        right, found = right.copy(), np.array(found)
        for buffer in (right, found):
            placed.view(buffer)[...] = 0
        if (right != found).any():
            told.append(f"memory in the gaps of {name} was changed")
    return told


Made = tuple[list[Placed], Sequence[int], Sequence[Any]]
"""What a launch is made with: the arrays, the numbers of blocks, and the other arguments."""


def launch(
    kernel: Any, block: Sequence[int], names: Sequence[str], made: Made, behind: bool, guarded: bool
) -> tuple[list[Any], list[str], str]:
    """The kernel's buffers, what is wrong around them, and the name of the error that was raised."""
    arrays, blocks, numbers = made
    regions = [Region(placed, behind, guarded) for placed in arrays]
    error = ""
    try:
        kernel[blocks, block](*(region.array for region in regions), *numbers)
        hip.synchronize()
    except IndexError:
        error = "IndexError"
    finally:
        read = [region.read() for region in regions]
        for region in regions:
            region.free()
    told = [f"memory around {name} was changed" for name, (_, clean) in zip(names, read, strict=True) if not clean]
    return [buffer for buffer, _ in read], told, error


def compare(
    kernel: Any, expected: tuple[list[Any], str], names: Sequence[str], made: Made, block: Sequence[int],
    behind: bool = True, guarded: bool = True,
) -> list[str]:  # fmt: skip
    """What differs between *kernel* and what is *expected*, in words, after a launch with what was *made*."""
    right, wanted = expected
    found, told, error = launch(kernel, block, names, made, behind, guarded)
    if error != wanted:
        return [*told, f"{error or 'no error'} was raised, must be {wanted or 'none'}"]
    if not error:
        for placed, name, one, other in zip(made[0], names, right, found, strict=True):
            told += differences(placed, name, one, other)
    return told
