"""Random calls of ``hip.algorithms``, whose results are compared with those of NumPy and plain Python."""
