"""LLVM IR read into a graph of our own, and written again."""
