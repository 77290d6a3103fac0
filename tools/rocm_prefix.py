"""Make a folder with a real ROCm compile stack (HIPRTC, its header, comgr, the HIP runtime), and a Python that uses it.

    python tools/rocm_prefix.py FOLDER

Needs the apt-get and dpkg-deb of Debian, and the network, but no root and no GPU. Nothing is installed: packages of
another suite are unpacked into FOLDER together with their own C library. A program of this machine runs with them
under their dynamic loader; for the Python that runs this script, ``rocm-python`` beside it does that. The folder is
kept if it is already whole. The exit status is 0, or 75 if the packages cannot be had.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = (
    "libhiprtc6", "libhiprtc-builtins6", "libamd-comgr3", "libamdhip64-6", "rocm-device-libs-21", "libstdc++6",
)  # fmt: skip
SUITE = "sid"
UNAVAILABLE = 75
_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LOADER = "usr/lib64/ld-linux-x86-64.so.2"


class UnavailableError(Exception):
    """The packages cannot be had on this machine."""


def make_prefix(folder: Path) -> Path:
    """Unpack `PACKAGES` and their dependencies under *folder*; returns the root of the ROCm in it."""
    root = folder / "root"
    done = folder / "done"
    if not done.exists() or done.read_text().split() != list(PACKAGES):
        shutil.rmtree(folder, ignore_errors=True)
        _download(folder)
        root.mkdir()
        for package in sorted((folder / "apt/cache/archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        shutil.rmtree(folder / "apt")
        done.write_text(" ".join(PACKAGES) + "\n")
    return root / "usr"


def _download(folder: Path) -> None:
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise UnavailableError(f"there is no {program} here")
    if not (_SOURCES.is_file() and _KEYRING.is_file()):
        raise UnavailableError(f"{_SOURCES} or {_KEYRING} is missing: this is not a Debian with its usual settings")
    apt = folder / "apt"
    for name in ("state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True)
    (apt / "status").write_bytes(b"")
    address = next(line.split()[1] for line in _SOURCES.read_text().splitlines() if line.startswith("URIs:"))
    (apt / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {address} {SUITE} main\n")
    options = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "Acquire::Languages": "none",
        "APT::Install-Recommends": "false",
        "APT::Keep-Downloaded-Packages": "true",
        "APT::Update::Post-Invoke": "",
        "DPkg::Post-Invoke": "",
        "Debug::NoLocking": "1",
    }
    command = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in options.items())]
    for rest in (["update"], ["install", "-y", "--download-only", *PACKAGES]):
        done = subprocess.run([*command, *rest], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"apt-get {rest[0]} failed: {done.stderr.strip()[-500:]}")


def write_launcher(prefix: Path, python: Path) -> Path:
    """Write ``rocm-python`` beside *python*: the same interpreter, under the loader and the libraries of *prefix*."""
    root = prefix.resolve().parent
    libraries = f"{root / _LIBRARIES}:/{_LIBRARIES}"
    launcher = python.parent / "rocm-python"
    # The loader passes on its own name as argv[0], from which Python finds its environment and its interpreter.
    loader = shlex.join([str(root / _LOADER), "--library-path", libraries])
    launcher.write_text(
        f"#!/bin/sh\nexport ROCM_PATH={shlex.quote(str(prefix.resolve()))}\n"
        f'exec {loader} --argv0 {shlex.quote(str(launcher))} {shlex.quote(os.path.realpath(python))} "$@"\n'
    )
    launcher.chmod(0o755)
    return launcher


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    try:
        prefix = make_prefix(folder)
    except UnavailableError as error:
        print(f"rocm_prefix: {error}", file=sys.stderr)
        return UNAVAILABLE
    print(write_launcher(prefix, Path(sys.executable)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
