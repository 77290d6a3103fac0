"""Sessions of nox: each is documented, and tried once a week."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def sessions() -> set[str]:
    """The names of the functions that noxfile.py makes sessions."""
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    marked = {one.name: " ".join(map(ast.unparse, one.decorator_list)) for one in functions}
    return {name for name, decorators in marked.items() if "nox.session" in decorators}


def test_each_session_is_tried_once_a_week() -> None:
    listed = (ROOT / ".ci" / "weekly").read_text().split('sessions="', 1)[1].split('"', 1)[0]
    assert {line.split()[0] for line in listed.split("\n") if line} == sessions()


def test_each_session_is_in_the_table_for_contributors() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)) == sessions()
