"""Machine code of this machine: made, kept, read and loaded."""
