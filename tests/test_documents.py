"""The code in the guide and in the READMEs runs, and prints what is said to come out.

The Python blocks of a page are one program, run from top to bottom; a ``text`` block right after one is its output.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "packages").glob("*/README.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "CONTRIBUTING.md",
]
NEEDS_ROCM = {ROOT / "packages" / "hip-devicelib" / "README.md"}
"""Pages whose last blocks need a ROCm; what comes before runs everywhere."""

LONG = {"algorithms.md", "blocks.md"}
"""Names of pages with many kernels, which the default run leaves out."""

QUIET = {"NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0", "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY": "0"}
"""Variables of Numba CUDA's that turn its advice on performance off, which is given while posing: pages are small."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


@dataclass(frozen=True)
class Block:
    """A piece of Python: its first line in the page, and what it is said to print (None if nothing is said)."""

    line: int
    code: str
    output: str | None


def python_blocks(text: str) -> list[Block]:
    """The Python blocks of a page."""
    fences = list(FENCE.finditer(text))
    blocks = []
    for fence, following in zip_longest(fences, fences[1:]):
        if fence[1] != "python":
            continue
        output = None
        if following is not None and following[1] == "text" and not text[fence.end() : following.start()].strip():
            output = following[2]
        blocks.append(Block(text.count("\n", 0, fence.start(2)) + 1, fence[2], output))
    return blocks


def run_page(page: Path) -> None:
    """Run the blocks of *page* as one program and compare what each prints. Errors are shown at their line of it."""
    names = {"__name__": "__main__"}
    for block in python_blocks(page.read_text()):
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if block.output is not None:
            assert printed.getvalue() == block.output, f"{page}, line {block.line}: {printed.getvalue()!r}"


def identify(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages_with_code() -> list[Any]:
    pages = [page for page in PAGES if python_blocks(page.read_text())]
    return [pytest.param(page, marks=pytest.mark.long) if page.name in LONG else page for page in pages]


@pytest.mark.sample(1)
@pytest.mark.parametrize("page", pages_with_code(), ids=identify)
def test_the_code_of_a_page_runs(page: Path) -> None:
    # A process of its own: a page may choose a device or pose as CUDA.
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_documents, pathlib; "
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code} test_documents.run_page(pathlib.Path({str(page)!r}))"],
        capture_output=True,
        text=True,
        env={"NUMBA_HIP_DEVICE": "cpu", **QUIET, **os.environ},
    )
    lines = result.stderr.splitlines()
    if page in NEEDS_ROCM and result.returncode and lines[-1].startswith("hip_devicelib.errors.NotFoundError:"):
        pytest.skip(lines[-1])
    assert result.returncode == 0, result.stderr


LINKED = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs" / "design").glob("*.md"))]
CPU_DEVICE = ROOT / "packages" / "hip-runtime" / "src" / "hip_runtime" / "drivers" / "cpu"


@pytest.mark.parametrize("page", LINKED, ids=identify)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page} links to {target}"


def test_the_map_has_every_room_of_the_cpu_device() -> None:
    named = set(re.findall(r"`(\w+/|\w+\.py)`", (ROOT / "ARCHITECTURE.md").read_text()))
    assert all((CPU_DEVICE / name).exists() for name in named)
    assert named >= {f"{path.name}/" for path in CPU_DEVICE.iterdir() if (path / "__init__.py").exists()}


def test_every_design_note_is_listed() -> None:
    folder = ROOT / "docs" / "design"
    listed = set(LINK.findall((folder / "index.md").read_text()))
    assert {path.name for path in folder.glob("*.md")} - {"index.md"} <= listed


def test_a_page_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\ntext\n```python\nprint(x)\n```\n```text\n1\n```\n```sh\nrm x\n```\n")
    assert python_blocks(page.read_text()) == [Block(2, "x = 1\n", None), Block(6, "print(x)\n", "1\n")]
    run_page(page)
    page.write_text("```python\nprint(2)\n```\n```text\n1\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md, line 2"):
        run_page(page)
    page.write_text("# Title\n\n```python\nundefined\n```\n")
    with pytest.raises(NameError) as caught:
        run_page(page)
    assert caught.traceback[-1].path == page
    assert caught.traceback[-1].lineno == 3, "counted from 0"
