"""What editors and type checkers see of ``numba.hip``; with mypy, pyright and jedi: ``nox -s editors``."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import numba_hip as hip
from tools import editor_stub

PROGRAM = """
import numpy as np
from numba import hip

@hip.jit
def kernel(out: np.ndarray) -> None:
    out[hip.grid(1)] = hip.threadIdx.x

kernel[1, 32](np.zeros(32))
"""

WRONG = {
    "hip.atomic.ad(1, 2)": "ad",
    "hip.shared.array(4)": "dtype",
    "hip.threadIdx.w": "w",
    "hip.grid(4)": "grid",
    "hip.to_device(1, strem=0)": "strem",
    "hip.jit(fast_math=True)": "fast_math",
    "hip.jit(opt='no')": "jit",
}
"""What is wrong, and what is named then."""

SHOWN = {
    "hip.grid(2)": "tuple[int, int]",
    "hip.threadIdx.x": "int",
    "hip.laneid": "int",
    "hip.to_device(0)": "DeviceArray",
    "hip.jit('void(float32[:])', cache=True)(print)": "Dispatcher",
    "kernel": "Dispatcher",
}
"""Types of expressions."""


def test_the_stub_is_what_there_is() -> None:
    written = editor_stub.STUB.read_text()
    assert written == editor_stub.stub(), "run python -m tools.editor_stub"
    compile(written, str(editor_stub.STUB), "exec")


def test_names_are_what_users_use() -> None:
    names = set(dir(hip))
    assert {"jit", "grid", "float32x4", "bfloat16", "random", "extending", "set_hip_extensions", "config"} <= names
    own = {"sys", "suppress", "import_module", "Any", "annotations", "LATE", "abi", "host", "language", "dispatch"}
    assert not own & names
    assert all(hasattr(hip, name) for name in names)


def test_functions_of_kernels_have_signatures() -> None:
    assert str(inspect.signature(hip.atomic.add)) == "(ary, idx, val, scope='device')"
    assert str(inspect.signature(hip.shared.array)) == "(shape, dtype, alignment=None)"
    assert "``ary[idx] += val``" in (hip.atomic.add.__doc__ or "")
    inspect.signature(type(hip.atomic.add))  # the class has one of its own


def test_help_lists_the_options() -> None:
    from dataclasses import fields

    from numba_hip.compilation.options import CompileOptions

    text = inspect.getdoc(hip.jit) or ""
    for field in fields(CompileOptions):
        assert f"\n{field.name}\n    " in text, field.name


@pytest.mark.parametrize("name", ["numba.hip", "numba_hip"])
@pytest.mark.sample(1)
def test_the_module_can_be_run_by_either_name(name: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-m", name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("__HIP Information__")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    installed = Path(numba.__file__).parent / "hip" / "__init__.pyi"
    if not installed.exists():
        pytest.skip("an installation from before there was a stub")
    path = tmp_path / "program.py"
    lines = [*(f"reveal_type({shown})" for shown in SHOWN), *WRONG]
    path.write_text(PROGRAM + "\n" + "\n".join(lines) + "\n")
    return path


def line_of(program: Path, text: str) -> int:
    return next(number for number, line in enumerate(program.read_text().splitlines(), 1) if line == text)


@pytest.mark.long
def test_mypy(program: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(program.parent), program.name]
    out = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, timeout=300).stdout
    for text, named in SHOWN.items():
        where = f"program.py:{line_of(program, f'reveal_type({text})')}: note: "
        assert any(where in line and named in line for line in out.splitlines()), f"{text}\n{out}"
    for text, named in WRONG.items():
        where = f"program.py:{line_of(program, text)}: error: "
        assert any(where in line and named in line for line in out.splitlines()), f"{text}\n{out}"


@pytest.mark.long
def test_pyright(program: Path) -> None:
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(program)]
    out = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    for text, named in SHOWN.items():
        where = f"program.py:{line_of(program, f'reveal_type({text})')}:"
        assert any(where in line and f'is "{named}"' in line for line in out.splitlines()), f"{text}\n{out}"
    for text in WRONG:
        assert f"program.py:{line_of(program, text)}:" in out, f"{text}\n{out}"


@pytest.mark.long
def test_jedi(program: Path) -> None:
    jedi = pytest.importorskip("jedi")
    for text, says in {
        "hip.atomic.add": "``ary[idx] += val``",
        "hip.shared.array": "shape",
        "hip.grid": "ndim",
        "hip.syncthreads": "syncthreads()",
        "hip.jit": "unsafe_fp_atomics",
        "hip.to_device": "obj: Any",
    }.items():
        script = jedi.Script(f"from numba import hip\n{text}", environment=jedi.InterpreterEnvironment())
        (found, *_) = script.help(2, len(text))
        assert says in found.docstring(), text
    script = jedi.Script("from numba import hip\nhip.sh", environment=jedi.InterpreterEnvironment())
    assert "shared" in [one.name for one in script.complete(2, 6)]
    script = jedi.Script("from numba import hip\nhip.threadIdx.", environment=jedi.InterpreterEnvironment())
    assert {"x", "y", "z"} <= {one.name for one in script.complete(2, 14)}
