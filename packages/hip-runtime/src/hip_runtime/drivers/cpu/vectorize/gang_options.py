"""How a function for gangs is written, besides for how many lanes."""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.vectorize.shared_cells import CellGangs

GANG_FUNCTION = "spmd.gang"


@dataclass(frozen=True)
class GangOptions:
    """What a function for gangs is called, and what may be different from one to the next."""

    name: str = GANG_FUNCTION
    demotable: frozenset[Instruction] = frozenset()
    """The atomic operations on the block's own memory."""
    lockstep: bool = False
    """Whether each memory access is made for all lanes before the next one."""
    exits_on_data: bool = True
    """See `early_exit`."""
    may_suspend: bool = False
    """Whether three more arguments follow: the address of the gang's record, whether it was suspended, and whether it
    pauses behind the loop; see `suspension`."""
    kernel_arguments: int | None = None
    """How many of the arguments are the kernel's. A gang only ever pauses where that is known."""
    follows_rows: bool = False
    """Whether a gang runs the threads up to the end of a row and returns how many those were, and the next one begins
    there; see `row_split`."""
    is_alone: bool = False
    """Whether a gang is a single thread, for which all is uniform."""
    ends_anywhere: bool = False
    """Whether only so many threads of a row run as is known at run time."""
    cells: CellGangs | None = None
    """How gangs access shared memory, if as `shared_cells` does."""
