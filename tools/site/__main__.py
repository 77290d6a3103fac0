"""``python -m tools.site FOLDER``: build the site in *FOLDER*, and print the path of its first page.

``--examples DRAWN`` adds what ``examples/demo.py --output DRAWN`` wrote: the pictures of the examples, and their page.

A warning of Sphinx's, such as a link that leads nowhere, makes it fail.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from sphinx.cmd.build import main as build_with_sphinx

from tools.site.examples import DEMO
from tools.site.staging import ROOT, Staging


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="Build the documentation as a site.")
    parser.add_argument("folder", type=Path, help="the folder for the pages; what is in it is replaced")
    parser.add_argument("--examples", type=Path, metavar="DRAWN", help="the folder that examples/demo.py wrote to")
    given = parser.parse_args()
    folder, drawn = given.folder.resolve(), given.examples
    if drawn is not None and not (drawn / "index.html").is_file():
        parser.error(f"--examples {drawn}: there is no index.html; examples/demo.py --output {drawn} makes it")
    staged, html = folder / "source", folder / "html"
    Staging(staged, drawn).fill()
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet", "-b", "html", "-c", str(ROOT / "docs")]
    status = build_with_sphinx([*options, "-d", str(folder / "doctrees"), str(staged), str(html)])
    if status == 0:
        if drawn is not None:
            shutil.copy(drawn / "index.html", html / DEMO)
        print(html / "index.html")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
