"""Analyses of a kernel's graph: call graph, control flow, uniformity, vector shapes, costs. They change nothing."""
