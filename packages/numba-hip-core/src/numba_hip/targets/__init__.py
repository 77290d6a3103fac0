"""What kernels are compiled for: one typing context and one target context per target, over one lowering."""
