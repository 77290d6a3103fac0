"""Random typed programs for the threads of a grid: as SPMD bitcode, and evaluated with NumPy.

``python -m spmd_fuzz --seed 0 --cases 1000``, in the folder that holds this package, tries as many as asked for.

A program is a tree of `nodes.Node`. `generator` makes one of a seed, `writer` writes it as LLVM IR, `evaluation` runs
it for all threads of a block at once under masks of those that are active, which shares nothing with the compiler under
test. `cases` compares what both leave in memory, `reduction` takes away from a program that fails what it does not need
for that, and `reproducer` writes it as a script that runs by itself. The folder `kept` holds what ever failed.
"""
