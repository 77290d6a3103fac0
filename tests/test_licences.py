"""The page on licences names everything that is shipped and needed."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guide" / "licences.md").read_text()
PACKAGES = sorted(path for path in (ROOT / "packages").iterdir() if (path / "pyproject.toml").exists())
NOT_FOR_USERS = {"test"}
OLD_NAMES = {"BSD": "BSD-", "Apache License 2.0": "Apache-2.0", "Apache 2.0": "Apache-2.0"}
"""What packages say that do not use the identifiers of SPDX, and what the page then has."""


def listed() -> set[str]:
    """The packages in the page's tables."""
    rows = re.findall(r"^\| ([a-z0-9, -]+) \|", PAGE, re.MULTILINE)
    return {name.strip() for row in rows for name in row.split(",")} - {"package", "file", "---"}


def needed() -> set[str]:
    """The packages that ours need, with any of their extras for users."""
    texts = []
    for package in PACKAGES:
        project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
        texts += project["dependencies"]
        for extra, of_extra in project.get("optional-dependencies", {}).items():
            texts += of_extra if extra not in NOT_FOR_USERS else []
    return {Requirement(text).name for text in texts} - {package.name for package in PACKAGES}


def test_every_package_that_is_needed_is_listed() -> None:
    assert needed() | {"ziglang"} == listed()


def licences() -> dict[str, str]:
    """The licence of each package that the page's tables list."""
    rows = re.findall(r"^\| ([a-z0-9, -]+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    return {name.strip(): licence for names, licence in rows for name in names.split(",")}


@pytest.mark.parametrize("name", sorted(listed()))
def test_a_package_says_of_itself_what_the_page_says(name: str) -> None:
    try:
        about = metadata(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    said = about["License-Expression"] or about["License"]
    for one in re.split(r" AND | WITH ", said):
        assert OLD_NAMES.get(one, one) in licences()[name]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_each_package_ships_the_licence_and_nothing_unnamed(package: Path) -> None:
    assert (package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("MIT", ["LICENSE"])
    for path in (package / "src").rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc", ".typed"):
            assert f"`{path.relative_to(package / 'src')}`" in PAGE, f"{path} is shipped, and not written by hand"
