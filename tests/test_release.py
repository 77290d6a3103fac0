"""What is built to be published has links that work away from the repository."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tools.stage_packages import (
    PACKAGES,
    ROOT,
    StagingError,
    describe_links,
    make_links_absolute,
    read_version,
)

LINK = re.compile(r"\]\(([^)#\s]+)")
FILES = "https://example.org/me/it/blob/a-tag"


@pytest.mark.parametrize("package", PACKAGES)
def test_links_of_a_readme_lead_to_files_of_the_release(package: str) -> None:
    text = (ROOT / "packages" / package / "README.md").read_text()
    staged = make_links_absolute(text, f"packages/{package}", FILES)
    assert len(staged.splitlines()) == len(text.splitlines())
    for found in LINK.finditer(re.sub(r"```.*?```", "", staged, flags=re.DOTALL)):
        assert "://" in found[1]
        if found[1].startswith(FILES):
            assert (ROOT / found[1].removeprefix(f"{FILES}/")).exists()


def test_code_and_other_links_stay() -> None:
    code = "```python\nrun[1, 2](../../x)\n```\n"
    text = "[a](../../README.md#two-commands), [b](https://there/x), [c](#here)\n"
    assert make_links_absolute(text + code + "[d](.)\n", "packages/hip-runtime", FILES) == (
        f"[a]({FILES}/README.md#two-commands), [b](https://there/x), [c](#here)\n{code}"
        f"[d]({FILES}/packages/hip-runtime)\n"
    )
    with pytest.raises(StagingError, match="link to nowhere.md"):
        make_links_absolute("[a](nowhere.md)", "packages/hip-runtime", FILES)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_version_is_that_of_the_module(package: str) -> None:
    folder = ROOT / "packages" / package
    (path,) = folder.glob("src/*/py.typed")
    assert read_version(folder) == import_module(path.parent.name).__version__


def test_the_links_of_a_project() -> None:
    lines = describe_links("https://example.org/me/it", f"{FILES}/CHANGELOG.md").splitlines()
    assert lines[:2] == ["", "[project.urls]"]
    names = {"Homepage", "Documentation", "Repository", "Issues", "Changelog"}
    assert {line.partition(" ")[0] for line in lines[2:]} == names
    assert all(re.fullmatch(r'\w+ = "https://example\.org/[^" ]+"', line) for line in lines[2:])
