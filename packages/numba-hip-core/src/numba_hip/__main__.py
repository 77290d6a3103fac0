"""``python -m numba_hip``: the doctor's report on what is here and works; ``precompile`` fills the cache.

``numba -s`` lists the packages and the ``NUMBA_HIP_*`` variables, but offers targets no way to add to its report.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """The doctor, or the command that *arguments* begin with; the exit status."""
    if arguments and arguments[0] == "precompile":
        from numba_hip.precompilation import main as precompile

        return precompile(arguments[1:])
    if arguments and not arguments[0].startswith("-") and arguments[0] != "doctor":
        print(f"no command {arguments[0]!r}; there are: doctor, precompile MODULE...", file=sys.stderr)
        return 2
    from numba_hip.doctor import main as doctor

    return doctor(arguments[1:] if arguments[:1] == ["doctor"] else arguments)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
