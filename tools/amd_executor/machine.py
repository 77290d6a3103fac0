"""Launches: executes blocks of waves in turns, on memory of the host.

Waves of a block run one after another, each until it ends, waits at a barrier, or has used up its turn. The same holds
for blocks: the next one starts when all earlier ones have ended or have had a turn, so that kernels whose blocks wait
for each other complete. The blocks of a cooperative launch all start at once.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence

import numpy as np

from tools.amd_executor import layout
from tools.amd_executor.decoding import FAMILIES, UnknownInstruction
from tools.amd_executor.engine import Engine, engine
from tools.amd_executor.images import Image, ImageError, KernelImage, load_image
from tools.amd_executor.indexed_registers import index_mode
from tools.amd_executor.initial_state import Block, Launch, Start

TURN = 200_000
"""The number of instructions in a wave's turn."""

LONGEST = 1_500_000_000
"""The number of instructions after which a launch is given up."""

_WINDOW = 64
"""The number of concurrent blocks if blocks wait for each other."""

_ENDS = ("S_ENDPGM", "S_BRANCH", "S_SETPC_B64")


_JUMPS = ("S_BRANCH", "S_CBRANCH", "S_SETPC", "S_SWAPPC", "S_CALL")


class ExecutionError(Exception):
    """A failed launch: the error and its place."""


class MemoryFault(ExecutionError):
    """A lane accessed memory that it must not."""


class TrapFault(ExecutionError):
    """A wave executed a trap."""


class RegisterFault(ExecutionError):
    """A computed register number is not a register."""


class EndlessError(ExecutionError):
    """A launch that does not end."""


class Program:
    """An image whose instructions are decoded when they are first reached."""

    def __init__(self, data: bytes, engine_: Engine) -> None:
        self.engine = engine_
        self.image: Image = load_image(data)
        self.family = FAMILIES[self.image.target]
        self.count = self.image.size // 4
        self.records = mmap.mmap(-1, self.count * layout.RECORD_WORDS * 8)
        self.place = ctypes.addressof(ctypes.c_char.from_buffer(self.records))
        self.names: dict[int, str] = {}
        self.modes: dict[int, int] = {}
        """Places where decoding stopped while CDNA indexes registers by M0, with the mode of indexing."""

    def decode(self, address: int) -> None:
        """Decode the instruction at *address* and the following ones. Errors are raised for the first one only."""
        first = index = (address - self.image.base) // 4
        mode = self.modes.get(first, 0)
        while index < self.count and index not in self.names:
            try:
                index, mode = self.decode_one(index, mode)
            except UnknownInstruction:
                if index == first:
                    raise
                self.modes[index] = mode
                return
            if not index:
                return

    def decode_one(self, index: int, mode: int) -> tuple[int, int]:
        """The number of the next record (0 if the code does not continue), and the mode there."""
        start = 4 * index
        data = self.image.memory[start : start + 20].ljust(20, b"\0")
        size = layout.RECORD_WORDS * 8
        record, instruction = self.engine.record(data, self.family, self.place + index * size, mode)
        changed = index_mode(instruction)
        if mode and instruction.name.startswith(_JUMPS):
            raise UnknownInstruction(f"{instruction.name} between S_SET_GPR_IDX_ON and S_SET_GPR_IDX_OFF")
        self.records[index * size : (index + 1) * size] = record
        self.names[index] = instruction.name
        following = 0 if instruction.name in _ENDS else index + instruction.size // 4
        return following, mode if changed is None else changed


