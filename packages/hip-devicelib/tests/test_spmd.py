"""The SPMD contract as data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hip_devicelib import spmd
from hip_devicelib.errors import CodeObjectError

DOCUMENT = Path(__file__).parents[3] / "docs" / "design" / "spmd-bitcode.md"


def declared() -> dict[str, tuple[str, tuple[str, ...]]]:
    """The functions that the document lists, with their types."""
    found = {}
    text = DOCUMENT.read_text()
    for result, name, parameters in re.findall(r"^\| `(\w+) @(spmd\.[^(]+)\(ptr %item(.*?)\)` \|", text, re.MULTILINE):
        kinds = tuple(kind for kind, _ in re.findall(r", (\w+) (%\w+)", parameters))
        for axis in spmd.AXES if "{x,y,z}" in name else ("",):
            for value in spmd.SHUFFLED if result == "T" else (result,):
                whole = name.replace("{x,y,z}", axis).replace("<T>", value)
                found[whole] = (value, tuple(value if kind == "T" else kind for kind in kinds))
    return found


def test_the_document_lists_what_there_is() -> None:
    found = declared()
    arrays = {name for name in found if name.startswith(spmd.SHARED)}
    assert len(arrays) == 1
    assert len(found) == 30
    for name, signature in found.items():
        assert spmd.is_known(name)
        assert spmd.signature(name) == signature
    assert found.keys() >= spmd.SYNCHRONISING


def test_what_depends_on_what() -> None:
    assert spmd.is_uniform(spmd.block_idx("y"))
    assert spmd.is_uniform("spmd.shared.k.0.64.8")
    assert spmd.is_pure(spmd.LANE)
    assert not spmd.is_uniform(spmd.LANE)
    assert not any(map(spmd.is_pure, spmd.SYNCHRONISING | {spmd.FAULT, spmd.OBSERVE, spmd.STACK_IS_LOW}))
    assert not spmd.is_known("spmd.number")
    with pytest.raises(CodeObjectError, match="'spmd.number' is no function"):
        spmd.signature("spmd.number")


def test_shared_arrays_lie_at_their_alignments_those_aligned_to_most_first() -> None:
    names = ["spmd.shared.a.0.1.1", "spmd.shared.b.0.32768.8", "spmd.shared.c.0.1.1", "spmd.barrier"]
    assert spmd.lay_out_shared(names) == 32770
    assert spmd.lay_out_shared(["spmd.shared.a.3.4", "spmd.shared.b.4.16"]) == 7
    assert spmd.lay_out_shared([]) == 0
    assert spmd.read_shared_array("spmd.shared.k.x.1.64.16") == spmd.SharedArray("spmd.shared.k.x.1.64.16", 64, 16)


@pytest.mark.parametrize("name", ["k.4", "k.4.x", ".4.4", "k.-1.4"])
def test_names_of_arrays_that_say_nothing(name: str) -> None:
    with pytest.raises(CodeObjectError, match="is called spmd.shared.<name>.<bytes>.<align>"):
        spmd.read_shared_array(f"spmd.shared.{name}")


@pytest.mark.parametrize("alignment", [0, 3, 8192])
def test_alignments_that_nothing_has(alignment: int) -> None:
    with pytest.raises(CodeObjectError, match=f"alignment {alignment}; it must be a power of two up to 4096"):
        spmd.read_shared_array(f"spmd.shared.k.64.{alignment}")
