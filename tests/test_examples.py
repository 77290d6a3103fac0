"""Each example is a program: it runs by itself, without a warning, prints one line, and draws what it is asked to."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "demo")
DRAWING = sorted(name for name in PROGRAMS if "output:" in (EXAMPLES / f"{name}.py").read_text())
ENVIRONMENT = {"NUMBA_HIP_DEVICE": "cpu", **os.environ}


def start(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an example in an unrelated *folder*."""
    name, *rest = arguments
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *rest]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=ENVIRONMENT)


def run(folder: Path, *arguments: str) -> list[str]:
    """The lines that an example printed; nothing but them."""
    result = start(folder, *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_computes_what_it_says(name: str, tmp_path: Path) -> None:
    (line,) = run(tmp_path, name, "--small")
    title, _, rest = line.partition(": ")
    assert title.replace(" ", "_") in name
    assert re.search(r"NumPy's|float64", rest), "it says what it was checked against"
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_at_its_full_size(name: str, tmp_path: Path) -> None:
    (line,) = run(tmp_path, name)
    assert line.startswith(name.split("_")[0])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", DRAWING)
def test_an_example_draws(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the pictures, is not installed")
    from PIL import Image

    run(tmp_path, name, "--small", "--output", "picture.gif" if name in ("heat_equation", "game_of_life") else "a.png")
    (drawn,) = tmp_path.iterdir()
    with Image.open(drawn) as picture:
        assert min(picture.size) >= 20
        assert len(set(picture.convert("L").tobytes())) > 1, "it is not empty"
        assert (getattr(picture, "n_frames", 1) > 1) == (drawn.suffix == ".gif")


def test_the_demo_runs_them_all(tmp_path: Path) -> None:
    """By its list, which has all; three of them here."""
    tree = ast.parse((EXAMPLES / "demo.py").read_text())
    named = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign) for target in node.targets}
    assert sorted(ast.literal_eval(named["EXAMPLES"])) == PROGRAMS
    lines = run(tmp_path, "demo", "--small", "--only", "vector_add", "mandelbrot", "streams")
    assert re.fullmatch(r"device: .+ \(.+\), numba\.hip \d+\.\d+\.\d+, Python 3\.\d+\.\d+", lines[0])
    assert [line.partition(":")[0] for line in lines[1:-1:2]] == ["vector add", "mandelbrot", "streams"]
    for took in lines[2:-1:2]:
        assert re.fullmatch(r"    took \d+\.\d\d s, compiling and checking included", took)
    assert re.fullmatch(r"all 3 examples computed and checked in \d+\.\d\d s", lines[-1])


@pytest.mark.long
@pytest.mark.parametrize("size", [("--small",), ()], ids=["small", "full"])
def test_the_demo_writes_a_page_and_the_same_files_at_both_sizes(size: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the pictures, is not installed")
    lines = run(tmp_path, "demo", *size, "--output", "page/of/all")
    page = tmp_path / "page" / "of" / "all" / "index.html"
    pictures = {f"{name}{'.gif' if name in ('heat_equation', 'game_of_life') else '.png'}" for name in DRAWING}
    assert {path.name for path in page.parent.iterdir()} == {"index.html", *pictures}
    assert lines[-1] == f"with pictures: {page}"
    text = page.read_text()
    assert text.count("<section") == len(PROGRAMS)
    assert text.count('<img src="data:image/') == len(DRAWING)
    for line in lines[1:-2:2]:
        assert line.replace("'", "&#x27;") in text


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mandelbrot", "--size", "0"), "--size 0: must be 1 or more"),
        (("mandelbrot", "--size", "many"), "--size: invalid int value: 'many'"),
        (("mandelbrot", "--device", "7"), "--device 7: there is no device 7; the devices are: 0"),
        (("mandelbrot", "--device", "gpu"), "--device gpu: must be cpu, hip, or the number of a device"),
        (("mandelbrot", "--output", "missing/a.png"), "--output missing/a.png: there is no folder"),
        (("scan", "--output", "a.png"), "unrecognized arguments: --output a.png"),
        (("demo", "--only", "mandelbrott"), "invalid choice: 'mandelbrott'"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = start(tmp_path, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_an_example_notices_a_wrong_result(tmp_path: Path) -> None:
    """The check in an example is one that can fail."""
    source = (EXAMPLES / "vector_add.py").read_text()
    assert source.count("x[i] + y[i]") == 1
    (tmp_path / "wrong.py").write_text(source.replace("x[i] + y[i]", "x[i] - y[i]"))
    environment = {**ENVIRONMENT, "PYTHONPATH": str(EXAMPLES)}
    command = [sys.executable, str(tmp_path / "wrong.py"), "--small"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 1
    assert "AssertionError" in result.stderr
    assert result.stdout == ""
