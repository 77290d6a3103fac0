"""The shape of an instruction's result, by its opcode and the shapes of its operands; see `vector_shapes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.affine import coefficient, signed_number
from hip_runtime.drivers.cpu.analyses.conditions import mirror
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.model import AGREE, FIRST, PARAMETER, RAMP, Block, Instruction, Value

VARYING = None
Shape = int | None

MAX_STRIDE = 4
"""The largest stride, in elements, at which lanes load whole vectors and shuffle out what lies between."""


class Gang(Protocol):
    """What the rules ask of the analysis that they are a part of."""

    @property
    def consecutive(self) -> frozenset[str]:
        """Intrinsics whose result grows by one from lane to lane and never wraps."""

    @property
    def lanes_consecutive(self) -> bool:
        """Whether gangs begin where the thread's index is a multiple of their width, which divides that of waves."""

    @property
    def masked(self) -> set[Block]:
        """The blocks that need a mask, as far as that is known."""

    @property
    def homes(self) -> Mapping[Instruction, Block]:
        """The block of each instruction."""

    def size_of(self, kind: ir.Type) -> int:
        """The allocation size of *kind*."""

    def private_stride(self, array: Instruction) -> int:
        """The distance of the private *array* of neighbours in bytes."""

    def find(self, value: Value, block: Block) -> Shape | str:
        """The shape of *value* as seen from *block*, as far as that is known."""

    def never_wraps(self, value: Value, block: Block) -> bool:
        """Whether an integer is strided without overflow in any lane."""

    def reaches_over(self, value: Value, shape: Shape | str) -> int | None:
        """How many low bits of *value* come from the lane alone, if that is known."""

    def is_multiple(self, value: Value, bits: int) -> bool:
        """Whether the lowest *bits* of *value*, which is uniform, are known to be 0."""


def uniform_if_all(shapes: Sequence[Shape | str]) -> Shape:
    """The shape of what depends on operands of *shapes* alone, and in no simpler way."""
    return 0 if all(shape == 0 for shape in shapes) else VARYING


