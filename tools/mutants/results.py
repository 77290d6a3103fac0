"""What became of mutants, in a file that grows with each that is tried."""

from __future__ import annotations

import json
from pathlib import Path

SURVIVES = ("survives", "unreached")
"""What becomes of a mutant that no test notices."""


class Results:
    """The file *path*, as long as what is mutated has this *digest*: a line of JSON for each mutant."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self._digest = digest

    def begin(self, *, more: bool) -> None:
        """Forget what became of mutants earlier, unless there is to be *more* of the same."""
        if not (more and self.outcomes()):
            self.path.write_text(f"{self._digest}\n")

    def outcomes(self) -> dict[str, str]:
        """What became of each mutant that was tried, by its name."""
        try:
            head, *lines = self.path.read_text().splitlines()
        except (FileNotFoundError, ValueError):
            return {}
        results = [json.loads(line) for line in lines if line.endswith("}")] if head == self._digest else []
        return {result["mutant"]: result["outcome"] for result in results}

    def add(self, mutant: str, outcome: str) -> None:
        """Write down what became of *mutant*."""
        with self.path.open("a") as file:
            print(json.dumps({"mutant": mutant, "outcome": outcome}), file=file)
