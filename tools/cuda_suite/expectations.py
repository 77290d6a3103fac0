"""The lists of tests that are not expected to pass, in sections with reasons.

A list is a text file. ``[name] reason`` begins a section. ``match: words`` lines below it are parts of error messages
by which `assign` finds the section of a new failure. Then come modules: alone, for all of their tests, or followed by
indented ids of tests in them, in which ``*`` stands for anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tools.cuda_suite.suites import SUITES, chosen


class ListError(ValueError):
    """A line of a list that cannot be parsed."""


@dataclass
class Section:
    """A cause, and the tests with it: ids, or patterns of ids."""

    name: str
    reason: str
    matches: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)


def read(name: str) -> list[Section]:
    """The sections of the chosen suite's list *name*, ``not_applicable`` or ``known_failures``.

    Tests that do not apply in the suite that this one has a copy of do not apply in the copy either.
    """
    suite = chosen()
    sections = read_file(suite.expected / f"{name}.txt")
    if name == "not_applicable" and suite.copied is not None:
        folder, original = suite.copied
        for section in read_file(SUITES[original].expected / f"{name}.txt"):
            section.entries = [f"{folder}/{entry}" for entry in section.entries]
            sections.append(section)
    return sections


def read_file(path: Path) -> list[Section]:
    """The sections of the list in the file *path*."""
    sections: list[Section] = []
    module, alone = "", False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        heading = re.fullmatch(r"\[([\w -]+)\] (.+)", text)
        if heading:
            _close(sections, module, alone)
            sections.append(Section(heading[1], heading[2]))
            module, alone = "", False
        elif not sections or (line[0] == " " and not module):
            raise ListError(f"{path}, line {number}: expected a section or a module before {text!r}")
        elif text.startswith("match: "):
            sections[-1].matches.append(text.removeprefix("match: "))
        elif line[0] == " ":
            sections[-1].entries.append(f"{module}::{text}")
            alone = False
        else:
            _close(sections, module, alone)
            module, alone = text, True
    _close(sections, module, alone)
    return sections


def _close(sections: list[Section], module: str, alone: bool) -> None:
    """A module without tests after it stands for all of its tests."""
    if alone:
        sections[-1].entries.append(module)


class Index:
    """Finds the section of a test quickly."""

    def __init__(self, sections: Iterable[Section]) -> None:
        self._exact: dict[str, Section] = {}
        self._patterns: list[tuple[re.Pattern[str], Section]] = []
        for section in sections:
            for entry in section.entries:
                if "*" in entry:
                    pattern = ".*".join(map(re.escape, entry.split("*")))
                    self._patterns.append((re.compile(pattern + "(::.*)?"), section))
                else:
                    self._exact[entry] = section

    def find(self, test: str) -> Section | None:
        """The section that lists *test*, or its class or its module."""
        name = test
        while name:
            if name in self._exact:
                return self._exact[name]
            name = name.rpartition("::")[0]
        return next((section for pattern, section in self._patterns if pattern.fullmatch(test)), None)


def assign(sections: list[Section], message: str) -> Section:
    """The first of *sections* for an error with *message*; the last one takes all others."""
    for section in sections:
        if any(words in message for words in section.matches):
            return section
    return sections[-1]


def write(name: str, sections: list[Section]) -> None:
    """Write the chosen suite's list *name*, sorted; the lines at its top that are comments stay."""
    path = chosen().expected / f"{name}.txt"
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line)
    for section in sections:
        lines += ["", f"[{section.name}] {section.reason}", *(f"match: {words}" for words in section.matches)]
        module = ""
        for entry in sorted(set(section.entries)):
            file, separator, test = entry.partition("::")
            if file != module or not separator:
                lines.append(file)
                module = file
            if separator:
                lines.append(f"    {test}")
    path.write_text("\n".join(lines) + "\n")
