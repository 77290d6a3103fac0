"""Every public name of numba-cuda exists while posing, or there is a reason why it does not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

import hip_runtime
import numba_hip
from numba_hip.compilation.target_registry import compile_target
from numba_hip_cuda.omitted_names import left_out, of_copies, reason

LIST = Path(__file__).with_name("cuda_names.txt")
"""Written by `python -m tools.cuda_names`."""

DRIVER = "numba.cuda.cudadrv.driver"
DEVICE_ATTRIBUTES = f"{DRIVER}:Device attributes"

REFERENCE = (
    numba.__version__.startswith("0.68.")
    and sys.version_info[:2] == (3, 11)
    and np.__version__ >= "2"
    and find_spec("colorama") is None
)
"""Whether this is the Numba, Python and NumPy by which it was found out what Numba's modules lack. With colorama, they
have other names for the colours of messages."""


def read_list() -> dict[str, list[str]]:
    """The names of each module, and of each class as ``module:class``."""
    sections: dict[str, list[str]] = {}
    for line in LIST.read_text().splitlines():
        if line.startswith("["):
            names = sections.setdefault(line[1:-1], [])
        elif not line.startswith("#"):
            names += line.split()
    return sections


def kernel(out: Any) -> None:
    out[0] = numba_hip.grid(1)


def make_instances() -> dict[str, object]:
    """One object of each class whose instances have attributes that the class has not."""
    context = numba_hip.current_context()
    dispatcher = numba_hip.jit(kernel)
    dispatcher[1, 1](numba_hip.device_array(1))
    function = next(iter(dispatcher._loaded.values())).function
    pointer = numba_hip.MemoryPointer(context, 4096, 16)
    return {
        f"{DRIVER}:Device": hip_runtime.current_device(),
        f"{DRIVER}:Context": context,
        f"{DRIVER}:Stream": numba_hip.stream(),
        f"{DRIVER}:Event": numba_hip.event(),
        f"{DRIVER}:MemoryPointer": pointer,
        f"{DRIVER}:AutoFreePointer": pointer,
        f"{DRIVER}:MappedMemory": numba_hip.MappedMemory(context, 4096, 16),
        f"{DRIVER}:PinnedMemory": numba_hip.PinnedMemory(context, 4096, 16),
        f"{DRIVER}:BaseCUDAMemoryManager": context.memory_manager,
        f"{DRIVER}:HostOnlyCUDAMemoryManager": context.memory_manager,
        f"{DRIVER}:IpcHandle": numba_hip.IpcHandle(None, b"", 1),
        f"{DRIVER}:CudaPythonFunction": function,
        f"{DRIVER}:CudaPythonModule": function.module,
        "numba.cuda.compiler:ExternFunction": numba_hip.declare_device("outside", "int32(int32)"),
        "numba.cuda.dispatcher:CUDADispatcher": dispatcher,
        "numba.cuda.dispatcher:ForAll": dispatcher.forall(3),
        "numba.cuda.dispatcher:OmittedArg": importlib.import_module("numba.core.dispatcher").OmittedArg(1),
        "numba.cuda.stubs:Dim3": numba_hip.threadIdx,
        "numba.cuda.cudadrv.linkable_code:LinkableCode": numba_hip.LinkedCode(b""),
        "numba.cuda.simulator.cudadrv.linkable_code:LinkableCode": numba_hip.LinkedCode(b""),
        "numba.cuda.target:CUDATargetContext": compile_target("cpu").target_context,
    }


def holders(section: str, instances: dict[str, object]) -> list[object]:
    """What may have the names of *section*; nothing where the module or class is not there itself."""
    module, _, kind = section.partition(":")
    try:
        holder: object = importlib.import_module(module)
        if kind:
            holder = getattr(holder, kind)
    except (ImportError, AttributeError):
        return []
    if isinstance(holder, type) and holder.__module__.startswith("numba."):
        return []  # a class of Numba's, which sets attributes when one is made
    return [holder, *([instances[section]] if section in instances else [])]


def has(holder: object, name: str) -> bool:
    """Whether *holder* has *name*, although what stands behind it may not be possible just now."""
    if name in getattr(type(holder), "__dict__", {}):
        return True
    return hasattr(holder, name)


def lacking() -> Iterator[str]:
    """The names of the list that there are not, each as the table has it."""
    instances = make_instances()
    for section, names in read_list().items():
        if section == DEVICE_ATTRIBUTES:
            continue
        found = holders(section, instances)
        prefix = section.replace(":", ".")
        if not found and ":" not in section:
            yield prefix
        if found or ":" not in section:
            yield from (f"{prefix}.{name}" for name in names if not any(has(holder, name) for holder in found))


@pytest.mark.filterwarnings("ignore:The pretty_annotate functionality:FutureWarning")
def test_each_name_exists_or_is_left_out_for_a_reason(cuda: ModuleType) -> None:
    missing = set(lacking())
    assert len(read_list()) > 300
    copies = of_copies()
    unexplained = {name for name in missing if reason(name) is None}
    superfluous = {name for name in left_out() if not any(one == name or one.startswith(name + ".") for one in missing)}
    if not REFERENCE:  # Numba's modules have more or fewer names in other releases, and for other Pythons
        own = {name for name in unexplained if not name.startswith(COPIED)}
        unexplained, superfluous = own, superfluous - copies
    assert not unexplained, "give them a meaning in numba_hip_cuda.catalog, or a reason in numba_hip_cuda.omitted_names"
    assert not superfluous, "they exist: take them out of numba_hip_cuda.omitted_names"


def test_each_attribute_of_cudas_devices_has_a_value(cuda: ModuleType) -> None:
    names = read_list()[DEVICE_ATTRIBUTES]
    assert len(names) > 160
    device = cuda.cudadrv.driver.Device(0)
    assert [name for name in names if not isinstance(getattr(device, name), int)] == []
    with pytest.raises(AttributeError, match="no attribute 'WARP_SIZES'"):
        device.WARP_SIZES  # noqa: B018


COPIED = tuple(
    f"numba.cuda.{name}."
    for name in """
        cgutils cloudpickle core cpython datamodel debuginfo itanium_mangler lowering misc np serialize typeconv types
        typing utils
    """.split()
)
"""The beginnings of names in modules that numba-cuda copied from Numba."""
