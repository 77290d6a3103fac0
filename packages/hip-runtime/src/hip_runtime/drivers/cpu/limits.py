"""Limits of the CPU device that compilers for it have to know."""

SHARED_BYTES = 65536
"""Shared memory that a block can have: what the LDS of AMD's GPUs has."""
