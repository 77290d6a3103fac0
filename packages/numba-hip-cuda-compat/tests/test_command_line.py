"""``python -m numba_hip_cuda``: programs run as if started by themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = """\
import sys
from numba import cuda
import beside
assert __name__ == "__main__"
print(cuda.implementation, sys.argv, sys.path[0], beside.VALUE)
"""


def test_a_script_runs_posed_with_its_arguments(run_python: Callable[..., object], tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "script.py").write_text(PROGRAM)
    (folder / "beside.py").write_text("VALUE = 42\n")
    result = run_python("-m", "numba_hip_cuda", "programs/script.py", "--flag", "-m", "x", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"HIP ['programs/script.py', '--flag', '-m', 'x'] {folder} 42\n"


STARTING = """\
import multiprocessing
from numba import cuda

def tell(queue):
    queue.put(cuda.implementation)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=tell, args=[queue])
    worker.start()
    print(queue.get(timeout=60))
    worker.join()
"""


def test_the_processes_of_a_program_are_posed(run_python: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(STARTING)
    result = run_python("-m", "numba_hip_cuda", "script.py", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "HIP\n"


RACING = """\
import numpy as np
from numba import cuda

@cuda.jit
def reverse(values):
    s = cuda.shared.array(32, np.float64)
    i = cuda.threadIdx.x
    s[i] = values[i]
    values[i] = s[31 - i]

reverse[1, 32](np.arange(32.0))
"""


@pytest.mark.long
def test_the_races_of_a_program_are_reported_without_a_change_of_it(
    run_python: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.py").write_text(RACING)
    monkeypatch.setenv("NUMBA_HIP_CPU_RACES", "1")
    result = run_python("-m", "numba_hip_cuda", "script.py", folder=tmp_path)
    assert result.returncode == 1
    assert "RaceError: kernel reverse: 1 race\n" in result.stderr
    assert "script.py:8 in reverse" in result.stderr
    assert "script.py:9 in reverse" in result.stderr


NOTEBOOK = """\
import numpy as np
from numba import cuda, vectorize

@cuda.jit
def bubble_sort(values):
    for end in range(len(values) - 1, 0, -1):
        for i in range(end):
            if values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]

@vectorize(["float32(float32, float32)"], target="cuda")
def add(x, y):
    return x + y

@cuda.jit
def number(out):
    row, column = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] += 10 * row + column

values = np.random.default_rng(7).permutation(50)
bubble_sort[1, 1](values)
assert (values == np.arange(50)).all()
assert (add(np.arange(4, dtype=np.float32), np.float32(1)) == [1, 2, 3, 4]).all()
out = np.ones((3, 4))
number[(2, 2), (2, 2)](out)
assert (out == 1 + 10 * np.arange(3)[:, None] + np.arange(4)).all()
print("all right")
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("simulator", ["0", "1"])
def test_a_notebooks_cells_run_as_they_are(
    run_python: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulator: str
) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", simulator)
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    result = run_python("-m", "numba_hip_cuda", "notebook.py", folder=tmp_path)
    assert result.stdout == "all right\n", result.stderr


