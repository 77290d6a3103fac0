"""Pictures of results, by matplotlib, which only those need who ask for a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def save_image(path: Path | None, pixels: np.ndarray, colors: str = "inferno") -> None:
    """Write *pixels*, of shape (rows, columns), or with red, green and blue from 0 to 1, unless *path* is None."""
    if path is not None:
        pyplot().imsave(path, pixels, cmap=colors)


def save_plot(path: Path | None, draw: Any) -> None:
    """Write what *draw* puts on matplotlib's axes, unless *path* is None."""
    if path is None:
        return
    figure, axes = pyplot().subplots(figsize=(7, 4), layout="constrained")
    draw(axes)
    figure.savefig(path, dpi=100)
    pyplot().close(figure)


def save_animation(path: Path | None, frames: Sequence[np.ndarray], colors: str = "inferno") -> None:
    """Write a moving GIF with these images, unless *path* is None."""
    if path is None:
        return
    plots = pyplot()
    from matplotlib import colormaps
    from PIL import Image  # matplotlib depends on it

    low, high = min(frame.min() for frame in frames), max(frame.max() for frame in frames)
    images = [
        Image.fromarray((colormaps[colors]((frame - low) / max(high - low, 1e-300))[..., :3] * 255).astype(np.uint8))
        for frame in frames
    ]
    plots.close("all")
    images[0].save(path, format="GIF", save_all=True, append_images=images[1:], duration=60, loop=0)


def pyplot() -> Any:
    """matplotlib's interface for scripts, without a screen."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("--output needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plots

    return plots
