"""Registers by computed numbers, registers of other lanes, and what is refused by its name."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from amd_kernels import TARGETS, machine, run
from llvmlite import ir
from tinygrad.renderer.amd.dsl import s, src, v

from tools.amd_executor import layout
from tools.amd_executor.decoding import FAMILIES, UnknownInstruction
from tools.amd_executor.engine import engine
from tools.amd_executor.images import ImageError
from tools.amd_executor.instruction_frame import SIGNATURE
from tools.amd_executor.machine import RegisterFault

pytestmark = pytest.mark.parametrize("target", TARGETS)

ELEMENTS = """
  %k0 = load i32, ptr addrspace(1) %k
  %pk1 = getelementptr i32, ptr addrspace(1) %k, i64 1
  %k1 = load i32, ptr addrspace(1) %pk1
  %u0 = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %k0)
  %u1 = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %k1)
  %pv = getelementptr <16 x i32>, ptr addrspace(1) %a, i64 %i
  %v = load <16 x i32>, ptr addrspace(1) %pv
  %w = insertelement <16 x i32> %v, i32 %lane, i32 %u0
  %e = extractelement <16 x i32> %w, i32 %u1
  %f = extractelement <16 x i32> %w, i32 %u0
  %s = mul i32 %e, 1000
  %r = add i32 %s, %f
  %po = getelementptr i32, ptr addrspace(1) %o, i64 %i
  store i32 %r, ptr addrspace(1) %po
"""
ELEMENTS_DECLARED = "declare i32 @llvm.amdgcn.readfirstlane.i32(i32)"
POINTERS = "ptr addrspace(1) %a, ptr addrspace(1) %k, ptr addrspace(1) %o"
TWO_POINTERS = "ptr addrspace(1) %a, ptr addrspace(1) %o"
ONE = """
  %p = getelementptr i32, ptr addrspace(1) %a, i64 %i
  %x = load i32, ptr addrspace(1) %p
"""
DONE = """
  %q = getelementptr i32, ptr addrspace(1) %o, i64 %i
  store i32 %r, ptr addrspace(1) %q
