"""The gallery shows every example, and the pages of notebooks have what came out of their cells."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("nbconvert", reason="nbconvert, which reads notebooks, is not installed")
from tools.site import examples

SMALLEST = b"\x89PNG"


def test_the_gallery_has_every_program_and_the_pictures_that_were_drawn(tmp_path: Path) -> None:
    (tmp_path / "n_body.png").write_bytes(SMALLEST)
    page = examples.gallery(tmp_path)
    for program in examples.EXAMPLES.glob("*.py"):
        assert (f"({program.name})\n" in page) == (program.stem != "demo")
    assert page.count("](pictures/") == 1
    assert dict(examples.pictures(tmp_path)) == {"examples/pictures/n_body.png": SMALLEST}
    assert page.index("n_body.py") < page.index("vector_add.py"), "those with pictures come first"


def test_without_pictures_the_gallery_names_none() -> None:
    page = examples.gallery(None)
    assert "pictures/" not in page
    assert "index.html" not in page


def test_each_notebook_is_a_page_with_its_results() -> None:
    pages = dict(examples.notebook_pages())
    for path in examples.notebook_paths():
        page = pages[f"examples/notebooks/{path.stem}.md"]
        assert isinstance(page, str)
        drawn = 0
        for cell in json.loads(path.read_text())["cells"]:
            assert "".join(cell["source"]).strip() in page
            for output in cell.get("outputs", ()):
                drawn += "image/png" in output.get("data", {})
                for line in output.get("text", ()):
                    assert line.strip() in page
        names = [name for name in pages if name.startswith(f"examples/notebooks/{path.stem}_pictures/")]
        assert len(names) == drawn
        for name in names:
            assert f"]({name.removeprefix('examples/notebooks/')})" in page
            assert bytes(pages[name]).startswith(SMALLEST)  # type: ignore[arg-type]


def test_the_pages_of_the_built_site(site: Path) -> None:
    gallery = (site / "examples" / "gallery.html").read_text()
    assert gallery.count("<img") >= 5
    assert 'href="notebooks/heat.html"' in gallery
    assert (site / "examples" / "index.html").read_text().count("<section") > 15
    assert "<img" in (site / "examples" / "notebooks" / "mandelbrot.html").read_text()


@pytest.fixture
def site() -> Path:
    """The built site."""
    if not Path(os.environ.get("SITE", "no-site-was-built")).is_dir():
        pytest.skip("SITE does not name a built site: nox -s docs")
    return Path(os.environ["SITE"])
