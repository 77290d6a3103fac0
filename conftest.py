"""Which tests the default run leaves to ``nox -s long``.

A test marked ``long`` is left out. Of a test marked ``sample(count)`` that many of its parameter sets are run, spread
over all of them; the others are ``long``. ``--cases long`` runs what the default run leaves out, ``--cases all`` runs
everything; a test that the command line names by its ``::`` is run with all of its parameter sets.
"""

from __future__ import annotations

from collections import defaultdict
from importlib.util import find_spec

import pytest

GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, are in step with no period: a sample has each value of a parameter about as often."""

CHOICES = ("default", "long", "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--cases``."""
    parser.addoption("--cases", choices=CHOICES, default="default", help="which tests are run: %(choices)s")


def pytest_configure() -> None:
    """Let Hypothesis take its time: how long it needs for an example is a matter of what else the machine does."""
    if find_spec("hypothesis") is not None:
        from hypothesis import HealthCheck, settings

        settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what samples leave out, and take away what this run is not for."""
    _mark_beyond_samples(items)
    chosen = config.getoption("cases")
    if chosen == "all" or (chosen == "default" and any("::" in argument for argument in config.args)):
        return
    left_out = [item for item in items if (item.get_closest_marker("long") is not None) != (chosen == "long")]
    items[:] = [item for item in items if (item.get_closest_marker("long") is not None) == (chosen == "long")]
    config.hook.pytest_deselected(items=left_out)


def _mark_beyond_samples(items: list[pytest.Item]) -> None:
    sampled: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") is not None:
            sampled[item.nodeid.split("[")[0]].append(item)
    for cases in sampled.values():
        (count,) = cases[0].get_closest_marker("sample").args  # type: ignore[union-attr]  # it was found above
        for place in sorted(range(len(cases)), key=lambda place: place * GOLDEN % 1)[count:]:
            cases[place].add_marker("long")
