"""Heat in a plate, divided among MPI ranks: each computes its inner rows while the outermost ones travel.

    mpiexec -n 4 python examples/distributed/heat_mpi.py --size 512 --steps 100

One rank alone computes the same. Ranks take the devices of their machine in turns; CPU devices share its cores.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from mpi4py import MPI
from numba import hip

BLOCK = (64, 4)


@hip.jit(cache=True)
def step(new, old, first, last):
    """One step for the rows *first* to *last*; the outermost rows and columns of *old* are its boundary."""
    j, i = hip.grid(2)
    i += first
    if i < last and 0 < j < old.shape[1] - 1:
        new[i, j] = 0.25 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1])


def launch(new, old, first, last, stream):
    """Compute rows *first* to *last* on *stream*."""
    if last > first:
        grid = -(-old.shape[1] // BLOCK[0]), -(-(last - first) // BLOCK[1])
        step[grid, BLOCK, stream](new, old, first, last)


def exchange(comm, field):
    """Send the outermost rows of this rank's part to its neighbours, and receive theirs."""
    above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    below = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    if field.device.is_cpu:  # MPI sends from and to memory of the CPU device; of a GPU's only where it was built for it
        comm.Sendrecv(field[1], above, recvbuf=field[-1], source=below)
        comm.Sendrecv(field[-2], below, recvbuf=field[0], source=above)
        return
    row = np.empty(field.shape[1])
    for sent, to, received, source in ((1, above, -1, below), (-2, below, 0, above)):
        comm.Sendrecv(field[sent].copy_to_host(), to, recvbuf=row, source=source)
        if source != MPI.PROC_NULL:
            field[received].copy_to_device(row)


def simulate(comm, plate, steps):
    """This rank's rows of *plate* after so many *steps*."""
    inner = np.array_split(np.arange(1, plate.shape[0] - 1), comm.size)[comm.rank]
    part = plate[inner[0] - 1 : inner[-1] + 2]  # with a row of each neighbour
    old, new = hip.to_device(part), hip.to_device(part)
    rows = part.shape[0]
    outer, middle = hip.stream(), hip.stream()
    for _ in range(steps):
        launch(new, old, 1, 2, outer)
        launch(new, old, rows - 2, rows - 1, outer)
        launch(new, old, 2, rows - 2, middle)
        outer.synchronize()
        exchange(comm, new)
        middle.synchronize()
        old, new = new, old
    return old.copy_to_host()[1:-1]


def reference(plate, steps):
    """The same in NumPy, on one processor."""
    old = plate.copy()
    for _ in range(steps):
        new = old.copy()
        new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        old = new
    return old


def main() -> None:
    parser = argparse.ArgumentParser(description="Heat in a plate, on one rank or several.")
    parser.add_argument("--size", type=int, default=512, help="rows and columns")
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    comm = MPI.COMM_WORLD
    if given.size < 2 * comm.size + 2:
        parser.error(f"--size {given.size}: {comm.size} ranks need {2 * comm.size + 2} rows at least, two for each")
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)  # the ranks of this machine
    os.environ.setdefault("NUMBA_HIP_CPU_THREADS", str(max((os.cpu_count() or 1) // here.size, 1)))
    hip.select_device(here.rank % len(hip.gpus))
    plate = np.zeros((given.size, given.size))
    plate[0] = 100.0
    simulate(comm, plate, 1)  # compiles
    comm.Barrier()
    start = time.perf_counter()
    mine = simulate(comm, plate, given.steps)
    seconds = comm.reduce(time.perf_counter() - start, MPI.MAX)
    parts = comm.gather(mine)
    if comm.rank == 0:
        found = np.vstack([plate[:1], *parts, plate[-1:]])
        np.testing.assert_array_equal(found, reference(plate, given.steps))
        rate = given.steps * (given.size - 2) ** 2 / seconds / 1e6
        print(f"heat: {comm.size} ranks, {rate:.0f} million points a second, the same as NumPy's")


if __name__ == "__main__":
    main()
