"""The threads of a block several at a time, as lanes of vectors: see docs/design/cpu-vectors.md."""
