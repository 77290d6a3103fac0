"""The pages of the built site: their links lead somewhere in it, and nothing in them has to be fetched."""

from __future__ import annotations

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(os.environ.get("SITE", "no-site-was-built"))
if not SITE.is_dir():
    pytest.skip("SITE does not name a built site: nox -s docs", allow_module_level=True)
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that a browser fetches something for, and the attribute that says what."""


class Parsed(HTMLParser):
    """The links of a page, what is fetched for it, and the places in it that links can name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attributes if value is not None}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if FETCHED.get(tag) in given and given[FETCHED[tag]] != "#":  # a page that says what it is itself
            self.fetched.append(given[FETCHED[tag]])


@cache
def parsed(page: Path) -> Parsed:
    return Parsed(page.read_text())


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    here = SITE / page
    for link in parsed(here).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        there = (here.parent / unquote(parts.path)).resolve() if parts.path else here
        assert there.is_file(), f"{page} links to {link}"
        if parts.fragment and there.suffix == ".html":
            assert unquote(parts.fragment) in parsed(there).places, f"{page} links to {link}"


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_fetched_from_elsewhere(page: str) -> None:
    here = SITE / page
    for address in parsed(here).fetched:
        parts = urlsplit(address)
        if parts.scheme == "data":  # it is in the page itself
            continue
        assert not parts.scheme and not parts.netloc, f"{page} fetches {address}"  # noqa: PT018
        assert (here.parent / unquote(parts.path)).is_file(), f"{page} fetches {address}"


def test_style_sheets_fetch_nothing() -> None:
    for sheet in SITE.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet
