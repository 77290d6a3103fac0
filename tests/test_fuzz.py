"""Random kernels of the fuzzer, a few of them; ``nox -s fuzz`` tries many."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import hip

from hip_runtime.drivers.cpu.vectorize.speculative_bases import SpeculativeBases
from hip_runtime.errors import TrapError, UnsupportedError
from numba_hip import config
from tools.fuzz import OverdueError, check, limit_time, unstored
from tools.fuzz.__main__ import main
from tools.fuzz.case import PARAMETERS, Case, Emitted, make_lines
from tools.fuzz.check import Mismatch, check_case, check_typed
from tools.fuzz.generator import MOST_DEPTH, make_case
from tools.fuzz.indexed import make_indexed_case
from tools.fuzz.indexed_check import check_indexed
from tools.fuzz.indexed_program import IndexedCase, Launch, Made
from tools.fuzz.indexed_values import code, store
from tools.fuzz.program import Line, Text, TypedCase
from tools.fuzz.reduction import shorter
from tools.fuzz.runs import CompiledCase, forms_of, load_program
from tools.fuzz.threads import run_threads
from tools.fuzz.typed import make_typed_case

PLAIN, WAITING = 5, 4
BEGIN = "shared =|sums =|shared[t]|sums[turn]|syncthreads()"
TOGETHER = (
    "shared[t]|syncthreads()|shared[(t|syncthreads()", "sums,|syncthreads()|^ sums|syncthreads()",
    "tile[|syncthreads()|tile[|syncthreads()",
)  # fmt: skip
"""What says of shared memory in a branching kernel stays together: at the start of it, and what threads wait in."""
KEPT = sorted((Path(__file__).parents[1] / "tools" / "fuzz" / "kept").glob("*.py"))
"""Programs that failed once."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [PLAIN, WAITING])
def test_a_random_kernel_gives_the_same_in_each_form_and_in_python(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    case = make_case(seed)
    assert make_case(seed) == case
    assert case.waits is (seed == WAITING)
    assert len(check_case(case)) == len(forms_of(case))


def test_a_difference_is_told_with_seed_form_and_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    run = CompiledCase.run

    def run_wrong(self: CompiledCase, form: str, width: int | None) -> object:
        arrays, told = run(self, form, width)
        if form == "regions":
            arrays[2][0, 0] += np.int64(1)
        return arrays, told

    monkeypatch.setattr(CompiledCase, "run", run_wrong)
    monkeypatch.setattr(check, "reduce_failure", lambda case, failed, run: case)
    case = make_case(PLAIN)
    with pytest.raises(Mismatch) as told:
        check_case(case)
    message = str(told.value)
    assert message.startswith(f"# seed {PLAIN}, form regions")
    assert "'rows' differs" in message
    assert case.text in message


def test_a_branching_kernel_that_fails_loses_what_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_HIP_DEVICE", "cpu")
    right = [np.zeros(1)] * len(PARAMETERS.split())

    def run(self: CompiledCase, form: str, width: int | None) -> object:
        wrong = form == "regions" and "hip.atomic.xor(totals" in self.case.text
        return [*right[:4], np.ones(1) if wrong else right[4], *right[5:]], "x: loop"

    def make(self: CompiledCase, program: dict[str, object], case: Case) -> None:
        self.case = case

    monkeypatch.setattr(CompiledCase, "run", run)
    monkeypatch.setattr(CompiledCase, "__init__", make)
    monkeypatch.setattr(check, "_simulate", lambda path, case: right)
    case = next(one for one in map(make_case, range(99)) if one.waits and "hip.atomic.xor(totals" in one.text)
    with pytest.raises(Mismatch, match="form regions .*'totals' differs") as told:
        check_case(case)
    assert (told.value.name, told.value.form) == ("totals", ("regions", None))
    _, _, text = str(told.value).partition("\n")
    body = text[text.index("def kernel(") : text.index("def make_arrays(")].strip().splitlines()[1:]
    assert "hip.atomic.xor(totals" in body[-1]
    assert len(body) <= MOST_DEPTH + 2
    assert "def helper_" not in text or "helper_" in body[-1]


@pytest.mark.parametrize(("seed", "waits", "njit"), [(70, False, True), (162, True, False)])
@pytest.mark.sample(1)
def test_a_typed_kernel_gives_what_its_reference_gives(seed: int, waits: bool, njit: bool) -> None:
    case = make_typed_case(seed)
    assert (case.waits, case.compares_with_njit) == (waits, njit)
    assert len(check_typed(case)) == 4


@pytest.mark.parametrize("seed", [2, 5, 12])
@pytest.mark.sample(1)
def test_a_kernel_with_computed_indices_gives_what_plain_python_gives(seed: int) -> None:
    assert make_indexed_case(seed) == make_indexed_case(seed)
    assert len(check_indexed(make_indexed_case(seed), 2)) == 2


def make_case_of(*lines: Line, checked: bool = False, layout: str = "plain") -> IndexedCase:
    """A kernel of *lines*, one thread for each of 40 elements ``q`` of the arrays `given` and `found`."""
    made = {"given": Made("np.arange(n)", layout), "found": Made("np.zeros(n, np.int64)", layout)}
    begin = code("q = hip.grid(1)")
    return IndexedCase(0, (8, 1, 1), 32, checked, "int64", (Launch(5, 8, (5, 1, 1)),), made, (begin, *lines))


@pytest.mark.parametrize("layout", ["plain", "every second"])
def test_what_is_stored_behind_an_array_is_noticed(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "reduce_failure", lambda case, failed, run: case)
    wrong = replace(
        store("found", "q", "given[q]"), text=Text("found[q + (q == 39)] = given[q]", "found[q] = given[q]")
    )
    right = store("found", "q", "given[q]")
    assert len(check_indexed(make_case_of(right, layout=layout))) > 1
    with pytest.raises(Mismatch, match=r"MemoryFaultError|in the gaps of found|found\[39\] is"):
        check_indexed(make_case_of(wrong, layout=layout), 1)


def test_an_index_out_of_range_must_be_reported() -> None:
    late = store("found", "q", "given[q + 1]")
    assert check_indexed(make_case_of(late, checked=True), 1)
    with pytest.raises(Mismatch, match="plain Python: IndexError: only kernels that check"):
        check_indexed(make_case_of(late), 1)
    silent = replace(late, text=late.text._replace(hip="found[q] = given[min(q + 1, n - 1)]"))
    with pytest.raises(Mismatch, match="no error was raised, must be IndexError"):
        check_indexed(make_case_of(silent, checked=True), 1)


def test_lanes_of_a_wave_meet_at_the_same_operation() -> None:
    met: dict[tuple[int, str], object] = {}

    def thread(at: Any) -> Iterator[tuple[object, ...]]:
        lane = at.threadIdx.x
        if lane & 1:
            met[lane, "odd"] = yield "ballot", (0, 0), True
        met[lane, "all"] = yield "ballot", (1,), lane != 2
        yield "barrier", ()
        if lane < 3:
            met[lane, "first"] = yield "shuffle", (2,), lane + 10, 0

    assert run_threads(thread, [], (), (1, 1, 1), (6, 1, 1), 4) == ""
    assert {place: found for place, found in met.items() if place[1] == "odd"} == {
        (1, "odd"): 10, (3, "odd"): 10, (5, "odd"): 2,
    }  # fmt: skip
    assert [met[lane, "all"] for lane in range(6)] == [11, 11, 11, 11, 3, 3]
    assert [met[lane, "first"] for lane in range(3)] == [10, 10, 10]


def test_indices_are_in_range_where_they_are_not_checked(tmp_path: Path) -> None:
    kinds = set()
    for seed in range(60):
        case = make_indexed_case(seed)
        program = load_program(tmp_path / "program.py", case.importing_text)
        errors = [
            program["expect"](program["reference"], program["make_launch"](number), case.block, case.wave)[1]
            for number in range(len(case.launches))
        ]
        assert case.checked or not any(errors), seed
        kinds |= {(case.checked, error) for error in errors}
    assert kinds == {(False, ""), (True, ""), (True, "IndexError")}


def test_what_is_loaded_and_never_stored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = llvm.parse_assembly("""
        define i64 @f(i64 %given) {
          %kept = alloca i64
          %forgotten = alloca i64
          %idle = alloca i64
          store i64 %given, ptr %kept
          %one = load i64, ptr %kept
          %two = load i64, ptr %forgotten
          %three = load i64, ptr %idle
          %moved = select i1 true, i64 %three, i64 0
          %sum = add i64 %one, %two
          ret i64 %sum
        }
    """)
    assert [told.split(" = ")[0] for told in unstored.find_unstored(module)] == ["f: %forgotten"]
    assert unstored.main(["--seed", "3", "--cases", "1"]) == 0
    body = code("r = q // 7"), code("c = q % 7"), store("found", "q", "given[r * 7 + c]")
    loop = code("for q in range(hip.grid(1), n, hip.gridsize(1)):", *body)
    case = replace(make_case_of(checked=True), block=(33, 1, 1), lines=(loop,))
    assert unstored.sweep_case(case, None) == []
    monkeypatch.setattr(SpeculativeBases, "keep", lambda self, value: None)
    assert "refused: " in unstored.sweep_case(case, None)[0]
    monkeypatch.setattr(SpeculativeBases, "check", lambda self: None)
    assert "never stored: " in unstored.sweep_case(case, None)[0]


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_a_kernel_that_failed_once(path: Path) -> None:
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


@pytest.mark.long
def test_what_is_left_of_a_typed_kernel_that_fails_shows_it_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = CompiledCase.run

    def run_wrong(self: CompiledCase, form: str, width: int | None) -> tuple[list[np.ndarray], str]:
        arrays, told = run(self, form, width)
        names = list(self.case.arrays)
        if any("own_uint8[g, 0" in line for line in self.case.text.splitlines()):
            arrays[names.index("own_uint8")].flat[0] ^= np.uint8(5)
        return arrays, told

    monkeypatch.setattr(CompiledCase, "run", run_wrong)
    case = make_typed_case(217)
    assert "own_uint8[g, 0" in case.text
    with pytest.raises(Mismatch, match="form .*own_uint8 differs at 1 places") as told:
        check_typed(case, 1)
    _, _, text = str(told.value).partition("\n")
    assert text.count("\n") < case.text.count("\n")
    program = tmp_path / "program.py"
    program.write_text(text)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr  # the kernel is right: what was wrong was added here


def test_a_typed_kernel_is_simulated_where_that_is_asked_for() -> None:
    with config.simulator.scope(True):
        assert check_typed(make_typed_case(59, simulated=True)) == ["(31, 1): simulator (it has one form only)"]


def test_a_typed_kernel_that_ends_in_an_error_loses_what_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: CompiledCase, form: str, width: int | None) -> object:
        if "own_uint8[g, 0" in self.case.text:
            raise TrapError("k", 0, (0, 0, 0), (0, 0, 0), 4, 0, 0)
        return list(self.program["make_arrays"]()), "x: loop"

    def make(self: CompiledCase, program: dict[str, object], case: TypedCase) -> None:
        self.program, self.case = program, case

    monkeypatch.setattr(CompiledCase, "run", run)
    monkeypatch.setattr(CompiledCase, "__init__", make)
    monkeypatch.setattr(TypedCase, "compares_with_njit", False)
    case = make_typed_case(217)
    with pytest.raises(Mismatch, match="form auto: TrapError: ") as told:
        check_typed(case, 1)
    assert (told.value.name, told.value.form) == ("TrapError", ("auto", None))
    assert str(told.value).count("\n") < case.text.count("\n")
    assert "own_uint8[g, 0" in str(told.value)


