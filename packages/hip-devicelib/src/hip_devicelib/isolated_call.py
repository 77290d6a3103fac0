"""Calls functions that may crash LLVM in a process of their own.

``python -m hip_devicelib.isolated_call`` reads a function, by its name, and its arguments from its standard input, and
writes the result, or the error that the function raised, to its standard output. Both ends are this program, so what
goes between them is pickled.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from hip_devicelib.errors import UnsupportedError
from hip_devicelib.isolated_codegen import child_environment

T = TypeVar("T")

_LAST_WORDS = 2000


def call_apart(function: Callable[..., T], *arguments: Any) -> T:
    """What *function* of some module gives for *arguments*, in another process; what it raises is raised here.

    `UnsupportedError` with LLVM's last words if the process does not survive it. Half a second more than a call.
    """
    if not sys.executable:
        raise UnsupportedError(
            "what LLVM may not survive is done in a process of its own, and this Python does not know the path of its "
            "interpreter (sys.executable is empty)"
        )
    command = [sys.executable, "-m", "hip_devicelib.isolated_call"]
    call = pickle.dumps((function, arguments))
    done = subprocess.run(command, input=call, capture_output=True, env=child_environment(), check=False)
    if done.returncode or not done.stdout:
        words = done.stderr.decode(errors="replace").strip()[-_LAST_WORDS:] or f"exit status {done.returncode}"
        raise UnsupportedError(words)
    returned, value = pickle.loads(done.stdout)
    if not returned:
        raise value
    result: T = value
    return result


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((True, function(*arguments)))
    except Exception as error:
        return pickle.dumps((False, error))


def main() -> int:
    """The other process: see the module's documentation."""
    answer = _call(*pickle.load(sys.stdin.buffer))
    sys.stdout.buffer.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
