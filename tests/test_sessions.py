"""Sessions of nox: each is documented, and tried once a week."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools.session_requirements import PACKAGES, hip_python_extra, lowest_versions

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


def test_the_hip_python_of_a_rocm_is_the_newest_that_is_not_newer() -> None:
    assert [hip_python_extra(rocm) for rocm in ("6.4.3-127", "6.4.9", "5.7.1")] == [
        "rocm_6_4_3",
        "rocm_6_4_4",
        "rocm_6_1_2",
    ]
    assert hip_python_extra("") == hip_python_extra("99.0")


def test_the_lowest_versions_are_exact_and_of_others() -> None:
    lowest = lowest_versions()
    assert all("==" in one for one in lowest)
    assert not [one for one in lowest if one.startswith(PACKAGES)]
