"""Tries mutants: ``python -m tools.mutants.runner PROCESSES WARM-UP ARGUMENT...`` in the folder that mutmut made.

The tests that pytest's arguments select are collected once. Each is run in a fork, which records the lines that it
runs. Then each mutant named on standard input is tried in a fork, with the tests that reach it and those that start
processes, whose lines are not seen; the quickest first. Its result is a line of JSON on standard output. Fails if a
test fails without a mutant.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.mutants.mutations import Mutation, read_mutations
from tools.mutants.trial import COLLECTION, PATIENCE, SECONDS, Trial

PAUSE = 0.005
OBSERVED = Path("observed.json")


@dataclass(frozen=True)
class Test:
    """A test, the *lines* of each file that it runs, and the *seconds* that it takes."""

    item: pytest.Item
    lines: dict[str, set[int]]
    starts: bool
    seconds: float

    @property
    def limit(self) -> float:
        """The seconds after which it counts as hanging."""
        return PATIENCE * self.seconds + SECONDS


class Runner:
    """A plugin of pytest that tries *mutations* instead of running the tests."""

    def __init__(self, mutations: list[Mutation], processes: int, warm_up: str) -> None:
        self._mutations = mutations
        self._processes = processes
        self._warm_up = warm_up
        self._results = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """A failure is enough: Hypothesis need not look for a smaller one."""
        if find_spec("hypothesis") is not None:
            from hypothesis import Phase, settings

            phases = (Phase.explicit, Phase.reuse, Phase.generate)
            settings.register_profile("mutants", settings(), phases=phases, database=None)
            settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest when the tests are collected."""
        if session.testsfailed:
            raise pytest.UsageError("errors while the tests were collected")
        exec(self._warm_up, {})  # the author of targets.toml is one of ours
        gc.collect()
        gc.freeze()
        tests = self._observe(session)
        for mutation, trial in self._try_all(tests):
            result = {"mutant": mutation.name, "outcome": "unreached"}
            if trial is not None:
                result["outcome"] = "survives" if trial.passes else "hangs" if trial.hangs else "noticed"
                result["test"] = "" if trial.passes else trial.noticed_by.nodeid
            print(json.dumps(result), file=self._results, flush=True)
        return True

    def _observe(self, session: pytest.Session) -> list[Test]:
        """All tests, the quickest first. Earlier observations are valid while the test and the modules are
        unchanged."""
        files = sorted({mutation.file for mutation in self._mutations})
        seen = json.loads(OBSERVED.read_text()) if OBSERVED.exists() else {}
        keys = {item: _key(item, files) for item in session.items}
        failures = {item: "" for item in session.items if keys[item] not in seen}
        for _ in range(2):  # one that failed because the machine was busy is tried again
            for trial in self._run([self._observation(item, files) for item in failures]):
                (item,), told = trial.tests, trial.told()
                if trial.passes and told:
                    seen[keys[item]] = told
                    del failures[item]
                else:
                    failures[item] = told.get("failure", "")
        OBSERVED.write_text(json.dumps({key: seen[key] for key in keys.values() if key in seen}))
        if failures:
            said = (f"{item.nodeid} fails without any mutant:\n{text}" for item, text in failures.items())
            raise pytest.UsageError("\n".join(said))
        tests = []
        for item, key in keys.items():
            lines = {file: set(numbers) for file, numbers in seen[key]["lines"].items()}
            tests.append(Test(item, lines, seen[key]["starts"], seen[key]["seconds"]))
        return sorted(tests, key=lambda test: test.seconds)

    @staticmethod
    def _observation(item: pytest.Item, files: list[str]) -> Callable[[], Trial]:
        return lambda: Trial("", [item], [COLLECTION], files)

    def _try_all(self, tests: list[Test]) -> Iterator[tuple[Mutation, Trial | None]]:
        """Each mutation and its trial, unless no test reaches it."""
        chosen = {mutation.name: (mutation, _choose(tests, mutation)) for mutation in self._mutations}
        starts = []
        for mutation, able in chosen.values():
            if able:
                items, limits = [test.item for test in able], [test.limit for test in able]
                starts.append(lambda name=mutation.name, items=items, limits=limits: Trial(name, items, limits))
            else:
                yield mutation, None
        for trial in self._run(starts):
            yield chosen[trial.mutant][0], trial

    def _run(self, starts: Iterable[Callable[[], Trial]]) -> Iterator[Trial]:
        """The results of *starts*, a few at a time, as each ends."""
        waiting, running, more = iter(starts), list[Trial](), True
        while more or running:
            while more and len(running) < self._processes:
                start = next(waiting, None)
                if start is None:
                    more = False
                else:
                    running.append(start())
            for trial in [trial for trial in running if trial.is_over()]:
                running.remove(trial)
                yield trial
            time.sleep(PAUSE)


def _key(item: pytest.Item, files: list[str]) -> str:
    """A digest of the test's module and of the code that it tests."""
    contents = (Path(file).read_bytes() for file in (*files, item.path))
    return " ".join([item.nodeid, *(hashlib.sha256(content).hexdigest() for content in contents)])


def _choose(tests: list[Test], mutation: Mutation) -> list[Test]:
    """The tests that may detect *mutation*, in the order in which they are run."""
    reaching = [test for test in tests if mutation.is_reached(test.lines[mutation.file])]
    return reaching + [test for test in tests if test.starts and test not in reaching]


def main() -> int:
    """See above."""
    processes, warm_up, *arguments = sys.argv[1:]
    names = json.load(sys.stdin)
    wanted, modules = set(names), dict.fromkeys(name.rpartition(".")[0] for name in names)
    source = Path.cwd() / "src"
    os.environ["PYTHONPATH"] = str(source)
    mutations = [
        mutation
        for module in modules
        for mutation in read_mutations(source / f"{module.replace('.', '/')}.py", module)
        if mutation.name in wanted
    ]
    runner = Runner(mutations, int(processes), warm_up)
    return int(
        pytest.main(["-q", "-s", "--tb=native", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments], [runner])
    )


if __name__ == "__main__":
    sys.exit(main())
