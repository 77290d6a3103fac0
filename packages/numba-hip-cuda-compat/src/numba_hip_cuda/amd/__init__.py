"""Names of AMD's numba-hip that `numba_hip` does not have itself: for programs that were written for it."""
