"""The linking steps that targets share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from llvmlite import binding as llvm

from numba_hip.errors import LinkedCodeError, SharedMemoryError

if TYPE_CHECKING:
    from numba_hip.targets.code_library import HipCodeLibrary


def link_in(module: llvm.ModuleRef, part: llvm.ModuleRef) -> None:
    """Link *part* into *module*, which consumes it. Raises `LinkedCodeError` if LLVM rejects it."""
    try:
        module.link_in(part)
    except RuntimeError as error:
        raise LinkedCodeError(f"link: {error}") from None


def keep_only(module: llvm.ModuleRef, name: str) -> None:
    """Make every definition of *module* but *name* internal, so that unused ones can be removed."""
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != name:
            value.linkage = "internal"


def check_defined(name: str, missing: Iterable[str], is_known: Callable[[str], bool], where: str) -> None:
    """Raise `LinkedCodeError` if kernel *name* needs any of *missing*, functions without a definition, which the
    libraries of the device do not have either: *where* names these."""
    unknown = sorted(symbol for symbol in missing if not is_known(symbol))
    if unknown:
        named = ", ".join(map(repr, unknown))
        raise LinkedCodeError(
            f"kernel {name} calls {named}, which neither linked code nor {where} defines; add the code that does to "
            "link="
        )


def check_shared(library: HipCodeLibrary, name: str, target: str, most: int, total: int) -> None:
    """Raise `SharedMemoryError` if the shared arrays of kernel *name*, *total* bytes, exceed *most*."""
    if total > most:
        arrays = [array for part in library.closure() for array in part.shared]
        listed = "; ".join(text for text, _ in sorted(arrays, key=lambda array: -array[1]))
        raise SharedMemoryError(
            f"kernel {name}: its shared arrays have {total} bytes; a block on {target} has {most}: {listed}"
        )
