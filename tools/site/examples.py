"""The pages of the examples: a gallery with the pictures that they drew, and the notebooks with their results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GALLERY = "examples/gallery.md"
"""The gallery's page."""

DEMO = "examples/index.html"
"""Where the page of ``examples/demo.py`` is on the site, if it was made."""

MADE = (
    "The pictures are what they drew when this site was built. There is also "
    "<a href='index.html'>a page with what each of them printed, and how long it took</a>; `nox -s demo` makes it on "
    "your machine."
)
NOT_SHOWN = ("demo",)
FIRST = ("ray_tracer", "mandelbrot", "heat_equation", "n_body")
"""The examples that the gallery begins with."""

PICTURES = (".gif", ".png")


def gallery(drawn: Path | None) -> str:
    """The gallery, with links as they are in the folder of the examples.

    *drawn* is the folder that ``examples/demo.py`` wrote its page and pictures to.
    """
    shown = sorted(programs(), key=lambda path: (path.stem not in FIRST, picture(path, drawn) is None))
    return "\n\n".join(
        [
            "# Examples",
            "Each is a program that checks what it has computed, and takes `--size` and `--device`; those that draw "
            f"take `--output`. {'' if drawn is None else MADE}",
            "## Notebooks",
            "With their results, as they came out when they were run:",
            "\n".join(f"- [{heading(path)}](notebooks/{path.name})" for path in notebook_paths()),
            "## Programs",
            ":::::{container} gallery",
            *(card(path, picture(path, drawn)) for path in shown),
            ":::::",
            "## Several processes",
            "[One plate in several processes](distributed/heat.py), which exchange its edges.",
            "```{toctree}\n:hidden:",
            "\n".join(f"notebooks/{path.stem}" for path in notebook_paths()),
            "```\n",
        ]
    )


def programs() -> Iterator[Path]:
    """The examples that are programs by themselves."""
    return (path for path in sorted(EXAMPLES.glob("*.py")) if path.stem not in NOT_SHOWN)


def picture(program: Path, drawn: Path | None) -> Path | None:
    """The picture that an example drew, if it drew one."""
    if drawn is None:
        return None
    found = (drawn / f"{program.stem}{suffix}" for suffix in PICTURES)
    return next((path for path in found if path.is_file()), None)


def card(program: Path, drawn: Path | None) -> str:
    """One example: its name, what it is for, and its picture."""
    title = program.stem.replace("_", " ").capitalize()
    about = program.read_text(encoding="utf-8").split('"""')[1].partition("\n")[0]
    image = f"[![{title}](pictures/{drawn.name})]({program.name})\n\n" if drawn is not None else ""
    return f"::::{{container}} card\n{image}[**{title}**]({program.name})\n\n{about}\n::::"


def pictures(drawn: Path | None) -> Iterator[tuple[str, bytes]]:
    """Each picture's path on the site, and its bytes."""
    for program in programs():
        found = picture(program, drawn)
        if found is not None:
            yield f"examples/pictures/{found.name}", found.read_bytes()


def notebook_paths() -> list[Path]:
    """The notebooks, as they are in the repository: with their results."""
    return sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


def heading(path: Path) -> str:
    """The heading of a notebook."""
    first = nbformat.read(path, nbformat.NO_CONVERT).cells[0].source
    return str(first.partition("\n")[0].removeprefix("# "))


def notebook_pages() -> Iterator[tuple[str, str | bytes]]:
    """For each notebook its page on the site and the text of it; and its pictures."""
    for path in notebook_paths():
        exporter = MarkdownExporter()
        folder = {"output_files_dir": f"{path.stem}_pictures", "unique_key": path.stem}
        text, found = exporter.from_notebook_node(nbformat.read(path, nbformat.NO_CONVERT), folder)
        source = f"Its program: [{path.stem}.py]({path.stem}.py), which `python -m tools.notebooks` runs.\n"
        yield f"examples/notebooks/{path.stem}.md", f"{text.rstrip()}\n\n{source}"
        for name, data in found["outputs"].items():
            yield f"examples/notebooks/{name}", data