def _infer_affine(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    """Sums, products and addresses. An index of fewer bits than an address must not wrap around."""
    strides = [shape if isinstance(shape, int) else None for shape in shapes]
    if instruction.opcode == "getelementptr":
        for index, stride in zip(instruction.operands[1:], strides[1:], strict=True):
            if stride and index.type != ir.IntType(64) and not analysis.never_wraps(index, block):
                return VARYING
    return coefficient(instruction, strides, analysis.size_of)


def _infer_extension(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    (shape,) = shapes
    if shape and analysis.reaches_over(instruction.operands[0], shape) is not None:
        assert isinstance(shape, int)
        return shape
    if instruction.opcode == "zext" and shape == 1 and _is_index_sum(analysis, instruction.operands[0], block):
        return 1
    if shape and not analysis.never_wraps(instruction.operands[0], block):
        return VARYING
    if shape and instruction.opcode == "zext" and "nneg" not in instruction.flags:
        (operand,) = instruction.operands
        if not isinstance(operand, Instruction):
            return VARYING
        if operand.opcode != RAMP and operand.callee not in analysis.consecutive:
            return VARYING
    assert not isinstance(shape, str)
    return shape


def _is_index_sum(analysis: Gang, value: Value, block: Block) -> bool:
    """Whether *value* is a thread index plus a uniform number, without overflow as a number without sign."""
    if not isinstance(value, Instruction) or value.opcode != "add" or "nuw" not in value.flags:
        return False
    home = analysis.homes[value]
    if block in analysis.masked or home in analysis.masked:
        return False
    return all(
        analysis.find(operand, home) == 0
        or getattr(operand, "callee", "") in analysis.consecutive
        or analysis.reaches_over(operand, analysis.find(operand, home)) is not None
        for operand in value.operands
    )


def _infer_bits(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    """``and``, ``or`` and ``xor`` of a strided number and one that is uniform."""
    if instruction.opcode == "or" and (found := _infer_affine(analysis, instruction, block, shapes)) is not VARYING:
        return found
    split = _split_strided(analysis, instruction, shapes)
    if split is None:
        return uniform_if_all(shapes)
    stride, bits, other = split
    low = (1 << bits) - 1
    number = signed_number(other)
    if number is None and not analysis.is_multiple(other, bits):
        return VARYING
    number = 0 if number is None else number & low
    if number == 0:
        return 0 if instruction.opcode == "and" else stride
    return {"and": stride, "or": 0}.get(instruction.opcode, VARYING) if number == low else VARYING


def _infer_shift(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    """Shifts to the right by a constant: of what the lanes differ in, or of the bits above that only."""
    by = signed_number(instruction.operands[1])
    split = _split_strided(analysis, instruction, shapes)
    if by is None or split is None or by < 0:
        return uniform_if_all(shapes)
    stride, bits, _ = split
    if bits <= by:
        return 0
    return VARYING if stride % (1 << by) else stride >> by


def _infer_division(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    """Quotients and remainders without sign, by multiples of what the lanes reach over. Under a mask only by constants:
    others may be 0 where no lane divides."""
    split = _split_strided(analysis, instruction, shapes)
    if split is None or shapes[0] == 0:
        return uniform_if_all(shapes)
    stride, bits, divisor = split
    number = signed_number(divisor)
    if number == 0 or (number is None and block in analysis.masked) or not analysis.is_multiple(divisor, bits):
        return VARYING
    return 0 if instruction.opcode == "udiv" else stride


def _infer_comparison(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    """Comparisons with a number that no gang reaches over, and of numbers that grow alike from lane to lane."""
    if shapes[0] == shapes[1] and isinstance(shapes[0], int):
        return 0 if shapes[0] == 0 or _differs_alike(analysis, instruction, block) else VARYING
    split = _split_strided(analysis, instruction, shapes)
    if split is None:
        return uniform_if_all(shapes)
    _, bits, other = split
    predicate = instruction.predicate
    if shapes[0] == 0:
        predicate = mirror(predicate)
    if predicate[1:] in ("lt", "ge"):
        return 0 if analysis.is_multiple(other, bits) else VARYING
    number = signed_number(other)
    if predicate[1:] not in ("gt", "le") or number is None:
        return VARYING
    return VARYING if number + 1 & (1 << bits) - 1 else 0


def _differs_alike(analysis: Gang, comparison: Instruction, block: Block) -> bool:
    """Whether all lanes decide a *comparison* of two numbers with the same stride alike: what they differ by is the
    same, and which is larger is, too, as long as neither wraps."""
    if comparison.predicate in ("eq", "ne"):
        return True
    if not comparison.predicate.startswith("s"):
        return False
    return all(analysis.never_wraps(operand, block) for operand in comparison.operands)


def _split_strided(
    analysis: Gang, instruction: Instruction, shapes: Sequence[Shape | str]
) -> tuple[int, int, Value] | None:
    """The stride of the operand of *instruction* that is strided, how many bits come from the lane, and the operand
    that is uniform; ``None`` if they are of other *shapes*."""
    for number in (0, 1):
        stride, other = shapes[number], shapes[1 - number]
        if isinstance(stride, int) and stride > 0 and other == 0:
            bits = analysis.reaches_over(instruction.operands[number], stride)
            return None if bits is None else (stride, bits, instruction.operands[1 - number])
    return None


def _infer_select(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    condition, left, right = shapes
    return left if condition == 0 and left == right and isinstance(left, int) else VARYING


def _infer_load(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    return VARYING if instruction.volatile or instruction.atomic else uniform_if_all(shapes)


def _infer_call(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    name = instruction.callee
    if name in analysis.consecutive:
        return 1
    if name == spmd.LANE:
        return 1 if analysis.lanes_consecutive else VARYING
    if intrinsics.is_pure(name) or name in (spmd.BALLOT, spmd.ACTIVE_LANES):
        return 0
    if name.startswith(spmd.SHUFFLE):  # whichever lane it is from, if all have the same
        return 0 if shapes[instruction.operands.index(instruction.arguments[1])] == 0 else VARYING
    return uniform_if_all(shapes) if is_arithmetic(name) or instruction.elementwise else VARYING


def _infer_varying(analysis: Gang, instruction: Instruction, block: Block, shapes: Sequence[Shape | str]) -> Shape:
    return VARYING


RULES: dict[str, Callable[[Gang, Instruction, Block, Sequence[Shape | str]], Shape]] = {
    **dict.fromkeys(("add", "sub", "mul", "shl", "trunc", "freeze", "getelementptr"), _infer_affine),
    **dict.fromkeys(("and", "or", "xor"), _infer_bits),
    **dict.fromkeys(("lshr", "ashr"), _infer_shift),
    **dict.fromkeys(("udiv", "urem"), _infer_division),
    "icmp": _infer_comparison,
    "zext": _infer_extension, "sext": _infer_extension,
    "select": _infer_select, "load": _infer_load, "call": _infer_call, "atomicrmw": _infer_varying,
    "cmpxchg": _infer_varying,
    PARAMETER: _infer_varying,
    **dict.fromkeys((AGREE, FIRST), lambda analysis, instruction, block, shapes: 0),
    RAMP: lambda analysis, instruction, block, shapes: signed_number(instruction.operands[1]),
    "alloca": lambda analysis, instruction, block, shapes: analysis.private_stride(instruction),
}  # fmt: skip
