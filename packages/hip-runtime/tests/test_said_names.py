"""The names of this library in messages: its own, or those of a package that poses as another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hip_runtime.errors import StreamError
from hip_runtime.said_names import OWN, Wording, is_ours, our, our_variable, platform, speak
from hip_runtime.stream_handle import stream_handle


@pytest.fixture
def posing() -> Iterator[None]:
    speak(Wording("OTHER", "other", lambda name: name in ("jit", "shared", "stream"), {"NUMBA_HIP_X": "OTHER_X"}))
    yield
    speak(OWN)


def test_names_of_our_own() -> None:
    assert (our(), our("jit"), our("shared.array")) == ("hip", "hip.jit", "hip.shared.array")
    assert (platform(), our_variable("NUMBA_HIP_X")) == ("HIP", "NUMBA_HIP_X")
    assert is_ours("hip.shared.array: no")
    assert not is_ours("other.jit")


@pytest.mark.usefixtures("posing")
def test_names_while_another_module_is_meant() -> None:
    assert (our(), our("jit"), our("shared.array")) == ("other", "other.jit", "other.shared.array")
    assert our("texture.sample") == "hip.texture.sample", "the other module has no such name"
    assert (platform(), our_variable("NUMBA_HIP_X")) == ("OTHER", "OTHER_X")
    assert our_variable("NUMBA_HIP_Y") == "NUMBA_HIP_Y"
    assert is_ours("hip.texture.sample: no")
    assert is_ours("other.jit")


@pytest.mark.usefixtures("posing")
def test_messages_of_the_runtime_have_them() -> None:
    with pytest.raises(StreamError, match=r"it must be a stream of other\.stream\(\)"):
        stream_handle("stream")
