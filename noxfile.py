"""The sessions of this project. Each creates the environment that it needs, with the Python that runs nox.

``python3 -m pip install nox uv && python3 -m nox -s demo`` is enough on a fresh machine. Without uv, the environments
are created by virtualenv and filled by pip.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))
from emulated_modules import EMULATED, EMULATED_QUICK, EMULATED_TARGETS, EMULATED_WITH_ROCM
from session_requirements import PACKAGES, hip_python_extra, installed_rocm, lowest_versions

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).resolve().parent
nox.options.envdir = str(ROOT / ".nox")  # absolute, as sessions pass folders in it to programs that run elsewhere
IMPORTS = ("hip_devicelib", "hip_runtime", "numba_hip", "numba_hip_cuda")
PYTEST = ("pytest>=8", "pytest-xdist>=3.6", "pip")
"""The packages that run tests. Numba's report on the system, which a test looks at, needs pip, which environments of uv
lack."""

NO_TESTS = 5
"""pytest's exit status if it found nothing to run."""

NOTHING_TO_TEST = 75
"""The exit status of tools that fetch something to test with, such as ROCm's packages, if it is not available."""

RUFF = "ruff>=0.17,<0.18"
IMPORT_LINTER = "import-linter>=2.10,<3"
MYPY = "mypy>=2.4,<2.5"
TORCH = "torch>=2.6"
MATPLOTLIB = "matplotlib>=3.9"
NOTEBOOKS = ("jupytext>=1.16", "nbclient>=0.10", "nbconvert>=7.16", "ipykernel>=6.29")
SITE = ("sphinx>=8.1", "furo>=2025.7.19", "myst-parser>=4", "playwright>=1.49")
"""What the documentation's site is made with, and opened."""

EXECUTOR = "tinygrad==0.14.0"
"""Contains the encodings and pseudocode of AMD's instructions for ``tools.amd_executor``; needs Python 3.11."""

HIP_PYTHONS = ("rocm_6_2_0", "rocm_7_2_2", "rocm_10_0_0")
"""Extras of hip-runtime that install each generation of hip-python."""


def local(*packages: str, extra: str = "") -> list[str]:
    """Arguments that install *packages* from this tree together, as they depend on each other and are on no index;
    editable, so that a reused environment never holds an earlier state of the sources."""
    return [argument for package in packages for argument in ("-e", f"packages/{package}{extra}")]


def run_pytest(
    session: nox.Session, *arguments: str, python: str = "python", success_codes: tuple[int, ...] = (0,)
) -> None:
    """Run pytest in two processes, on the CPU device unless NUMBA_HIP_DEVICE asks for another.

    Python writes its bytecode, also where PYTHONDONTWRITEBYTECODE is set: a hundred tests start processes, and each
    would compile Numba's modules anew, for more than a second.
    """
    environment = {"NUMBA_HIP_DEVICE": os.environ.get("NUMBA_HIP_DEVICE", "cpu"), "PYTHONDONTWRITEBYTECODE": ""}
    command = (python, "-m", "pytest", "-n", "2", "--dist", "worksteal", *arguments, *session.posargs)
    session.run(*command, env=environment, success_codes=success_codes)


@nox.session
@nox.parametrize("layer", [*PACKAGES, "across"], ids=[*PACKAGES, "across"])
def tests(session: nox.Session, layer: str) -> None:
    """The tests of each package with only the packages beneath it installed; then examples, documents and all
    together."""
    if layer == "across":
        session.install(*local(*PACKAGES, extra="[test]"), *PYTEST)
        run_pytest(session, "tests")
        return
    beneath = PACKAGES[: PACKAGES.index(layer)]
    session.install(*local(*beneath), *local(layer, extra="[test]"), *PYTEST)
    run_pytest(session, f"packages/{layer}/tests")


@nox.session
def long(session: nox.Session) -> None:
    """The tests that the default run leaves out: all parameter sets, and tests that take seconds."""
    session.install(*local(*PACKAGES, extra="[test]"), MATPLOTLIB, *PYTEST)
    for folder in (*(f"packages/{package}/tests" for package in PACKAGES), "tests"):
        run_pytest(session, "--cases", "long", folder, success_codes=(0, NO_TESTS))


