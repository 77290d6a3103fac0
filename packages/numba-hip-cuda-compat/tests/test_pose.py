"""When `numba.cuda` is ours, when it is not, and what is left behind."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numba
import pytest

import numba_hip
import numba_hip_cuda
from numba_hip_cuda import PoseError, is_posing, pose_as_cuda, posing, stop_posing


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "statement",
    [
        "import numba.cuda as cuda",
        "import numba.cuda; cuda = numba.cuda",
        "from numba import cuda",
        "import numba; from numba import cuda",
        "import importlib; cuda = importlib.import_module('numba.cuda')",
    ],
)
def test_every_way_to_import_it_gives_our_names(check: Callable[..., str], statement: str) -> None:
    check(f"""
        from numba_hip_cuda import pose_as_cuda
        pose_as_cuda()
        {statement}
        import numba, numba_hip, sys
        assert cuda is numba.cuda is sys.modules["numba.cuda"]
        assert cuda.grid is numba_hip.grid and cuda.jit is numba_hip.jit
        from numba.cuda import grid
        assert grid is numba_hip.grid
    """)


def test_the_package_of_numba_cuda_is_there() -> None:
    with posing() as cuda:
        package = importlib.import_module("numba_cuda")
        header = Path(__file__).with_name("cuda_names.txt").read_text().partition("\n")[0]
        assert f"of numba-cuda {package.__version__}." in header
        assert importlib.util.find_spec("numba_cuda") is not None
        assert importlib.import_module("numba_cuda._version").__version__ == package.__version__
        assert importlib.import_module("numba_cuda.numba.cuda") is cuda is package.numba.cuda
        driver = importlib.import_module("numba_cuda.numba.cuda.cudadrv.driver")
        assert driver.Stream is importlib.import_module("numba.cuda.cudadrv.driver").Stream
        with pytest.raises(ModuleNotFoundError, match=r"numba_cuda\.numba.*'core' \(numba_hip_cuda poses"):
            importlib.import_module("numba_cuda.numba.core")
    assert not [name for name in sys.modules if name.startswith("numba_cuda")]


def test_numba_hip_offers_it(check: Callable[..., str]) -> None:
    check("""
        from numba import hip
        hip.pose_as_cuda()
        import numba_hip_cuda, numba.cuda
        assert numba_hip_cuda.is_posing() and numba.cuda.grid is hip.grid
    """)


def test_importing_us_does_not_import_nor_touch_numba_cuda(check: Callable[..., str]) -> None:
    check("""
        import sys, numba
        finders = list(sys.meta_path)
        import numba_hip, numba_hip_cuda
        assert not [name for name in sys.modules if name.startswith("numba.cuda")]
        assert not hasattr(numba, "cuda")
        assert [f for f in sys.meta_path if f not in finders and "hip_cuda" in type(f).__module__] == []
    """)


def test_posing_costs_next_to_nothing(check: Callable[..., str]) -> None:
    counted = check("""
        import sys
        import numba_hip

        before, calls = set(sys.modules), []
        import numba_hip_cuda

        sys.setprofile(lambda frame, event, argument: calls.append(frame.f_code) if event == "call" else None)
        numba_hip_cuda.pose_as_cuda()
        from numba import cuda

        cuda.jit, cuda.grid, cuda.to_device
        numba_hip_cuda.stop_posing()
        sys.setprofile(None)
        loaded = set(sys.modules) - before
        assert {name.partition(".")[0] for name in loaded} == {"numba_hip_cuda"}, loaded
        print(len(loaded), len(calls))
    """)
    modules, calls = map(int, counted.split())
    assert modules < 15, "a module takes half a millisecond"
    assert calls < 500, "a call takes about a microsecond: posing and giving the name back, half a millisecond"


def test_it_ends_and_leaves_nothing_behind() -> None:
    before = list(sys.meta_path)
    with posing() as cuda:
        assert is_posing()
        assert sys.modules["numba.cuda"] is cuda is numba.cuda
        importlib.import_module("numba.cuda.cudadrv.error")
    assert not is_posing()
    assert sys.meta_path == before
    assert not [name for name in sys.modules if name == "numba.cuda" or name.startswith("numba.cuda.")]
    assert not hasattr(numba, "cuda")
    assert cuda.grid is numba_hip.grid, "a program that holds the module can go on"


def test_it_ends_when_the_block_raises() -> None:
    with pytest.raises(KeyError), posing():
        raise KeyError
    assert not is_posing()


def test_posing_within_posing_ends_with_the_outer_one() -> None:
    with posing() as outer:
        with posing() as inner:
            assert inner is outer
        assert is_posing()
        pose_as_cuda()
        assert [f for f in sys.meta_path if type(f).__module__ == "numba_hip_cuda.pose"] == [sys.meta_path[0]]
    assert not is_posing()
    stop_posing()  # of no consequence when there is nothing to stop


def test_afterwards_the_real_one_can_be_imported(check: Callable[..., str]) -> None:
    check("""
        import warnings
        from numba_hip_cuda import posing
        with posing() as cuda:
            pass
        warnings.simplefilter("ignore")  # those of Numba's own module are not ours
        import numba.cuda
        assert numba.cuda is not cuda and numba.cuda.__file__.endswith("__init__.py")
    """)


def test_a_numba_cuda_that_is_there_already_is_named(check: Callable[..., str]) -> None:
    printed = check("""
        import sys, warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import numba.cuda
        from numba_hip_cuda import PoseError, is_posing, pose_as_cuda
        before = list(sys.meta_path)
        try:
            pose_as_cuda()
        except PoseError as error:
            print(numba.cuda.__file__ in str(error), isinstance(error, ImportError), error.name)
        assert sys.meta_path == before and not is_posing()
    """)
    assert printed == "True True numba.cuda\n"


def test_the_redirector_of_numba_cuda_is_refused(check: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "_numba_cuda_redirector.py").write_text("")
    printed = check(
        """
        import _numba_cuda_redirector  # as its .pth file does
        from numba_hip_cuda import PoseError, pose_as_cuda
        try:
            pose_as_cuda()
        except PoseError as error:
            print(error)
        """,
        path=tmp_path,
    )
    assert "numba-cuda is installed" in printed
    assert str(tmp_path / "_numba_cuda_redirector.py") in printed


def test_a_refusal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = ModuleType("numba.cuda.stranger")
    stranger.__file__ = "/some/where/stranger.py"
    monkeypatch.setitem(sys.modules, "numba.cuda.stranger", stranger)
    before = list(sys.meta_path)
    with pytest.raises(PoseError, match=r"numba\.cuda\.stranger was imported from /some/where/stranger\.py"), posing():
        pass
    assert sys.meta_path == before
    assert sys.modules["numba.cuda.stranger"] is stranger


def test_the_module_is_pickled_by_name_and_can_be_inspected(cuda: ModuleType) -> None:
    assert type(cuda) is ModuleType
    assert importlib.util.find_spec("numba.cuda") is cuda.__spec__
    assert importlib.reload(cuda) is cuda
    assert cuda.grid is numba_hip.grid
    assert pickle.loads(pickle.dumps(numba_hip_cuda.pose.PoseError)) is PoseError
    assert not hasattr(cuda, "__wrapped__")
