"""Packages of NVIDIA's beside `numba.cuda`: what is said where they are not installed, and that they are imported where
they are."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from numba_hip_cuda.nvidia_packages import ABSENT

Check = Callable[..., str]

pytestmark = pytest.mark.skipif(find_spec("cuda") is not None, reason="a package of NVIDIA's is installed")


@pytest.mark.parametrize(
    ("statement", "module", "instead"),
    [
        ("from cuda.core import Device", "cuda.core", "numba.cuda has devices"),
        ("from cuda.core.experimental import Stream", "cuda.core", "__cuda_array_interface__ or DLPack"),
        ("import cuda.bindings.driver", "cuda.bindings", "streams and events (cuda.stream(), cuda.event())"),
        ("from cuda import cuda", "cuda.cuda", "there is no CUDA driver beneath"),
        ("from cuda import core", "cuda.core", "it manages NVIDIA's GPUs"),
        ("from cuda import nvrtc", "cuda.nvrtc", "NVRTC is NVIDIA's compiler"),
        ("import cuda.pathfinder", "cuda.pathfinder", "hip_devicelib finds ROCm"),
    ],
)
def test_an_absent_package_says_what_to_use(check: Check, statement: str, module: str, instead: str) -> None:
    text = check(f"""
        import numba_hip_cuda

        with numba_hip_cuda.posing():
            for _ in range(2):
                try:
                    {statement}
                except ModuleNotFoundError as error:
                    print(error)
            import cuda.compute
            print(hasattr(cuda, "core"))
        try:
            {statement}
        except ModuleNotFoundError as error:
            print(error)
    """)
    first, second, has_core, afterwards = text.splitlines()
    assert first == second
    assert first.startswith(f"No module named {module!r}: it is NVIDIA's, and not installed (numba_hip_cuda poses as")
    assert instead in first
    assert has_core == "False"
    assert afterwards == "No module named 'cuda'"


def test_other_names_are_missing_as_usual(check: Check) -> None:
    text = check("""
        import numba_hip_cuda

        with numba_hip_cuda.posing():
            try:
                import cuda.no_such_thing
            except ModuleNotFoundError as error:
                print(error)
    """)
    assert text == "No module named 'cuda.no_such_thing'\n"


INSTALLED = """
    import sys

    import numba_hip_cuda

    with numba_hip_cuda.posing():
        from numba import cuda as posed

        from cuda.core import Device
        import cuda.bindings
        import cuda.compute
        print(Device, cuda.bindings.version, cuda.compute.__name__, posed.implementation)
    print(sys.modules["cuda.core"].Device, "cuda.compute" in sys.modules)
"""


def install(folder: Path, *, namespace: bool) -> None:
    for name, code in (("core", "Device = 'device'"), ("bindings", "version = 13")):
        package = folder / "cuda" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(code)
    if not namespace:
        (folder / "cuda" / "__init__.py").write_text("")


@pytest.mark.parametrize("namespace", [True, False])
def test_installed_packages_are_imported(check: Check, tmp_path: Path, namespace: bool) -> None:
    install(tmp_path, namespace=namespace)
    text = check(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n" + dedented(INSTALLED))
    assert text == "device 13 numba_hip_cuda.compute HIP\ndevice False\n"


def test_installed_packages_with_a_finder_of_their_own_are_imported(check: Check, tmp_path: Path) -> None:
    install(tmp_path, namespace=False)
    finder = f"""
    import sys
    from importlib.machinery import PathFinder

    class Finder:
        def find_spec(self, name, path=None, target=None):
            return PathFinder.find_spec(name, [{str(tmp_path)!r}]) if name == "cuda" else None

    sys.meta_path.append(Finder())
    """
    text = check(dedented(finder) + dedented(INSTALLED))
    assert text == "device 13 numba_hip_cuda.compute HIP\ndevice False\n"


def dedented(code: str) -> str:
    return "\n".join(line[4:] for line in code.splitlines()) + "\n"


def test_the_reasons_are_about_packages_of_cuda() -> None:
    assert all(name.startswith("cuda.") for name in ABSENT)
