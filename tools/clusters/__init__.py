"""Programs that use several processes through other libraries; run by ``nox -s clusters``."""
