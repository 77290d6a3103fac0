"""``python -m numba_hip``: what is here and works, and what is told of installations that do not."""

import json
import os
import subprocess
import sys

import pytest

import numba_hip as hip
from numba_hip import __main__, doctor


def ask(*arguments, **variables):
    """Run the doctor as users do; the exit status, and the printed report."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "numba_hip", *arguments],
        capture_output=True, text=True, timeout=120, env={**os.environ, **variables},
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def problems(checks):
    return {check.name: check.detail for check in checks if check.verdict == "problem"}


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Puts a module before the installed one of its name, for other processes; returns the function that does it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))

    def write(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)

    return write


def install(folder, name, version, *requires):
    """Lets it look as if a distribution were installed in *folder*."""
    information = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {one}" for one in requires),
    ]
    (information / "METADATA").write_text("\n".join(lines) + "\n")


def test_an_installation_that_works():
    status, text = ask(NUMBA_HIP_BOUNDS_CHECK="1")
    assert status == 0, text
    assert text.startswith(f"{doctor.TITLE}\nok       Python: 3.")
    assert f"\nok       numba-hip-core: {hip.__version__}\n" in text
    assert "\nok       NUMBA_HIP_DEVICE=" in text
    assert "\nnote     NUMBA_HIP_BOUNDS_CHECK: no setting; NUMBA_HIP_BOUNDSCHECK is one\n" in text
    device = hip.get_current_device()
    assert f"\nok       device 0: {device.name} [{device.target}]" in text
    assert f"\nok       a kernel: was compiled for {device.name}, ran, and its results are right\n" in text
    assert text.endswith("\n\nKernels can be compiled and run here.\n")


def test_numba_that_cannot_be_imported_is_no_traceback(broken):
    """Nor can `numba_hip` then, which Python imports before it runs anything of it."""
    broken("numba", "raise ImportError('Numba needs NumPy 2.4 or less.\\nGot NumPy 2.9.')")
    status, text = ask("--json")
    report = json.loads(text)
    assert (status, report["healthy"]) == (1, False)
    (problem,) = (check for check in report["checks"] if check["verdict"] == "problem")
    assert problem["name"] == "import numba"
    assert problem["detail"] == "ImportError: Numba needs NumPy 2.4 or less. Got NumPy 2.9."
    assert report["checks"][0]["name"] == "Python"


@pytest.mark.parametrize(
    ("module", "text", "name", "detail"),
    [
        ("hip_runtime", "__version__ = '0.1.3'", "import numba_hip", "numba-hip-core needs hip-runtime>=0.2,<0.3, and"),
        ("llvmlite", "import os; os.kill(os.getpid(), 9)", "import llvmlite.binding", "ends the process, by signal 9"),
        ("llvmlite", "import os; print('bye', flush=True); os._exit(3)", "import llvmlite.binding", "with status 3"),
        ("numpy", "raise OSError('libopenblas.so: no such file')", "import numpy", "OSError: libopenblas.so"),
    ],
    ids=["old layer", "crash", "exit", "library"],
)
@pytest.mark.sample(2)
def test_what_cannot_be_imported(broken, module, text, name, detail):
    broken(module, text)
    found = problems(doctor.examine())
    assert list(found) == [name]
    assert detail in found[name]


def test_what_never_answers(broken):
    broken("numpy", "import time; time.sleep(60)")
    checks = list(doctor._run_probe(2.5))
    assert checks[-1].verdict == "problem"
    assert checks[-1].detail == "did not end within 2.5 s, and was ended"


def test_settings_and_devices_that_do_not_work(monkeypatch):
    monkeypatch.setenv("NUMBA_HIP_CPU_THREADS", "many")
    found = problems(doctor.examine())
    assert "NUMBA_HIP_CPU_THREADS" in found
    assert "many" in found["NUMBA_HIP_CPU_THREADS"]


def test_a_gpu_that_was_asked_for_and_is_not_there(monkeypatch):
    if hip.get_current_device().target != "cpu":
        pytest.skip("there is a GPU")
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "hip")
    found = problems(doctor.examine())
    assert "NUMBA_HIP_DEVICE=cpu" in found["devices"]
    assert "a kernel" not in found, "it was not tried"


def test_packages_that_are_missing_or_of_a_wrong_release(tmp_path, monkeypatch):
    pytest.importorskip("packaging")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "NUMBA_PACKAGES", (*doctor.NUMBA_PACKAGES, "numba-without-name"))
    install(tmp_path, "numba-hip-core", "0.2.0", "numba<0.69,>=0.62", "no-such-thing>=1", 'other; extra == "test"')
    install(tmp_path, "numba", "0.61.2")
    install(tmp_path, "numba-hip", "0.1.7")
    found = problems([*doctor._check_packages(), *doctor._check_requirements()])
    assert found == {
        "numba-without-name": "not installed: pip install numba-without-name",
        "numba-hip": "0.1.7 is another package that has numba.hip: pip uninstall numba-hip, then pip install "
        "--force-reinstall --no-deps numba-hip-core",
        "numba": "0.61.2 is installed, and numba-hip-core needs numba<0.69,>=0.62: pip install 'numba<0.69,>=0.62'",
        "no-such-thing": "not installed, and numba-hip-core needs no-such-thing>=1: pip install 'no-such-thing>=1'",
    }  # fmt: skip


def test_optional_packages_are_no_problem(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL_PACKAGES", {"no-such-thing": "does nothing: pip install no-such-thing"})
    found = [check for check in doctor._check_packages() if check.name == "no-such-thing"]
    assert [(check.verdict, check.detail) for check in found] == [
        ("missing", "not installed; it does nothing: pip install no-such-thing")
    ]


def test_commands(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(doctor, "examine", lambda: asked.append(1) or [doctor.Check("x", "problem", "is wrong")] * 2)
    assert __main__.run([]) == __main__.run(["doctor"]) == 1
    lines = ["problem  x: is wrong"] * 2
    assert capsys.readouterr().out == 2 * "\n".join([doctor.TITLE, *lines, "", "2 problems: x", ""])
    assert __main__.run(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["checks"] == 2 * [
        {"name": "x", "verdict": "problem", "detail": "is wrong"}
    ]
    assert __main__.run(["docter"]) == 2
    assert "no command 'docter'; there are: doctor, precompile MODULE..." in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        __main__.run(["--jason"])
    assert ended.value.code == 2
    assert len(asked) == 3
