"""Selects the tests of the default run, and those of ``nox -s long``.

A test marked ``long`` is not in the default run. Of a test marked ``sample(count)``, that many parameter sets are,
spread evenly over all of them that are not ``long`` themselves, and others than of the next test; the rest are
``long``. ``--cases long`` runs what the default run leaves out, and ``--cases all`` everything; of what was chosen,
``--part 0/3``, ``--part 1/3`` and ``--part 2/3`` run a third each. A test that the command line names with ``::`` runs
with all of its parameter sets.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from zlib import crc32

import pytest

GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, have no common period with any parameter: a sample has each value of a parameter about
equally often."""

CHOICES = ("default", "long", "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--cases`` and ``--part``."""
    parser.addoption("--cases", choices=CHOICES, default="default", help="which tests are run: %(choices)s")
    parser.addoption("--part", type=_read_part, default=(0, 1), help="one part of them: 0/3, 1/3 or 2/3")


def _read_part(text: str) -> tuple[int, int]:
    """The numbers of ``PLACE/COUNT``; ValueError, which pytest words, if there is no such part."""
    place, count = map(int, text.split("/"))
    if not 0 <= place < count:
        raise ValueError(text)
    return place, count


def pytest_configure() -> None:
    """Turn off Hypothesis's deadlines: how long an example takes depends on what else the machine does."""
    if find_spec("hypothesis") is not None:
        from hypothesis import HealthCheck, settings

        settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark parameter sets beyond the samples, and deselect the tests that are not in this run."""
    _mark_beyond_samples(items)
    place, count = config.getoption("part")
    # Not each COUNTth: three forms of kernels take turns in many tests.
    kept = [item for number, item in enumerate(_chosen(items, config)) if int(number * GOLDEN % 1 * count) == place]
    left_out = {*items}.difference(kept)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def _chosen(items: list[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    chosen = config.getoption("cases")
    if chosen == "all" or (chosen == "default" and any("::" in argument for argument in config.args)):
        return items
    return [item for item in items if (item.get_closest_marker("long") is not None) == (chosen == "long")]


def pytest_collection_finish() -> None:
    """Keep the tests and the modules that they import out of the garbage collector's sight: they stay to the end."""
    _freeze()


@pytest.fixture(scope="module", autouse=True)
def freeze_leftovers() -> Iterator[None]:
    """Do the same with what a module's tests leave behind, such as the kernels that they compiled."""
    yield
    _freeze()


def _freeze() -> None:
    """Collect garbage, and leave out from now on what is there.

    Compiling makes objects by the hundred thousand. Many tests collect garbage, to see that something is given back,
    and would go through all of them each time.
    """
    gc.collect()
    gc.freeze()


def _mark_beyond_samples(items: list[pytest.Item]) -> None:
    sampled: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") is not None and item.get_closest_marker("long") is None:
            sampled[item.nodeid.split("[")[0]].append(item)
    for name, cases in sampled.items():
        (count,) = cases[0].get_closest_marker("sample").args  # type: ignore[union-attr]  # it was found above
        start = crc32(name.rpartition("/")[2].encode())
        for place in _spread(len(cases), start)[count:]:
            cases[place].add_marker("long")


def _spread(count: int, start: int) -> list[int]:
    """The numbers below *count*, the first of which are spread evenly for however many are taken. Another *start* gives
    another order: of three forms of kernels that most tests have, each is left out by some of them alone."""
    return sorted(range(count), key=lambda place: (start + place) * GOLDEN % 1)
