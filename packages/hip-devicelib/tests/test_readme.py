"""The examples of the README, run one after the other as a reader would."""

from pathlib import Path

import pytest

from hip_devicelib import NotFoundError, Rocm, find_linker
from hip_devicelib.cache import DIRECTORY_VARIABLE

README = Path(__file__).parents[1] / "README.md"


def examples() -> list[str]:
    return [block.partition("```")[0] for block in README.read_text().split("```python\n")[1:]]


def test_the_first_examples_need_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {}
    for example in examples()[:2]:
        exec(compile(example, str(README), "exec"), namespace)
    printed = capsys.readouterr().out
    assert "amdhsa_kernel fill" in printed
    assert "float atomicAdd(float * address, float val) | float (ptr, float) | ['address', 'value']" in printed


def test_all_examples(real_rocm: Rocm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    try:
        find_linker(real_rocm)
    except NotFoundError as error:
        pytest.skip(f"needs a linker: {error}")
    namespace: dict[str, object] = {}
    for example in examples():
        exec(compile(example, str(README), "exec"), namespace)
    assert [kernel.name for kernel in namespace["code"].kernels] == ["fill"]  # type: ignore[attr-defined]
