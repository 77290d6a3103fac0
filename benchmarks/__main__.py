"""``python -m benchmarks``: run benchmarks, print medians, ratios and a summary, and save everything as JSON."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path

from benchmarks import environments, report, runner
from benchmarks.catalog import BENCHMARKS

RESULTS = Path(__file__).parent / "results"


def _rounds(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: there has to be at least one")
    return value


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("benchmark", nargs="*", help=f"which to run, of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--rounds", type=_rounds, help="how often each is timed (31, or 3 with --quick)")
    parser.add_argument(
        "--processes", type=_rounds, default=1, help="how often each is started anew for as many rounds"
    )
    parser.add_argument("--quick", action="store_true", help="little data and few rounds: shows that all run, no more")
    parser.add_argument("--output", type=Path, help="the JSON file to write; by default one in benchmarks/results")
    parser.add_argument("--environments", type=Path, help="where ``python -m benchmarks.environments`` put the peers")
    parser.add_argument("--plot", type=Path, help="a file for a plot of the ratios; needs matplotlib")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.benchmark if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks that *arguments* select; returns the exit status."""
    options = _parse(arguments)
    rounds = options.rounds or (3 if options.quick else 31)
    peers = environments.load(options.environments) if options.environments else {}
    results, unmeasured = {}, {}
    for name in options.benchmark or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        unmeasured[name] = runner.unmeasured(benchmark, peers)
        try:
            results[name] = runner.run(
                benchmark, rounds=rounds, quick=options.quick, environments=peers, processes=options.processes
            )
        except runner.BenchmarkError as error:
            print(error, file=sys.stderr)
            return 1
        print(report.table(benchmark, results[name], unmeasured[name]), flush=True)
    if len(results) > 1 and (summary := report.summarise(results)):
        print(summary)
    output = options.output or RESULTS / f"{datetime.now():%Y%m%d-%H%M%S}.json"
    report.save(output, results, quick=options.quick, unmeasured=unmeasured, environments=peers)
    if options.plot:
        report.plot(options.plot, results)
    print(f"{rounds * options.processes} rounds, all checked against NumPy; written to {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
