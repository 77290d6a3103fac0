"""Packages of a suite of Debian, unpacked in a folder with their own C library, and a Python that uses them.

Needs Debian's apt-get and dpkg-deb, and the network, but no root. Nothing is installed: a program of this machine runs
with the packages under the folder's dynamic loader.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

LIBRARIES = "usr/lib/x86_64-linux-gnu"
"""Where packages have their libraries, below the folder that they are unpacked in."""

_LOADER = "usr/lib64/ld-linux-x86-64.so.2"
_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class UnavailableError(Exception):
    """The packages cannot be had on this machine."""


def unpack_packages(folder: Path, suite: str, packages: Sequence[str]) -> Path:
    """Unpack *packages* of *suite* and all that they depend on in *folder*, and return the root that has their ``usr``.

    The folder is kept if it already has these packages. Raises `UnavailableError` if they cannot be had.
    """
    root, done = folder / "root", folder / "done"
    if not done.exists() or done.read_text().split() != list(packages):
        shutil.rmtree(folder, ignore_errors=True)
        _download(folder, suite, packages)
        root.mkdir()
        for package in sorted((folder / "apt/cache/archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        shutil.rmtree(folder / "apt")
        done.write_text(" ".join(packages) + "\n")
    return root


def write_launcher(root: Path, python: Path, launcher: Path, variables: Mapping[str, str]) -> None:
    """Write *launcher*: the interpreter *python*, under the loader and the libraries of *root*, with *variables* set.

    The launcher has to stand beside *python*, as that finds its environment by where it stands.
    """
    root = root.resolve()
    libraries = f"{root / LIBRARIES}:/{LIBRARIES}"
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    # The loader passes on its own name as argv[0], from which Python finds its environment and its interpreter.
    loader = shlex.join([str(root / _LOADER), "--library-path", libraries])
    launcher.write_text(
        f"#!/bin/sh\n{exports}"
        f'exec {loader} --argv0 {shlex.quote(str(launcher))} {shlex.quote(os.path.realpath(python))} "$@"\n'
    )
    launcher.chmod(0o755)


def _download(folder: Path, suite: str, packages: Sequence[str]) -> None:
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
    (apt / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {address} {suite} main\n")
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
    for rest in (["update"], ["install", "-y", "--download-only", *packages]):
        done = subprocess.run([*command, *rest], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"apt-get {rest[0]} failed: {done.stderr.strip()[-500:]}")
