"""The pages of numbers: what is worst comes first, and each says what made it."""

from __future__ import annotations

import re

from tools.cuda_suite.expectations import Section
from tools.site import numbers


def test_the_worst_ratio_comes_first() -> None:
    def result(**ratio: float) -> dict[str, dict[str, dict[str, float]]]:
        return {name: {"ratio": {"cpu": value}} for name, value in ratio.items()}

    mine = {"a": result(hip=0.5, warp=2), "b": result(hip=3), "c": result(hip=1)}
    mine = {
        name: {**one, **({numbers.PEER: {"ratio": {"cpu": 1}}} if name != "c" else {})} for name, one in mine.items()
    }
    assert list(numbers.ratios(mine).items()) == [("b", {"hip": 3}), ("a", {"hip": 0.5, "warp": 2})]
    picture = numbers.bars(numbers.ratios(mine))
    assert picture.index(">b<") < picture.index(">a<")
    assert re.findall(r'class="value">([\d.]+)<', picture) == ["3.00", "0.50", "2.00"]
    assert ">warp<" in picture
    assert ">taichi<" not in picture, "the legend has what is drawn"


def test_each_page_names_its_command() -> None:
    assert all(command in numbers.benchmarks() for command in numbers.COMMANDS.values())
    assert "nox -s cuda_suite" in numbers.conformance()
    assert "nox -s emulated" in numbers.executed()[0]


def test_causes_are_counted() -> None:
    sections = [
        Section("few", "One.", entries=["a"]),
        Section("none", "No."),
        Section("many", "Two.", entries=["b", "c"]),
    ]
    assert numbers.causes(sections).splitlines()[2:] == ["| many | 2 | Two. |", "| few | 1 | One. |"]
