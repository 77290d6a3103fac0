"""Limits of the CPU device that compilers for it have to know."""

SHARED_BYTES = 65536
"""Shared memory that a block can have: what the LDS of AMD's GPUs has."""

PRIVATE_BYTES = 1 << 30
"""Bytes of private arrays that a thread can have. An AMD GPU has room for 128 KiB."""
