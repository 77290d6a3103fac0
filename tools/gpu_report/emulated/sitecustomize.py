"""Gives every Python process that has this folder on its path an AMD GPU whose machine code is executed here."""

import os
import sys

if "EMULATED_TARGET" in os.environ and not sys.flags.no_site:
    from tools.amd_executor.attachment import attach

    attach(os.environ["EMULATED_TARGET"])