class Machine:
    """Executes launches of one program."""

    def __init__(self, data: bytes) -> None:
        self.program = Program(data, engine())
        self.instructions = 0

    @property
    def image(self) -> Image:
        return self.program.image

    def kernel(self, name: str) -> KernelImage:
        found = self.image.kernels.get(name)
        if found is None:
            raise ImageError(f"no kernel {name!r}; there are {', '.join(self.image.kernels)}")
        return found

    def execute(self, name: str, launch: Launch, ranges: Sequence[tuple[int, int]]) -> None:
        """Run a launch. *ranges* are the addresses and sizes of the memory that it may use in addition to its own."""
        self.instructions = 0
        kernel = self.kernel(name)
        start = Start(self.image, kernel, launch, self.program.family)
        table = _table([*ranges, (self.image.base, self.image.size), *start.ranges()])
        start.template[layout.RANGES : layout.RANGES + 2].view(np.uint64)[0] = table.ctypes.data
        start.template[layout.RANGE_COUNT : layout.RANGE_COUNT + 2].view(np.uint64)[0] = len(table)
        _Run(self, start, launch).run()


class _Run:
    """The state of one launch."""

    def __init__(self, machine: Machine, start: Start, launch: Launch) -> None:
        self.machine = machine
        self.program = machine.program
        self.start = start
        self.launch = launch
        self.done = ctypes.c_uint64()
        self.spare: list[Block] = []

    def run(self) -> None:
        waiting = _indices(self.launch.grid)
        left = self.launch.grid[0] * self.launch.grid[1] * self.launch.grid[2]
        there: list[Block] = []
        wanted = left if self.launch.cooperative else 1
        while left or there:
            while left and len(there) < wanted:
                there.append(self.enter(next(waiting)))
                left -= 1
            took_turn = False
            for block in list(there):
                took_turn |= self.advance(block)
                if not block.running and not block.waiting:
                    there.remove(block)
                    self.spare.append(block)
            if took_turn and not self.launch.cooperative:
                wanted = min(wanted + 1, _WINDOW)
            if self.machine.instructions > LONGEST:
                raise EndlessError(f"{self.start.kernel.name}: more than {LONGEST} instructions of waves")

    def enter(self, index: tuple[int, int, int]) -> Block:
        block = self.spare.pop() if self.spare else self.start.make_block()
        self.start.fill(block, index)
        return block

    def advance(self, block: Block) -> bool:
        """Run the waves of a block up to the next barrier; returns whether one used up its turn."""
        took_turn = False
        for number in list(block.running):
            status = self.step(block, number)
            if status == layout.TURN:
                took_turn = True
                continue
            block.running.remove(number)
            if status == layout.BARRIER:
                block.waiting.append(number)
        if not block.running and block.waiting:
            block.running, block.waiting = sorted(block.waiting), []
        return took_turn

    def step(self, block: Block, number: int) -> int:
        program = self.program
        wave = block.waves[number]
        while True:
            place = ctypes.byref(self.done)
            status = program.engine.run(wave.ctypes.data, program.place, program.image.base, program.count, TURN, place)
            self.machine.instructions += self.done.value
            if status != layout.UNDECODED:
                break
            program.decode(_counter(wave))
        if status in (layout.FAULT, layout.TRAP, layout.OUTSIDE, layout.REGISTER):
            self.fail(status, block, number)
        return int(status)

    def fail(self, status: int, block: Block, number: int) -> None:
        wave = block.waves[number]
        counter = _counter(wave)
        place = self.program.image.where(counter - 4)
        where = f"{self.start.kernel.name}: block {block.index}, wave {number}, at {place}"
        if status == layout.TRAP:
            raise TrapFault(f"{where}: a trap")
        if status == layout.OUTSIDE:
            raise MemoryFault(f"{where}: a jump out of the code, to {counter:#x}")
        address = int(wave[layout.FAULT_ADDRESS : layout.FAULT_ADDRESS + 2].view(np.uint64)[0])
        if status == layout.REGISTER:
            number = address - (address >> 63 << 64)
            raise RegisterFault(f"{where}: there is no register with the computed number {number}")
        raise MemoryFault(f"{where}: the address {address:#x} may not be used")


def _counter(wave: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> int:
    return int(wave[layout.PC : layout.PC + 2].view(np.uint64)[0])


def _indices(grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                yield x, y, z


def _table(ranges: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """The starts and ends of the ranges, in order."""
    kept = sorted((start, start + size) for start, size in ranges if size)
    return np.array(kept, np.uint64).reshape(-1, 2)
