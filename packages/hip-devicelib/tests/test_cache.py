from __future__ import annotations

import errno
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from devicelib_samples import run_python

from hip_devicelib import CacheError, HeaderError, Rocm
from hip_devicelib import cache as cache_module
from hip_devicelib.cache import DIRECTORY_VARIABLE, Cache, default_directory, make_key
from hip_devicelib.cached_libraries import supply_declarations, supply_library
from hip_devicelib.compilers import find_compiler
from hip_devicelib.declarations import Declarations
from hip_devicelib.rocm import look_up

KEY = make_key("a key")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def entry_file(cache: Cache) -> Path:
    (entry,) = cache.entries()
    return entry.path


def test_what_is_put_is_got(cache: Cache) -> None:
    assert cache.get(KEY) is None
    for data in (b"some bytes", b"", b"other bytes"):
        cache.put(KEY, data)
        assert cache.get(KEY) == data
    assert Cache(cache.directory).get(KEY) == b"other bytes"
    assert len(cache.entries()) == 1


def test_keys_do_not_run_into_each_other() -> None:
    assert len({make_key("ab", "c"), make_key("a", "bc"), make_key("abc"), make_key(b"abc", ""), make_key()}) == 5
    assert make_key("abc") == make_key(b"abc")


def test_the_key_of_parts_is_the_same_in_every_process() -> None:
    # Each part stands behind its length in eight bytes, the lowest first.
    expected = hashlib.sha256(b"\2\0\0\0\0\0\0\0ab" + b"\0" * 8).hexdigest()
    assert make_key("ab", b"") == expected


def test_every_damage_is_noticed_and_repaired(cache: Cache) -> None:
    cache.put(KEY, b"twelve bytes")
    path = entry_file(cache)
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))]
    damaged += [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(len(whole))]
    damaged += [whole + b"more"]
    for content in damaged:
        path.write_bytes(content)
        assert cache.get(KEY) is None
        assert not path.exists()
    cache.put(KEY, b"twelve bytes")
    assert cache.get(KEY) == b"twelve bytes"


def test_an_entry_under_another_key_is_not_believed(cache: Cache) -> None:
    cache.put(KEY, b"data")
    other = make_key("another")
    (cache.directory / other[:2]).mkdir(exist_ok=True)
    entry_file(cache).rename(cache.directory / other[:2] / f"{other[2:]}.entry")
    assert cache.get(other) is None


def link_elsewhere(path: Path) -> None:
    """As a valid entry of the same key that is somewhere else, where others might write."""
    elsewhere = path.parent.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def link_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        descriptor = os.open(path.parent, os.O_RDONLY)  # the name of a socket has to be short
        listener.bind(f"/proc/self/fd/{descriptor}/{path.name}")
        os.close(descriptor)


@pytest.mark.parametrize(
    "damage",
    [
        link_elsewhere, link_nowhere, make_directory, make_pipe, make_socket,
        lambda path: path.chmod(0o666), lambda path: path.chmod(0o620),
        lambda path: path.write_bytes(b""), lambda path: os.truncate(path, 30), lambda path: os.truncate(path, 1 << 20),
    ],
    ids=["link", "dead link", "directory", "pipe", "socket", "for all", "for the group", "empty", "short", "long"],
)  # fmt: skip
@pytest.mark.parametrize("first", ["get", "put"])
def test_what_is_no_file_of_ours_is_a_miss_and_is_replaced(
    cache: Cache, damage: Callable[[Path], None], first: str
) -> None:
    cache.put(KEY, b"twelve bytes")
    path = entry_file(cache)
    damage(path)
    if first == "get":
        assert cache.get(KEY) is None
        assert not os.path.lexists(path)
    cache.put(KEY, b"other bytes")
    assert path.is_file()
    assert not path.is_symlink()
    assert cache.get(KEY) == b"other bytes"
    assert len(cache.entries()) == 1


