"""Every page of the built site, in a browser without a window, as wide as a telephone and as a screen.

A page has no errors in its console, fetches nothing from elsewhere, has its heading and its pictures, and is no wider
than the window.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SITE = Path(os.environ.get("SITE", "no-site-was-built"))
if not SITE.is_dir():
    pytest.skip("SITE does not name a built site: nox -s docs", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright, which drives browsers, is not installed")

PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = (390, 1280)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        installed = next(filter(None, map(shutil.which, BROWSERS)), None)
        if installed is None and not Path(driver.chromium.executable_path).exists():
            pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)}, and none of playwright's own")
        opened = driver.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session", params=WIDTHS, ids=lambda width: f"width-{width}")
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="session")
def window(browser: Any, width: int) -> Iterator[Any]:
    """A window that goes from page to page, with the list of what went wrong in it as ``faults``."""
    with opened_window(browser, width) as window:
        yield window


@pytest.fixture
def own_window(browser: Any, width: int) -> Iterator[Any]:
    """A window for one page, which may have faults that come late: those of a search, which fetches what it found."""
    with opened_window(browser, width) as window:
        yield window


@contextmanager
def opened_window(browser: Any, width: int) -> Iterator[Any]:
    window = browser.new_page(viewport={"width": width, "height": 900})
    faults = window.faults = []
    window.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    window.on("pageerror", lambda error: faults.append(str(error)))
    window.on("requestfailed", lambda asked: faults.append(f"not there: {asked.url}"))
    window.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else faults.append(asked.url))
    yield window
    window.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_errors(window: Any, page: str) -> None:
    window.faults.clear()
    window.goto((SITE / page).as_uri())
    assert window.locator("h1").count() == (page != "search.html")
    unseen = "[...document.images].filter(one => one.offsetParent && !one.naturalWidth).map(one => one.src)"
    assert window.evaluate(unseen) == []
    assert window.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert window.faults == []


def test_a_fault_of_a_page_is_noticed(own_window: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1>Faulty</h1><script src='missing.js'></script><script>undefined_name()</script>")
    own_window.faults.clear()
    own_window.goto(page.as_uri())
    assert any("missing.js" in fault for fault in own_window.faults)
    assert any("undefined_name" in fault for fault in own_window.faults)


def test_the_search_finds_a_function(own_window: Any) -> None:
    own_window.goto(f"{(SITE / 'search.html').as_uri()}?q=syncthreads")
    own_window.locator("ul.search li").first.wait_for()
    assert own_window.locator("ul.search li").count() > 1
