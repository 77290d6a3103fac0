"""The CPU device: lowering to SPMD bitcode, and its outputs."""