def test_a_directory_with_something_in_it_is_left_alone(cache: Cache) -> None:
    cache.put(make_key("other"), b"x")
    cache.put(KEY, b"twelve bytes")
    path = cache._path(KEY)
    make_directory(path)
    (path / "precious").write_bytes(b"")
    assert cache.get(KEY) is None
    with pytest.raises(CacheError, match=r"cannot write to the cache .*directory"):
        cache.put(KEY, b"twelve bytes")
    assert (path / "precious").exists()
    assert list(path.parent.glob("*.part")) == []
    assert len(cache.entries()) == 1
    assert cache.clear() == 1


def test_entries_that_changed_places_are_not_believed(cache: Cache) -> None:
    keys = [make_key("one"), make_key("two")]
    for key in keys:
        cache.put(key, key.encode())
    one, two = (cache._path(key) for key in keys)
    contents = one.read_bytes(), two.read_bytes()
    two.write_bytes(contents[0])
    one.write_bytes(contents[1])
    assert [cache.get(key) for key in keys] == [None, None]
    assert cache.entries() == []


OPERATIONS = [lambda cache: cache.get(KEY), lambda cache: cache.put(KEY, b"new")]


@pytest.mark.parametrize("operation", OPERATIONS, ids=["get", "put"])
class TestShards:
    """The directories below that of the cache."""

    @pytest.fixture
    def shard(self, cache: Cache) -> Path:
        cache.put(KEY, b"old")
        return entry_file(cache).parent

    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
    def test_that_others_can_write_to(
        self, cache: Cache, shard: Path, operation: Callable[[Cache], object], mode: int
    ) -> None:
        shard.chmod(mode)
        with pytest.raises(CacheError, match=rf"others can write to .*{shard.name} \(mode {mode:o}\).*chmod go-w"):
            operation(cache)
        shard.chmod(0o700)
        assert cache.get(KEY) == b"old"

    def test_of_another_user(self, cache: Cache, shard: Path, operation: Callable[[Cache], object]) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(shard, 12345, -1)
        with pytest.raises(CacheError, match=rf"{shard.name} belongs to another user \(uid 12345\); set"):
            operation(cache)
        os.chown(shard, 0, -1)
        os.chown(cache._path(KEY), 12345, -1)
        operation(cache)
        assert cache.get(KEY) in (None, b"new"), "an entry of another user is replaced"

    def test_that_are_links(self, cache: Cache, shard: Path, operation: Callable[[Cache], object]) -> None:
        shard.rename(cache.directory.with_name("elsewhere"))
        shard.symlink_to(cache.directory.with_name("elsewhere"))
        with pytest.raises(CacheError, match=rf"{shard.name} in the cache is a symbolic link: remove it, or set"):
            operation(cache)
        assert cache.entries() == []
        assert cache.clear() == 0
        assert len(list(cache.directory.with_name("elsewhere").iterdir())) == 1

    def test_that_are_files(self, cache: Cache, shard: Path, operation: Callable[[Cache], object]) -> None:
        shard.rename(cache.directory.with_name("elsewhere"))
        shard.write_bytes(b"")
        with pytest.raises(CacheError, match=rf"{shard.name} in the cache is no directory"):
            operation(cache)


AS_USER = """
import os, shutil, sys, tempfile
from pathlib import Path
from hip_devicelib.cache import Cache
from hip_devicelib.errors import CacheError
key, what = sys.argv[1:]
if os.geteuid() == 0:  # whom no permission stops
    os.setgid(12345)
    os.setuid(12345)
cache = Cache(Path(tempfile.mkdtemp()) / "cache")
path = cache._path(key)
cache.put(key, b"new")

def operate():
    return cache.get(key) if what == "get" else cache.put(key, b"newer")

for mode in (0o000, 0o500, 0o600):
    path.parent.chmod(mode)
    try:
        operate()
    except CacheError as error:
        assert "cannot be written to" in str(error), error
    else:
        raise AssertionError("nothing was said")
    cache.entries()
path.parent.chmod(0o700)
path.chmod(0)  # an entry that cannot be read
assert cache.get(key) is None
assert not path.exists()
cache.put(key, b"newest")
assert cache.get(key) == b"newest"
shutil.rmtree(cache.directory.parent)
"""


