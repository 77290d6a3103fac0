"""Maps HIP's declarations to operations, by families of names, with the reasons for those that are not implemented."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hip_devicelib.cpu.functions.bfloats import BFLOATS
from hip_devicelib.cpu.functions.conversions import CONVERSIONS
from hip_devicelib.cpu.functions.function_builder import Operation
from hip_devicelib.cpu.functions.integers import INTEGERS
from hip_devicelib.cpu.functions.mathematics import MATHEMATICS, OF_ARRAYS
from hip_devicelib.cpu.functions.memory import MEMORY
from hip_devicelib.cpu.functions.reals import REALS
from hip_devicelib.declarations import FunctionDeclaration

_NUMERIC: Mapping[str, Operation] = {**REALS, **MATHEMATICS}

_ALIASES = {
    alias: name
    for name, aliases in {
        "add": "__fadd_rn __dadd_rn __hadd add_rte",
        "sub": "__fsub_rn __dsub_rn __hsub sub_rte",
        "mul": "__fmul_rn __dmul_rn __hmul mul_rte",
        "div": "__fdiv_rn __ddiv_rn __hdiv div_rte fdividef __fdividef",
        "fma": "__fmaf_rn __fma_rn __hfma fma_rte",
        "sqrt": "__fsqrt_rn __dsqrt_rn hsqrt sqrt_rte",
        "rsqrt": "__frsqrt_rn hrsqrt",
        "reciprocal": "__frcp_rn __drcp_rn hrcp __llvm_amdgcn_rcp_f16",
        "negate": "__hneg",
        "fabs": "abs __habs",
        "fmax": "max",
        "fmin": "min",
        "saturate": "__saturatef __clamp_01",
        "scalbn": "scalbln scalblnf ldexp ldexpf",
        "isnan": "__isnan __isnanf __hisnan",
        "isinf": "__isinf __isinff __hisinf",
        "isfinite": "__finite __finitef",
        "signbit": "__signbit __signbitf",
        "equal": "__heq",
        "different": "__hne __hneu",
        "isless": "__hlt",
        "islessequal": "__hle",
        "isgreater": "__hgt",
        "isgreaterequal": "__hge",
        "equal or unordered": "__hequ",
        "less or unordered": "__hltu",
        "less, equal or unordered": "__hleu",
        "greater or unordered": "__hgtu",
        "greater, equal or unordered": "__hgeu",
        "half maximum": "__hmax",
        "half minimum": "__hmin",
        "half maximum or NaN": "__hmax_nan",
        "half minimum or NaN": "__hmin_nan",
        "saturated add": "__hadd_sat",
        "saturated sub": "__hsub_sat",
        "saturated mul": "__hmul_sat",
        "saturated fma": "__hfma_sat",
        "sin": "__sinf hsin",
        "cos": "__cosf hcos",
        "tan": "__tanf",
        "sincos": "__sincosf",
        "exp": "__expf hexp",
        "exp2": "hexp2",
        "exp10": "__exp10f hexp10",
        "log": "__logf hlog",
        "log2": "__log2f hlog2",
        "log10": "__log10f hlog10",
        "pow": "__powf",
        "pown": "powi powif",
        "ceil": "hceil",
        "floor": "hfloor",
        "rint": "hrint",
        "trunc": "htrunc",
        "len3": "norm3d norm3df",
        "len4": "norm4d norm4df",
        "rlen3": "rnorm3d rnorm3df",
        "rlen4": "rnorm4d rnorm4df",
        "ncdf": "normcdf normcdff",
        "ncdfinv": "normcdfinv normcdfinvf",
        "i0": "cyl_bessel_i0 cyl_bessel_i0f",
        "i1": "cyl_bessel_i1 cyl_bessel_i1f",
    }.items()
    for alias in aliases.split()
}

_OCML = re.compile(r"__ocml_(?:native_)?(\w+?)_f(?:16|32|64)$")
_NUMBERS = frozenset(["float", "half"])

_REASONS: tuple[tuple[str, str], ...] = (
    (r"__ocml_(?:add|sub|mul|div|fma|sqrt)_rt[nzp]_.*", "the CPU device rounds to the nearest only"),
    (
        r"__(?:shfl|match|ballot|all|any|activemask|lane|mbcnt|hip_ds|ockl_(?:wf|lane|activelane)).*|adjust_mask|"
        "masked_bit_count",
        "it works across the lanes of a wave: kernels of the CPU device call the spmd.* functions for that",
    ),
    (
        r"__(?:hip_get|ockl_get|ockl_wgred|ockl_(?:multi_)?grid|ockl_gws|syncthreads|barrier|named_sync|work_group|"
        r"threadfence|smid).*|sync|size|thread_rank|is_valid|num_grids|grid_rank",
        "it depends on the work item or the grid: kernels of the CPU device call the spmd.* functions for that",
    ),
    (r"__ockl_image.*|__hipGetPixelAddr", "the CPU device has no textures and images"),
    (r".*clock.*|__ockl_steadyctr.*", "the CPU device has no clock of its own"),
    (r"__assert.*|abort|__ockl_f?printf.*", "the CPU device has no output and no traps of the device library"),
    (
        r"malloc|free|__ockl_dm_.*|mem(?:cpy|set)|__hip_hc_mem.*",
        "the CPU device has no heap and no bulk copies in kernels",
    ),
    (r".*dynamicgroup.*|__to_local|__local_to_generic", "it gives out addresses of an AMD GPU's memories"),
    (r"nanf?|__make_mantissa.*", "it takes a text of unknown length"),
    (r"__ocml_scalb_.*", "the exponent is a number; use scalbn, whose exponent is an integer"),
    (r"__fns.*", "it is a part of HIP's functions across the lanes of a wave"),
)


def find_operation(declaration: FunctionDeclaration) -> Operation | None:
    """The operation for *declaration*, or None if the CPU device has no implementation."""
    kinds = [parameter.type for parameter in declaration.parameters]
    if _reason_of_types(declaration) is not None or _reason_of_name(declaration.name) is not None:
        return None
    if any(kind.kind == "bfloat16" for kind in kinds):
        return BFLOATS.get(declaration.name)
    for named in (CONVERSIONS, OF_ARRAYS):
        if declaration.name in named:
            return named[declaration.name]
    if kinds and kinds[0].kind == "pointer":
        return MEMORY.get(declaration.name)
    if not any(kind.kind in _NUMBERS for kind in kinds):
        return INTEGERS.get(declaration.name)
    if declaration.name == "pow" and kinds[-1].kind == "integer":
        return MATHEMATICS["pown"]
    return _find_numeric(declaration.name)


def _find_numeric(name: str) -> Operation | None:
    match = _OCML.match(name)
    plain = match.group(1) if match else name
    for candidate in (plain, plain.removesuffix("f")):
        known = _ALIASES.get(candidate, candidate)
        if known in _NUMERIC:
            return _NUMERIC[known]
    return None


def explain_absence(declaration: FunctionDeclaration) -> str:
    """Why *declaration* has no implementation on the CPU device."""
    return _reason_of_name(declaration.name) or _reason_of_types(declaration) or "the CPU device has no body for it"


def _reason_of_name(name: str) -> str | None:
    return next((reason for pattern, reason in _REASONS if re.fullmatch(pattern, name)), None)


def _reason_of_types(declaration: FunctionDeclaration) -> str | None:
    kinds = [declaration.result, *(parameter.type for parameter in declaration.parameters)]
    for kind in kinds:
        inner = kind.element if kind.kind in ("pointer", "reference") else kind
        if kind.space != 0:
            return "it takes an address in a memory of an AMD GPU"
        if inner is not None and inner.kind == "vector":
            return "it takes or returns vectors"
        if kind.kind == "reference":
            return "it changes its argument"
    return None
