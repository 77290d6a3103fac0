"""Remarks of the vectoriser: in which form each instruction was written, by lines, without a change to the code."""

from __future__ import annotations

from typing import Any

from spmd_kernels import GLOBAL_X, code

from hip_devicelib.codeobject import Kernel
from hip_runtime import config
from hip_runtime.compile_notice import StageClock, announced, enter_stage, timed
from hip_runtime.drivers.cpu.explanation import explain_kernel
from hip_runtime.drivers.cpu.finalise import view_kernel
from hip_runtime.drivers.cpu.ir import remarks

KERNEL = f"""
define void @k(ptr noalias %item, ptr %out, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %own = alloca [4 x float]
  %p = getelementptr float, ptr %x, i64 %i
  %near = load float, ptr %p
  %far.index = mul i64 %i, %n
  %q = getelementptr float, ptr %x, i64 %far.index
  %far = load float, ptr %q
  %r = getelementptr float, ptr %own, i64 %n
  store float %far, ptr %r
  %kept = load float, ptr %own
  %wide = fpext float %kept to double
  %positive = fcmp ogt float %near, 0.0
  br i1 %positive, label %then, label %done
then:
  %tenth = fmul double %wide, 0x3FB999999999999A
  %narrow = fptrunc double %tenth to float
  %s = getelementptr float, ptr %out, i64 %i
  store float %narrow, ptr %s
  br label %done
done:
  ret void
}}
"""


class Nothing:
    """A listener that is told of all, and keeps a count."""

    count = 0

    def began(self, *told: Any) -> None:
        self.count += 1

    wrote = placed = began


def made() -> tuple[Any, Kernel]:
    object_ = code(KERNEL, "k", [("out", "ptr"), ("x", "ptr"), ("n", "i64")])
    return object_, object_.kernel("k")


def test_forms_of_instructions() -> None:
    object_, kernel = made()
    told = explain_kernel(object_, kernel, (64, 1, 1), form="vectors")
    assert told.form == "vectors"
    assert told.lanes > 1
    found = {(one.operation, one.form, one.memory, one.masked) for one in told.instructions if one.element}
    assert ("load", remarks.CONTIGUOUS, "global", False) in found
    assert ("load", remarks.GATHERED, "global", False) in found
    assert ("store", remarks.CONTIGUOUS, "global", True) in found
    assert any(memory == "private" for _, _, memory, _ in found)
    assert any(one.form == remarks.DIVERGENT for one in told.instructions)
    assert any(one.operation == "float32 to float64" for one in told.instructions)
    assert [one.nbytes for one in told.private] == [16]
    assert list(told.stages) == ["choosing the form and vectorising", "LLVM's passes", "emitting machine code"]
    assert explain_kernel(object_, kernel, (64, 1, 1), form="loop").lanes == 1


def test_code_is_the_same_for_listeners_and_nobody_is_told_otherwise() -> None:
    object_, kernel = made()
    listener = Nothing()
    with config.cpu_form.scope("vectors"):
        alone = view_kernel(object_, kernel, (64, 1, 1), lambda plan, module: str(module))
        assert not remarks.are_wanted()
        with remarks.listening(listener):
            heard = view_kernel(object_, kernel, (64, 1, 1), lambda plan, module: str(module))
    assert alone == heard
    assert listener.count > 10


def test_stages_are_counted_by_themselves() -> None:
    clock = StageClock()
    with timed(clock), announced("k", "first"):
        with announced("k", "within"):
            pass
        enter_stage("second")
    enter_stage("beyond")
    assert list(clock.seconds) == ["first", "within", "second"]