@pytest.mark.parametrize("operation", ["get", "put"])
def test_what_permissions_keep_from_its_owner(operation: str) -> None:
    done = run_python(AS_USER, KEY, operation)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_size_is_bounded_and_what_was_used_last_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=3500)
    keys = [make_key(str(number)) for number in range(4)]
    for number, key in enumerate(keys[:3]):
        cache.put(key, bytes(1000))
        path = cache.directory / key[:2] / f"{key[2:]}.entry"
        os.utime(path, (number, number))
    assert cache.get(keys[0]) is not None  # and is now the one used last
    cache.put(keys[3], bytes(1000))
    assert [cache.get(key) is not None for key in keys] == [True, False, True, True]


def test_an_entry_larger_than_the_limit_is_kept_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=100)
    cache.put(make_key("small"), b"x")
    cache.put(KEY, bytes(1000))
    assert cache.get(KEY) == bytes(1000)
    assert len(cache.entries()) == 1


def test_what_a_killed_process_left_is_removed(cache: Cache) -> None:
    cache.put(KEY, b"x")
    old, new = (entry_file(cache).with_name(f"{name}.part") for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.put(KEY, b"y")
    assert not old.exists()
    assert new.exists(), "another process may be writing it"


def test_errors_advise_to_set_the_variable_of_the_cache(tmp_path: Path) -> None:
    cache = Cache(tmp_path, variable="MY_FOLDER")
    cache.put(KEY, b"data")
    entry_file(cache).parent.chmod(0o722)
    for operation in (lambda: cache.get(KEY), lambda: cache.put(KEY, b"data")):
        with pytest.raises(CacheError, match="or set MY_FOLDER to a directory of your own"):
            operation()


def test_an_entry_is_written_beside_its_place(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda part, path: (replaced.append((Path(part), path)), replace(part, path)))
    cache.put(KEY, b"data")
    ((part, path),) = replaced
    assert part.parent == path.parent
    assert part.suffix == ".part"  # which is removed some time when this process is killed now
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_an_entry_whose_time_cannot_be_set_is_got(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KEY, b"data")
    monkeypatch.setattr(os, "utime", _fail)
    assert cache.get(KEY) == b"data"


def test_a_part_that_cannot_be_removed_hides_no_error(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", _fail)
    monkeypatch.setattr(os, "unlink", _fail)
    with pytest.raises(CacheError, match="cannot write to the cache .*: Input/output error; free some space"):
        cache.put(KEY, b"data")


def test_an_entry_that_cannot_be_read_is_named(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KEY, b"data")
    path = entry_file(cache)
    monkeypatch.setattr(os, "open", _fail)
    with pytest.raises(CacheError, match=f"^cannot read the cache entry {path}: Input/output error$"):
        cache.get(KEY)


def test_links_and_files_that_go_meanwhile_are_no_entries(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KEY, b"data")
    path = entry_file(cache)
    path.with_name("link.entry").symlink_to(path)
    assert [entry.path for entry in cache.entries()] == [path]

    class Gone:
        name = "gone.entry"
        is_file = stat = _fail

    listed = cache_module._listed
    monkeypatch.setattr(cache_module, "_listed", lambda directory: [*listed(directory), Gone()])
    assert [entry.path for entry in cache.entries()] == [path]


def test_no_more_entries_go_than_have_to(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    keys = [make_key(str(number)) for number in range(4)]
    for age, key in enumerate(keys):
        cache.put(key, b"x" * 1000)
        os.utime(cache._path(key), (1000 + age, 1000 + age))
    size = cache.entries()[0].size
    exact = Cache(tmp_path, limit=4 * size)
    exact.put(keys[3], b"x" * 1000)
    assert len(exact.entries()) == 4
    smaller = Cache(tmp_path, limit=2 * size)
    smaller.put(keys[3], b"x" * 1000)
    assert {entry.path for entry in smaller.entries()} == {cache._path(key) for key in keys[2:]}


def test_the_directory_is_made_with_those_above_it_and_may_be_a_link(tmp_path: Path) -> None:
    Cache(tmp_path / "some" / "where").put(KEY, b"data")
    (tmp_path / "link").symlink_to(tmp_path / "some" / "where")
    assert Cache(tmp_path / "link").get(KEY) == b"data"


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=f"cannot make the cache directory {tmp_path}/file/x: .*; set MINE to a dir"):
        Cache(tmp_path / "file" / "x", variable="MINE")
    monkeypatch.setattr(Path, "stat", _fail)
    monkeypatch.setattr(Path, "mkdir", lambda *arguments, **options: None)
    with pytest.raises(CacheError, match=f"cannot use the cache directory {tmp_path}: Input/output error; set MINE"):
        Cache(tmp_path, variable="MINE")


def test_a_directory_has_to_be_one_to_write_to_and_go_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: bool(asked.append(mode)) or True)
    Cache(tmp_path)
    assert asked == [os.W_OK | os.X_OK]


def _fail(*arguments: object, **options: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_clear(cache: Cache) -> None:
    for number in range(3):
        cache.put(make_key(str(number)), b"x")
    assert cache.clear() == 3
    assert cache.entries() == []
    assert cache.clear() == 0


def test_a_user_without_a_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)  # whom no list of users knows
    with pytest.raises(CacheError, match=f"absolute.*; set {DIRECTORY_VARIABLE} to a directory of your own"):
        Cache()
    assert list(tmp_path.iterdir()) == []


def test_a_cache_directory_without_a_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, appauthor: Path("~") / name)
    with pytest.raises(
        CacheError,
        match=f"directory, ~/hip-devicelib, is not an absolute path; set {DIRECTORY_VARIABLE} to a directory",
    ):
        Cache()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_directory() == tmp_path / ".cache/hip-devicelib"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory() == tmp_path / "xdg/hip-devicelib"
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "mine"))
    assert Cache().directory == tmp_path / "mine"
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(CacheError, match=rf"others can write to .*shared \(mode {mode:o}\).*{DIRECTORY_VARIABLE}"):
        Cache(directory)


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CacheError, match="belongs to another user"):
        Cache(tmp_path)


