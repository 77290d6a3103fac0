"""Calls functions that may crash LLVM in a separate process.

``python -m hip_devicelib.isolated_call`` reads the name of a function and its arguments from standard input, and writes
the result, or the error that the function raised, to standard output. Both ends are this program, so the data is
pickled.
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
    """The result of *function*, a function of a module, for *arguments*, computed in another process. Its errors are
    raised here.

    `UnsupportedError` with LLVM's last message if the process crashes. Takes half a second longer than a plain call.
    """
    if not sys.executable:
        raise UnsupportedError(
            "code on which LLVM may crash is compiled in another process, and this Python does not know the path of "
            "its interpreter (sys.executable is empty): start Python by its path"
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
    """The separate process: see the module's docstring."""
    answer = _call(*pickle.load(sys.stdin.buffer))
    sys.stdout.buffer.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
