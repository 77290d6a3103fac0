"""Reads LLVM IR into a graph of our own, and writes it."""
