"""A cache of bytes in the user's cache directory: content-addressed, checksummed, bounded, shared by processes.

An entry is one file under the SHA-256 of all that its content depends on. It is written beside its place and moved
there, so that nobody sees half of one; its own SHA-256 stands in it, and an entry that does not match is removed and
counts as absent. Nothing is unpickled. A directory that other users can write to is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hip_devicelib.errors import CacheError

DIRECTORY_VARIABLE = "HIP_DEVICELIB_CACHE_DIR"
"""The environment variable that names another directory for the cache."""

DEFAULT_LIMIT = 512 << 20
"""Bytes that the entries of a cache may take together."""

_MAGIC = b"hip-devicelib cache 1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".entry"
_PART_SUFFIX = ".part"
_ABANDONED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a cache: its file, the bytes that it takes, and when it was last used (seconds since 1970)."""

    path: Path
    size: int
    used: float


def make_key(*parts: str | bytes) -> str:
    """The key of what depends on *parts*: a SHA-256 in which no two lists of parts run into each other."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def default_directory() -> Path:
    """Where the cache is: `DIRECTORY_VARIABLE`, or ``hip-devicelib`` in the user's cache directory (XDG)."""
    if chosen := os.environ.get(DIRECTORY_VARIABLE):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base else Path.home() / ".cache") / "hip-devicelib"


class Cache:
    """The cache in one directory, which is made if it is not there.

    Raises `CacheError` if the directory cannot be made or written to, belongs to another user, or can be written to by
    others. ``limit`` is in bytes; when entries take more, those that were not used for longest go. ``variable`` is the
    environment variable that errors advise to set.
    """

    def __init__(
        self, directory: Path | None = None, *, limit: int = DEFAULT_LIMIT, variable: str = DIRECTORY_VARIABLE
    ) -> None:
        self.directory = directory if directory is not None else default_directory()
        self.limit = limit
        self._variable = variable
        _prepare(self.directory, variable)

    def get(self, key: str) -> bytes | None:
        """The bytes of *key*, or None if they are not there or damaged; a damaged entry is removed."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CacheError(f"cannot read the cache entry {path}: {error.strerror}") from None
        head = len(_MAGIC) + _DIGEST_BYTES
        data = content[head:]
        if content[:head] != _MAGIC + _digest(key, data):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):  # when it was last used decides what goes first; not knowing is no harm
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep *data* under *key*, in place of what was there. Raises `CacheError` if that is not possible."""
        path = self._path(key)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=_PART_SUFFIX)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + _digest(key, data) + data)
                os.replace(name, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            raise CacheError(
                f"cannot write to the cache {self.directory}: {error.strerror}; free some space, or set "
                f"{self._variable} to another directory"
            ) from None
        self._shrink(self.limit, spare=path)

    def entries(self) -> list[Entry]:
        """All entries, those that were used last first."""
        return sorted(self._scan(), key=lambda entry: entry.used, reverse=True)

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        return self._shrink(0)

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / (key[2:] + _SUFFIX)

    def _scan(self) -> Iterator[Entry]:
        for path in self.directory.glob(f"??/*{_SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):  # another process may have removed it
                status = path.stat()
                yield Entry(path, status.st_size, status.st_mtime)

    def _shrink(self, limit: int, *, spare: Path | None = None) -> int:
        """Remove the entries that were not used for longest until *limit* is kept; *spare* stays."""
        self._remove_abandoned()
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        removed = 0
        while entries and total > limit:
            entry = entries.pop()
            if entry.path != spare:
                with contextlib.suppress(FileNotFoundError):
                    entry.path.unlink()
                total -= entry.size
                removed += 1
        return removed

    def _remove_abandoned(self) -> None:
        """Remove what processes that were killed while they wrote have left behind."""
        for path in self.directory.glob(f"??/*{_PART_SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def _prepare(directory: Path, variable: str) -> None:
    advice = f"set {variable} to a directory of your own"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as error:
        raise CacheError(f"cannot make the cache directory {directory}: {error.strerror}; {advice}") from None
    if status.st_uid != os.geteuid():
        raise CacheError(f"the cache directory {directory} belongs to another user (uid {status.st_uid}); {advice}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheError(
            f"others can write to the cache directory {directory} (mode {stat.S_IMODE(status.st_mode):o}), so what is "
            f"in it cannot be trusted: chmod go-w it, or {advice}"
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        raise CacheError(f"the cache directory {directory} cannot be written to; {advice}")