def test_what_ends_a_loop_stays_and_what_waits_is_never_parted() -> None:
    for seed in range(30):
        for lines in shorter(make_case(seed).lines):
            text = "\n".join(line for one in lines for line in one.write(0, 0))
            for number in range(1, 40):
                assert text.count(f"while left_{number} >") == text.count(f" left_{number} = int64(left_{number} - ")
            words = dict.fromkeys("|".join([BEGIN, *TOGETHER]).split("|"))
            found = "|".join(word for line in text.splitlines() for word in words if word in line)
            found = re.sub(r"(tile\[\|)+", "tile[|", found)
            found = found.replace("sums[turn]|tile[|", "sums[turn]|", 1).removeprefix(BEGIN)
            for part in TOGETHER:
                found = found.replace(part, "")
            assert not found.strip("|")
    for seed in range(60):
        for lines in shorter(make_typed_case(seed).lines):
            text = "\n".join(line for one in lines for line in one.write(0, 0))
            for number in range(1, 40):
                assert text.count(f"while left_{number} > 0") == text.count(f" left_{number} = left_{number} ")
                shared, waits = (text.count(f"s{number}{what}") for what in (" = hip.shared.array(", "["))
                assert (shared == 0) == (waits == 0)


def test_what_wraps_around_with_a_sign_is_computed_without_one() -> None:
    for text in (make(seed).text for make in (make_case, make_typed_case) for seed in range(40)):
        for call in ast.walk(ast.parse(text[text.index("def kernel(") : text.index("def make_arrays(")])):
            if isinstance(call, ast.Call) and ast.unparse(call.func).removeprefix("np.") == "int64":
                value = call.args[0]
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub | ast.Mult):
                    told = ast.unparse(call)
                    small = any(what in told for what in ("hip.", "THREADS", "left_", "& int64(7)"))
                    assert small or all("uint64(" in ast.unparse(part) for part in (value.left, value.right)), told


