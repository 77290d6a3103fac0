"""The command line of an example, made from the parameters of its `main`."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Callable
from pathlib import Path

from numba import hip

from hip_runtime import HipRuntimeError


def run(main: Callable[..., None]) -> None:
    """Call *main* with what the command line says.

    ``--size`` and ``--output`` if *main* has such parameters; ``--small`` for its module's ``SMALL`` as the size;
    ``--device`` for all.
    """
    module = inspect.getmodule(main)
    parameters = inspect.signature(main).parameters
    size = parameters["size"].default
    parser = argparse.ArgumentParser(description=module.__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=size, help=f"of the problem; by default {size}")
    parser.add_argument("--small", action="store_true", help=f"the same as --size {module.SMALL}: a quick run")
    parser.add_argument("--device", help="cpu, hip (an AMD GPU), or the number of a device")
    if "output" in parameters:
        parser.add_argument("--output", type=Path, help="write a picture to this file; needs matplotlib")
    given = parser.parse_args()
    if given.size < 1:
        parser.error(f"--size {given.size}: must be 1 or more")
    arguments = {"size": module.SMALL if given.small else given.size}
    if "output" in parameters:
        check_folder(parser, given.output)
        arguments["output"] = given.output
    choose_device(parser, given.device)
    main(**arguments)


def check_folder(parser: argparse.ArgumentParser, output: Path | None) -> None:
    """End the program if a picture has no place to go to, before it computes for long."""
    if output is not None and not output.absolute().parent.is_dir():
        parser.error(f"--output {output}: there is no folder {output.absolute().parent}")


def choose_device(parser: argparse.ArgumentParser, device: str | None) -> None:
    """Let kernels run on that device from now on."""
    if device in ("cpu", "hip"):
        os.environ["NUMBA_HIP_DEVICE"] = device
    elif device is not None and not device.isdigit():
        parser.error(f"--device {device}: must be cpu, hip, or the number of a device")
    try:
        hip.select_device(int(device) if device and device.isdigit() else 0)
    except HipRuntimeError as error:
        parser.error(f"--device {device}: {error}")
