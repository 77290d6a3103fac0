"""The pages of the site that are made when it is built."""

from __future__ import annotations

from tools.site import numbers, reference

PACKAGES = ("hip-devicelib", "hip-runtime", "numba-hip-core", "numba-hip-cuda-compat")
"""The four distributions, from the bottom layer to the top."""


def pages() -> dict[str, str | bytes]:
    """Each page's path on the site, and its text."""
    return {
        "packages/index.md": packages(),
        "numbers/benchmarks.md": numbers.benchmarks(),
        "numbers/conformance.md": numbers.conformance(),
        **dict(reference.pages()),
    }


def packages() -> str:
    """The list of packages, with their changes."""
    entries = "\n".join(f"{name}\n{name}-changes" for name in PACKAGES)
    return f"# The four packages\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
