import pickle
from collections import Counter

import pytest

from hip_devicelib import HeaderError, MissingExtraError, NotFoundError, Rocm
from hip_devicelib.declarations import FunctionDeclaration
from hip_devicelib.header_parser import INSTANCES, parse_extension, parse_header
from hip_devicelib.hip_header import Header, read_header
from hip_devicelib.rocm import look_up

HEADER = """
#define __device__ __attribute__((device))
struct __half { unsigned short bits; };
struct __half2 { unsigned int bits; };
struct hip_bfloat16 { unsigned short bits; };
struct dim3 { unsigned int x, y, z; };
template <typename T, unsigned int n> struct HIP_vector_type { T data[n]; };
typedef HIP_vector_type<float, 4> float4;
typedef float native4 __attribute__((ext_vector_type(4)));
typedef unsigned long size_t;
extern "C" {
__device__ __attribute__((const)) double __ocml_sin_f64(double);
__device__ float __ocml_frexp_f32(float, __attribute__((address_space(5))) int *);
}
__device__ float sinf(float x);
__device__ float sinf(float angle) { return angle; }
__device__ double modf(double x, double *whole) { return *whole = x; }
__device__ int atomicAdd(int *address, int value) { return *address += value; }
__device__ float atomicAdd(float *address, float value) { return *address += value; }
__device__ float norm3(const float *values, const int n) { return values[n]; }
__device__ __half hadd(__half a, const __half b) { return a; }
__device__ __half2 pack(_Float16 a, _Float16 b) { return __half2{0}; }
__device__ hip_bfloat16 &operator+=(hip_bfloat16 &a, hip_bfloat16 b) { return a; }
__device__ float4 make_float4(float x, float y, float z, float w) { return float4{}; }
__device__ native4 load(size_t index, bool wrap) { return native4{}; }
__device__ signed char narrow(signed char c) { return c; }
__device__ char narrow(char c) { return c; }
__device__ dim3 size() { return dim3{}; }
__device__ void cast(long long a, long b) {}
__device__ void wide(int count, ...);
namespace std { namespace inner { __device__ bool isnan(float x) { return x != x; } } }
template <typename MaskT, typename T> __device__ T __shfl_sync(MaskT mask, T var, int lane, int width) {
  return var;
}
template <typename T> __device__ T not_wanted(T value) { return value; }
int host_only(int x);
struct group { __device__ int method(int x) { return x; } };
"""


@pytest.fixture(scope="module")
def functions(libclang: object) -> dict[str, list[FunctionDeclaration]]:
    declarations = parse_header(Header(HEADER, "1.2.3"))
    assert declarations.version == "1.2.3"
    assert [(item.name, item.reason) for item in declarations.omissions] == [
        ("size", "the type dim3 has no C ABI here"),
        ("wide", "takes a variable number of arguments"),
    ]
    return {name: list(overloads) for name, overloads in declarations.by_name.items()}


def test_only_device_functions_are_declared(functions: dict[str, list[FunctionDeclaration]]) -> None:
    assert {"host_only", "method", "not_wanted"}.isdisjoint(functions)


@pytest.mark.parametrize(
    ("name", "llvm_types"),
    [
        ("sinf", ["float (float)"]),
        ("__ocml_sin_f64", ["double (double)"]),
        ("__ocml_frexp_f32", ["float (float, ptr addrspace(5))"]),
        ("atomicAdd", ["i32 (ptr, i32)", "float (ptr, float)"]),
        ("norm3", ["float (ptr, i32)"]),
        ("hadd", ["half (half, half)"]),
        ("pack", ["<2 x half> (half, half)"]),
        ("operator+=", ["ptr (ptr, i16)"]),
        ("make_float4", ["<4 x float> (float, float, float, float)"]),
        ("load", ["<4 x float> (i64, i1)"]),
        ("narrow", ["i8 (i8)", "i8 (i8)"]),
        ("cast", ["void (i64, i64)"]),
        ("isnan", ["i1 (float)"]),
    ],
)
def test_types(functions: dict[str, list[FunctionDeclaration]], name: str, llvm_types: list[str]) -> None:
    assert [function.llvm_type for function in functions[name]] == llvm_types


def test_intents(functions: dict[str, list[FunctionDeclaration]]) -> None:
    def intents(name: str) -> list[str]:
        return [parameter.intent for parameter in functions[name][0].parameters]

    assert intents("modf") == ["value", "out"]
    assert intents("__ocml_frexp_f32") == ["value", "out"]
    assert intents("atomicAdd") == ["address", "value"]
    assert intents("norm3") == ["in", "value"]
    assert intents("operator+=") == ["inout", "value"]


