"""Contexts of LLVM, freed in whatever order the garbage collector finds them and their modules."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap

import llvmlite.binding as llvm
import pytest

from hip_devicelib import llvm_context
from hip_devicelib.llvm_context import make_context

IN_CYCLES = """
    import gc
    import llvmlite.binding as llvm
    from hip_devicelib.llvm_context import make_context

    class Traceback:
        pass

    gc.disable()
    text = "".join(f"define i32 @f{i}(i32 %a) {{\\n %b = add i32 %a, {i}\\n ret i32 %b\\n}}\\n" for i in range(50))
    for _ in range(50):
        held = Traceback()
        held.context = {MAKE}()
        held.module = llvm.parse_assembly(text, held.context)
        held.itself = held
        del held
    gc.collect()
    print("survived")
"""


def run(make: str) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(IN_CYCLES).replace("{MAKE}", make)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_a_module_survives_a_context_that_the_collector_finds_first() -> None:
    assert run("make_context").stdout == "survived\n"


@pytest.mark.skipif(sys.platform != "linux", reason="what freed memory holds is another matter elsewhere")
def test_a_context_of_llvmlite_does_not() -> None:
    """If this fails, llvmlite does it itself: `make_context` has no purpose any more."""
    assert run("llvm.create_context").returncode != 0


def test_contexts_are_freed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    make_context()
    assert llvm_context._waiting
    monkeypatch.setattr(llvm_context, "SECONDS", -1.0)
    kept = make_context()
    llvm.parse_assembly("@x = global i32 0", kept).verify()
    del kept
    gc.collect()
    assert len(llvm_context._waiting) == 1
    make_context().close()
    assert len(llvm_context._waiting) == 1
