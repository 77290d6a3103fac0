"""The whole session on a GPU whose machine code is executed here."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tools.gpu_report import __main__

pytest.importorskip("tinygrad", reason="executes the machine code")

TESTS = """
    import numpy as np
    import pytest
    from numba import hip

    def test_right():
        @hip.jit
        def double(x):
            x[hip.grid(1)] *= 2

        x = np.arange(64.0)
        double[1, 64](x)
        assert hip.get_current_device().target.startswith("gfx942")
        np.testing.assert_array_equal(x, 2 * np.arange(64.0))

    def test_past_the_end():
        @hip.jit
        def store(x):
            x[1 << 40] = 1

        x = hip.to_device(np.zeros(1))
        store[1, 1](x)
        hip.synchronize()

    def test_behind_it():
        assert hip.device_array(1).copy_to_host().size == 1

    @pytest.mark.cpu_device("it looks at vectors")
    def test_of_the_cpu_device():
        assert False
"""


@pytest.mark.parametrize("target", ["gfx942"])
def test_the_session_reports_on_an_emulated_gpu(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests, reports = tmp_path / "test_some.py", tmp_path / "reports"
    tests.write_text(textwrap.dedent(TESTS))
    chosen = ["--tests", str(tests), "--benchmarks", "empty-launch", "--output", str(reports)]
    status = __main__.main(["--emulated", target, *chosen])
    assert status == 1, "one test fails"
    (folder,) = [path for path in reports.iterdir() if path.is_dir()]
    assert folder.with_suffix(".zip").is_file()
    document = json.loads((folder / "report.json").read_text())
    assert document["facts"]["device"]["target"].startswith(target)
    assert document["facts"]["device"]["wave size"] == 64
    outcomes = {one["test"].rpartition("::")[2]: one["outcome"] for one in document["parts"]["core"]}
    passed = dict.fromkeys(("test_right", "test_behind_it"), "passed")
    assert outcomes == passed | {"test_past_the_end": "failed", "test_of_the_cpu_device": "skipped"}
    assert (folder / "core.txt").read_text().count("the device has failed") == 1, "the rest is in another process"
    for part, at_least in (("contract", 100), ("examples", 6), ("benchmarks", 1)):
        results = document["parts"][part]
        causes = [one["cause"] for one in results if one["outcome"] == "failed"]
        assert [cause for cause in causes if "ROCm's device library: no ROCm" not in cause] == []
        assert len(results) >= at_least
    assert document["times"]["empty-launch"]["medians"]["hip"] > 0
    page = (folder / "report.md").read_text()
    assert "Stand-in MI300" in page
    assert "needs the CPU device: it looks at vectors" in page
    assert "failed, 1: " in capsys.readouterr().out