def test_a_directory_that_cannot_be_made_or_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CacheError, match="cannot make the cache directory"):
        Cache(tmp_path / "file" / "cache")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(CacheError, match="cannot be written to; set"):
        Cache(tmp_path)


def test_a_full_disk_leaves_nothing_behind(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    cache.put(KEY, b"old")
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(CacheError, match="No space left on device; free some space"):
        cache.put(KEY, b"new")
    assert [path.name for path in entry_file(cache).parent.iterdir()] == [entry_file(cache).name]
    assert cache.get(KEY) == b"old"


HAMMER = """
import sys
from pathlib import Path
from hip_devicelib.cache import Cache, make_key
cache = Cache(Path(sys.argv[1]), limit=20_000)
for number in range(150):
    name = str((number * 7 + int(sys.argv[2])) % 9)
    data = cache.get(make_key(name))
    assert data in (None, name.encode() * 3000), "damaged"
    cache.put(make_key(name), name.encode() * 3000)
"""


def test_many_processes_share_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda seed: run_python(HAMMER, str(tmp_path / "cache"), str(seed)), range(6)))
    assert [(process.returncode, process.stderr) for process in done] == [(0, "")] * 6
    entries = Cache(tmp_path / "cache").entries()
    assert 1 <= len(entries) <= 9
    assert [path for path in (tmp_path / "cache").glob("??/*") if path.suffix != ".entry"] == []


def test_supplying_without_a_header_is_an_error(tmp_path: Path, cache: Cache) -> None:
    path = tmp_path / "lib" / "libhiprtc-builtins.so.6"
    path.parent.mkdir()
    path.write_bytes(b"nothing")
    with pytest.raises(HeaderError):
        supply_declarations(Rocm(tmp_path, "a test", look_up(tmp_path)), cache)


def test_the_package_loads_no_cache_by_itself(tmp_path: Path) -> None:
    done = run_python(
        f"import os; os.environ['{DIRECTORY_VARIABLE}'] = {str(tmp_path / 'never')!r}\n"
        "import sys, hip_devicelib as hip; hip.load_reference(); hip.optimise\n"
        "assert 'hip_devicelib.cache' not in sys.modules"
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "never").exists()


# What follows needs a real ROCm.


