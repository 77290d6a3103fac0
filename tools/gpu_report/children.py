"""The processes that the work is done in: a GPU that faults may end one, or keep it waiting for ever."""

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
"""Advice that GPUs are given, the CPU device not: launches of tests are small, and warnings are errors there."""

_EMULATED = Path(__file__).resolve().parent / "emulated"


INTERRUPTED = "interrupted"
"""Why a process was ended by whoever started the session; nothing comes after it."""


@dataclass(frozen=True)
class Ending:
    """How a process ended: its status, or why there is none."""

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
    """Starts processes that see the GPU. *target* names the one whose machine code is executed here; "" is a real one.

    *seconds* is how long one may go on without a word of what it has done.
    """

    target: str = ""
    seconds: float = 900
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """What the processes find in their environment."""
        found = {**_QUIET, **os.environ, "NUMBA_HIP_DEVICE": "hip", **self.variables}
        path = [str(ROOT)]
        if self.target:
            found["EMULATED_TARGET"] = self.target
            path.insert(0, str(_EMULATED))
        found["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
        return found

    def run(self, arguments: Sequence[str], output: Path, *, progress: Callable[[], object] = lambda: None) -> Ending:
        """Run this Python with *arguments*; what it says goes to the end of *output*.

        It is ended when what *progress* tells has been the same for too long.
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
