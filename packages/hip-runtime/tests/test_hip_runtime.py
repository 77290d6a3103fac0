"""The real HIP runtime, on a machine without a GPU: what a user sees there is one clear sentence."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from hip_devicelib import NotFoundError, find_rocm
from hip_runtime.drivers.hip.probe import KFD, VISIBILITY

CODE = """
import os, sys, warnings
os.environ["ROCM_PATH"] = sys.argv[1]
import hip_runtime as rt
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.probe import import_hip
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        print([device.target for device in rt.devices()])
    except rt.DeviceUnavailableError as error:
        print(error)
print(*(warning.message for warning in caught))
try:
    Calls(import_hip())
except rt.DeviceUnavailableError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def rocm_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which hip-python finds the HIP runtime of this machine's ROCm under the name that it looks for."""
    if not importlib.util.find_spec("hip") or int(version("hip-python").split(".")[0]) < 10:
        pytest.skip("needs hip-python 10 or later, which looks for the HIP runtime where ROCM_PATH says")
    if os.path.exists(KFD):
        pytest.skip("needs a machine without an AMD GPU")
    try:
        library = find_rocm().require("hip")
    except NotFoundError as error:
        pytest.skip(f"needs ROCm: {error}")
    folder = tmp_path_factory.mktemp("rocm")
    (folder / "lib").mkdir()
    (folder / "lib/libamdhip64.so").symlink_to(library)
    return folder


@pytest.mark.parametrize("choice", ["auto", "hip"])
def test_without_a_gpu(rocm_path: Path, choice: str) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in VISIBILITY}
    environment = {**clean, "NUMBA_HIP_DEVICE": choice}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(rocm_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, warned, raised = done.stdout.splitlines()
    advice = "the HIP runtime finds no AMD GPU. Set NUMBA_HIP_DEVICE=cpu to run kernels on this machine's processor"
    if choice == "hip":
        assert (said, warned) == (f"NUMBA_HIP_DEVICE=hip asks for an AMD GPU: {advice}", "")
    else:
        assert (said, warned) == ("['cpu']", f"kernels run on the CPU device: {advice} without this warning")
    # By way of the functions that Cython exports: the name is hip-python's, the text the runtime's.
    assert raised == "hipGetDeviceCount: hipErrorNoDevice (100): no ROCm-capable device is detected"
