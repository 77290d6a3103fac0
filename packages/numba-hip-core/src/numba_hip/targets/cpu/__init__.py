"""The CPU device: lowering to SPMD bitcode, and what makes code of it."""
