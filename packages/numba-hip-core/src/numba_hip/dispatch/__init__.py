"""Launches: types and bytes of arguments, which code is meant, and what comes back from a kernel."""
