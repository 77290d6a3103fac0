"""The words of LLVM IR that `reader` understands, from the LLVM Language Reference of LLVM 20 to 22."""

from __future__ import annotations

BINARY = frozenset("add fadd sub fsub mul fmul udiv sdiv fdiv urem srem frem shl lshr ashr and or xor".split())
"""Opcodes of instructions with two operands of the result's type."""

CASTS = frozenset(
    "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast "
    "addrspacecast".split()
)
"""Opcodes that convert one operand."""

WRAPPING = frozenset({"nuw", "nsw", "exact", "disjoint", "nneg"})
"""Flags of integer instructions."""

FAST_MATH = frozenset({"fast", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn"})
"""Flags of floating-point instructions."""

POINTER_FLAGS = frozenset({"inbounds", "nusw", "nuw"})
"""Flags of ``getelementptr``."""

INTEGER_PREDICATES = frozenset("eq ne ugt uge ult ule sgt sge slt sle".split())
FLOAT_PREDICATES = frozenset("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())
ORDERINGS = frozenset({"unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"})

IGNORED_CALLS = (
    "llvm.dbg.", "llvm.lifetime.", "llvm.experimental.noalias.scope.decl", "llvm.invariant.", "llvm.donothing",
    "llvm.sideeffect", "llvm.assume", "llvm.pseudoprobe",
)  # fmt: skip
"""Starts of the names of intrinsics that only tell the optimiser or the debugger something."""

CONVENTIONS = frozenset("ccc fastcc coldcc tailcc".split())
"""Calling conventions that code of one language uses within a module."""

BINDING_ATTRIBUTES = frozenset({"zeroext", "signext", "noext", "inreg"})
"""Attributes of parameters and results that change how a call is made, and have no argument of their own."""

REFUSED_ATTRIBUTES = frozenset(
    "byval byref preallocated inalloca sret elementtype nest swiftself swiftasync swifterror".split()
)
"""Attributes of parameters that change how a call is made in ways that no code for the CPU device needs."""

HINT_ATTRIBUTES = frozenset(
    "align noalias nocapture captures nofree returned nonnull dereferenceable dereferenceable_or_null immarg noundef "
    "nofpclass alignstack allocalign allocptr readnone readonly writeonly writable initializes dead_on_unwind "
    "dead_on_return range".split()
)
"""Attributes of parameters and results that may be left out."""

CALL_ATTRIBUTES = frozenset("nobuiltin builtin noinline cold convergent nounwind willreturn".split())
"""Attributes of calls that are kept."""

REFUSED_CALL_ATTRIBUTES = frozenset({"strictfp", "returns_twice"})
"""Attributes of calls that forbid what happens to a function here."""

CONSTANT_WORDS = frozenset({"true", "false", "null", "none", "undef", "poison", "zeroinitializer"})
"""Constants that are a word."""

CONSTANT_EXPRESSIONS = frozenset(
    "splat blockaddress getelementptr inttoptr ptrtoint ptrtoaddr bitcast addrspacecast trunc add sub xor".split()
)
"""Words that constants with parentheses start with."""
