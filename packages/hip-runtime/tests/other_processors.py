"""Code for other x86 processors than the one that the tests run on, which runs it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm
import pytest

from hip_runtime.drivers.cpu.object_code import host_machine, permutations

needs_x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="needs an x86-64 processor, which runs code for older ones"
)

_V2 = {"sse4.1": True, "cx16": True}
PROCESSORS = {"x86-64": {}, "x86-64-v2": _V2, "haswell": {**_V2, "avx": True, "avx2": True, "fma": True}}
"""Names of LLVM, with the features that are asked for by name."""


class _Features(dict[str, bool]):
    """What LLVM tells of a processor: nothing beyond its name."""

    def flatten(self) -> str:
        return ""


@contextmanager
def as_processor(name: str) -> Iterator[str]:
    """Code is generated for the processor *name*."""
    if name == "haswell" and not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("needs a processor with AVX2")
    features = _Features(PROCESSORS[name])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm, "get_host_cpu_name", lambda: name)
        patch.setattr(llvm, "get_host_cpu_features", lambda: features)
        _forget()
        yield name
    _forget()


def _forget() -> None:
    """Forget what was known of the processor."""
    for known in (*vars(host_machine).values(), *vars(permutations).values()):
        if hasattr(known, "cache_clear"):
            known.cache_clear()
