"""Data structures that host and device code have to agree on."""
