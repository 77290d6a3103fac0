"""What the ranks of an MPI job do with device arrays; each checks its results."""

import numpy as np
from mpi4py import MPI
from numba import hip

comm = MPI.COMM_WORLD
host = np.arange(12.0).reshape(3, 4) + comm.rank
ranks = range(comm.size)

sums = hip.zeros((3, 4))
comm.Allreduce(hip.to_device(host), sums)
np.testing.assert_array_equal(sums.copy_to_host(), sum(np.arange(12.0).reshape(3, 4) + rank for rank in ranks))

for kind in (np.int8, np.uint16, np.int64, np.float32, np.complex128):
    sent = hip.to_device(np.full(5, comm.rank + 1, kind))
    comm.Bcast(sent)
    assert set(sent.copy_to_host()) == {1}, kind

following, previous = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
received = hip.zeros((3, 4))
comm.Sendrecv(hip.to_device(host), following, recvbuf=received, source=previous)
np.testing.assert_array_equal(received.copy_to_host() - previous, host - comm.rank)

waiting = [comm.Isend(hip.to_device(host)[1], following), comm.Irecv(received[2], previous)]
MPI.Request.Waitall(waiting)
np.testing.assert_array_equal(received.copy_to_host()[2] - previous, host[1] - comm.rank)

strided = hip.to_device(np.zeros((4, 4)))[:, ::2]
problem = ""
try:
    comm.Bcast(strided)
except BufferError as error:
    problem = str(error)
assert "contiguous" in problem
dense = strided.copy()
comm.Bcast(dense)

found = comm.bcast({"array": hip.to_device(host), "order": hip.to_device(np.asfortranarray(host))})
np.testing.assert_array_equal(found["array"].copy_to_host() + comm.rank, host)
assert found["order"].is_f_contiguous()
parts = comm.gather(hip.to_device(np.array([comm.rank])))
if comm.rank == 0:
    print([int(part.copy_to_host()[0]) for part in parts])
