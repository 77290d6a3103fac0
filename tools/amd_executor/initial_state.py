"""The state in which a wave starts: registers, arguments including hidden ones, and memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from hip_devicelib.target import STACK_BYTES
from tools.amd_executor import layout
from tools.amd_executor.control import FLOAT_BITS, FLOAT_MODE
from tools.amd_executor.decoding import PRIVATE_HIGH, SHARED_HIGH
from tools.amd_executor.images import Image, ImageError, KernelImage

_POISON = 0xDB
_LARGEST_SHARED = 65536


@dataclass(frozen=True)
class Launch:
    """A launch. *arguments* are packed, without the hidden ones."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: bytes
    cooperative: bool = False


@dataclass(eq=False)
class Block:
    """The waves of a block, and its memory."""

    waves: np.ndarray[tuple[int, int], np.dtype[np.uint32]]
    shared: np.ndarray[tuple[int], np.dtype[np.uint8]]
    scratch: np.ndarray[tuple[int], np.dtype[np.uint8]]
    running: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    index: tuple[int, int, int] = (0, 0, 0)


class Start:
    """The initial state of all waves of a launch, except for their numbers."""

    def __init__(self, image: Image, kernel: KernelImage, launch: Launch, family: str) -> None:
        self.image, self.kernel, self.launch, self.family = image, kernel, launch, family
        self.wave = 64 if family == "cdna" else 32
        if kernel.is_wave32 != (self.wave == 32):
            raise ImageError(
                f"{kernel.name}: waves of {32 if kernel.is_wave32 else 64} are not executed for {image.target}"
            )
        mode = kernel.resources[0] >> 12 & FLOAT_BITS
        if mode != FLOAT_MODE:
            what = "other rounding than to the nearest, or denormal numbers taken for zero"
            raise ImageError(f"{kernel.name}: its mode {mode:#04x} for floats ({what}) is not executed")
        self.threads = launch.block[0] * launch.block[1] * launch.block[2]
        self.waves = -(-self.threads // self.wave)
        self.shared_bytes = kernel.shared_bytes + launch.shared
        if self.shared_bytes > _LARGEST_SHARED:
            raise ImageError(f"{kernel.name}: {self.shared_bytes} bytes of shared memory of {_LARGEST_SHARED}")
        # the size that the driver requests from HIP
        stack = max(kernel.private_bytes, STACK_BYTES if kernel.has_dynamic_stack else 0)
        self.private_bytes = (stack + 15) // 16 * 16
        self.queue, self.packet, self.sync = (np.zeros(64, np.uint64) for _ in range(3))
        self.arguments = np.frombuffer(self.packed_arguments(), np.uint8)
        self.fill_memory()
        self.template = self.make_template()
        self.identities = self.make_identities()
        self.used = self.used_words()

    def ranges(self) -> list[tuple[int, int]]:
        """The memory that is allocated for the launch."""
        return [(array.ctypes.data, array.nbytes) for array in (self.arguments, self.queue, self.packet, self.sync)]

    # arguments

    def packed_arguments(self) -> bytearray:
        parts = self.kernel.metadata.get(".args", [])
        size = max(
            [
                self.kernel.argument_bytes,
                len(self.launch.arguments),
                *(part[".offset"] + part[".size"] for part in parts),
            ]
        )
        packed = bytearray((size + 63) // 64 * 64)
        packed[: len(self.launch.arguments)] = self.launch.arguments
        for part in parts:
            kind = part[".value_kind"]
            if kind.startswith("hidden_"):
                number = self.hidden(kind.removeprefix("hidden_")) & ((1 << 8 * part[".size"]) - 1)
                packed[part[".offset"] : part[".offset"] + part[".size"]] = number.to_bytes(part[".size"], "little")
        return packed

    def hidden(self, kind: str) -> int:
        """A hidden argument, which the compiler has added."""
        launch = self.launch
        for name, values in (("block_count_", launch.grid), ("group_size_", launch.block)):
            if kind.startswith(name):
                return values["xyz".index(kind[-1])]
        known = {
            "grid_dims": self.dimensions,
            "dynamic_lds_size": launch.shared,
            "private_base": PRIVATE_HIGH,
            "shared_base": SHARED_HIGH,
            "queue_ptr": self.queue.ctypes.data,
            "multigrid_sync_arg": self.sync.ctypes.data,
        }
        return known.get(kind, 0)

    @property
    def dimensions(self) -> int:
        extents = [grid * block for grid, block in zip(self.launch.grid, self.launch.block, strict=True)]
        return 3 if extents[2] > 1 else 2 if extents[1] > 1 else 1

    def fill_memory(self) -> None:
        """The queue, the launch packet, and the memory of grid barriers, in the layouts of HSA and HIP."""
        launch = self.launch
        extents = [grid * block for grid, block in zip(launch.grid, launch.block, strict=True)]
        code = self.image.base + self.kernel.descriptor
        packet = struct.pack(
            "<HHHHHHIIIIIQQQQ", 2, self.dimensions, *launch.block, 0, *extents, self.private_bytes, self.shared_bytes,
            code, self.arguments.ctypes.data, 0, 0,
        )  # fmt: skip
        self.packet.view(np.uint8)[: len(packet)] = np.frombuffer(packet, np.uint8)
        self.queue[8] = SHARED_HIGH | PRIVATE_HIGH << 32
        blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
        sync = struct.pack("<QIIQQIII", 0, 0, 1, 0, 0, 0, 0, blocks)
        self.sync.view(np.uint8)[: len(sync)] = np.frombuffer(sync, np.uint8)

    # registers

    def make_template(self) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        template = np.full(layout.WORDS, int.from_bytes(bytes([_POISON] * 4), "little"), np.uint32)
        template[106 : layout.VECTORS] = 0
        user = self.user_registers()
        if len(user) > self.kernel.user_registers:
            raise ImageError(
                f"{self.kernel.name}: {len(user)} registers to set, {self.kernel.user_registers} asked for"
            )
        template[: len(user)] = user
        template[layout.SHARED_BYTES] = self.shared_bytes
        template[layout.SCRATCH_BYTES] = self.private_bytes
        template[layout.HARDWARE + 1] = self.kernel.resources[0] >> 12 & 0xFF
        _set(template, layout.PC, self.image.base + self.kernel.entry)
        return template

    def user_registers(self) -> list[int]:
        """The scalar registers that the kernel's descriptor requests."""
        properties = self.kernel.properties
        pairs = (self.packet.ctypes.data, self.queue.ctypes.data, self.arguments.ctypes.data, 1, 0)
        found = [0] * 4 if properties & 1 else []
        for bit, number in enumerate(pairs, 1):
            if properties >> bit & 1:
                found += [number & 0xFFFFFFFF, number >> 32]
        if properties >> 6 & 1:
            found.append(self.private_bytes)
        return found + [0] * self.kernel.preloaded  # the beginning of the code loads them if nobody else did

    def make_identities(self) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """The first vector register: the three indices of a thread."""
        number = np.arange(self.waves * self.wave, dtype=np.uint32)
        width, height = self.launch.block[:2]
        indices = number % width | number // width % height << 10 | number // (width * height) << 20
        return indices.astype(np.uint32)

    def used_words(self) -> list[tuple[int, int]]:
        """Scalar registers and everything else that is not a vector register, then the scalar registers that the kernel
        requests."""
        count = ((self.kernel.resources[0] & 63) + 1) * 8
        first = count
        if self.family == "cdna":
            first = min(count, ((self.kernel.resources[2] & 63) + 1) * 4)
        start, accumulators = layout.VECTORS, layout.ACCUMULATORS
        parts = [(0, start), (start, start + min(first, 256) * layout.LANES)]
        if count > first:
            parts.append((accumulators, accumulators + (count - first) * layout.LANES))
        return parts

    # blocks

    def make_block(self) -> Block:
        waves = np.empty((self.waves, layout.WORDS), np.uint32)
        scratch = np.empty(max(16, self.private_bytes * self.wave * self.waves), np.uint8)
        return Block(waves, np.empty(max(16, self.shared_bytes), np.uint8), scratch)

    def fill(self, block: Block, index: tuple[int, int, int]) -> None:
        """Put *block* into the initial state of the block with this index."""
        block.index = index
        block.running, block.waiting = list(range(self.waves)), []
        for first, last in self.used:
            block.waves[:, first:last] = self.template[first:last]
        block.shared[:] = _POISON
        block.scratch[:] = _POISON
        places = self.index_places()
        for number in range(self.waves):
            wave = block.waves[number]
            lanes = min(self.wave, self.threads - number * self.wave)
            _set(wave, layout.EXEC, (1 << lanes) - 1)
            first = layout.vector_place(0)
            wave[first : first + self.wave] = self.identities[number * self.wave : (number + 1) * self.wave]
            _set(wave, layout.SHARED, block.shared.ctypes.data)
            _set(wave, layout.SCRATCH, block.scratch.ctypes.data + number * self.private_bytes * self.wave)
            wave[layout.HARDWARE + 4] = (number & 0xF) | ((number & 3) << 4)
            for axis, place in places:
                wave[place] = index[axis]
            if self.family == "rdna4":
                wave[117], wave[115] = index[0], index[1] | index[2] << 16

    def index_places(self) -> list[tuple[int, int]]:
        """The scalar registers with the block's index, by axis."""
        if self.family == "rdna4":
            return []
        place, found = self.kernel.user_registers, []
        for axis in range(3):
            if self.kernel.resources[1] >> (7 + axis) & 1:
                found.append((axis, place))
                place += 1
        return found


def _set(words: np.ndarray[tuple[int], np.dtype[np.uint32]], place: int, number: int) -> None:
    words[place], words[place + 1] = number & 0xFFFFFFFF, number >> 32