"""
NUMBERS = np.arange(100, 164, dtype=np.int32)


def of_one(target: str, code: str, declarations: str = "", attributes: str = "") -> np.ndarray:
    """What *code* makes %r of, where %x is 100 and the number of the lane."""
    kernel = machine(target, TWO_POINTERS, ONE + code + DONE, declarations, attributes=attributes)
    found = np.zeros(64, np.int32)
    run(kernel, [NUMBERS.copy(), found])
    return found


def test_elements_of_registers_in_a_row(target: str) -> None:
    kernel = machine(target, POINTERS, ELEMENTS, ELEMENTS_DECLARED)
    for stored, read in ((3, 3), (0, 15), (15, 2), (7, 8)):
        values = np.arange(64 * 16, dtype=np.int32).reshape(64, 16)
        found = np.zeros(64, np.int32)
        run(kernel, [values, np.array([stored, read], np.int32), found])
        values[:, stored] = np.arange(64)
        np.testing.assert_array_equal(found, values[:, read] * 1000 + values[:, stored])
    expected = {"S_SET_GPR_IDX_ON"} if target == "gfx942" else {"V_MOVRELD_B32", "V_MOVRELS_B32"}
    assert expected <= set(kernel.program.names.values()), "the code is not what the test is for"


def test_a_number_that_is_no_register(target: str) -> None:
    kernel = machine(target, POINTERS, ELEMENTS, ELEMENTS_DECLARED)
    values, found = np.zeros((64, 16), np.int32), np.zeros(64, np.int32)
    with pytest.raises(RegisterFault, match="there is no register with the computed number"):
        run(kernel, [values, np.array([0, 255 if target == "gfx942" else 4000], np.int32), found])


def execute(target: str, code: Sequence[Any], wave: np.ndarray) -> None:
    """Run instructions, made by tinygrad's assembler, on the registers of a wave."""
    data, runner, size = b"".join(each.to_bytes() for each in code), engine(), layout.RECORD_WORDS
    records = (ctypes.c_uint64 * (size * (len(data) // 4)))()
    first = 0
    while first < len(data):
        place = ctypes.addressof(records) + 8 * size * (first // 4)
        record, instruction = runner.record(data[first:].ljust(20, b"\0"), FAMILIES[target], place)
        ctypes.memmove(place, record, len(record))
        first += instruction.size
    wave[layout.PC : layout.PC + 2] = 0
    done = ctypes.c_uint64()
    where = wave.ctypes.data, ctypes.addressof(records)
    status = runner.run(*where, 0, len(data) // 4, 100, ctypes.byref(done))
    assert (status, done.value) == (layout.OUTSIDE, len(code))


def wave_of(registers: Mapping[int, np.ndarray], enabled: int = -1) -> np.ndarray:
    wave = np.zeros(layout.WORDS, np.uint32)
    wave[layout.EXEC : layout.EXEC + 2] = np.array([enabled]).view(np.uint32)
    for number, values in registers.items():
        vector(wave, number)[: len(values)] = values
    return wave


def vector(wave: np.ndarray, number: int) -> np.ndarray:
    first = layout.vector_place(number)
    return wave[first : first + layout.LANES]


def assembler(target: str) -> Any:
    return import_module(f"tinygrad.runtime.autogen.amd.{FAMILIES[target]}.ins")


PATTERN = (3, 2, 1, 0, 7, 7, 0, 5)
SELECTED = {f"lane_sel_{place}": lane for place, lane in enumerate(PATTERN)}
EIGHT = np.array([lane // 8 * 8 + PATTERN[lane % 8] for lane in range(32)])


def test_lanes_of_eight(target: str) -> None:
    """As our code generator makes them, and in the longer encodings."""
    if target == "gfx942":
        pytest.skip("CDNA has no DPP of eight lanes")
    number = sum(lane << 3 * place for place, lane in enumerate(PATTERN))
    declared = "declare i32 @llvm.amdgcn.mov.dpp8.i32(i32, i32 immarg)"
    found = of_one(target, f"%r = call i32 @llvm.amdgcn.mov.dpp8.i32(i32 %x, i32 {number})", declared)
    np.testing.assert_array_equal(found, np.concatenate([NUMBERS[EIGHT], NUMBERS[32 + EIGHT]]))
    ins, one = assembler(target), NUMBERS[:32].view(np.uint32)
    code = [
        ins.VOP2_DPP8(ins.VOP2Op.V_ADD_NC_U32, v[2], src[233], v[1], vsrc0=v[1], **SELECTED),
        ins.VOP3_DPP8(ins.VOP3Op.V_ADD3_U32, v[3], src[233], v[1], v[1], vsrc0=v[1], **SELECTED),
        ins.VOPC_DPP8(ins.VOPCOp.V_CMP_EQ_U32, src[233], v[1], vsrc0=v[1], **SELECTED),
    ]
    wave = wave_of({1: one})
    execute(target, code, wave)
    np.testing.assert_array_equal(vector(wave, 2)[:32], one[EIGHT] + one)
    np.testing.assert_array_equal(vector(wave, 3)[:32], one[EIGHT] + 2 * one)
    assert wave[layout.VCC] == sum(1 << lane for lane in range(32) if EIGHT[lane] == lane)


def test_lanes_of_eight_that_are_off(target: str) -> None:
    if target == "gfx942":
        pytest.skip("CDNA has no DPP of eight lanes")
    ins, one, even = assembler(target), NUMBERS[:32].view(np.uint32), np.arange(0, 32, 2)
    for first, kept in ((233, EIGHT % 2 == 0), (234, True)):
        wave = wave_of({1: one, 2: np.full(32, 5)}, 0x55555555)
        execute(target, [ins.VOP1_DPP8(ins.VOP1Op.V_MOV_B32, v[2], src[first], vsrc0=v[1], **SELECTED)], wave)
        np.testing.assert_array_equal(vector(wave, 2)[even], np.where(kept, one[EIGHT], 0)[even])
        assert (vector(wave, 2)[even + 1] == 5).all()


def test_lanes_of_a_row_in_the_longer_encodings(target: str) -> None:
    if target == "gfx942":
        pytest.skip("CDNA has DPP in its short encodings alone")
    ins, one = assembler(target), NUMBERS[:32].view(np.uint32)
    options = {"vsrc0": v[1], "dpp": 0x140, "row_mask": 15, "bank_mask": 15}
    wave = wave_of({1: one})
    execute(target, [ins.VOP3_DPP16(ins.VOP3Op.V_ADD3_U32, v[3], src[250], v[1], v[1], **options)], wave)
    np.testing.assert_array_equal(vector(wave, 3)[:32], one.reshape(2, 16)[:, ::-1].ravel() + 2 * one)


def test_parts_of_registers(target: str) -> None:
    if target != "gfx942":
        pytest.skip("only CDNA has SDWA")
    ins, numbers = assembler(target), (NUMBERS * 0x10003).view(np.uint32)
    options = {"vsrc0": v[1], "src0_sel": 5, "src1_sel": 6}
    code = [
        ins.VOP2_SDWA(ins.VOP2Op.V_MUL_LO_U16, v[2], src[249], v[3], dst_sel=6, dst_unused=0, **options),
        ins.VOP2_SDWA(ins.VOP2Op.V_MUL_LO_U16, v[4], src[249], v[3], dst_sel=5, dst_unused=2, **options),
        ins.VOP2_SDWA(ins.VOP2Op.V_ADD_U32, v[5], src[249], v[3], dst_sel=6, dst_unused=0, **options),
    ]
    old = np.full(64, 0xABCD1234, np.uint32)
    wave = wave_of({1: numbers, 2: old, 3: np.full(64, 70006), 4: old, 5: old})
    execute(target, code, wave)
    high = numbers >> 16
    product = high * (70006 & 0xFFFF) & 0xFFFF
    np.testing.assert_array_equal(vector(wave, 2), product)
    np.testing.assert_array_equal(vector(wave, 4), product << 16 | 0x1234)
    np.testing.assert_array_equal(vector(wave, 5), high + 70006)


def test_accumulators(target: str) -> None:
    if target != "gfx942":
        pytest.skip("only CDNA has accumulators")
    ins, numbers = assembler(target), NUMBERS.view(np.uint32)
    code = [
        ins.v_accvgpr_write(v[7], v[1]),
        ins.v_accvgpr_mov_b32_e32(v[9], v[7]),
        ins.v_accvgpr_read(v[2], v[9]),
        ins.v_accvgpr_write(v[10], 3),
    ]
    wave = wave_of({1: numbers, 7: numbers + 1})
    execute(target, code, wave)
    np.testing.assert_array_equal(vector(wave, 2), numbers)
    np.testing.assert_array_equal(vector(wave, 7), numbers + 1)
    assert (vector(wave, 256 + 10) == 3).all()


def test_clocks(target: str) -> None:
    code = """
  %t = call i64 @llvm.readcyclecounter()
  %u = call i64 @llvm.readsteadycounter()
  %m = and i64 %t, %u
  %g = icmp ne i64 %m, 0
  %r = zext i1 %g to i32
"""
    declared = "declare i64 @llvm.readcyclecounter()\ndeclare i64 @llvm.readsteadycounter()"
    assert of_one(target, code, declared).any()


def test_what_is_not_executed_is_named(target: str) -> None:
    ins, mode = assembler(target), 1 | 1 << 11
    refused = [
        (ins.s_setreg_imm32_b32(simm16=mode, literal=1), "S_SETREG_IMM32_B32: the mode 0x1 of bits 0x3"),
        (ins.s_setreg_imm32_b32(simm16=mode | 4 << 6, literal=0), "S_SETREG_IMM32_B32: the mode 0x0 of bits 0x30"),
        (ins.s_setreg_b32(s[0], mode), "S_SETREG_B32 of the hardware register 1, bits 0x3"),
    ]
    if target == "gfx942":
        refused += [(ins.v_mfma_f32_4x4x1_16b_f32(v[0:3], v[4], v[5], 0), "V_MFMA_F32_4X4X1_16B_F32")]
    else:
        refused += [(ins.s_denorm_mode(12), "S_DENORM_MODE 0xc"), (ins.s_round_mode(1), "S_ROUND_MODE 0x1")]
        size = 8 if target == "gfx1100" else 4
        sources = v[8 : 7 + size], v[16 : 15 + size]
        refused += [
            (ins.v_wmma_f16_16x16x16_f16(v[0 : size - 1], *sources, v[0 : size - 1]), "V_WMMA_F16_16X16X16_F16")
        ]
    for instruction, says in refused:
        with pytest.raises(UnknownInstruction, match=says):
            execute(target, [instruction], wave_of({}))


def test_buffers_and_images_are_named(target: str) -> None:
    declared = "declare {0} @llvm.amdgcn.{1}"
    image = "image.load.2d.v4f32.i32.v8i32", "i32 15, i32 0, i32 0, <8 x i32> zeroinitializer, i32 0, i32 0"
    buffer = "raw.buffer.load.v4f32", "<4 x i32> zeroinitializer, i32 0, i32 0, i32 0"
    for name, given in (buffer,) if target == "gfx942" else (buffer, image):
        types = ", ".join(re.sub(r" (zeroinitializer|\d+)$", "", part) for part in re.split(", (?=[i<])", given))
        call = f"%f = call <4 x float> @llvm.amdgcn.{name}({given})\n%g = bitcast <4 x float> %f to <4 x i32>"
        code = f"{call}\n%h = extractelement <4 x i32> %g, i32 0\n%r = add i32 %x, %h"
        with pytest.raises(UnknownInstruction, match="(?i)BUFFER_LOAD|IMAGE_LOAD|encoding"):
            of_one(target, code, declared.format("<4 x float>", f"{name}({types})"))


def test_a_mode_that_changes_nothing(target: str) -> None:
    ins = assembler(target)
    code = [ins.s_setreg_imm32_b32(simm16=1 | 7 << 11, literal=0xF0)]
    if target != "gfx942":
        code += [ins.s_denorm_mode(15), ins.s_round_mode(0)]
    execute(target, code, wave_of({}))


def test_a_kernel_that_takes_denormal_numbers_for_zero(target: str) -> None:
    with pytest.raises(ImageError, match="its mode 0xc0 for floats"):
        of_one(target, "%r = add i32 %x, 1", attributes='"denormal-fp-math-f32"="preserve-sign,preserve-sign"')


def test_a_function_that_this_machine_has_not(target: str) -> None:
    name = f"no_such_function_{target}"

    def build() -> ir.Module:
        module = ir.Module(name)
        other = ir.Function(module, SIGNATURE, f"missing_{target}")
        function = ir.Function(module, SIGNATURE, name)
        builder = ir.IRBuilder(function.append_basic_block())
        builder.ret(builder.call(other, function.args))
        return module

    with pytest.raises(UnknownInstruction, match=f"{name} calls what this machine has not: missing_{target}"):
        engine().load_object(name, build)
