"""Reading LLVM's instructions into the graph, and writing them again: nothing that matters is lost."""

from __future__ import annotations

from functools import partial
from typing import Any

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime import UnsupportedError
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind, tokenize
from hip_runtime.drivers.cpu.ir.metadata import MetadataTable
from hip_runtime.drivers.cpu.ir.model import Constant, Function, Instruction, Symbol
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule, split_blocks
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.ir.types import TypeTable
from hip_runtime.drivers.cpu.ir.writer import write_instruction

GLOBALS = r"""
%pair = type { i32, [2 x float] }
%"odd name" = type <{ i8, i64 }>
@table = internal constant [2 x i32] [i32 1, i32 2]
@"q\22uoted" = external global i32
declare float @f(float, ptr)
declare zeroext i8 @narrow(i8 zeroext, i16 signext)
declare i32 @variadic(ptr, ...)
declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)
declare float @llvm.fma.f32(float, float, float)
"""
PARAMETERS = "i32 %a, i64 %w, ptr %p, float %x, double %d, <4 x i32> %v, i1 %c, { i32, i1 } %s, i8 %n, i16 %m, half %h"

INSTRUCTIONS = [
    "add i32 %a, -3",
    "add nuw nsw i32 %a, %a",
    "sub nsw i32 0, %a",
    "mul <4 x i32> %v, <i32 1, i32 -2, i32 3, i32 poison>",
    "sdiv exact i32 %a, 4",
    "udiv i32 %a, 7",
    "srem i32 %a, 7",
    "urem i64 %w, 9223372036854775807",
    "shl nuw i32 %a, 3",
    "lshr exact i32 %a, 1",
    "ashr i32 %a, 31",
    "and i1 %c, true",
    "or disjoint i32 %a, 1",
    "xor i32 %a, undef",
    "fadd nnan ninf nsz arcp contract afn float %x, 1.500000e+00",
    "fsub reassoc double %d, 0x7FF0000000000000",
    "fmul fast float %x, 0xBFB99999A0000000",
    "fdiv float %x, 0.000000e+00",
    "frem double %d, -1.000000e-10",
    "fneg nsz float %x",
    "fadd half %h, 0xH3C00",
    "trunc nuw nsw i32 %a to i8",
    "zext nneg i32 %a to i64",
    "sext <4 x i32> %v to <4 x i64>",
    "fptrunc double %d to float",
    "fpext float %x to double",
    "fptoui float %x to i32",
    "fptosi float %x to i32",
    "uitofp nneg i32 %a to float",
    "sitofp i32 %a to half",
    "ptrtoint ptr %p to i64",
    "ptrtoint ptr getelementptr inbounds (i32, ptr @table, i64 1) to i64",
    "inttoptr i64 %w to ptr",
    "bitcast float %x to i32",
    "icmp ult i32 %a, 7",
    "icmp eq ptr %p, null",
    "fcmp ord float %x, 0.000000e+00",
    "fcmp nnan ueq double %d, 1.000000e+00",
    "fcmp true float %x, %x",
    "select i1 %c, i32 %a, i32 poison",
    "select nnan i1 %c, float %x, float 0.000000e+00",
    "freeze i32 %a",
    "extractelement <4 x i32> %v, i32 2",
    "insertelement <4 x i32> %v, i32 %a, i64 1",
    "shufflevector <4 x i32> %v, <4 x i32> poison, <2 x i32> <i32 1, i32 poison>",
    "shufflevector <4 x i32> %v, <4 x i32> %v, <4 x i32> zeroinitializer",
    "extractvalue { i32, i1 } %s, 1",
    "insertvalue { i32, i1 } %s, i32 %a, 0",
    "insertvalue { i32, [2 x i8] } zeroinitializer, i8 %n, 1, 1",
    "getelementptr i32, ptr %p, i64 %w",
    "getelementptr inbounds nuw %pair, ptr %p, i64 0, i32 1, i64 %w",
    'getelementptr nusw nuw %"odd name", ptr %p, i32 %a, i32 1',
    "getelementptr [2 x i32], ptr @table, i64 0, i64 %w",
    "getelementptr inbounds i8, ptr getelementptr inbounds (i32, ptr @table, i64 1), i64 %w",
    "load i32, ptr %p, align 4",
    "load volatile <4 x i32>, ptr %p, align 1",
    "load %pair, ptr %p, align 8",
    'load atomic i32, ptr %p syncscope("agent") monotonic, align 4',
    "load atomic volatile i64, ptr %p seq_cst, align 8",
    r'load i32, ptr @"q\22uoted", align 4',
    "load atomic i32, ptr getelementptr inbounds (i32, ptr @table, i64 1) acquire, align 4",
    "store i32 %a, ptr %p, align 4",
    "store volatile float 1.000000e+00, ptr %p, align 4",
    "store atomic i32 5, ptr %p release, align 4",
    "store <4 x i32> <i32 1, i32 2, i32 3, i32 4>, ptr %p, align 16",
    "store %pair zeroinitializer, ptr %p, align 4",
    "store ptr @f, ptr %p, align 8",
    "atomicrmw add ptr %p, i32 1 seq_cst, align 4",
    'atomicrmw volatile umax ptr %p, i64 %w syncscope("agent") monotonic, align 8',
    "atomicrmw fadd ptr %p, float 1.000000e+00 acq_rel, align 4",
    "atomicrmw xchg ptr %p, ptr null release, align 8",
    "atomicrmw uinc_wrap ptr %p, i32 %a acquire, align 4",
    "cmpxchg ptr %p, i32 %a, i32 5 acq_rel monotonic, align 4",
    'cmpxchg weak volatile ptr %p, i32 1, i32 %a syncscope("agent") seq_cst acquire, align 4',
    "fence acq_rel",
    'fence syncscope("workgroup") seq_cst',
    "call float @f(float %x, ptr %p)",
    "call nnan float @f(float 1.000000e+00, ptr @table)",
    "call zeroext i8 @narrow(i8 zeroext %n, i16 signext %m)",
    "call i32 (ptr, ...) @variadic(ptr @table, i32 4, double %d)",
    "call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %a, i32 4)",
    "call contract float @llvm.fma.f32(float %x, float %x, float -0.000000e+00)",
    "call void %p(i32 %a)",
    "call fastcc void %p()",
    'call i32 asm sideeffect "bswapl $0", "=r,0"(i32 %a)',
    'call i32 asm "bswapl $0", "=r,0"(i32 %a)',
]


