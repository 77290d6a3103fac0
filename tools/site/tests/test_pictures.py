"""The drawings in the repository are those that the tool makes."""

import xml.etree.ElementTree as ElementTree

import pytest

from tools.site.pictures import FOLDER, PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_a_drawing_is_current(name: str) -> None:
    text = PICTURES[name]()
    assert (FOLDER / name).read_text(encoding="utf-8") == text, "python -m tools.site.pictures"
    assert ElementTree.fromstring(text).get("aria-label")
