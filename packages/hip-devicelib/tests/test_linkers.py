from __future__ import annotations

import ctypes.util
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from devicelib_samples import SAXPY, kernel_around

import hip_devicelib as hip
from hip_devicelib import CodeObjectError, LinkError, NotFoundError, Rocm, linkers
from hip_devicelib.linkers import Comgr, Linker, Lld, find_linkers
from hip_devicelib.target import Target


def make_object(target: str, source: str = SAXPY) -> bytes:
    return hip.object_code(hip.optimise(source, target), target)


@pytest.fixture(scope="module")
def real_linkers() -> list[Linker]:
    try:
        rocm = hip.find_rocm()
    except NotFoundError:
        rocm = None
    found = list(find_linkers(rocm))
    if not found:
        pytest.skip("needs a linker: comgr, ld.lld or ziglang")
    return found


class Recorder:
    """A linker that returns its only object: that too can be read."""

    identity = "recorder"

    def __init__(self) -> None:
        self.targets: list[str] = []

    def link(self, objects: Sequence[bytes], target: Target) -> bytes:
        self.targets.append(target.id)
        return objects[0]


def test_the_linker_is_told_the_target_of_the_objects() -> None:
    recorder = Recorder()
    code = hip.link(make_object("gfx90a:xnack-"), linker=recorder, signatures={"small": [("result", "ptr")]})
    assert recorder.targets == ["gfx90a:xnack-"]
    assert code.target == "gfx90a:xnack-"
    assert code.kernel("small").parameters[0].name == "result"


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], "at least one object"),
        (b"", "not a 64-bit"),
        ([b"\x7fELF"], "not a 64-bit"),
    ],
)
def test_objects_that_are_wrong(objects: bytes | list[bytes], message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        hip.link(objects, linker=Recorder())


def test_objects_of_different_targets() -> None:
    with pytest.raises(CodeObjectError, match="different targets: gfx1100, gfx90a"):
        hip.link([make_object("gfx90a"), make_object("gfx1100")], linker=Recorder())


def test_kernels_in_two_objects() -> None:
    with pytest.raises(CodeObjectError, match=r"2 of the objects hold kernels \(saxpy, small; k\).*LLVM IR"):
        hip.link([make_object("gfx90a"), make_object("gfx90a", kernel_around(""))], linker=Recorder())


def test_no_linker_says_what_would_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotFoundError, match="'pip install ziglang' is enough"):
        hip.find_linker(Rocm(tmp_path, "a test", {}))

    def nothing() -> Rocm:
        raise NotFoundError("no ROCm on this machine")

    monkeypatch.setattr(linkers, "find_rocm", nothing)
    with pytest.raises(NotFoundError, match=r"ziglang \(no ROCm on this machine\)"):
        hip.link(make_object("gfx90a"))


def test_the_quickest_linker_is_first(tmp_path: Path) -> None:
    rocm = Rocm(tmp_path, "a test", {"ld.lld": tmp_path / "ld.lld", "comgr": tmp_path / "libamd_comgr.so.3"})
    first, second, *_ = find_linkers(rocm)
    assert isinstance(first, Comgr)
    assert second == Lld((str(tmp_path / "ld.lld"),))


def test_what_a_linker_says_is_in_the_error() -> None:
    failing = Lld((sys.executable, "-c", "import sys; sys.exit('the linker is unwell')"))
    with pytest.raises(LinkError, match="does not link this for gfx90a: the linker is unwell"):
        hip.link(make_object("gfx90a"), linker=failing)
    with pytest.raises(LinkError, match="does not run: No such file"):
        hip.link(make_object("gfx90a"), linker=Lld(("/nowhere/ld.lld",)))


def test_a_linker_whose_output_is_damaged() -> None:
    code = "import sys; open(sys.argv[sys.argv.index('-o') + 1], 'wb').write(b'rubbish')"
    with pytest.raises(CodeObjectError, match="not a 64-bit"):
        hip.link(make_object("gfx90a"), linker=Lld((sys.executable, "-c", code)))


def test_a_comgr_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "libamd_comgr.so.3").write_bytes(b"no library")
    with pytest.raises(LinkError, match="does not load"):
        hip.link(make_object("gfx90a"), linker=Comgr(tmp_path / "libamd_comgr.so.3"))


def test_a_library_that_is_no_comgr() -> None:
    with pytest.raises(LinkError, match="is no comgr: it lacks amd_comgr_"):
        hip.link(make_object("gfx90a"), linker=Comgr(Path(ctypes.util.find_library("c") or "libc.so.6")))


# What follows needs a real linker.


@pytest.mark.parametrize(
    "target", ["gfx90a:xnack+", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx9-4-generic"]
)
def test_linked_code_says_what_the_object_said(real_linkers: list[Linker], target: str) -> None:
    data = make_object(target)
    for linker in real_linkers:
        code = hip.link(data, linker=linker)
        assert code.target == target
        assert code.kernels == hip.read_kernels(data)
        assert code.image[16] == 3  # ET_DYN: shared objects are what HIP loads
        assert hip.link(data, linker=linker).image == code.image


def test_several_objects(real_linkers: list[Linker]) -> None:
    caller = kernel_around(
        "%x = call double @helper(double %d)\n  store double %x, ptr addrspace(1) %p",
        before="declare double @helper(double)",
    )
    library = "define double @helper(double %x) {\n  %y = fmul double %x, 2.0\n  ret double %y\n}\n"
    parts = [
        make_object("gfx90a", caller),
        hip.object_code(hip.optimise(library, "gfx90a", keep=["helper"]), "gfx90a"),
    ]
    for linker in real_linkers:
        for order in (parts, parts[::-1]):
            assert [kernel.name for kernel in hip.link(order, linker=linker).kernels] == ["k"]
        with pytest.raises(LinkError, match="undefined symbol: helper"):
            hip.link(parts[:1], linker=linker)


def test_garbage_is_refused_by_the_linker(real_linkers: list[Linker]) -> None:
    for linker in real_linkers:
        with pytest.raises(LinkError, match="does not link this for gfx90a"):
            linker.link([b"garbage"], hip.parse_target("gfx90a"))


def test_many_threads_link(real_linkers: list[Linker]) -> None:
    names = ["gfx90a", "gfx1100"]
    objects = {name: make_object(name) for name in names}
    for linker in real_linkers:
        expected = {name: hip.link(objects[name], linker=linker) for name in names}
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda name, linker=linker: hip.link(objects[name], linker=linker), names * 4))
        assert found == [expected[name] for name in names * 4]
