"""Child processes, as a GPU fault may end a process, or make it wait forever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.2
_QUIET = {f"NUMBA_HIP_{name}_WARNINGS": "0" for name in ("LOW_OCCUPANCY", "IMPLICIT_COPY")}
"""Advice that is only given for GPUs, and turned off here: launches of tests are small, and warnings are errors."""

_EMULATED = Path(__file__).resolve().parent / "emulated"


INTERRUPTED = "interrupted"
"""The reason of a process that was ended because the session was stopped; nothing is run after it."""


@dataclass(frozen=True)
class Ending:
    """How a process ended: its exit status, or why it has none."""

    status: int | None
    reason: str = ""

    @property
    def is_good(self) -> bool:
        return self.status == 0

    @property
    def is_last(self) -> bool:
        return self.reason == INTERRUPTED


@dataclass(frozen=True)
class Children:
    """Starts processes that see the GPU. *target* is the one whose machine code is emulated here; "" is a real GPU.

    *seconds* is how long a process may run without progress.
    """

    target: str = ""
    seconds: float = 900
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """The environment of the processes."""
        found = {**_QUIET, **os.environ, "NUMBA_HIP_DEVICE": "hip", **self.variables}
        path = [str(ROOT)]
        if self.target:
            found["EMULATED_TARGET"] = self.target
            path.insert(0, str(_EMULATED))
        found["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
        return found

    def run(self, arguments: Sequence[str], output: Path, *, progress: Callable[[], object] = lambda: None) -> Ending:
        """Run this Python with *arguments*; its output is appended to *output*.

        It is killed if the result of *progress* does not change for too long.
        """
        with output.open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return self._wait(process, progress)
            except KeyboardInterrupt:
                return Ending(None, INTERRUPTED)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def _wait(self, process: subprocess.Popen[bytes], progress: Callable[[], object]) -> Ending:
        last, since = progress(), time.monotonic()
        while True:
            try:
                status = process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                now = progress()
                if now != last:
                    last, since = now, time.monotonic()
                elif time.monotonic() - since > self.seconds:
                    return Ending(None, f"nothing more after {self.seconds:g} s: ended")
            else:
                return Ending(status, _name(status))


def _name(status: int) -> str:
    if status >= 0:
        return f"the process ended with status {status}"
    return f"the process was ended by {signal.Signals(-status).name}"
