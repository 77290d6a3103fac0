"""The launch that a kernel is compiled for, as rewrites of libraries ask for it."""

import threading

import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.rewrites import Rewrite, rewrite_registry

import numba_hip as hip
from numba_hip.dispatch.launch_context import (
    capture_compile_config,
    current_launch_config,
    ensure_current_launch_config,
)


@pytest.fixture
def seen(monkeypatch):
    """The launches that kernels were compiled for; code of those called ``for_a_launch`` is for such launches alone."""
    launches = []

    class LookAtLaunch(Rewrite):
        def match(self, func_ir, block, typemap, calltypes):
            launch = current_launch_config()
            if launch is None or launch.dispatcher.__name__ != func_ir.func_id.func_name or launch in launches:
                return False
            launches.append(launch)
            if launch.dispatcher.__name__ == "for_a_launch":
                launch.dispatcher.mark_launch_config_sensitive()
            return False

    rewrites = dict(rewrite_registry.rewrites)
    rewrites["after-inference"] = [*rewrites["after-inference"], LookAtLaunch]
    monkeypatch.setattr(rewrite_registry, "rewrites", rewrites)
    return launches


def test_code_for_one_launch(seen, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_HIP_CACHE_DIR", str(tmp_path))

    @hip.jit(cache=True)
    def for_a_launch(values):
        values[hip.grid(1)] = hip.blockDim.x

    stream, values = hip.stream(), hip.to_device(np.zeros(64))
    for config in ((1, 32), (1, 64), (1, 32), (2, 32), (1, 32, stream), (1, 32, stream, 256), (1, 64)):
        for_a_launch[config](values)
        assert values[0] == config[1]
    assert [(launch.griddim[0], launch.blockdim[0], launch.sharedmem) for launch in seen] == [
        (1, 32, 0), (1, 64, 0), (2, 32, 0), (1, 32, 256)
    ]  # fmt: skip
    assert seen[3].stream is stream
    assert seen[0].args == (values,)
    assert for_a_launch.launch_config_sensitive
    assert len(for_a_launch.overloads) == 1
    for_a_launch[1, 32](hip.to_device(np.zeros(64, np.int64)))
    assert len(seen) == 5
    assert not list(tmp_path.rglob("*.*"))  # what another process finds there, it takes for all launches
    for again in (False, True):
        if again:
            for_a_launch.recompile()
        with capture_compile_config(for_a_launch) as captured:
            for_a_launch[1, 64](values)
        assert (captured["config"] is not None) == again


def test_code_for_all_launches(seen):
    @hip.jit
    def for_all(values):
        values[0] = 1

    values = np.zeros(1)
    with capture_compile_config(for_all) as first, capture_compile_config(hip.jit(lambda: None)) as other:
        for_all[2, 32](values)
    with capture_compile_config(for_all) as second:
        for_all[1, 64](values)
    assert [launch.blockdim for launch in seen] == [(32, 1, 1)]
    assert first["config"] is seen[0]
    assert (second["config"], other["config"]) == (None, None)
    assert not for_all.launch_config_sensitive
    with pytest.raises(TypeError, match="dispatcher is required"), capture_compile_config(None):
        pass


def test_there_is_a_launch_only_while_one_compiles():
    @hip.jit
    def kernel():
        pass

    assert current_launch_config() is None
    for ask in (ensure_current_launch_config, kernel.mark_launch_config_sensitive):
        with pytest.raises(RuntimeError, match="No launch config set for this thread"):
            ask()

    @hip.jit
    def fails(values):
        values.nothing_like_it()

    with pytest.raises(TypingError, match="nothing_like_it"):
        fails[1, 1](np.zeros(1))
    assert current_launch_config() is None


def test_each_thread_has_its_launch(seen):
    @hip.jit
    def for_a_launch(values):
        values[0] = 1

    arrays = [np.zeros(1), np.zeros(1)]
    threads = [threading.Thread(target=for_a_launch[1, 1 + place], args=(array,)) for place, array in enumerate(arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert sorted(launch.blockdim[0] for launch in seen) == [1, 2]
    assert [array[0] for array in arrays] == [1, 1]
