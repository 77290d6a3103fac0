"""Errors of the compile-time half.

Three situations are kept apart, because a user does something different about each:

* :class:`UnknownTargetError`: the name does not exist;
* :class:`UnsupportedError`: the name exists, this target or toolchain cannot do what was asked;
* :class:`NotFoundError`: something that should be on this machine was looked for and is not there.
"""

from __future__ import annotations


class DevicelibError(Exception):
    """Base of every error that hip-devicelib raises on purpose."""


class UnknownTargetError(DevicelibError, ValueError):
    """A target name that is not in the table of targets."""


class UnsupportedError(DevicelibError):
    """Something that exists, but that this target or toolchain cannot do."""


class NotFoundError(DevicelibError):
    """A file, library or tool that was looked for and is not there."""


class MissingExtraError(NotFoundError):
    """What an optional dependency is needed for; ``extra`` is what brings it, such as ``hip-devicelib[headers]``."""

    def __init__(self, message: str, extra: str) -> None:
        super().__init__(message)
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (str(self), self.extra)


class ForkWarning(RuntimeWarning):
    """A process was forked while another of its threads compiled and did not come to an end."""


class InvalidIRError(DevicelibError, ValueError):
    """LLVM IR or bitcode that does not parse or does not verify."""


class HeaderError(DevicelibError, ValueError):
    """A HIP header that does not parse, or text that is not a HIP header."""


class ManifestError(DevicelibError, ValueError):
    """A file of declarations that is damaged, or that another version of this package wrote."""


class CompileError(DevicelibError):
    """HIP C++ that a compiler rejects, or a compiler that fails.

    The message holds the first of what the compiler said, ``log`` all of it.
    """

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class LinkError(DevicelibError):
    """An object that a linker rejects, or a linker that fails; the message holds what it said."""


class CacheError(DevicelibError):
    """A cache directory that cannot be used."""


class CodeObjectError(DevicelibError, ValueError):
    """A code object that is damaged, or that lacks what was asked of it."""
