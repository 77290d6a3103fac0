"""Make a folder with a real ROCm compile stack (HIPRTC, its header, comgr, the HIP runtime), and a Python that uses it.

    python -m tools.rocm_prefix FOLDER

Needs Debian and the network, but no root and no GPU (see `tools.debian_packages`). The Python is ``rocm-python``,
beside the one that runs this. The folder is kept if it is already whole. The exit status is 0, or 75 if the packages
cannot be had.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.debian_packages import UnavailableError, unpack_packages, write_launcher

PACKAGES = (
    "libhiprtc6", "libhiprtc-builtins6", "libamd-comgr3", "libamdhip64-6", "rocm-device-libs-21", "libstdc++6",
)  # fmt: skip
SUITE = "sid"
UNAVAILABLE = 75


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    try:
        root = unpack_packages(folder, SUITE, PACKAGES)
    except UnavailableError as error:
        print(f"rocm_prefix: {error}", file=sys.stderr)
        return UNAVAILABLE
    python = Path(sys.executable)
    launcher = python.parent / "rocm-python"
    write_launcher(root, python, launcher, {"ROCM_PATH": str((root / "usr").resolve())})
    print(launcher)
    return 0


if __name__ == "__main__":
    sys.exit(main())
