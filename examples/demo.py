"""All examples, one after the other, on whatever device there is, and a page with their pictures and times."""

import argparse
import contextlib
import importlib.util
import inspect
import io
import platform
import runpy
import sys
import time
from pathlib import Path

from gallery.page import Entry, write_page
from numba import hip

HERE = Path(__file__).resolve().parent
EXAMPLES = (
    "vector_add", "saxpy_device_arrays", "mandelbrot", "tiled_matmul", "matrix_cores", "reductions", "scan",
    "histogram", "image_convolution", "game_of_life", "heat_equation", "n_body", "ray_tracer", "monte_carlo_pi",
    "sessions", "ufuncs", "streams", "graphs", "torch_tensors", "debugging", "posing",
)  # fmt: skip
MOVING = ("heat_equation", "game_of_life")
"""Those whose picture is a GIF."""


def run_example(name: str, small: bool, pictures: Path | None) -> Entry:
    """Run one example; it checks what it has computed, and raises AssertionError if it differs."""
    source = HERE / f"{name}.py"
    begin = time.perf_counter()
    example = runpy.run_path(str(source))
    main, arguments = example["main"], {"size": example["SMALL"]} if small else {}
    picture = None
    if pictures is not None and "output" in inspect.signature(main).parameters:
        picture = arguments["output"] = pictures / f"{name}{'.gif' if name in MOVING else '.png'}"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        main(**arguments)
    return Entry(source, said.getvalue().strip(), time.perf_counter() - begin, picture)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small problems: a quick run")
    parser.add_argument("--only", nargs="+", choices=EXAMPLES, metavar="NAME", help=f"of {', '.join(EXAMPLES)}")
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write index.html and the pictures to this folder"
    )
    given = parser.parse_args()
    if given.output is not None:
        if importlib.util.find_spec("matplotlib") is None:
            parser.error("--output needs matplotlib: pip install matplotlib")
        try:
            given.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--output {given.output}: {error.strerror}")
    return given


def main() -> None:
    given = parse_arguments()
    device = hip.get_current_device()
    place = f"device: {device.name} ({device.target})"
    heading = f"{place}, numba.hip {hip.__version__}, Python {platform.python_version()}"
    print(heading)
    start = time.perf_counter()
    entries = []
    for name in given.only or EXAMPLES:
        entry = run_example(name, given.small, given.output)
        print(f"{entry.line}\n    took {entry.seconds:.2f} s, compiling and checking included", flush=True)
        entries.append(entry)
    print(f"all {len(entries)} examples computed and checked in {time.perf_counter() - start:.2f} s")
    if given.output is not None:
        page = given.output / "index.html"
        write_page(page, heading, entries)
        print(f"with pictures: {page.resolve()}")


if __name__ == "__main__":
    sys.exit(main())