def test_the_definition_names_the_parameters(functions: dict[str, list[FunctionDeclaration]]) -> None:
    (sinf,) = functions["sinf"]
    assert str(sinf) == "float sinf(float angle)"
    assert sinf.defined
    assert not functions["__ocml_sin_f64"][0].defined
    assert functions["__ocml_sin_f64"][0].attributes == ("const",)


def test_namespaces_and_instances_are_part_of_the_name(functions: dict[str, list[FunctionDeclaration]]) -> None:
    (isnan,) = functions["isnan"]
    assert (isnan.namespace, isnan.qualified) == ("std::inner", "std::inner::isnan")
    instances = functions["__shfl_sync"]
    assert [function.template_arguments for function in instances] == list(INSTANCES["__shfl_sync"])
    assert instances[4].qualified == "__shfl_sync<unsigned long long, float>"
    assert instances[4].llvm_type == "float (i64, float, i32, i32)"
    assert {function.attributes for function in instances} == {("convergent",)}


def test_symbols_are_c_identifiers_and_all_different(functions: dict[str, list[FunctionDeclaration]]) -> None:
    symbols = [function.symbol for overloads in functions.values() for function in overloads]
    assert len(set(symbols)) == len(symbols)
    assert all(symbol.replace("$", "_").isidentifier() for symbol in symbols)
    assert functions["atomicAdd"][1].symbol == "hipdl_atomicAdd__pf32_f32"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__device__ float f(", "the header has .* error"),
        ("", "declares no device function"),
        ("int f(int x) { return x; }", "declares no device function"),
        ("}}}}", "error"),
    ],
)
@pytest.mark.usefixtures("libclang")
def test_headers_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(HeaderError, match=message):
        parse_header(Header(text, None))


@pytest.mark.usefixtures("libclang")
def test_bodies_that_libclang_does_not_understand() -> None:
    """Headers of ROCm 7 call builtins that the LLVM of libclang does not have."""
    text = f"{HEADER}__device__ int newer(int x) {{ return __builtin_of_a_later_clang(x) + missing; }}\n"
    plain, newer = parse_header(Header(HEADER, None)), parse_header(Header(text, None))
    (added,) = newer.by_name["newer"]
    assert added.defined
    assert [function for function in newer.functions if function != added] == list(plain.functions)
    extension = "__device__ int mine(int x) { return newer(x); }\n"
    found, _ = parse_extension(Header(text, None), extension)
    assert [function.name for function in found.functions] == ["mine"]
    with pytest.raises(
        HeaderError, match=r"the source has 1 error\(s\): line 2: use of undeclared identifier 'nobody'"
    ):
        parse_extension(Header(text, None), extension + "__device__ int other() { return nobody; }")
    with pytest.raises(HeaderError, match=r"the header has 1 error\(s\): line \d+: unknown type name 'nothing'"):
        parse_extension(Header(f"{text}__device__ nothing what();\n", None), extension)


def test_without_libclang(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "clang", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hip-devicelib\[headers\]'") as caught:
        parse_header(Header(HEADER, None))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, NotFoundError)
        assert error.extra == "hip-devicelib[headers]"


def test_a_library_without_a_header(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "lib" / "libhiprtc-builtins.so.6.4.1"
    path.parent.mkdir()
    rocm = Rocm(Path(str(tmp_path)), "a test", look_up(Path(str(tmp_path))))
    with pytest.raises(NotFoundError, match="has no hiprtc-builtins"):
        read_header(rocm)
    for content in (b"", b"no library", b"\x7fELF\x02\x01" + bytes(200)):
        path.write_bytes(content)
        rocm = Rocm(Path(str(tmp_path)), "a test", look_up(Path(str(tmp_path))))
        with pytest.raises(HeaderError, match="holds no HIP header"):
            read_header(rocm)


@pytest.mark.usefixtures("libclang")
def test_the_real_header(real_rocm: Rocm) -> None:
    header = read_header(real_rocm)
    assert header.version is not None
    assert "__ocml_sin_f32" in header.text
    declarations = parse_header(header)
    plain = [function for function in declarations.functions if not function.template_arguments]
    assert len(plain) > 1300
    assert len(plain) / (len(plain) + len(declarations.omissions)) > 0.95
    assert len(declarations.by_symbol) == len(declarations.functions)
    (sinf,) = declarations.by_name["sinf"]
    assert sinf.llvm_type == "float (float)"
    assert Counter(f.llvm_type for f in declarations.by_name["__hadd"])["half (half, half)"] >= 1
    assert {f.llvm_type for f in declarations.by_name["atomicAdd"]} >= {"i32 (ptr, i32)", "float (ptr, float)"}
    frexp = declarations.by_name["frexp"][0]
    assert [parameter.intent for parameter in frexp.parameters] == ["value", "out"]
