"""Names of AMD's numba-hip that `numba_hip` does not have, for programs written for it."""
