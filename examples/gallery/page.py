"""A page with what all examples have printed and drawn: one HTML file, which needs nothing else."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #777; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid var(--line); padding: 1.5rem 0; display: grid; gap: 0 2rem; }
section { grid-template-columns: 1fr; }
@media (min-width: 60rem) { section.drawn { grid-template-columns: 1fr 1fr; } }
h1, h2 { line-height: 1.2; } h2 { font-size: 1.2rem; margin: 0; }
p { margin: 0.5rem 0; } .took, footer { color: var(--quiet); font-size: 0.9rem; }
img { max-width: 100%; height: auto; border-radius: 4px; }
pre { overflow-x: auto; font-size: 0.8rem; line-height: 1.35; border: 1px solid var(--line); padding: 0.8rem; }
section > div { min-width: 0; } summary { cursor: pointer; }
"""

KINDS = {".png": "image/png", ".gif": "image/gif"}


@dataclass(frozen=True)
class Entry:
    """One example: what it printed, how long it took in seconds, its source, and its picture if it drew one."""

    source: Path
    line: str
    seconds: float
    picture: Path | None = None


def write_page(path: Path, heading: str, entries: Sequence[Entry]) -> None:
    """Write the page to *path*."""
    total = sum(entry.seconds for entry in entries)
    path.write_text(
        f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Examples of numba.hip</title><link rel="icon" href="data:,"><style>{STYLE}</style></head>
<body>
<h1>Examples of numba.hip</h1>
<p>{html.escape(heading)}</p>
{"".join(map(section, entries))}
<footer>{len(entries)} examples computed and checked in {total:.1f} s, compilation included.</footer>
</body>
</html>
""",
        encoding="utf-8",
    )


def section(entry: Entry) -> str:
    """One example as HTML."""
    text = entry.source.read_text(encoding="utf-8")
    purpose = text.split('"""')[1].partition("\n")[0].replace("``", "")
    picture = ""
    if entry.picture is not None:
        data = base64.b64encode(entry.picture.read_bytes()).decode()
        kind = KINDS[entry.picture.suffix]
        picture = f'<div><img src="data:{kind};base64,{data}" alt="{html.escape(entry.source.stem)}"></div>'
    return f"""<section{' class="drawn"' if picture else ""}><div>
<h2>{html.escape(purpose)}</h2>
<p>{html.escape(entry.line)}</p>
<p class="took">{html.escape(entry.source.name)}, {entry.seconds:.2f} s with compilation and checks</p>
<details><summary>Source</summary><pre>{html.escape(text)}</pre></details>
</div>{picture}</section>
"""
