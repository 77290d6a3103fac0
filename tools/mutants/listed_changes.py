"""Changes that ``targets.toml`` lists, each of which is tried in a separate process."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tools.mutants.explanations import Change
from tools.mutants.package_copy import CONFIGURATION, IGNORED, ROOT
from tools.mutants.results import Results
from tools.mutants.trial import COLLECTION, PATIENCE, SECONDS


class ListedChanges:
    """The changes of *target*, called *name*, which are applied to copies of all packages in *folder*."""

    def __init__(self, name: str, target: dict[str, Any], folder: Path) -> None:
        self._file = target["file"]
        self._tests = target["tests"]
        self._original = (ROOT / self._file).read_text()
        self._folder = folder
        self.changes = [Change(name, before, after) for before, after in target["changes"]]
        for change in self.changes:
            if change.before not in self._original:
                sys.exit(f"{name}: {self._file} holds no {change.before!r}")
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(self._original.encode()).hexdigest()
        self.results = Results(folder / "results.jsonl", digest)

    def try_changes(self, changes: Sequence[Change], processes: int, *, more: bool) -> None:
        """Run the tests for each of *changes*."""
        self.results.begin(more=more)
        if not changes:
            return
        places: SimpleQueue[Path] = SimpleQueue()
        for number in range(processes):
            places.put(self._copy(self._folder / str(number)))
        started = time.monotonic()
        outcome = self._try_change(places, None, COLLECTION)
        if outcome != "survives":
            sys.exit(f"the tests of {self._folder} fail without any change")
        limit = PATIENCE * (time.monotonic() - started) + SECONDS

        def run(change: Change) -> None:
            self.results.add(str(change), self._try_change(places, change, limit))

        with ThreadPoolExecutor(processes) as pool:
            for _ in pool.map(run, changes):
                pass

    def _copy(self, place: Path) -> Path:
        shutil.copytree(ROOT / "packages", place / "packages", dirs_exist_ok=True, ignore=IGNORED)
        for file in CONFIGURATION:
            shutil.copy(ROOT / file, place)
        return place

    def _try_change(self, places: SimpleQueue[Path], change: Change | None, limit: float) -> str:
        """The result of *change* in one of *places*; the tests may take *limit* seconds."""
        place = places.get()
        try:
            text = self._original
            if change is not None:
                text = text.replace(change.before, change.after, 1)
            (place / self._file).write_text(text)
            return self._run_tests(place, limit)
        finally:
            places.put(place)

    def _run_tests(self, place: Path, limit: float) -> str:
        paths = os.pathsep.join(str(path) for path in sorted(place.glob("packages/*/src")))
        environment = os.environ | {"NUMBA_HIP_DEVICE": "cpu", "PYTHONPATH": paths}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *self._tests]
        code = run_limited(command, place, environment, limit)
        if code is None:
            return "hangs"
        return "noticed" if code else "survives"


def run_limited(command: Sequence[str], place: Path, environment: dict[str, str], seconds: float) -> int | None:
    """The exit status of *command*, run in *place* without output; ``None`` if it was killed after *seconds*. Its
    children are killed, too."""
    with subprocess.Popen(
        command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            return running.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
