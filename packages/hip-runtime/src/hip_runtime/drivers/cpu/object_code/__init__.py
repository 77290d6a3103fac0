"""Machine code for this machine: generated, cached, read and loaded."""
