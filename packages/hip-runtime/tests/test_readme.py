"""The example of the README is run as it stands there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hip_runtime import Device


def test_example(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (example,) = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    (expected,) = [line.partition("# ")[2] for line in example.splitlines() if line.startswith("print(")]
    assert capsys.readouterr().out == expected + "\n"
    np.testing.assert_array_equal(names["x"].copy_to_host(), np.arange(1000.0) / 2)  # type: ignore[attr-defined]
