"""``numba.hip`` and ``numba_hip`` are one package under two names."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import pytest

import numba_hip
from numba_hip import _alias


def run(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run *code* in a fresh interpreter, with the folders *path* before its own; what an import does happens once."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path)), "NUMBA_HIP_DEVICE": "cpu"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment
    )


def check(code: str) -> None:
    result = run(code)
    assert result.returncode == 0, result.stderr


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "statement",
    [
        "import numba.hip as hip",
        "import numba.hip; hip = numba.hip",
        "from numba import hip",
        "import numba_hip as first; from numba import hip",
        "import numba_hip; import numba; hip = numba.hip",
        "import importlib; hip = importlib.import_module('numba.hip')",
    ],
)
def test_every_way_to_import_it_gives_the_package_itself(statement: str) -> None:
    check(f"""
        {statement}
        import numba, numba_hip, sys
        assert hip is numba_hip is numba.hip is sys.modules["numba.hip"]
        assert hip.__name__ == hip.__spec__.name == "numba_hip"
    """)


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", ["numba.hip", "numba_hip"])
def test_modules_beneath_are_the_same_objects(first: str) -> None:
    check(f"""
        import {first}
        import numba.hip.language as language, numba.hip._alias as alias
        from numba.hip import _alias
        import numba_hip.language, numba_hip._alias, sys
        assert language is numba_hip.language is sys.modules["numba.hip.language"]
        assert alias is _alias is numba_hip._alias
        assert language.__name__ == language.__spec__.name == language.__package__ == "numba_hip.language"
        from numba.hip._alias import AliasConflictError
        assert AliasConflictError is numba_hip._alias.AliasConflictError
    """)


@pytest.mark.long
def test_reloading_keeps_the_identity() -> None:
    check("""
        import importlib, sys
        import numba.hip._alias, numba_hip
        before = list(sys.meta_path)
        assert importlib.reload(numba.hip) is numba_hip
        assert importlib.reload(numba.hip._alias) is sys.modules["numba_hip._alias"] is numba.hip._alias
        assert importlib.reload(numba_hip) is numba.hip is sys.modules["numba.hip"]
        assert sys.meta_path == before
    """)


def test_a_module_that_does_not_exist_is_named_by_the_name_that_was_asked_for() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"numba\.hip\.no_such_module") as caught:
        importlib.import_module("numba.hip.no_such_module")
    assert caught.value.name == "numba.hip.no_such_module"
    assert "numba_hip.no_such_module" in str(caught.value)


@pytest.mark.long
def test_an_import_error_inside_a_module_is_not_disguised(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import surely_not_installed\n")
    result = run(f"""
        import numba_hip
        numba_hip.__path__.append({str(tmp_path)!r})
        import numba.hip.broken
    """)
    assert result.returncode != 0
    assert "ModuleNotFoundError: No module named 'surely_not_installed'" in result.stderr


def test_other_imports_are_left_to_others() -> None:
    finder = _alias._AliasFinder()
    assert finder.find_spec("numba.hipster", None) is None
    assert finder.find_spec("numba", None) is None
    assert finder.find_spec("json", None) is None


def test_installing_again_changes_nothing() -> None:
    before = list(sys.meta_path)
    _alias.install()
    assert sys.meta_path == before
    assert sys.modules["numba.hip"] is numba_hip


def fake_distribution(folder: Path, name: str, version: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.long
@pytest.mark.parametrize("module", ["numba.hip", "numba_hip"])
def test_a_rival_distribution_is_refused(tmp_path: Path, module: str) -> None:
    fake_distribution(tmp_path, "numba-hip", "0.2.1")
    result = run(
        f"""
        import sys
        try:
            import {module}
        except ImportError as error:
            print(type(error).__name__)
            print(error)
        assert "numba.hip" not in sys.modules and "numba_hip" not in sys.modules
        assert not hasattr(sys.modules["numba"], "hip")
        """,
        tmp_path,
    )
    assert result.returncode == 0, result.stderr
    kind, message = result.stdout.splitlines()
    assert kind == "AliasConflictError"
    assert f"numba-hip 0.2.1 is installed in {tmp_path}" in message
    assert "pip uninstall numba-hip" in message


def test_a_distribution_of_a_similar_name_is_none_of_our_business(tmp_path: Path) -> None:
    fake_distribution(tmp_path, "numba-hipster", "1.0")
    result = run("import numba.hip", tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_name_that_does_not_exist_says_what_may_have_been_meant() -> None:
    with pytest.raises(AttributeError, match=r"^module 'numba_hip' has no attribute 'gird'; did you mean 'grid'\?$"):
        numba_hip.gird  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'threadIdx'"):
        numba_hip.threadidx  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'qqqqqqq'$"):
        numba_hip.qqqqqqq  # noqa: B018
    assert not hasattr(numba_hip, "__gird__")


def lay_out_numba(folder: Path, **files: str) -> Path:
    """A folder with Numba in it, as the installed one is, and *files*, by names without suffix, as ``numba/hip``."""
    package = folder / "numba"
    (package / "hip").mkdir(parents=True)
    for entry in Path(numba.__file__).parent.iterdir():
        if entry.name not in ("hip", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    for name, text in files.items():
        (package / "hip" / f"{name}.py").write_text(text)
    return folder


OURS = (Path(numba_hip.__file__).parents[1] / "numba" / "hip" / "__init__.py").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "files", "named"),
    [
        ("import numba_hip", {"__init__": "from . import api  # theirs"}, "__init__.py"),
        ("from numba import hip", {"__init__": OURS, "api": "", "hipdrv": ""}, "api.py, hipdrv.py"),
        ("import numba_hip", dict.fromkeys("abcdefg", ""), "a.py, b.py, c.py, d.py and 3 more"),
    ],
)
def test_files_of_another_package_among_ours_are_named(
    tmp_path: Path, statement: str, files: dict[str, str], named: str
) -> None:
    result = run(
        f"""
        import sys
        try:
            {statement}
        except ImportError as error:
            print(type(error).__name__, error.name)
            print(error)
        assert "numba.hip" not in sys.modules and "numba_hip" not in sys.modules
        """,
        lay_out_numba(tmp_path, **files),
    )
    assert result.returncode == 0, result.stderr
    kind, message = result.stdout.splitlines()
    assert kind == "AliasConflictError numba.hip"
    assert message.startswith(f"{tmp_path / 'numba' / 'hip'} holds {named}, which are not of numba-hip-core")
    assert "pip install --force-reinstall --no-deps numba-hip-core" in message


@pytest.mark.long
def test_our_own_file_beside_numba_is_no_stranger(tmp_path: Path) -> None:
    result = run(
        "import numba, numba_hip; from numba import hip; print(numba.__file__, hip is numba_hip)",
        lay_out_numba(tmp_path, __init__=OURS),
    )
    assert result.stdout == f"{tmp_path / 'numba' / '__init__.py'} True\n", result.stderr
