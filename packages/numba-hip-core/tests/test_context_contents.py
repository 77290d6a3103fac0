"""What is in a context: what programs keep there, and modules that they load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float64, void

import numba_hip as hip
from hip_runtime.errors import ModuleLoadError, SymbolError, UnsupportedError


@hip.jit(void(float64[::1]))
def double(values: Any) -> None:
    i = hip.grid(1)
    if i < values.size:
        values[i] *= 2


def test_contexts_of_a_device_share_what_programs_keep() -> None:
    context, again = hip.current_context(), hip.current_context()
    context.extras["library"] = 7
    assert again.extras.pop("library") == 7
    assert context.handle == again.handle == context.handle.value != 0


def test_modules_are_loaded_until_they_are_unloaded() -> None:
    context, calls = hip.current_context(), []
    image = double.get_overload(void(float64[::1])).code_object
    module = context.create_module_image(
        image, [lambda module: calls.append("setup")], [lambda module: calls.append("teardown")]
    )
    assert hip.current_context().modules == {module.handle: module}
    assert calls == ["setup"]
    assert module.function("double").name == "double"
    context.unload_module(module)
    assert (calls, context.modules) == (["setup", "teardown"], {})
    with pytest.raises(SymbolError, match="is not one of the 0 modules of this context"):
        context.unload_module(module)
    context.create_module_image(image)
    context.reset()
    assert not context.modules
    values = np.ones(3)
    double[1, 3](values)
    assert values.tolist() == [2, 2, 2]


def test_what_is_no_module_is_refused() -> None:
    context = hip.current_context()
    ptx = ".version 8.0\n.target sm_80\n.visible .entry double() { ret; }"
    for load in (lambda: context.create_module_ptx(ptx), lambda: context.create_module_image(ptx.encode())):
        with pytest.raises(UnsupportedError, match=r"PTX is NVIDIA's assembly language, .*; compile the function"):
            load()
    with pytest.raises(ModuleLoadError, match=r"image is a int; it must be a code object, as kernel\.compile"):
        context.create_module_image(3)
    with pytest.raises(ModuleLoadError, match="image is no code object of an AMD GPU: "):
        context.create_module_image(b"\x7fELF")
