"""Copies of the packages for releases, with links that work outside of the repository.

    python tools/stage_packages.py FOLDER --repository https://github.com/OWNER/NAME

No file of the repository contains its address, as forks have other addresses. In each copy, pyproject.toml has the
project's links, and the README's links to files lead to the tag of the release. Only files that git tracks are copied.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hip-devicelib", "hip-runtime", "numba-hip-core", "numba-hip-cuda-compat")

_FENCE = "```"
_LINK = re.compile(r"(\[[^\]\n]*\]\()([^)\s]+)(\))")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


class StagingError(Exception):
    """A package that cannot be released."""


def stage(package: str, folder: Path, repository: str) -> Path:
    """Copy *package* to *folder*, with links to *repository*; returns the path of the copy."""
    source, copy = ROOT / "packages" / package, folder / package
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=source, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((source / name).read_bytes())
    files = f"{repository}/blob/{package}-v{read_version(source)}"
    readme = copy / "README.md"
    readme.write_text(make_links_absolute(readme.read_text(), f"packages/{package}", files))
    with (copy / "pyproject.toml").open("a") as project:
        project.write(describe_links(repository, f"{files}/packages/{package}/CHANGELOG.md"))
    return copy


def read_version(source: Path) -> str:
    """The version of the package in *source*."""
    (path,) = source.glob("src/*/py.typed")
    found = _VERSION.search((path.parent / "__init__.py").read_text())
    if found is None:
        raise StagingError(f"{path.parent}/__init__.py does not say its version")
    return found[1]


def describe_links(repository: str, changelog: str) -> str:
    """The table of links of a pyproject.toml."""
    links = {
        "Homepage": repository,
        "Documentation": f"{repository}/blob/HEAD/docs/guide/index.md",
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": changelog,
    }
    return "\n[project.urls]\n" + "".join(f'{name} = "{link}"\n' for name, link in links.items())


def make_links_absolute(text: str, folder: str, files: str) -> str:
    """*text*, a page in *folder* of the repository, with relative links replaced by links to files below *files*.

    Raises `StagingError` for a broken link.
    """

    def replace(found: re.Match[str]) -> str:
        path, hash_sign, place = found[2].partition("#")
        if not path or "://" in path:
            return found[0]
        target = os.path.normpath(f"{folder}/{path}")
        if not (ROOT / target).exists():
            raise StagingError(f"the README in {folder} has a link to {path}, which is not there")
        return f"{found[1]}{files}/{target}{hash_sign}{place}{found[3]}"

    pieces = text.split(_FENCE)  # every other piece is code
    return _FENCE.join(piece if number % 2 else _LINK.sub(replace, piece) for number, piece in enumerate(pieces))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the copies are put; it may not hold any yet")
    parser.add_argument("--repository", required=True, help="the address of the published repository")
    arguments = parser.parse_args()
    for package in PACKAGES:
        print(stage(package, arguments.folder, arguments.repository.rstrip("/")))


if __name__ == "__main__":
    main()