def test_a_kernel_that_does_not_end_is_ended() -> None:
    @hip.jit("void(int64[:])")
    def wait(numbers: np.ndarray) -> None:
        while numbers[0] == 0:
            pass

    with pytest.raises(OverdueError, match=r"not done after 0\.2 s of processor time"), limit_time(0.2):
        wait[1, 1](hip.to_device(np.zeros(1, np.int64)))
    check_typed(make_typed_case(70), 1)


def test_what_a_device_does_not_have_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(self: CompiledCase, *given: object) -> None:
        raise UnsupportedError("no such thing here")

    monkeypatch.setattr(CompiledCase, "__init__", refuse)
    tally = tmp_path / "tally"
    assert main(["--seed", "70", "--cases", "1", "--kinds", "typed", "--tally", str(tally)]) == 0
    assert "0 of 1 kernels" in capsys.readouterr().out
    assert '"lacking": {"UnsupportedError: no such thing here": 1}' in tally.read_text()


def test_a_function_that_another_calls_is_written() -> None:
    first, second = "def helper_0():\n    pass\n", "def helper_1():\n    helper_0()\n"
    case = replace(make_case(PLAIN), functions=(("helper_0", first), ("helper_1", second)))
    assert first not in replace(case, lines=make_lines([Emitted(1, "t = 0", False, 0)])).text
    assert first in replace(case, lines=make_lines([Emitted(1, "helper_1()", False, 0)])).text
