"""Errors of the compile-time half.

Three situations are distinguished, as users respond to each in a different way:

* :class:`UnknownTargetError`: the name does not exist;
* :class:`UnsupportedError`: the name exists, but this target or toolchain does not support what was requested;
* :class:`NotFoundError`: something that should be on this machine was not found.
"""

from __future__ import annotations


class DevicelibError(Exception):
    """Base of every error that hip-devicelib raises on purpose."""


class UnknownTargetError(DevicelibError, ValueError):
    """A target name that is not in the table of targets."""


class UnsupportedError(DevicelibError):
    """Something that this target or toolchain does not support."""


class NotFoundError(DevicelibError):
    """A file, library or tool that was not found."""


class MissingExtraError(NotFoundError):
    """An optional dependency is missing; ``extra`` installs it, such as ``hip-devicelib[headers]``."""

    def __init__(self, message: str, extra: str) -> None:
        super().__init__(message)
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (str(self), self.extra)


class ForkWarning(RuntimeWarning):
    """A process was forked while another of its threads was still compiling."""


class InvalidIRError(DevicelibError, ValueError):
    """LLVM IR or bitcode that does not parse or does not verify."""


class HeaderError(DevicelibError, ValueError):
    """A HIP header that does not parse, or text that is not a HIP header."""


class ManifestError(DevicelibError, ValueError):
    """A file of declarations that is damaged, or that was written by another version of this package."""


class CompileError(DevicelibError):
    """HIP C++ or assembly that a compiler rejects, or a compiler that does not work.

    The message has the beginning of the compiler's output, ``log`` all of it.
    """

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class LinkError(DevicelibError):
    """An object that a linker rejects, or a linker that does not work; the message has its output."""


class CacheError(DevicelibError):
    """A cache directory that cannot be used."""


class CodeObjectError(DevicelibError, ValueError):
    """A code object that is damaged, or lacks something that was requested."""
