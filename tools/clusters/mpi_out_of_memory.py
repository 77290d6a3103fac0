"""An MPI job whose last rank has too little memory: it fails, and the others wait for it or are told."""

import sys

import numpy as np
from mpi4py import MPI
from numba import hip

from hip_runtime.errors import OutOfDeviceMemoryError

comm = MPI.COMM_WORLD
nbytes = 1 << 60 if comm.rank == comm.size - 1 else 1 << 10

if "together" not in sys.argv:
    part = hip.device_array(nbytes, np.uint8)
    comm.Barrier()  # the other ranks would wait here for ever
else:
    try:
        part, fits = hip.device_array(nbytes, np.uint8), True
    except OutOfDeviceMemoryError:
        fits = False
    told = comm.allgather(fits)
    smaller = hip.to_device(np.full(10, float(comm.rank)))
    total = hip.zeros(10)
    comm.Allreduce(smaller, total)
    assert set(total.copy_to_host()) == {sum(range(comm.size))}
    if comm.rank == 0:
        print(told)
