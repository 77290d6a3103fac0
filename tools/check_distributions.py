"""Checks the wheels and source distributions in a folder before they are published.

    python tools/check_distributions.py dist

Run by ``nox -s build``, whose environment has what renders long descriptions as a package index does.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename
from readme_renderer import markdown

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "hip-devicelib": "hip_devicelib",
    "hip-runtime": "hip_runtime",
    "numba-hip-core": "numba_hip",
    "numba-hip-cuda-compat": "numba_hip_cuda",
}
INFORMATION = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE", "entry_points.txt"}


def check_wheel(path: Path) -> None:
    """The wheel contains the whole package and nothing else, with the metadata that an index requires."""
    package, version, _, _ = parse_wheel_filename(path.name)
    module = PACKAGES[package]
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        information = f"{module_name(package)}-{version}.dist-info/"
        own = {name for name in names if not name.startswith(information)}
        assert own == source_files(package), f"{path.name}: {own ^ source_files(package)}"
        assert f"{module}/py.typed" in own
        described = {name.removeprefix(information) for name in names - own}
        assert INFORMATION - {"entry_points.txt"} <= described <= INFORMATION, f"{path.name}: {described}"
        assert wheel.read(f"{information}licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        check_metadata(path.name, Parser().parsestr(wheel.read(f"{information}METADATA").decode()))


def check_sdist(path: Path) -> None:
    """The source distribution contains the sources of the wheel and its tests, and nothing else."""
    package, _ = parse_sdist_filename(path.name)
    with tarfile.open(path) as sdist:
        names = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
        names -= {"PKG-INFO", ".gitignore"}
        folder = ROOT / "packages" / package
        expected = {str(file.relative_to(folder)) for file in project_files(folder)}
        assert names == expected, f"{path.name}: {names ^ expected}"
        information = sdist.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert information is not None
        check_metadata(path.name, Parser().parsestr(information.read().decode()))


def check_metadata(name: str, metadata: Message) -> None:
    """Licence, author, classifiers, and a long description that an index can show."""
    assert "MIT" in (metadata["License-Expression"], metadata["License"]), name
    assert metadata["Author"], name
    assert metadata["Requires-Python"], name
    classifiers = metadata.get_all("Classifier") or []
    assert "Typing :: Typed" in classifiers, name
    assert metadata["Description-Content-Type"].startswith("text/markdown"), name
    description = metadata.get_payload()
    assert isinstance(description, str)
    assert description.startswith("# "), name
    shown = markdown.render(description)
    assert shown is not None, f"the long description in {name} does not render"
    assert "<h1" in shown, f"the long description in {name} renders as {shown[:200]!r}"


def module_name(package: str) -> str:
    return package.replace("-", "_")


def source_files(package: str) -> set[str]:
    """The files that the wheel of *package* has to contain, without its metadata."""
    folder = ROOT / "packages" / package / "src"
    return {str(file.relative_to(folder)) for file in project_files(folder)}


def project_files(folder: Path) -> list[Path]:
    """The files in *folder* that were not created by running its code."""
    made = {"__pycache__", ".pytest_cache", ".hypothesis"}
    return [file for file in folder.rglob("*") if file.is_file() and made.isdisjoint(file.parts)]


def main(folder: Path) -> None:
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    assert len(wheels) == len(sdists) == len(PACKAGES), f"{folder} holds {[path.name for path in wheels + sdists]}"
    for path in wheels:
        check_wheel(path)
    for path in sdists:
        check_sdist(path)
    for path in wheels + sdists:
        print(f"{path.stat().st_size / 1000:6.0f} kB  {path.name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
