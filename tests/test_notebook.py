"""What a user of a notebook sees, in a real kernel of IPython; with ipykernel: ``nox -s editors``."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of jupyter_client's own sockets
]
jupyter = pytest.importorskip("jupyter_client.manager", reason="needs ipykernel")

BEFORE = """
import numpy as np
from numba import hip

@hip.jit
def saxpy(a, x, y):
    i = hip.grid(1)
    if i < x.size:
        y[i] += a * x[i]

x, y = hip.ones(5000, np.float32), hip.zeros(5000, np.float32)
"""

SPIN = """
@hip.jit
def spin(flag):
    while flag[0] == 0:
        pass
flag = hip.zeros(1, np.int32)
print("spinning", flush=True)
spin[64, 32](flag)
"""

TUNED = """
@hip.autotune(block=[32, 64], N=[1, 2])
def make(N):
    @hip.jit
    def kernel(v):
        i = hip.grid(1)
        if i < v.size:
            v[i] += N
    return kernel
make[32](np.zeros(1000))
"""


class Notebook:
    """A kernel that runs cells, and what is shown beneath them."""

    def __init__(self, folder: Path) -> None:
        self.manager = jupyter.KernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "kernel"))
        self.manager.kernel_spec.argv[0] = sys.executable  # this environment's, wherever kernels are registered
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, stop_at: str | None = None) -> list[dict[str, Any]]:
        """The contents of the messages of the cell *code*, which is interrupted a second after it prints *stop_at*."""
        shown = []

        def note(message: dict[str, Any]) -> None:
            shown.append({"kind": message["msg_type"], **message["content"]})
            if stop_at is not None and stop_at in message["content"].get("text", ""):
                threading.Timer(1, self.manager.interrupt_kernel).start()

        self.client.execute_interactive(code, output_hook=note, timeout=60)
        return shown

    def close(self) -> None:
        with warnings.catch_warnings():  # jupyter_client leaves the sockets of its event loop to the collector
            warnings.simplefilter("ignore", ResourceWarning)
            self.client.stop_channels()
            self.manager.shutdown_kernel(now=True)
            del self.client, self.manager
            gc.collect()


def text_of(shown: list[dict[str, Any]]) -> str:
    """What is shown as text: what was printed, values, and tracebacks without their colours."""
    parts = []
    for content in shown:
        parts += [content.get("text", ""), content.get("data", {}).get("text/plain", "")]
        parts += content.get("traceback", [])
    return "\n".join(part for part in parts if part)


def html_of(shown: list[dict[str, Any]]) -> str:
    return "".join(content.get("data", {}).get("text/html", "") for content in shown)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_HIP_DEVICE", "cpu")
        patch.setenv("NUMBA_HIP_CACHE_DIR", str(folder / "cache"))
        opened = Notebook(folder)
    try:
        opened.run("%colors NoColor")
        assert text_of(opened.run(BEFORE)) == ""
        yield opened
    finally:
        opened.close()


def test_the_contents_of_arrays(notebook: Notebook) -> None:
    assert "DeviceArray([2., 2., 2., ..., 2., 2., 2.]" in text_of(notebook.run("saxpy[20, 256](2.0, x, y)\ny"))


def test_what_kernels_print(notebook: Notebook) -> None:
    told = notebook.run("@hip.jit\ndef hello():\n    print('thread', hip.threadIdx.x)\nhello[1, 2]()")
    assert text_of(told).split("\n")[:2] == ["thread 0", "thread 1"]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("saxpy.explain(2.0, x, y)", "y[i] += a * x[i]"),
        ("with hip.profile() as profile:\n    saxpy[20, 256](2.0, x, y)\nprofile", "saxpy"),
    ],
)
def test_tables(notebook: Notebook, cell: str, says: str) -> None:
    html = html_of(notebook.run(cell))
    assert html.startswith("<table>")
    assert says in html


def test_a_mistake_is_shown_with_its_line(notebook: Notebook) -> None:
    told = text_of(notebook.run("@hip.jit\ndef wrong(a):\n    a[hip.gird(1)] = 0\nwrong[1, 1](x)"))
    assert "hip has no gird; did you mean 'grid'?" in told
    assert "a[hip.gird(1)] = 0" in told
    assert "dispatcher.py" not in told


def test_the_stop_button_ends_a_kernel(notebook: Notebook) -> None:
    told = text_of(notebook.run(SPIN, stop_at="spinning"))
    assert "KeyboardInterrupt" in told
    assert "streams.py" not in told
    assert "array([1., 1., 1.], dtype=float32)" in text_of(notebook.run("x.copy_to_host()[:3]"))
    assert "array([3.], dtype=float32)" in text_of(
        notebook.run("z = hip.ones(1, np.float32)\nsaxpy[1, 1](2.0, x[:1], z)\nz.copy_to_host()")
    )


def test_tuning_has_a_progress_bar(notebook: Notebook) -> None:
    told = notebook.run(TUNED)
    assert any("autotune make" in str(content) and "0/4" in str(content) for content in told), told
