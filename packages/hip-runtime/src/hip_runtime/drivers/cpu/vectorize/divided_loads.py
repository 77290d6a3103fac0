"""Loads of elements that neighbouring lanes share, which `analyses.divided_addresses` found: the few that there are are
loaded, and each lane gets its own out of a register.

As tables are (`table_loads`), all are loaded if they are in one page, and else by a gather.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.divided_addresses import DividedAddress
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64, write_likely
from hip_runtime.drivers.cpu.object_code.permutations import Permutation, find_permutation
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.page_loads import PAGE
from hip_runtime.drivers.cpu.vectorize.permuted_elements import PermutedElements, write_common
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder, size_in_memory

_NUMBER = ir.IntType(16)
"""Holds what is divided of each lane, without a multiple of the divisor."""


def load_divided(code: GangValues, load: Instruction, address: DividedAddress) -> ir.Value:
    """What *load* loads in each active lane, of which there is one; undefined for others."""
    builder, lanes, nbytes = code.builder, code.lanes, size_in_memory(load.type)
    places, start, rest = code.vector(load.operands[0]), *_write_start(code, address, nbytes)
    if address.is_aligned:
        count = address.most_steps(lanes.width) + 1
        order = [address.stride * lane // address.divisor for lane in range(lanes.width)]

        def find() -> ir.Value:
            few = builder.load(start, typ=ir.VectorType(load.type, count), align=min(load.align or 1, nbytes))
            return lanes.shuffle(few, lanes.vector_of(I32, order))
    else:
        permutation = find_permutation(nbytes)
        assert permutation is not None
        last = max(lanes.width - permutation.lanes, 0)  # of the lanes that are the first of some
        count = address.most_steps(last + 1) + permutation.elements

        def find() -> ir.Value:
            return builder.bitcast(_permute(code, address, permutation, start, rest), lanes.type_of(load.type))

    within = builder.and_(builder.ptrtoint(start, I64), I64(PAGE - 1))
    return write_likely(
        builder,
        builder.icmp_unsigned("<=", within, I64(PAGE - count * nbytes)),
        find,
        lambda: lanes.gather(load.type, places, code.mask, load.align or 1),
    )


def _write_start(code: GangValues, address: DividedAddress, nbytes: int) -> tuple[ir.Value, ir.Value]:
    """The first lane's address, and what is left of its number when that is divided."""
    builder, dividend = code.builder, code.scalar(address.dividend)
    quotient = _divide(builder, address.quotient.opcode, dividend, address.divisor)
    rest = builder.sub(dividend, builder.mul(quotient, ir.Constant(dividend.type, address.divisor)))
    for conversion in address.conversions:
        extend = builder.sext if conversion.opcode == "sext" else builder.zext
        quotient = extend(quotient, conversion.type)
    return write_common(code, address.address, builder.mul(quotient, I64(nbytes))), rest


def _divide(builder: ir.IRBuilder, opcode: str, dividend: ir.Value, divisor: int) -> ir.Value:
    """The quotient by a constant, without what holds for active lanes only."""
    if opcode == "udiv":
        return builder.udiv(dividend, ir.Constant(dividend.type, divisor))
    shift = builder.ashr if opcode == "ashr" else builder.lshr
    return shift(dividend, ir.Constant(dividend.type, divisor.bit_length() - 1))


def _permute(
    code: GangValues, address: DividedAddress, permutation: Permutation, start: ir.Value, rest: ir.Value
) -> ir.Value:
    """The elements of all lanes, as integers, of those from *start* on: the numbers of some lanes at a time are counted
    from the first one's."""
    builder, permuted = code.builder, PermutedElements(code.lanes, permutation)
    some, divisor = VectorBuilder(builder, permutation.lanes), _NUMBER(address.divisor)
    rest, parts = builder.trunc(rest, _NUMBER), []
    for first in permuted.steps:
        dividend = builder.add(rest, _NUMBER(address.stride * first))
        skipped = builder.udiv(dividend, divisor)
        dividends = some.spread(builder.sub(dividend, builder.mul(skipped, divisor)), address.stride)
        numbers = builder.udiv(dividends, some.splat(divisor))
        distance = builder.mul(builder.zext(skipped, I64), I64(permutation.nbytes))
        register = permuted.load(builder.gep(start, [distance], source_etype=I8))
        resize = builder.trunc if permuted.element.width < _NUMBER.width else builder.zext
        if permuted.element != _NUMBER:
            numbers = resize(numbers, some.type_of(permuted.element))
        parts.append(permuted.permute([register], numbers))
    return permuted.join(parts)
