"""The repository's documents in a folder for Sphinx, with their links leading to pages of the site.

In the repository a page may link to any file and folder. On the site each such file is a page with its text, and each
folder one with the names in it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.site import examples, generated, numbers
from tools.site.generated import PACKAGES

ROOT = Path(__file__).parents[2]

DOCUMENTS = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
    **{f"packages/{name}/README.md": f"packages/{name}.md" for name in PACKAGES},
    **{f"packages/{name}/CHANGELOG.md": f"packages/{name}-changes.md" for name in PACKAGES},
}
"""Documents outside of ``docs``, and the pages that they become."""

FOLDERS = {"examples": examples.GALLERY, "examples/notebooks": examples.GALLERY}
"""Folders that have a page of their own, which is more than a list of their files."""

LISTS = ("docs/design/index.md",)
"""Documents that list pages which no table of contents has otherwise."""

FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1`*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")
PICTURES = (".svg", ".png")
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".hip": "cuda", ".cpp": "cpp", ".cl": "c", ".sh": "sh"}
SKIPPED = ("__pycache__", ".egg-info")


class Staging:
    """A folder for Sphinx that is being filled."""

    def __init__(self, folder: Path, drawn: Path | None = None) -> None:
        self.folder = folder
        self.drawn = drawn  # the folder with the pictures of the examples
        self.sources: set[str] = set()  # files and folders of the repository that have to become pages

    def fill(self) -> None:
        """Write all pages. What was in the folder before is gone."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for path, page in self.documents():
            text = self.relinked((ROOT / path).read_text(), path, page)
            self.write(page, text + contents(text) if path in LISTS else text)
        shutil.copytree(ROOT / "docs" / "_static", self.folder / "_static")
        for page, text in generated.pages().items():
            self.write(page, text)
        text, path = numbers.executed()
        self.write("numbers/executed.md", self.relinked(text, path, "numbers/executed.md"))
        self.write_examples()
        self.write_sources()

    def documents(self) -> Iterator[tuple[str, str]]:
        """Each document's path in the repository and on the site."""
        yield from DOCUMENTS.items()
        for path in sorted((ROOT / "docs").rglob("*.md")):
            yield str(path.relative_to(ROOT)), str(path.relative_to(ROOT / "docs"))

    def write(self, page: str, text: str | bytes) -> None:
        """Write *text* to *page*, a path on the site."""
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def relinked(self, text: str, path: str, page: str) -> str:
        """*text*, the document at *path*, with links as they have to be on *page*. Code in fences stays as it is."""

        def relink(match: re.Match[str]) -> str:
            before, target, anchor, after = match.groups()
            return before + self.target(target, path, page) + (anchor or "") + after

        done, parts = 0, []
        for fence in FENCE.finditer(text):
            parts += [LINK.sub(relink, text[done : fence.start()]), fence[0]]
            done = fence.end()
        return "".join([*parts, LINK.sub(relink, text[done:])])

    def target(self, target: str, path: str, page: str) -> str:
        """Where the link *target* of the document at *path* leads from *page*; as it is if it leads nowhere, which
        Sphinx reports."""
        found = (ROOT / path).parent / target
        if not found.exists():
            return target
        there = str(found.resolve().relative_to(ROOT))
        if found.is_dir():
            index = next((f"{there}/{name}" for name in ("README.md", "index.md") if (found / name).exists()), None)
            there = index or there
        return os.path.relpath(self.page_of(there), Path(page).parent)

    def page_of(self, path: str) -> str:
        """The page on the site of a file or folder of the repository, which is made if there is none yet."""
        if path in DOCUMENTS:
            return DOCUMENTS[path]
        if path in FOLDERS:
            return FOLDERS[path]
        if path.endswith(".ipynb"):
            return path.replace(".ipynb", ".md")
        if path.startswith("docs/") and path.endswith(".md"):
            return path.removeprefix("docs/")
        if path.endswith(PICTURES):
            picture = f"pictures/{Path(path).name}"
            self.write(picture, (ROOT / path).read_bytes())
            return picture
        self.sources.add(path)
        return source_page(path)

    def write_examples(self) -> None:
        """The gallery, the notebooks, and their pictures."""
        gallery = examples.gallery(self.drawn)
        self.write(examples.GALLERY, self.relinked(gallery, examples.GALLERY, examples.GALLERY))
        for page, text in examples.notebook_pages():
            self.write(page, self.relinked(text, page, page) if isinstance(text, str) else text)
        for page, data in examples.pictures(self.drawn):
            self.write(page, data)

    def write_sources(self) -> None:
        """The pages of the files and folders that documents link to, and of the folders' files."""
        for path in sorted(self.sources):
            self.write(source_page(path), listing(path) if (ROOT / path).is_dir() else source(path))
        links = "\n".join(sorted(source_page(path).removesuffix(".md") for path in self.sources))
        entries = links.replace("source/", "")
        self.write(
            "source/index.md", f"# Files that pages refer to\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
        )


def contents(text: str) -> str:
    """A table of contents for Sphinx, which shows nothing, of the pages that *text* links to in its own folder."""
    pages = dict.fromkeys(match[2] for match in LINK.finditer(text) if re.fullmatch(r"[\w-]+\.md", match[2]))
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def source_page(path: str) -> str:
    """The page of the file or folder *path*: dots that begin names would hide it."""
    return f"source/{path.lstrip('.')}.md"


def source(path: str) -> str:
    """The page of a file: its text."""
    text = (ROOT / path).read_text()
    fence = "`" * (max(map(len, re.findall("`+", text)), default=2) + 1)
    fence = max(fence, "```", key=len)
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"---\norphan: true\n---\n# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def listing(path: str) -> str:
    """The page of a folder: the files in it, with the first line of what they say about themselves."""
    names = sorted(one for one in (ROOT / path).iterdir() if not one.name.endswith(SKIPPED))
    lines = "\n".join(f"| `{one.name}{'/' if one.is_dir() else ''}` | {about(one)} |" for one in names)
    return f"---\norphan: true\n---\n# {path}\n\n| name | what it is |\n| --- | --- |\n{lines}\n"


def about(path: Path) -> str:
    """The first line of a Python file's docstring; of a package's, if *path* is one."""
    path = path / "__init__.py" if path.is_dir() else path
    if path.suffix != ".py" or not path.exists():
        return ""
    found = re.match(r'(?:#![^\n]*\n)?"""(.*?)(?:"""|\n\n)', path.read_text(), re.DOTALL)
    return " ".join(found[1].split()).replace("|", r"\|").replace("``", "`") if found else ""
