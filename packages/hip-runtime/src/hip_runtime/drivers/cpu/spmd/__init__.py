"""Kernels whose threads wait for one another, made into code that runs a block of threads in one thread of the
processor; see docs/design/cpu-regions.md.

``preparation`` inlines and simplifies the bitcode, ``reader`` turns one function into the graph of ``graph``,
``regions`` cuts that at the operations that synchronise, ``uniformity`` finds what is the same for all threads of a
block, ``blockplan`` decides what lives where, and ``emission`` writes the function that runs a block.
"""
