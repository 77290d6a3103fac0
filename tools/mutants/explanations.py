"""Changes that no test detects, with the reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

HERE = Path(__file__).parent

_NAMED = re.compile(r"\b(append_basic_block|allocate|GlobalVariable|_function)\(")
"""Calls that create something with a name in LLVM IR. Names that others look up are external."""

_ALLOCATED = re.compile(r'(\ballocate\(builder, [^"]*?, )"\w+"(?=\))')
"""Calls that need no name."""

LETTERS = "only the words of a message are others"
NAMES = "only a name in LLVM IR is another, by which nothing is looked for"
STRICT = "what is gone through together has been made as long before"


@dataclass(frozen=True)
class Change:
    """A change of the *function*: its lines before and after."""

    function: str
    before: str
    after: str

    def reason(self, explained: Sequence[dict[str, str]]) -> str:
        """Why no test needs to detect it; empty if it is not explained."""
        for entry in explained:
            if entry["function"] in self.function and entry["before"] in self.before and entry["after"] in self.after:
                return entry["why"]
        return _common_reason(self.before, self.after)

    def __str__(self) -> str:
        return f"{self.function}\n    - {self.before}\n    + {self.after}"


def read_table(name: str) -> dict[str, Any]:
    """The content of the TOML file *name* in this folder."""
    return tomllib.loads((HERE / name).read_text())


def explanations_of(target: str) -> list[dict[str, str]]:
    """The entries of ``explained.toml`` for *target*."""
    return list(read_table("explained.toml").get(target, []))


def _texts(line: str) -> set[str]:
    return set(re.findall(r'"([^"]*)"', line))


def _are_sentences(texts: set[str]) -> bool:
    """Whether *texts* are read by people: text that code compares is a single word."""
    return bool(texts) and all(" " in text for text in texts)


def _common_reason(before: str, after: str) -> str:
    """Reasons that hold for all changes of a kind."""
    if any(before[: found.end(1)] + before[found.end() :] == after for found in _ALLOCATED.finditer(before)):
        return NAMES
    if after.replace("XX", "").lower() == before.lower():
        if _are_sentences(_texts(before) - _texts(after)):
            return LETTERS
        if _NAMED.search(before) and '"external"' not in before:
            return NAMES
    if "strict=" in before and "strict=" not in after.replace("strict=None", "").replace("strict=False", "").replace(
        "strict=True", ""
    ):
        return STRICT
    return ""