def parse(body: str, extra: str = "", parameters: str = PARAMETERS, result: str = "void") -> Any:
    text = f"{GLOBALS}define {result} @k({parameters}) {{\nentry:\n{body}\n}}\n{extra}"
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return module


def read(module: Any) -> Function:
    return read_function(PrintedModule(module), "k", ir.Context())


def write_again(module: Any, function: Function) -> str:
    """The instruction at the start of *function* in a module of its own, as LLVM prints it."""
    target = ir.Module(context=ir.Context())
    graph = read_function(PrintedModule(module), "k", target.context)
    symbols = SymbolDeclarations(target, module)
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in graph.arguments])
    written = ir.Function(target, kind, "k")
    builder = ir.IRBuilder(written.append_basic_block("entry"))
    instruction = graph.blocks[0].instructions[0]
    for argument, given in zip(graph.arguments, written.args, strict=True):
        given.name = argument.name

    def operand(value: Any) -> Any:
        if isinstance(value, Constant):
            return symbols.constant(value)
        return symbols.address(value) if isinstance(value, Symbol) else written.args[value.index]

    write_instruction(builder, instruction, [operand(value) for value in instruction.operands])
    builder.ret_void()
    parsed = llvm.parse_assembly(str(target), llvm.create_context())
    parsed.verify()
    block = next(iter(parsed.get_function("k").blocks))
    return str(next(iter(block.instructions))).strip()


@pytest.mark.parametrize("text", INSTRUCTIONS)
def test_instructions_are_the_same_when_written_again(text: str) -> None:
    void = text.startswith(("store", "fence", "call void", "call fastcc void"))
    module = parse(f"  {text if void else '%r = ' + text}\n  ret void")
    original = str(next(iter(next(iter(module.get_function("k").blocks)).instructions))).strip()
    assert write_again(module, read(module)) == original


@pytest.mark.parametrize(("predicate", "read_as"), [("ult", "slt"), ("uge", "sge"), ("sgt", "sgt"), ("eq", "eq")])
def test_comparisons_of_one_sign_are_those_with_a_sign(predicate: str, read_as: str) -> None:
    function = read(parse(f"  %r = icmp samesign {predicate} i32 %a, 7\n  ret void"))
    comparison = function.blocks[0].instructions[0]
    assert (comparison.predicate, comparison.flags) == (read_as, ())


def test_every_instruction_is_read_at_once() -> None:
    lines = []
    for number, text in enumerate(INSTRUCTIONS):
        void = text.startswith(("store", "fence", "call void", "call fastcc void"))
        lines.append(f"  {text}" if void else f"  %r{number} = {text}")
    function = read(parse("\n".join([*lines, "  ret void"])))
    assert [one.opcode for one in function.blocks[0].instructions[:-1]] == [text.split()[0] for text in INSTRUCTIONS]
    assert [argument.name for argument in function.arguments] == ["a", "w", "p", "x", "d", "v", "c", "s", "n", "m", "h"]


