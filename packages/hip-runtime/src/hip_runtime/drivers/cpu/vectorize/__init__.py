"""The vectoriser: runs gangs of threads as lanes of vectors, see docs/design/cpu-vectors.md."""
