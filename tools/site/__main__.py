"""``python -m tools.site FOLDER``: build the site in *FOLDER*, and print the path of its first page.

A warning of Sphinx's, such as a link that leads nowhere, makes it fail.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sphinx.cmd.build import main as build_with_sphinx

from tools.site.staging import ROOT, Staging


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="Build the documentation as a site.")
    parser.add_argument("folder", type=Path, help="the folder for the pages; what is in it is replaced")
    folder = parser.parse_args().folder.resolve()
    staged, html = folder / "source", folder / "html"
    Staging(staged).fill()
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet", "-b", "html", "-c", str(ROOT / "docs")]
    status = build_with_sphinx([*options, "-d", str(folder / "doctrees"), str(staged), str(html)])
    if status == 0:
        print(html / "index.html")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
