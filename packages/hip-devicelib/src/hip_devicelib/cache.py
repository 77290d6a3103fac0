"""A cache of bytes in the user's cache directory: content-addressed, checksummed, bounded, shared by processes.

An entry is one file whose name is the SHA-256 of everything that its content depends on. It is written to another file
that is then renamed, so that nobody reads a partial entry. The file contains the SHA-256 of its content. An entry that
does not match is removed and treated as absent, and so is anything that is not a file of this user. Nothing is
unpickled. A directory that other users can write to is rejected; this holds for the cache's directory and for those in
it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hip_devicelib.errors import CacheError
from hip_devicelib.interrupts import let_interrupts_in

DIRECTORY_VARIABLE = "HIP_DEVICELIB_CACHE_DIR"
"""The environment variable that names another directory for the cache."""

DEFAULT_LIMIT = 512 << 20
"""The most bytes that the entries of a cache may take together."""

_MAGIC = b"hip-devicelib cache 1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".entry"
_PART_SUFFIX = ".part"
_LOCK_SUFFIX = ".lock"
_ABANDONED_SECONDS = 3600.0

WAITING_SECONDS = 60.0
"""How long a process waits for another one that is making the same entry."""

_POLL_SECONDS = 0.02
_UNDISTURBED_SECONDS = 0.2
"""How long it waits before it looks for Ctrl-C."""

# Links are not followed, named pipes are not waited for, and child processes do not inherit the file.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_OURS = {errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM, errno.ENODEV}
"""The error numbers of opening a link, a socket, a file without permission to read, and a device without a driver."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a cache: its file, its size in bytes, and when it was last used (seconds since 1970)."""

    path: Path
    size: int
    used: float


def make_key(*parts: str | bytes) -> str:
    """The key for something that depends on *parts*: a SHA-256 that differs for different lists of parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def default_directory() -> Path:
    """The cache's directory: `DIRECTORY_VARIABLE`, or ``hip-devicelib`` in the user's cache directory."""
    if chosen := os.environ.get(DIRECTORY_VARIABLE):
        return Path(chosen)
    return user_directory("hip-devicelib", DIRECTORY_VARIABLE)


def user_directory(name: str, variable: str) -> Path:
    """The directory *name* in the user's cache directory: ``XDG_CACHE_HOME``, or ``~/.cache``. It is not created.

    Raises `CacheError`, with the advice to set *variable*, if the user has no such directory.
    """
    from platformdirs import user_cache_path  # importing it takes about as long as reading a cache entry

    try:
        found = user_cache_path(name, appauthor=False)
    except RuntimeError as error:
        raise CacheError(f"no directory for a cache: {error}; {_advice(variable)}") from None
    if not found.is_absolute():
        raise CacheError(f"the user's cache directory, {found}, is not an absolute path; {_advice(variable)}")
    return found


class Cache:
    """A cache in one directory, which is created if necessary.

    Raises `CacheError` if the directory cannot be created or written to, belongs to another user, or can be written to
    by others. ``limit`` is in bytes: if entries take more, those that were not used for the longest time are removed.
    ``variable`` is the environment variable that error messages advise to set.
    """

    def __init__(
        self, directory: Path | None = None, *, limit: int = DEFAULT_LIMIT, variable: str = DIRECTORY_VARIABLE
    ) -> None:
        self.directory = directory if directory is not None else default_directory()
        self.limit = limit
        self._variable = variable
        _prepare(self.directory, variable)

    def get(self, key: str) -> bytes | None:
        """The bytes for *key*, or None if there is no entry or it is damaged. A damaged entry is removed.

        Raises `CacheError` if others can write to the entry's directory, or if the entry cannot be read.
        """
        path = self._path(key)
        if not os.path.lexists(path.parent):
            return None
        _check(path.parent, self._variable, shard=True)
        try:
            data = _read(path, key)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CacheError(f"cannot read the cache entry {path}: {error.strerror}") from None
        if data is None:
            _remove(path)
            return None
        # this only decides which entries are removed first, so a failure does no harm
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store *data* under *key*, replacing an earlier entry. Raises `CacheError` if that is not possible."""
        path = self._path(key)
        try:
            with contextlib.suppress(FileExistsError):
                path.parent.mkdir(mode=0o700)
            _check(path.parent, self._variable, shard=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=_PART_SUFFIX)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + _digest(key, data) + data)
                if path.is_dir() and not path.is_symlink():
                    _remove(path)  # a directory would prevent the renaming; it stays if it is not empty
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

    @contextlib.contextmanager
    def making(self, key: str, seconds: float = WAITING_SECONDS) -> Iterator[bool]:
        """A block in which this process makes the bytes of *key*, while others that want to make them wait.

        Yields whether another process was waited for: then the entry may be there now. It is waited for *seconds* at
        most, and no longer than it lives. Where files cannot be locked, nobody waits.
        """
        import filelock  # most processes find what they look for, and need none

        path = self._path(key).with_suffix(_LOCK_SUFFIX)
        lock, waited = filelock.FileLock(path, mode=0o600), False
        with contextlib.suppress(CacheError, OSError, NotImplementedError):
            with contextlib.suppress(FileExistsError):
                path.parent.mkdir(mode=0o700)
            _check(path.parent, self._variable, shard=True)
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                waited = True
                _wait_for(lock, seconds)
        try:
            yield waited
        finally:
            if lock.is_locked:
                _remove(path)  # who locks a file that is gone by then tries again
                lock.release()

    def entries(self) -> list[Entry]:
        """All entries, the most recently used first."""
        return sorted(self._scan(), key=lambda entry: entry.used, reverse=True)

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        return self._shrink(0)

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / (key[2:] + _SUFFIX)

    def _scan(self) -> Iterator[Entry]:
        for path, status in self._files(_SUFFIX):
            yield Entry(path, status.st_size, status.st_mtime)

    def _files(self, suffix: str) -> Iterator[tuple[Path, os.stat_result]]:
        """The files in the subdirectories whose names end with *suffix*, without links and unreadable directories."""
        for shard in _listed(self.directory):
            if len(shard.name) == 2 and shard.is_dir(follow_symlinks=False):
                for file in _listed(shard.path):
                    with contextlib.suppress(OSError):  # another process may have removed it
                        if file.name.endswith(suffix) and file.is_file(follow_symlinks=False):
                            yield Path(file.path), file.stat(follow_symlinks=False)

    def _shrink(self, limit: int, *, spare: Path | None = None) -> int:
        """Remove the least recently used entries until *limit* is met, but not *spare*."""
        self._remove_abandoned()
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        removed = 0
        while entries and total > limit:
            entry = entries.pop()
            if entry.path != spare:
                _remove(entry.path)
                total -= entry.size
                removed += 1
        return removed

    def _remove_abandoned(self) -> None:
        """Remove temporary files of processes that were killed while they wrote, and locks of long ago."""
        for suffix in (_PART_SUFFIX, _LOCK_SUFFIX):
            for path, status in self._files(suffix):
                if time.time() - status.st_mtime > _ABANDONED_SECONDS:
                    _remove(path)


