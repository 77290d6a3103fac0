"""What is mutated is there, and what may survive is told from what may not."""

from __future__ import annotations

from typing import Any

import pytest

from tools.mutants.__main__ import HERE, LETTERS, ROOT, STRICT, Survivor, tomllib, try_changes

TARGETS: dict[str, Any] = tomllib.loads((HERE / "targets.toml").read_text())
EXPLAINED: dict[str, Any] = tomllib.loads((HERE / "explained.toml").read_text())


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_mutated_is_there(name: str) -> None:
    target = TARGETS[name]
    if "changes" in target:
        text = (ROOT / target["file"]).read_text()
        assert all(before in text and before != after for before, after in target["changes"])
        assert (ROOT / target["tests"][0]).is_file()
        return
    package = ROOT / "packages" / target["package"]
    assert all((package / "src" / module).is_file() for module in target["modules"])
    assert all((package / "tests" / module).is_file() for module in target["tests"])


def test_explanations_are_of_targets() -> None:
    assert set(EXPLAINED) <= set(TARGETS)
    assert all(entry["why"] for entries in EXPLAINED.values() for entry in entries)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('raise Error("no such thing")', 'raise Error("XXno such thingXX")', LETTERS),
        ('raise Error("no such thing")', 'raise Error("NO SUCH THING")', LETTERS),
        ("zip(one, two, strict=True)", "zip(one, two, strict=False)", STRICT),
        ("zip(one, two, strict=True)", "zip(one, two, )", STRICT),
        ('raise Error("no such thing")', "raise Error(None)", ""),
        ("one < two", "one <= two", "said"),
        ("one < 2", "one <= 2", ""),
    ],
)
def test_why_a_change_may_survive(before: str, after: str, why: str) -> None:
    explained = [{"function": "compare", "before": "one < two", "after": "<=", "why": "said"}]
    assert Survivor("module.x_compare", before, after).reason(explained) == why
    assert Survivor("module.x_other", "one < two", "one <= two").reason(explained) == ""


@pytest.mark.long
def test_a_listed_change_that_no_test_notices_is_counted(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    target = {
        "file": "packages/hip-runtime/src/hip_runtime/layout.py",
        "tests": ["packages/hip-runtime/tests/test_layout.py", "-k", "transpose_needs"],
        "changes": [['"repeated axis', '"an axis'], ["only 1 is squeezed", "no others are squeezed"]],
    }
    assert try_changes("some", target, tmp_path) == 1
    assert "only 1 is squeezed" in capsys.readouterr().out
