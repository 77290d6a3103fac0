"""``python -m tools.supported``: write the page docs/guide/supported.md."""

from __future__ import annotations

from pathlib import Path

from tools.supported import arrays, functions, language, refused
from tools.supported.model import ROWS, Row

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "supported.md"
MODULES = (language, arrays, functions, refused)
"""Modules whose rows the page has; importing them collects those."""

FIRST = ("Statements", "Expressions", "Functions", "Builtins", "Types", "Arrays")
"""The sections that the page begins with."""

HEAD = """\
# Python and NumPy in kernels

What kernels and device functions may say. Each row is a kernel that the tests compile and run on the CPU device,
compare with what Python computes, and compile for gfx942; `python -m tools.supported` writes this page from them.
What [kernels have of their own](kernels.md), `hip.grid`, shared memory and so on, is on other pages.
"""


def page() -> str:
    """The text of the page."""
    sections: dict[str, list[Row]] = {title: [] for title in FIRST}
    for one in ROWS:
        sections.setdefault(one.section, []).append(one)
    return HEAD + "".join(f"\n## {title}\n\n{table(rows)}" for title, rows in sections.items())


def table(rows: list[Row]) -> str:
    """The rows of a section: a list of names where they are only names, and what there is instead where refused."""
    if rows[0].refused:
        lines = [f"| {one.what} | {one.instead} |" for one in rows]
        return "\n".join(["| not in kernels | instead |", "| --- | --- |", *lines]) + "\n"
    names = [f"`{one.what.strip('`')}`" for one in rows if is_name(one)]
    others = "".join(f"- {one.what}\n" for one in rows if not is_name(one))
    return "\n".join(filter(None, [_wrapped(names) if names else "", others]))


def is_name(one: Row) -> bool:
    """Whether a row is the name of a function alone, such as ``math.sin``."""
    return "." in one.what and " " not in one.what


def _wrapped(names: list[str]) -> str:
    """Names in lines of at most 120 characters."""
    lines = [""]
    for name in names:
        piece = f"{name}, "
        if len(lines[-1]) + len(piece) > 120:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines).removesuffix(",") + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
