"""Collective operations among AMD GPUs of one or many processes, by RCCL: sums, broadcasts and the like of arrays.

>>> from hip_runtime import collectives
>>> communicators = collectives.connect([0, 1])  # two GPUs of this process
"""

from hip_runtime.collectives.communicator import Communicator, connect, group, make_unique_id

__all__ = ["Communicator", "connect", "group", "make_unique_id"]
