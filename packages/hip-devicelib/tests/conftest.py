import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def libclang() -> object:
    """Asked for by tests in which HIP C++ is read."""
    return pytest.importorskip("clang.cindex", reason="needs libclang: pip install 'hip-devicelib[headers]'")


@pytest.fixture(scope="session")
def real_rocm() -> object:
    """The ROCm of this machine; tests that need a real one say so by this name."""
    from hip_devicelib import NotFoundError, find_rocm

    try:
        rocm = find_rocm()
        rocm.require("hiprtc-builtins")
    except NotFoundError as error:
        pytest.skip(f"needs ROCm: {error}")
    return rocm
