"""Numba's internals: what it does not document or names with an underscore, and which release of Numba is installed.

The rest of the package imports what Numba documents (its user's manual, ``numba.extending`` and the pages on extending
and on custom compilers) and these modules, nothing else: see ``docs/design/numba-insides.md``. Everything here is
tested against each supported release (``nox -s minimums``).
"""
