"""Links a relocatable object into a code object that a runtime can load, with comgr, ``ld.lld``, or the one in
``ziglang``.

Only ELF objects are passed from this package to ROCm: their format is stable, that of bitcode is not.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hip_devicelib.codeobject import CodeObject
from hip_devicelib.comgr import Comgr
from hip_devicelib.errors import CodeObjectError, LinkError, NotFoundError
from hip_devicelib.kernel_metadata import describe, read_kernels, read_target
from hip_devicelib.rocm import Rocm, find_rocm
from hip_devicelib.target import Target, parse_target


class Linker(Protocol):
    """A linker of relocatable objects into a code object."""

    @property
    def identity(self) -> str:
        """The name of the linker, for messages and cache keys."""

    def link(self, objects: Sequence[bytes], target: Target) -> bytes:
        """The linked ELF file of *objects*, all for *target*. Raises `LinkError`."""


@dataclass(frozen=True)
class Lld:
    """LLVM's linker as a program, started by ``command``."""

    command: tuple[str, ...]

    @property
    def identity(self) -> str:
        return " ".join(self.command)

    def link(self, objects: Sequence[bytes], target: Target) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            names = [f"{number}.o" for number in range(len(objects))]
            for name, data in zip(names, objects, strict=True):
                Path(folder, name).write_bytes(data)
            # The options with which clang links code objects. Without them, an undefined symbol would only be noticed
            # on loading.
            options = ["-shared", "--no-undefined", "--build-id=none", "-o", "linked"]
            try:
                done = subprocess.run(
                    [*self.command, *options, *names], cwd=folder, capture_output=True, text=True, check=False
                )
            except OSError as error:
                raise LinkError(f"{self.identity} does not run: {error.strerror}") from None
            if done.returncode:
                raise LinkError(f"{self.identity} does not link this for {target.id}: {done.stderr.strip()[-2000:]}")
            return Path(folder, "linked").read_bytes()


def find_linkers(rocm: Rocm | None) -> Iterator[Linker]:
    """The available linkers, quickest first: comgr and ld.lld of *rocm*, ld.lld in PATH, that of ziglang."""
    if rocm is not None and "comgr" in rocm.files:
        yield Comgr(rocm.files["comgr"])
    if rocm is not None and "ld.lld" in rocm.files:
        yield Lld((str(rocm.files["ld.lld"]),))
    if program := shutil.which("ld.lld"):
        yield Lld((program,))
    if sys.executable and importlib.util.find_spec("ziglang"):
        yield Lld((sys.executable, "-m", "ziglang", "ld.lld"))


def find_linker(rocm: Rocm | None = None) -> Linker:
    """The first of `find_linkers`; by default with the ROCm that is found. `NotFoundError` says what to install."""
    looked = ""
    if rocm is None:
        try:
            rocm = find_rocm()
        except NotFoundError as error:
            looked = f" ({error})"
    for linker in find_linkers(rocm):
        return linker
    raise NotFoundError(
        "no linker for code objects: looked for comgr and ld.lld in ROCm, for ld.lld in PATH, and for the Python "
        f"package ziglang{looked}. Install one of them; 'pip install ziglang' is enough"
    )


def link(
    objects: bytes | Sequence[bytes],
    *,
    linker: Linker | None = None,
    signatures: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> CodeObject:
    """Link relocatable *objects* into a code object, with *linker* or the first that is found.

    One of the objects contains the kernels, the others functions that they call. *signatures* are as for
    `read_kernels`. Raises `CodeObjectError` for anything that is not an object for an AMD GPU, for objects for
    different targets, and for kernels in several objects; `LinkError` with the linker's output; `NotFoundError` if
    there is no linker.
    """
    listed = [objects] if isinstance(objects, bytes) else list(objects)
    if not listed:
        raise CodeObjectError("objects: at least one object is needed")
    targets = {read_target(data) for data in listed}
    if len(targets) > 1:
        raise CodeObjectError(f"the objects are for different targets: {', '.join(sorted(targets))}")
    chosen = linker if linker is not None else find_linker()
    return describe(chosen.link(_kernels_first(listed), parse_target(targets.pop())), signatures)


def _kernels_first(objects: list[bytes]) -> list[bytes]:
    """*objects*, with the one that contains the kernels first.

    Linkers concatenate the metadata notes of all objects, and loaders use the first.
    """
    kernels = [tuple(kernel.name for kernel in read_kernels(data)) for data in objects]
    holding = [names for names in kernels if names]
    if len(holding) > 1:
        listed = "; ".join(", ".join(names) for names in holding)
        raise CodeObjectError(
            f"{len(holding)} of the objects hold kernels ({listed}), and a code object lists those of one: link these "
            "kernels as LLVM IR, by giving optimise() all modules"
        )
    return [data for _, data in sorted(zip(kernels, objects, strict=True), key=lambda pair: not pair[0])]