@pytest.mark.usefixtures("libclang")
def test_own_declarations_are_made_once(real_rocm: Rocm, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    from hip_devicelib import cached_libraries

    monkeypatch.setattr(cached_libraries, "load_reference", lambda: Declarations((), (), "", None))
    made = supply_declarations(real_rocm, cache)
    assert len(made.functions) > 1300
    monkeypatch.setattr(cached_libraries, "parse_header", _must_not_be_called)
    assert supply_declarations(real_rocm, cache) == made
    path = entry_file(cache)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AssertionError, match="called again"):
        supply_declarations(real_rocm, cache)


def _must_not_be_called(*arguments: object) -> None:
    raise AssertionError("called again")


def test_the_library_is_built_once_for_each_target(
    real_rocm: Rocm, cache: Cache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hip_devicelib import cached_libraries

    compiler = find_compiler(real_rocm)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    built = supply_library("gfx90a", rocm=real_rocm, compiler=compiler, cache=cache)
    assert "building the device library for gfx90a" in capsys.readouterr().err
    assert supply_library("gfx90a:xnack+", rocm=real_rocm, compiler=compiler, cache=cache).target == "gfx90a:xnack+"
    monkeypatch.setattr(cached_libraries, "build_library", _must_not_be_called)
    start = time.perf_counter()
    assert supply_library("gfx90a", rocm=real_rocm, compiler=compiler, cache=cache) == built
    assert time.perf_counter() - start < 1
    for entry in cache.entries():
        entry.path.write_bytes(b"damaged")
    with pytest.raises(AssertionError, match="called again"):
        supply_library("gfx90a", rocm=real_rocm, compiler=compiler, cache=cache)


MAKER = """
import sys
from pathlib import Path
import filelock  # which takes longer than what follows
from hip_devicelib.cache import Cache, make_key

cache, key = Cache(Path(sys.argv[1])), make_key("made once")
print("asking", flush=True)
with cache.making(key, float(sys.argv[2])) as waited:
    data = cache.get(key) if waited else None
    if data is None:
        print("making", flush=True)
        sys.stdin.readline()
        cache.put(key, b"content")
print("done", waited, flush=True)
"""


@contextmanager
def held_maker(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that makes the entry until `finish` is called, or it is killed."""
    maker = start_maker(folder, stdin=subprocess.PIPE)
    try:
        assert [next_line(maker), next_line(maker)] == ["asking", "making"]
        yield maker
    finally:
        maker.kill()
        maker.communicate()


def waiting_maker(folder: Path) -> subprocess.Popen[str]:
    """A process that wants to make the entry, and has had the time to notice that another one does."""
    maker = start_maker(folder)
    assert next_line(maker) == "asking"
    time.sleep(0.5)
    return maker


def start_maker(folder: Path, waits: float = 60.0, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKER, str(folder), str(waits)]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True)


def next_line(maker: subprocess.Popen[str]) -> str:
    assert maker.stdout is not None
    return maker.stdout.readline().strip()


def finish(maker: subprocess.Popen[str]) -> str:
    """Let *maker* come to its end: what else it printed."""
    return maker.communicate(timeout=60)[0].strip()


def test_two_processes_make_an_entry_once(tmp_path: Path) -> None:
    with held_maker(tmp_path) as first:
        others = [waiting_maker(tmp_path) for _ in range(2)]
        assert finish(first) == "done False"
        assert [finish(other) for other in others] == ["done True"] * 2
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".entry"]


def test_nobody_waits_for_a_process_that_was_killed(tmp_path: Path) -> None:
    with held_maker(tmp_path) as first:
        other = waiting_maker(tmp_path)
        first.kill()
        assert finish(other) == "making\ndone True"


@pytest.mark.long
def test_a_process_that_takes_too_long_is_not_waited_for(tmp_path: Path) -> None:
    with held_maker(tmp_path):
        assert finish(start_maker(tmp_path, 0.2)) == "asking\nmaking\ndone True"


def test_where_nothing_can_be_locked_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import filelock

    def fail(*args: object, **more: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    cache = Cache(tmp_path)
    with cache.making(make_key("a")) as waited, cache.making(make_key("a")):
        assert not waited