@nox.session
@nox.parametrize("release", HIP_PYTHONS, ids=HIP_PYTHONS)
def hip_python(session: nox.Session, release: str) -> None:
    """The driver of AMD GPUs with one generation of hip-python, on the stand-in for the HIP runtime."""
    # Without the extra for tests, which requires one release of hip-python itself.
    session.install(*local("hip-devicelib"), *local("hip-runtime", extra=f"[{release}]"), "hypothesis>=6.100", *PYTEST)
    tests = sorted(str(path) for path in Path("packages/hip-runtime/tests").glob("test_hip_*.py"))
    run_pytest(session, *tests, "packages/hip-runtime/tests/test_driver_contract.py")


@nox.session
def rocm(session: nox.Session) -> None:
    """The tests that need ROCm's compilers, with a real ROCm that is unpacked without root; no GPU is needed.

    Skipped if ROCm's packages are not available. They are unpacked once, into nox's cache.
    """
    tested = local("hip-devicelib", "hip-runtime", extra="[test]")
    session.install(*tested, *local("numba-hip-core"), *PYTEST)
    prefix = str(session.cache_dir / "rocm-prefix")
    launcher = session.run("python", "-m", "tools.rocm_prefix", prefix, silent=True, success_codes=[0, NOTHING_TO_TEST])
    if not launcher or not Path(launcher.strip()).is_file():
        session.skip(f"no ROCm to test with: {str(launcher).strip()}")
    tests = (
        "packages/hip-devicelib/tests",
        "packages/hip-runtime/tests/test_hip_runtime.py",
        "packages/numba-hip-core/tests/test_amd_codegen.py",
        "packages/numba-hip-core/tests/test_inline_assembly.py",
    )
    run_pytest(session, *tests, python="rocm-python")


@nox.session
def emulated(session: nox.Session) -> None:
    """Tests on AMD GPUs whose machine code is emulated here: ``nox -s emulated -- [TARGET] [quick | PATHS]``.

    Without a target, on all three; without paths, the executor's own tests, those of core in `EMULATED`, and the
    examples. ``quick`` runs only the executor's and a few of core's. Tests that need ROCm's device library are left out
    if its packages are not available.
    """
    if sys.version_info < (3, 11):
        session.skip(f"{EXECUTOR} needs Python 3.11")
    session.install(*local(*PACKAGES, extra="[test]"), *PYTEST, EXECUTOR)
    has_rocm = make_rocm_python(session)
    python = "rocm-python" if has_rocm else "python"
    quick = "quick" in session.posargs
    chosen = [argument for argument in session.posargs if argument not in (*EMULATED_TARGETS, "quick")]
    modules = EMULATED_QUICK if quick else EMULATED + EMULATED_WITH_ROCM if has_rocm else EMULATED
    tests = chosen or [f"packages/numba-hip-core/tests/test_{name}.py" for name in modules]
    for target in [argument for argument in session.posargs if argument in EMULATED_TARGETS] or EMULATED_TARGETS:
        if not chosen:
            ours = ("tools/amd_executor/tests", "tools/gpu_report/tests")
            session.run("python", "-m", "pytest", "-n", "2", *ours, "-k", target)
        plugin = ("-p", "tools.amd_executor.plugin", "-n", "2", "--dist", "worksteal")
        session.run(python, "-m", "pytest", *plugin, *tests, env={"EMULATED_TARGET": target})
        if has_rocm and not (quick or chosen):
            for example in sorted(Path("examples").glob("*.py")):
                session.run(python, "-m", "tools.amd_executor", target, str(example), "--small")


@nox.session
def gpu(session: nox.Session) -> None:
    """Everything on this machine's AMD GPU, and a report to send back: ``nox -s gpu -- [--quick]``.

    hip-python is the one for this machine's ROCm; ``--rocm 6.4.3`` chooses another. ``--emulated gfx942`` emulates the
    machine code here, on the stand-in for the HIP runtime. For other options: ``python -m tools.gpu_report --help``.
    """
    options = list(session.posargs)
    extra = hip_python_extra(options.pop(options.index("--rocm") + 1) if "--rocm" in options else installed_rocm())
    options = [option for option in options if option != "--rocm"]
    emulated = [EXECUTOR] if "--emulated" in options else []
    # Without hip-runtime's extra for tests, which requires one release of hip-python itself.
    hip = [*local("hip-devicelib"), *local("hip-runtime", extra=f"[{extra}]"), *local("numba-hip-cuda-compat")]
    session.install(*hip, *local("numba-hip-core", extra="[test]"), *PYTEST, *emulated)
    python = "rocm-python" if emulated and make_rocm_python(session) else "python"
    # Ctrl-C reaches the tool as well, which then writes a report on the finished parts. nox would kill it within half a
    # second.
    session.run(python, "-m", "tools.gpu_report", *options, interrupt_timeout=60, terminate_timeout=20)


