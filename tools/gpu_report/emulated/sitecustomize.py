"""Gives Python processes that have this folder on their path an AMD GPU whose machine code is emulated here.

Processes that ask for the CPU device are left alone, as on a machine with a GPU.
"""

import os

if "EMULATED_TARGET" in os.environ and os.environ.get("NUMBA_HIP_DEVICE") != "cpu":
    from tools.amd_executor.attachment import attach

    attach(os.environ["EMULATED_TARGET"])
