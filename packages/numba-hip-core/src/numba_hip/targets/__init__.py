"""Compile targets: each has a typing context and a target context; most of the lowering is shared."""