def make_rocm_python(session: nox.Session) -> bool:
    """Create `rocm-python` in the session's environment, which has ROCm's compilers; returns False if they are not
    available."""
    command = ("python", "-m", "tools.rocm_prefix", str(session.cache_dir / "rocm-prefix"))
    said = session.run(*command, silent=True, success_codes=[0, NOTHING_TO_TEST])
    return Path(str(said).strip()).is_file()


@nox.session
def demo(session: nox.Session) -> None:
    """Real kernels on real data, on the GPU if there is one, otherwise on the CPU device; writes a page with their
    pictures and times, and says where it is."""
    session.install(*local(*PACKAGES), MATPLOTLIB)
    folder = Path(session.create_tmp()) / "demo"
    session.run("python", "examples/demo.py", "--output", str(folder), *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site, in a folder that the session names: its links, and its pages in a browser if there
    is one; ``-- -k PAGE`` opens a part."""
    session.install(*local(*PACKAGES), *SITE, *NOTEBOOKS, MATPLOTLIB, *PYTEST)
    folder, cpu = Path(session.create_tmp()) / "site", {"NUMBA_HIP_DEVICE": "cpu"}
    drawn = str(folder / "drawn")
    session.run("python", "examples/demo.py", "--output", drawn, env=cpu)
    session.run("python", "-m", "tools.site", str(folder), "--examples", drawn, env=cpu)
    session.run("python", "-m", "tools.notebooks", "--check", env=cpu)
    session.env["SITE"] = str(folder / "html")
    run_pytest(session, "tools/site/tests")
    session.log(f"the site is {folder / 'html' / 'index.html'}")


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules and format, and the import contracts."""
    session.install(RUFF, IMPORT_LINTER)
    session.install("--no-deps", *local(*PACKAGES))  # import-linter reads the packages without running their code
    session.run("ruff", "check")
    session.run("ruff", "format", "--check", "--diff")
    session.run("lint-imports", "--no-cache", "--no-logo")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy in strict mode, one package at a time."""
    session.install(*local(*PACKAGES), MYPY)
    for package in IMPORTS:
        session.run("mypy", "-p", package)


@nox.session
def editors(session: nox.Session) -> None:
    """What mypy, pyright, jedi and notebooks see of ``numba.hip`` in a normal installation."""
    session.install(*local(*PACKAGES), MYPY, "pyright", "jedi", "ipykernel", "ipywidgets", "tqdm", *PYTEST)
    run_pytest(session, "tests/test_editors.py", "tests/test_notebook.py", "--cases", "all")


@nox.session
def minimums(session: nox.Session) -> None:
    """All tests with the lowest versions that the packages allow."""
    everything = [*local(*PACKAGES, extra="[test]"), *PYTEST]
    constraints = Path(session.create_tmp()) / "minimums.txt"
    constraints.write_text("\n".join(lowest_versions()) + "\n")
    session.install("--constraint", str(constraints), *everything)
    for package in PACKAGES:
        run_pytest(session, f"packages/{package}/tests")
    # What is said of today's releases, and a tool of ours that needs a recent pytest, is not a matter of old versions.
    run_pytest(session, "tests", "--ignore", "tests/test_licences.py", "--ignore", "tests/test_mutants.py")


@nox.session(reuse_venv=False)
def build(session: nox.Session) -> None:
    """Source distributions and wheels in dist/, tested in an environment without anything else.

    ``-- https://github.com/OWNER/NAME`` gives the address where the repository is published, which releases link to.
    See CONTRIBUTING.md.
    """
    session.install("build", "virtualenv", "twine>=6.1", "readme-renderer[md]>=44", "packaging>=24.2")
    dist, sources = ROOT / "dist", ROOT / "packages"
    shutil.rmtree(dist, ignore_errors=True)
    if session.posargs:
        sources = Path(session.create_tmp()) / "staged"
        shutil.rmtree(sources, ignore_errors=True)
        session.run("python", "tools/stage_packages.py", str(sources), "--repository", *session.posargs)
    for package in PACKAGES:
        session.run("python", "-m", "build", "--outdir", str(dist), str(sources / package))
    session.run("twine", "check", "--strict", *(str(path) for path in sorted(dist.iterdir())))
    session.run("python", "tools/check_distributions.py", str(dist))
    check_installed(session, dist)
    check_installed(session, dist, "--no-binary", ",".join(PACKAGES))


def check_installed(session: nox.Session, dist: Path, *options: str) -> None:
    """Install the contents of *dist* into a new environment, use it, and uninstall it."""
    clean = Path(session.create_tmp()) / "clean"
    session.run("python", "-m", "virtualenv", "--clear", str(clean))
    python = str(clean / "bin" / "python")
    requirements = ["numba-hip-core[rocm_6_1_2]", "numba-hip-cuda-compat"]
    session.run(python, "-m", "pip", "install", *options, "--find-links", str(dist), *requirements, external=True)
    session.run(python, "tools/check_installation.py", "installed", external=True)
    session.run(python, "examples/demo.py", external=True)
    session.run(python, "-m", "pip", "uninstall", "--yes", *PACKAGES, external=True)
    session.run(python, "tools/check_installation.py", "uninstalled", external=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks against peers in separate environments; ``nox -s bench -- --quick`` only shows that they run.

    ``-- --against REV`` compares with another revision of this repository instead, and fails if that is faster.
    """
    session.install(*local(*PACKAGES), MATPLOTLIB)
    if any(argument.startswith("--against") for argument in session.posargs):
        session.run("python", "-m", "benchmarks.regressions", *session.posargs, env={"NUMBA_HIP_DEVICE": "cpu"})
        return
    peers = str(session.cache_dir / "bench-peers")
    session.run("python", "-m", "benchmarks.environments", peers)
    plot = str(Path(session.create_tmp()) / "benchmarks.svg")
    session.run("python", "-m", "benchmarks", "--environments", peers, "--plot", plot, *session.posargs)


@nox.session
def cuda_suite(session: nox.Session) -> None:
    """Numba CUDA's own tests, unchanged, over the posed `numba.cuda`; ``-- test_array`` runs a part.

    ``-- --quick`` runs the tests that are run with every change. Skipped if the tests cannot be downloaded.
    ``-- --suite numba-cuda-mlir`` runs those of `numba_cuda_mlir`, ``-- --suite numba-hip`` those of AMD's numba-hip,
    from their repositories.
    """
    tested = [*local("hip-devicelib", extra="[headers]"), *local(*PACKAGES[1:])]
    # Some tests need cffi, and one compares with ml_dtypes; with NumPy 2.5 some of their own code fails.
    session.install(*tested, "numpy<2.5", "pytest>=8", "pip", "cffi>=1.16", "ml_dtypes>=0.4", "ziglang>=0.15.1")
    cache = str(session.cache_dir)
    fetch = ("python", "-m", "tools.cuda_suite", "--cache", cache, "--fetch", *session.posargs)
    tests = str(session.run(*fetch, silent=True, success_codes=[0, NOTHING_TO_TEST])).strip()
    if not Path(tests).is_dir():
        session.skip(f"no tests to run: {tests}")
    session.run("python", "-m", "tools.cuda_suite", "--cache", cache, *session.posargs)


@nox.session
def neighbours(session: nox.Session) -> None:
    """Device arrays in other libraries, and their arrays in kernels; ``-- -k polars`` runs a part.

    PyTorch with CUDA takes gigabytes, and is not needed: uv installs the small build (``UV_TORCH_BACKEND=cpu``, unless
    that is set), and with pip a constraint (``PIP_CONSTRAINT``) can select it.
    """
    backend = {"UV_TORCH_BACKEND": os.environ.get("UV_TORCH_BACKEND", "cpu")}
    session.install(TORCH, env=backend, success_codes=(0, 1, 2))  # otherwise the next command would replace it
    libraries = (
        "awkward>=2.6", "jax>=0.4.34", "joblib>=1.3", "matplotlib>=3.9", "ml_dtypes>=0.5", "pandas>=2.2",
        "polars>=1.20", "pyarrow>=18", "scipy>=1.13", "stumpy>=1.13", "xarray>=2024.6",
    )  # fmt: skip
    session.install(*local(*PACKAGES), *PYTEST, *libraries, TORCH)
    run_pytest(session, "tools/neighbours")


@nox.session
def clusters(session: nox.Session) -> None:
    """Device arrays and kernels in the processes of Dask, Ray, joblib, ``concurrent.futures`` and MPI."""
    everything = [
        *local(*PACKAGES[:2]),
        *local(PACKAGES[2], extra="[dask,mpi,ray]"),
        "bokeh>=3.1",  # Dask's dashboard
        "joblib>=1.3",
        "mpich>=4.2",
        *PYTEST,
    ]
    session.install(*everything)
    run_pytest(session, "tools/clusters", "-n", "0")  # they start processes of their own


@nox.session
def isa(session: nox.Session) -> None:
    """Registers, memory and instructions of the benchmarks' kernels on AMD GPUs, compared with clang's; no GPU is
    needed."""
    session.install(*local(*PACKAGES[:3]), "ziglang>=0.15")
    session.run("python", "-m", "tools.isa_report", *session.posargs, env={"NUMBA_HIP_DEVICE": "cpu"})


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random kernels in each form of the CPU device and in Python, random calls of algorithms, and random SPMD
    programs; takes some minutes.

    Kernels and algorithms run on another device if NUMBA_HIP_DEVICE names one; SPMD programs always run on the CPU
    device.

    ``-- --seed 1000 --cases 50`` selects the kernels, ``-- --quick`` tries a few of each kind.
    """
    session.install(*local(*PACKAGES[:3]))
    environment = {"NUMBA_HIP_DEVICE": "cpu"}
    quick, folder = "--quick" in session.posargs, session.create_tmp()
    kernels = ["--scripts", folder, *(argument for argument in session.posargs if argument != "--quick")]
    programs = ("python", "packages/hip-runtime/tests/spmd_programs.py", "--cases", "10" if quick else "300")
    session.run(*programs, env=environment)
    session.run(*programs, "--bounds", env=environment)
    session.run(*programs, "--sums", env=environment)
    session.run(*programs, "--joined", env=environment)
    session.run(*programs, "--marked", env=environment)
    session.run(*programs, "--left-apart", env=environment)
    session.run(*programs, "--lengths", env=environment)
    with session.chdir("packages/hip-runtime/tests"):
        count = "20" if quick else "400"
        session.run("python", "-m", "spmd_fuzz", "--cases", count, "--scripts", folder, env=environment)
    environment = {"NUMBA_HIP_DEVICE": os.environ.get("NUMBA_HIP_DEVICE", "cpu")}
    session.run("python", "-m", "tools.fuzz", *(["--cases", "4"] if quick else []), *kernels, env=environment)
    if environment["NUMBA_HIP_DEVICE"] == "cpu" and platform.machine() == "x86_64":
        for processor in ("haswell",) if quick else ("haswell", "x86-64"):  # with AVX2, and with SSE2 only
            chosen = ("--kinds", "indexed", "--processor", processor, "--cases", "1" if quick else "40")
            session.run("python", "-m", "tools.fuzz", *chosen, "--scripts", folder, env=environment)
        session.run("python", "-m", "tools.fuzz.unstored", "--cases", "3" if quick else "300", env=environment)
    calls = ("python", "-m", "tools.fuzz_algorithms", "--cases", "10" if quick else "200", "--scripts", folder)
    session.run(*calls, env=environment)


@nox.session
def mutants(session: nox.Session) -> None:
    """Small changes to the code of arrays, atomics, caches, launches and the pool, each of which a test has to detect.

    A sample of them is tried. ``-- layout caches`` tries some targets; `tools/mutants/targets.toml` lists all.
    ``-- --all`` tries all changes, which takes an hour or more.
    """
    session.install(*local(*PACKAGES[:3], extra="[test]"), *PYTEST, "mutmut>=3.8,<3.9")
    session.run("python", "-m", "tools.mutants", "--folder", session.create_tmp(), *session.posargs)


@nox.session
def math(session: nox.Session) -> None:
    """The error of the CPU device's math functions, with and without a fused multiply-add, for every 64th float32;
    ``-- --every 1`` tries all, which takes hours."""
    session.install(*local("hip-devicelib", extra="[test]"))
    for processor in ((), ("--without-fma",)):
        session.run("python", "tools/check_math.py", "sweep", *processor, *(session.posargs or ("--every", "64")))