def test_flow_of_control() -> None:
    body = """  br i1 %c, label %"a b", label %choose
"a b":
  %z = phi i32 [ 1, %entry ], [ %a, %choose ], [ %a, %choose ]
  br label %last
choose:
  switch i32 %a, label %never [
    i32 -1, label %"a b"
    i32 7, label %last
    i32 8, label %"a b"
  ], !prof !0
never:
  unreachable
last:
  %y = phi nnan float [ %x, %"a b" ], [ 0.0, %choose ]
  ret i32 %a"""
    extra = '!0 = !{!"branch_weights", i32 1, i32 2, i32 3, i32 4}'
    function = read(parse(body, extra, result="i32"))
    blocks = {block.name: block for block in function.blocks}
    assert list(blocks) == ["entry", "a b", "choose", "never", "last"]
    assert blocks["entry"].terminator.targets == [blocks["a b"], blocks["choose"]]
    assert blocks["entry"].successors == [blocks["a b"], blocks["choose"]]
    switch = blocks["choose"].terminator
    assert switch.targets == [blocks["never"], blocks["a b"], blocks["last"], blocks["a b"]]
    assert switch.cases == (-1, 7, 8)
    assert switch.operands == [function.arguments[0]]
    z, y = (next(blocks[name].phis) for name in ("a b", "last"))
    assert z.targets == [blocks["entry"], blocks["choose"], blocks["choose"]]
    assert isinstance(z.operands[0], Constant)
    assert z.operands[0].number == 1
    assert y.flags == ("nnan",)
    assert blocks["never"].terminator.opcode == "unreachable"
    assert blocks["last"].terminator.operands == [function.arguments[0]]


@pytest.mark.parametrize("value", ["true", "false"])
def test_switch_on_a_bit(value: str) -> None:
    body = f"  switch i1 %c, label %end [ i1 {value}, label %other ]\nother:\n  br label %end\nend:\n  ret void"
    (case,) = read(parse(body)).blocks[0].terminator.cases
    assert case & 1 == (value == "true")


def test_allocas() -> None:
    body = """  %one = alloca %pair, align 8
  %many = alloca [4 x i16], i32 3, align 2
  %unknown = alloca i8, i32 %a, align 1
  ret void"""
    one, many, unknown, _ = read(parse(body)).blocks[0].instructions
    assert (str(one.source_type), one.align) == ('%"pair"', 8)
    assert (str(many.source_type), many.align) == ("[4 x i16]", 2)
    assert isinstance(many.operands[0], Constant)
    assert many.operands[0].number == 3
    assert not isinstance(unknown.operands[0], Constant)


def test_ranges_and_places() -> None:
    extra = """
!llvm.module.flags = !{!9}
!llvm.dbg.cu = !{!1}
!9 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, producer: "x, y: (z)", emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "a b.py", directory: "/d")
!3 = distinct !DISubprogram(name: "k", scope: !2, file: !2, line: 1, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 12, column: 1, scope: !7)
!7 = distinct !DILexicalBlock(scope: !3, line: 3, column: 1)
!8 = !{i32 -4, i32 10, i32 20, i32 30}
"""
    text = """  %l = load i32, ptr %p, align 4, !range !8, !nosanitize !5
  %f = call float @f(float %x, ptr %p), !dbg !6
  ret void, !dbg !6"""
    module = llvm.parse_assembly(
        f"{GLOBALS}define void @k({PARAMETERS}) !dbg !3 {{\nentry:\n{text}\n}}{extra}", llvm.create_context()
    )
    module.verify()
    load, call, _ = read(module).blocks[0].instructions
    assert load.ranges == (-4, 10, 20, 30)
    assert call.location == "/d/a b.py:12"
    assert MetadataTable(PrintedModule(module).metadata).location("5") == ""


def test_places_of_operations_in_the_source() -> None:
    """The metadata of our own is preferred to debug locations, which cannot be had without a whole program's."""
    text = """  %r = call float @f(float %x, ptr %p), !spmd.place !0
  call void @g(), !spmd.place !1
  ret void"""
    extra = 'declare void @g()\n!0 = !{!"a \\22b\\22.py:12 in k"}\n!1 = !{!"\\C3\\A4.py:3 in k"}'
    first, second, _ = read(parse(text, extra)).blocks[0].instructions
    assert (first.location, second.location) == ('a "b".py:12 in k', "\u00e4.py:3 in k")


