"""The API reference has every public name of `numba.hip`, once, and each says what it is."""

from __future__ import annotations

import inspect
from collections import Counter
from types import ModuleType

import pytest

import numba_hip
from numba_hip.language.vector_types import VECTORS

pytest.importorskip("sphinx", reason="Sphinx, which the reference is made with, is not installed")

from tools.site import reference
from tools.site.reference_groups import ELSEWHERE, GROUPS


def names_in_groups() -> Counter[str]:
    """How often each name of `numba.hip` is in a group; a module in it, or one of its names, stands for the module."""
    groups = GROUPS.values()
    modules = [
        name for group in groups for name in group.modules if isinstance(getattr(numba_hip, name, 0), ModuleType)
    ]
    spaces = {name.partition(".")[0] for group in groups for name in group.names.split() if "." in name}
    return Counter([name for group in groups for name in group.names.split() if "." not in name] + modules + [*spaces])


def test_each_public_name_is_on_one_page() -> None:
    found = names_in_groups()
    names = {name for name in dir(numba_hip) if not name.startswith("_")} - set(VECTORS)
    assert found.keys() == names - set(ELSEWHERE)
    assert [name for name, count in found.items() if count > 1] == []


@pytest.mark.parametrize("space", ["atomic", "shared", "local", "const", "vector", "cg"])
def test_each_name_of_a_namespace_is_on_a_page(space: str) -> None:
    listed = {name for group in GROUPS.values() for name in group.names.split() if name.startswith(f"{space}.")}
    module = getattr(numba_hip, space)
    assert listed == {f"{space}.{name}" for name in vars(module) if reference.defines(module, getattr(module, name))
                      and isinstance(getattr(module, name), reference.Stub)}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_each_entry_says_what_it_is(name: str) -> None:
    for shown, value in reference.members(GROUPS[name]).items():
        lines = list(reference.entry(shown, value))
        assert any(line.strip() and not line.strip().startswith("..") for line in lines), f"{shown} has no docstring"


def test_names_in_docstrings_are_links() -> None:
    text = reference.as_rst("A `Stream`, ``a `b` c``, and `nothing_here`; `hip_devicelib.errors.UnknownTargetError`.")
    assert ":py:obj:`Stream <hip.Stream>`" in text
    assert "``a `b` c``, and ``nothing_here``" in text
    assert "<hip_devicelib.UnknownTargetError>`" in text


def test_members_of_classes_are_shown_with_their_parameters() -> None:
    lines = list(reference.entry("hip.DeviceArray", numba_hip.DeviceArray))
    assert any(line.startswith("   .. py:method:: copy_to_host(ary") for line in lines)
    assert "   .. py:property:: size" in lines
    assert inspect.cleandoc(numba_hip.DeviceArray.__doc__ or "").splitlines()[0].split()[0] in "\n".join(lines)
