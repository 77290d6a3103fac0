"""Lets ``python -m numba_hip`` tell what is wrong where this package cannot be imported.

Python imports a package before it runs its ``__main__``: without this, whoever asks what is wrong with Numba would get
the traceback that made them ask.
"""

import sys

MODULES = ("numba_hip", "numba.hip")


def is_asked_for() -> bool:
    """Whether Python is about to run this package as a program, for the doctor's report.

    While Python looks for the module of ``-m``, ``sys.argv`` begins with that instead of a path.
    """
    if "-m" not in sys.orig_argv or sys.argv[1:2] == ["precompile"]:
        return False
    return sys.orig_argv[sys.orig_argv.index("-m") + 1] in MODULES


if is_asked_for():
    from numba_hip.__main__ import run

    sys.exit(run(sys.argv[1:]))
