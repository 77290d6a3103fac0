"""Makes notebooks with their results from the programs in examples/notebooks.

python -m tools.notebooks            writes examples/notebooks/*.ipynb
python -m tools.notebooks --check    runs them, and fails if a text differs from what is written
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def make(source: Path) -> Any:
    """The notebook of one program, run from its first cell to its last."""
    notebook = jupytext.read(source)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.pop("metadata", None) if output.output_type == "stream" else output.update(metadata={})
    notebook.metadata.language_info = {"name": "python"}  # without the version of this Python
    return notebook


def texts(notebook: Any) -> list[str]:
    """What the cells say and what they printed; pictures are not compared, as each matplotlib draws its own."""
    found = []
    for cell in notebook.cells:
        found.append(cell.source)
        for output in cell.get("outputs", ()):
            pictured = "image/png" in output.get("data", {})
            found.append("a picture" if pictured else output.get("text") or output.data["text/plain"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check, different = parser.parse_args().check, []
    for source in sorted(FOLDER.glob("*.py")):
        notebook, path = make(source), source.with_suffix(".ipynb")
        if not check:
            nbformat.write(notebook, path)
        elif not path.is_file() or texts(notebook) != texts(nbformat.read(path, nbformat.NO_CONVERT)):
            different.append(path.name)
    if different:
        print(f"not as the programs and their results are now: {', '.join(different)}; run python -m tools.notebooks")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
