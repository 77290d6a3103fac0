import pickle

import pytest
from devicelib_samples import run_python
from llvmlite.binding import llvm_version_info

from hip_devicelib import TARGETS, InvalidIRError, UnknownTargetError, UnsupportedError, amdgpu, parse_target


@pytest.mark.parametrize(
    ("name", "wave", "lds_kib", "generic"),
    [
        ("gfx90a", 64, 64, None),
        ("gfx942", 64, 64, "gfx9-4-generic"),
        ("gfx950", 64, 160, "gfx9-4-generic"),
        ("gfx1030", 32, 64, "gfx10-3-generic"),
        ("gfx1100", 32, 64, "gfx11-generic"),
        ("gfx1201", 32, 64, "gfx12-generic"),
    ],
)
def test_facts_of_a_processor(name: str, wave: int, lds_kib: int, generic: str | None) -> None:
    target = parse_target(name)
    assert (target.wave_size, target.lds_bytes, target.generic) == (wave, lds_kib * 1024, generic)
    assert target.id == str(target) == name
    assert target.code_object_version == 500


def test_generic_processors_need_code_object_version_6() -> None:
    generic = [target for target in TARGETS.values() if target.name.endswith("-generic")]
    assert {target.code_object_version for target in generic} == {600}
    assert {target.generic for target in TARGETS.values()} - {None} == {target.name for target in generic}


def test_features_are_read_and_written_in_one_order() -> None:
    target = parse_target(" amdgcn-amd-amdhsa--gfx90a:xnack-:sramecc+ ")
    assert target.id == "gfx90a:sramecc+:xnack-"
    assert target.llvm_features == "+sramecc,-xnack"
    assert parse_target(target.id) == target
    assert pickle.loads(pickle.dumps(target)) == target


def test_wave_size_can_be_chosen_where_there_is_a_choice() -> None:
    assert parse_target("gfx1100", wave_size=64).llvm_features == "-wavefrontsize32,+wavefrontsize64"
    assert parse_target("gfx1100", wave_size=32) == parse_target("gfx1100")
    with pytest.raises(UnsupportedError, match=r"wave_size=32: gfx90a runs waves of \(64,\)"):
        parse_target("gfx90a", wave_size=32)


def test_waves_of_a_simd_unit_are_what_llvm_says() -> None:
    for name in [name for name, target in TARGETS.items() if target.since_llvm <= llvm_version_info[0]]:
        for wave_size in TARGETS[name].wave_sizes:
            target = parse_target(name, wave_size=wave_size)
            bitcode = amdgpu.optimise("define amdgpu_kernel void @empty() { ret void }", target)
            assert target.max_waves_per_simd == amdgpu.occupancy(bitcode, target, "empty"), name
    with pytest.raises(InvalidIRError, match="has no kernel 'full'"):
        amdgpu.occupancy(bitcode, target, "full")


@pytest.mark.parametrize(
    ("name", "blocks", "threads", "waves"),
    [
        ("gfx90a", 1, 64, 1),
        ("gfx90a", 2, 1024, 8),
        ("gfx90a", 3, 100, 2),
        ("gfx1100", 2, 1024, 16),
        ("gfx1100", 1, 1, 1),
    ],
)
def test_blocks_that_share_a_compute_unit(name: str, blocks: int, threads: int, waves: int) -> None:
    assert parse_target(name).waves_per_simd(blocks, threads) == waves


@pytest.mark.parametrize("text", ["gfx90b", "GFX90A", "gfx1100x", "sm_80", "", ":", "gfx9999", "help", "generic", "\0"])
def test_unknown_names_are_an_error_that_lists_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownTargetError, match=r"known targets: .*gfx942"):
        parse_target(text)


def test_unknown_name_names_the_close_ones() -> None:
    with pytest.raises(UnknownTargetError, match=r"'gfx90b'; did you mean .*gfx90a"):
        parse_target("gfx90b")


@pytest.mark.parametrize("value", [None, 90, b"gfx90a", ["gfx90a"]])
def test_a_target_that_is_no_string(value: object) -> None:
    with pytest.raises(UnknownTargetError, match="must be a string"):
        parse_target(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("gfx90a:xnack", UnknownTargetError, "followed by"),
        ("gfx90a:", UnknownTargetError, "followed by"),
        ("gfx90a:tail+", UnknownTargetError, "sramecc, xnack"),
        ("gfx90a:xnack+:xnack-", UnknownTargetError, "twice"),
        ("gfx1100:xnack+", UnsupportedError, "gfx1100 lets you choose: none"),
        ("gfx1010:sramecc+", UnsupportedError, "gfx1010 lets you choose: xnack"),
    ],
)
def test_features_that_are_wrong(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_target(text)


def test_llvm_knows_every_processor_that_the_table_says_it_knows() -> None:
    """Asked for the processor 'help', LLVM lists those it knows on standard error."""
    done = run_python(
        "import llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()\n"
        "llvm.Target.from_triple('amdgcn-amd-amdhsa').create_target_machine(cpu='help')\n"
        "print(llvm.llvm_version_info[0])"
    )
    assert done.returncode == 0, done.stderr
    processors = done.stderr.partition("Available features")[0]
    known = {line.split()[0] for line in processors.splitlines() if line.startswith("  ")}
    major = int(done.stdout)
    for target in TARGETS.values():
        assert (target.name in known) or target.since_llvm > major, target.name