def test_a_module_runs_posed_with_its_arguments(run_python: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys\nfrom numba import cuda\nprint(__name__, cuda.implementation, sys.argv[1:])\n"
    )
    result = run_python("-m", "numba_hip_cuda", "-m", "program", "--flag", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "__main__ HIP ['--flag']\n"


STAYING = """\
import atexit
import os
import pickle
import sys
import threading
from numba import cuda


class Kept:
    pass


def keep(when):
    assert type(pickle.loads(pickle.dumps(Kept()))) is Kept
    print(when, cuda.implementation, flush=True)


def wait():
    threading.main_thread().join()
    keep("behind the program")


print(os.path.isabs(__file__), sys.modules["__main__"].Kept is Kept)
threading.Thread(target=wait).start()
atexit.register(keep, "at the exit")
"""


@pytest.mark.parametrize("arguments", [["script.py"], ["-m", "script"]])
def test_the_program_stays_the_main_module(
    run_python: Callable[..., object], tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "script.py").write_text(STAYING)
    result = run_python("-m", "numba_hip_cuda", *arguments, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["True True", "at the exit HIP", "behind the program HIP"]


def test_code_runs_posed_with_its_arguments(run_python: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 42\n")
    text = "import sys, beside; from numba import cuda; print(__name__, cuda.implementation, sys.argv, beside.VALUE)"
    result = run_python("-m", "numba_hip_cuda", "-c", text, "--flag", folder=tmp_path)
    assert result.stdout == "__main__ HIP ['-c', '--flag'] 42\n", result.stderr


def test_a_package_runs_posed(run_python: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text("")
    (tmp_path / "program" / "inside.py").write_text("VALUE = 42\n")
    (tmp_path / "program" / "__main__.py").write_text(
        "from numba import cuda\nfrom .inside import VALUE\nprint(__name__, __package__, cuda.implementation, VALUE)\n"
    )
    for arguments in (["-m", "program"], ["-m", "program.__main__"]):
        result = run_python("-m", "numba_hip_cuda", *arguments, folder=tmp_path)
        assert result.stdout == "__main__ program HIP 42\n", result.stderr
    (tmp_path / "program" / "__main__.py").unlink()
    result = run_python("-m", "numba_hip_cuda", "-m", "program", folder=tmp_path)
    assert "'program' is a package and cannot be directly executed" in result.stderr


def test_the_exit_status_is_that_of_the_program(run_python: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("raise SystemExit(7)\n")
    assert run_python("-m", "numba_hip_cuda", "script.py", folder=tmp_path).returncode == 7
    (tmp_path / "script.py").write_text("raise ValueError('of the program')\n")
    result = run_python("-m", "numba_hip_cuda", "script.py", folder=tmp_path)
    assert result.returncode == 1
    assert "ValueError: of the program" in result.stderr


@pytest.mark.long
def test_what_cannot_be_run_is_said(run_python: Callable[..., object], tmp_path: Path) -> None:
    result = run_python("-m", "numba_hip_cuda", "missing.py", folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "numba_hip_cuda: there is no file 'missing.py'\n"
    for module in ("missing", "missing.part", "json.missing"):
        result = run_python("-m", "numba_hip_cuda", "-m", module, folder=tmp_path)
        assert (result.returncode, result.stderr) == (1, f"numba_hip_cuda: there is no module {module!r}\n")
    (tmp_path / "wanting.py").write_text("import missing\n")
    result = run_python("-m", "numba_hip_cuda", "-m", "wanting", folder=tmp_path)
    assert result.stderr.endswith("No module named 'missing'\n")  # the program's own error
    for arguments in (["-m"], ["-c"], ["-x", "script.py"]):
        result = run_python("-m", "numba_hip_cuda", *arguments, folder=tmp_path)
        assert result.returncode == 1
        assert f"expected a script, -m and a module, or -c and code, got {' '.join(arguments)}\nusage:" in result.stderr
    result = run_python("-m", "numba_hip_cuda")
    assert (result.returncode, result.stdout[:6]) == (2, "usage:")
    result = run_python("-m", "numba_hip_cuda", "--help")
    assert (result.returncode, result.stdout[:6]) == (0, "usage:")


def test_a_refusal_is_one_line(run_python: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "_numba_cuda_redirector.py").write_text("")
    (tmp_path / "sitecustomize.py").write_text("import _numba_cuda_redirector\n")
    (tmp_path / "script.py").write_text("print('ran')\n")
    result = run_python("-m", "numba_hip_cuda", "script.py", path=tmp_path, folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("numba_hip_cuda: the distribution numba-cuda is installed")
    assert len(result.stderr.splitlines()) == 1