def test_metadata_of_other_functions_does_not_shift_numbers() -> None:
    """LLVM counts what all functions refer to when it prints a module, and one function's alone for one instruction."""
    before = "define i32 @other(ptr %p) {\n  %a = load i32, ptr %p, !range !0\n  ret i32 %a\n}\n"
    text = "define void @k(ptr %p) {\nentry:\n  %a = load i32, ptr %p, !range !1\n  ret void\n}\n"
    ranges = "!0 = !{i32 0, i32 5}\n!1 = !{i32 7, i32 9}"
    module = llvm.parse_assembly(before + text + ranges, llvm.create_context())
    assert read(module).blocks[0].instructions[0].ranges == (7, 9)


def test_lines_of_a_printed_function() -> None:
    """Each instruction with all of its lines; neither labels, comments nor records of variables are any."""
    text = """; Function Attrs: nounwind
define i32 @f(i32 %a) #0 {
entry:
    #dbg_value(i32 %a, !1, !DIExpression(), !2)
  switch i32 %a, label %"  a b" [
    i32 1, label %other
    i32 -2, label %"  a b"
  ], !dbg !2

"  a b":                                          ; preds = %entry, %entry
  ret i32 0

other:                                            ; preds = %entry
  %s = load i32, ptr @"]", align 4
  ret i32 %s
}
"""
    blocks = split_blocks(text.split("\n"))
    assert [label for label, _ in blocks] == ["entry:", '"  a b":', "other:"]
    parts = [part for _, block in blocks for part in block]
    assert [part.split()[0] for part in parts] == ["switch", "ret", "%s", "ret"]
    assert parts[0].endswith("], !dbg !2")
    assert parts[0].count("\n") == 3
    for broken, message in (("declare void @f()", "not defined"), (text[:-3], "without an end"), ("", "not defined")):
        with pytest.raises(UnsupportedError, match=message):
            split_blocks(broken.split("\n"))


def test_attributes_of_calls() -> None:
    extra = "attributes #0 = { nobuiltin nounwind memory(none) }"
    text = """  %f = tail call nnan noundef nofpclass(nan) float @f(float noundef %x, ptr nonnull align 8 %p) #0
  ret void"""
    call = read(parse(text, extra)).blocks[0].instructions[0]
    assert call.flags == ("nnan",)
    assert call.callee == "f"
    assert call.call is not None
    assert call.call.attributes == ("nobuiltin", "nounwind")
    assert call.call.argument_attributes == ((), ())
    assert [type(argument).__name__ for argument in call.arguments] == ["Argument", "Argument"]


def test_what_only_the_optimiser_reads_is_left_out() -> None:
    text = """  call void @llvm.assume(i1 %c)
  call void @llvm.experimental.noalias.scope.decl(metadata !0)
  call void @llvm.donothing()
  ret void"""
    extra = """
declare void @llvm.assume(i1)
declare void @llvm.experimental.noalias.scope.decl(metadata)
declare void @llvm.donothing()
!0 = !{!1}
!1 = distinct !{!1, !2}
!2 = distinct !{!2}
"""
    assert [one.opcode for one in read(parse(text, extra)).blocks[0].instructions] == ["ret"]