def _listed(directory: Path | str) -> list[os.DirEntry[str]]:
    """The contents of *directory*; empty if it cannot be read."""
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError:
        return []


def _wait_for(lock: Any, seconds: float) -> None:
    """Take *lock*, a `filelock.FileLock` that another process has, or give up after so many *seconds*."""
    from filelock import Timeout

    until = time.monotonic() + seconds
    while not lock.is_locked and (left := until - time.monotonic()) > 0:
        let_interrupts_in()
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=min(left, _UNDISTURBED_SECONDS), poll_interval=_POLL_SECONDS)


def _remove(path: Path) -> None:
    """Remove a file, a link or an empty directory. If that fails, it stays."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def _read(path: Path, key: str) -> bytes | None:
    """The bytes for *key* in the entry at *path*; None if it is damaged, or is not a file that only this user can write
    to.

    Raises `OSError` if it cannot be read, `FileNotFoundError` if it does not exist.
    """
    try:
        handle = os.open(path, _OPEN)
    except OSError as error:
        if error.errno in _NOT_OURS:
            return None
        raise
    try:
        if not _is_own_file(handle):
            return None
        with os.fdopen(handle, "rb", buffering=0, closefd=False) as file:
            head = file.read(len(_MAGIC) + _DIGEST_BYTES)
            if not head.startswith(_MAGIC):
                return None
            data = file.readall()
    finally:
        os.close(handle)
    return data if head == _MAGIC + _digest(key, data) else None


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def _is_own_file(handle: int) -> bool:
    """Whether the open *handle* is a regular file that belongs to this user, and that others cannot write to."""
    status = os.fstat(handle)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not _is_open_to_others(status)


def _is_open_to_others(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _prepare(directory: Path, variable: str) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CacheError(
            f"cannot make the cache directory {directory}: {error.strerror}; {_advice(variable)}"
        ) from None
    _check(directory, variable)


def _check(directory: Path, variable: str, *, shard: bool = False) -> None:
    """Reject a directory that others can write to. A *shard*, which only a cache creates, must not be a link either."""
    advice = _advice(variable)
    try:
        status = directory.stat(follow_symlinks=not shard)
    except OSError as error:
        raise CacheError(f"cannot use the cache directory {directory}: {error.strerror}; {advice}") from None
    if not stat.S_ISDIR(status.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no directory"
        raise CacheError(f"{directory} in the cache is {what}: remove it, or {advice}")
    if status.st_uid != os.geteuid():
        raise CacheError(f"the cache directory {directory} belongs to another user (uid {status.st_uid}); {advice}")
    if _is_open_to_others(status):
        raise CacheError(
            f"others can write to the cache directory {directory} (mode {stat.S_IMODE(status.st_mode):o}), so what is "
            f"in it cannot be trusted: chmod go-w it, or {advice}"
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        raise CacheError(f"the cache directory {directory} cannot be written to; {advice}")


def _advice(variable: str) -> str:
    return f"set {variable} to a directory of your own"
