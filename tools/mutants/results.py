"""The results of mutants, in a file to which each is appended."""

from __future__ import annotations

import json
from pathlib import Path

SURVIVES = ("survives", "unreached")
"""The result of a mutant that no test detects."""


class Results:
    """The file *path*, valid for mutated code with this *digest*: a line of JSON for each mutant."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self._digest = digest

    def begin(self, *, more: bool) -> None:
        """Forget earlier results, unless *more* of the same are added."""
        if not (more and self.outcomes()):
            self.path.write_text(f"{self._digest}\n")

    def outcomes(self) -> dict[str, str]:
        """The result of each mutant that was tried, by name."""
        try:
            head, *lines = self.path.read_text().splitlines()
        except (FileNotFoundError, ValueError):
            return {}
        results = [json.loads(line) for line in lines if line.endswith("}")] if head == self._digest else []
        return {result["mutant"]: result["outcome"] for result in results}

    def add(self, mutant: str, outcome: str) -> None:
        """Record the result of *mutant*."""
        with self.path.open("a") as file:
            print(json.dumps({"mutant": mutant, "outcome": outcome}), file=file)