@pytest.mark.parametrize(
    ("text", "extra", "message"),
    [
        ("  %r = va_arg ptr %p, i32", "", "cannot run 'va_arg'"),
        ("  call void @b(ptr byval(i32) %p)", "declare void @b(ptr byval(i32))", "plain value"),
        ("  call void %p() strictfp", "", "strictfp"),
        ("  call cc 10 void %p()", "", "ordinary functions|ghccc"),
        ('  call void %p() [ "deopt"(i32 1) ]', "", "the end of the call"),
        ("  %r = add <vscale x 4 x i32> zeroinitializer, zeroinitializer", "", "known only at run time"),
        ("  store ptr blockaddress(@k, %other), ptr %p\n  br label %other\nother:", "", "addresses of blocks"),
        ("  %t = call token @llvm.experimental.convergence.anchor()",
         "declare token @llvm.experimental.convergence.anchor() convergent", "type that the CPU device knows"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(text: str, extra: str, message: str) -> None:
    body = f"{text}\n  ret void"
    strict = " strictfp" if "strictfp" in text else ""
    module = llvm.parse_assembly(
        f"{GLOBALS}define void @k({PARAMETERS}){strict} {{\nentry:\n{body}\n}}\n{extra}", llvm.create_context()
    )
    with pytest.raises(UnsupportedError, match=message):
        read(module)


def test_blocks_without_names_are_refused() -> None:
    module = llvm.parse_assembly("define void @k() {\n  br label %1\n1:\n  ret void\n}", llvm.create_context())
    with pytest.raises(UnsupportedError, match="must have names"):
        read(module)


def test_kinds_of_tokens() -> None:
    text = '%x = call @"a\\22b"(<4 x i32> -1.5e+01, c"s", !7, #3, 0xK4000) ; and more'
    kinds = [(token.kind, token.text) for token in tokenize(text)]
    assert kinds[:4] == [
        (TokenKind.LOCAL, "x"), (TokenKind.MARK, "="), (TokenKind.WORD, "call"), (TokenKind.GLOBAL, 'a"b'),
    ]  # fmt: skip
    assert (TokenKind.NUMBER, "-1.5e+01") in kinds
    assert (TokenKind.NUMBER, "0xK4000") in kinds
    assert (TokenKind.STRING, "s") in kinds
    assert (TokenKind.METADATA, "7") in kinds
    assert (TokenKind.ATTRIBUTES, "3") in kinds
    assert kinds[-1] == (TokenKind.MARK, ")")


def test_tokens_before_a_comment_and_after_many_others() -> None:
    lines = [*INSTRUCTIONS, '%x = call @"a b"(), !dbg !7']
    tokens = [tokenize(line) for line in lines]
    assert tokens == [tokenize(f"  {line} ; (and) more") for line in lines]
    for number in range(2**14):
        tokenize(f"%v{number}")
    assert [tokenize(f" {line}") for line in lines] == tokens
    cursor = Cursor("(%v0, x)")
    assert cursor.accept_mark("(")
    assert (cursor.take(), cursor.accept_mark(","), cursor.text_since(1)) == ("v0", True, "%v0,")


@pytest.mark.parametrize("text", ["a `b", 'an "open quote', "add i32 \u00b2", '%"x', "\u00e9"])
def test_text_that_is_not_ir(text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot read|not closed"):
        tokenize(text)


def test_cursor_says_what_was_expected() -> None:
    cursor = Cursor("add i32 %a")
    cursor.expect_word("add")
    with pytest.raises(UnsupportedError, match=r"expected ',', found 'i32'"):
        cursor.expect_mark(",")
    cursor.take(TokenKind.WORD)
    cursor.take(TokenKind.LOCAL)
    with pytest.raises(UnsupportedError, match="found the end"):
        cursor.take()


@pytest.mark.parametrize(
    "text",
    ["i1", "i129", "half", "bfloat", "float", "double", "fp128", "x86_fp80", "ptr", "ptr addrspace(3)", "void",
     "[4 x <2 x i8>]", "{i32, ptr}", "<{i8, i64}>", "{}", "float (i32, ptr)", "i32 (ptr, ...)", "void ()"],
)  # fmt: skip
def test_types(text: str) -> None:
    assert str(TypeTable(ir.Context()).parse(text)) == text


def test_named_struct_is_defined_once() -> None:
    context = ir.Context()
    types = TypeTable(context)
    named = types.parse("%pair = type { i32, float }")
    assert types.parse("%pair") == named
    assert [str(element) for element in named.elements] == ["i32", "float"]
    assert TypeTable(context).parse("%pair = type { i32, float }") is named


@pytest.mark.parametrize("text", ["x86_amx", 'target("spirv.Image")', "<vscale x 4 x i32>", "i32 i32", "7"])
def test_types_that_are_not_known(text: str) -> None:
    with pytest.raises(UnsupportedError):
        TypeTable(ir.Context()).parse(text)


def test_a_store_is_no_value() -> None:
    store = read(parse("  store i32 %a, ptr %p\n  ret void")).blocks[0].instructions[0]
    assert isinstance(store, Instruction)
    assert store.type == ir.VoidType()


def test_llvm_is_asked_as_often_for_long_functions_as_for_short_ones() -> None:
    """Each call of llvmlite takes a lock and microseconds: there is none for each instruction."""
    asked = []
    for count in (10, 400):
        lines = [f"  %r{number} = add i32 %a, {number}\n  br label %b{number}\nb{number}:" for number in range(count)]
        module = parse("\n".join([*lines, "  ret void"]))
        calls: list[None] = []
        note = partial(calls.append, None)
        llvm.ffi.register_lock_callback(note, int)
        try:
            function = read(module)
        finally:
            llvm.ffi.unregister_lock_callback(note, int)
        assert sum(len(block.instructions) for block in function.blocks) == 2 * count + 1
        asked.append(len(calls))
    assert 0 < asked[1] < asked[0] + 100  # garbage of other tests may go meanwhile
