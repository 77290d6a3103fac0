"""The names of `numba.cuda` that are left out, with the reasons. This data is read when a program uses such a name.

The names are those of numba-cuda 0.30. A test checks that each of them exists while posing, or is listed here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from numba_hip_cuda.catalog import CUDA


class OmittedNames(NamedTuple):
    """A reason, and what is left out for it: whole *modules*, and *names*, each after the module or class that it is
    in.

    ``numba.cuda`` is left out of the full names. A word that ends in a colon is the place of the words after it.
    """

    why: str
    modules: str = ""
    names: str = ""


COPIES_LACK = OmittedNames(
    "Numba's own module stands for numba-cuda's copy of it, and has no such name",
    modules="core.removerefctpass",
    names="""
    core.boxing: box_npdatetime box_nptimedelta unbox_npdatetime unbox_nptimedelta
    core.bytecode: INSTR_LEN
    core.byteflow: CALL_INTRINSIC_1_Operand ci1op
    core.compiler_machinery: PassRegistry
    core.errors: ColorShell HighlightColorScheme colorama_version default_theme msg reset_terminal themes
    core.interpreter: INTRINSIC_STOPITERATION_ERROR
    core.ir: abstractrhs_types arg_types assign_types block_types branch_types const_types del_types delattr_types
    delitem_types dynamicraise_types dynamictryraise_types enterwith_types expr_types freevar_types global_types
    inst_types jump_types loc_types popblock_types print_types raise_types return_types scope_types setattr_types
    setitem_types staticraise_types staticsetitem_types statictryraise_types stmt_types storemap_types
    tryraise_types var_types with_types yield_types
    core.ir_utils: compat_list_vars_node compat_list_vars_stmt mk_alloc
    core.options: AbstractOptionValue FastMathOptions InlineOptions ParallelOptions
    core.tracing: logger
    cpython.builtins: MinValInfer get_type_max_value get_type_min_value int_impl lower_get_type_max_value
    lower_get_type_min_value max_iterable min_iterable
    cpython.charseq: s1_dtype u1_dtype unicode_kind unicode_uint
    cpython.iterators: iternext_zip
    datamodel.cuda_models: NPDatetimeModel
    itanium_mangler: escape_string
    misc.appdirs: appauthor appname dirs os_name props
    misc.dump_style: msg
    misc.firstlinefinder: get_func_def_lineno
    np.arraymath: array_sum_axis array_sum_axis_dtype array_sum_dtype gen_sum_axis_impl np_asfarray
    np.arrayobj: array_itemset
    np.math.numbers: identity_impl
    np.numpy_support: ml_dtypes sizeof_unicode_char strides_from_shape
    np.ufunc.ufuncbuilder: PyUFunc_None PyUFunc_One PyUFunc_ReorderableNone PyUFunc_Zero
    serialize: is_serialiable
    types: redirect_numba_module
    typing.arraydecl: generic_expand generic_expand_cumulative generic_hetero_always_real generic_hetero_real
    generic_homog generic_index install_array_method sum_expand
    typing.builtins: Int Max Min MinMaxBase NPDatetimeAttribute NPTimedeltaAttribute
    typing.typeof: typeof_buffer typeof_strided_memory_view
    utils: UNARY_BUILTINS_TO_OPERATORS numba_target_override redirect_numba_module
    """,
)

LEFT_OUT = (
    COPIES_LACK,
    OmittedNames(
        "NVVM is NVIDIA's compiler; kernels are compiled by LLVM here",
        modules="cudadrv.nvvm simulator.cudadrv.nvvm nvvmutils",
        names="""
        : nvvm  cudadrv: nvvm  device_init: nvvm  simulator.cudadrv: nvvm
        cgutils: add_no_capture_attribute
        """,
    ),
    OmittedNames(
        "NVRTC is NVIDIA's compiler for C++; hip_devicelib compiles HIP C++",
        modules="cudadrv.nvrtc simulator.cudadrv.nvrtc",
        names="simulator.cudadrv.driver: NvrtcError",
    ),
    OmittedNames(
        "there is no CUDA toolkit, whose folders and libraries it looks for; hip_devicelib finds ROCm",
        modules="cuda_paths cudadrv.libs simulator.cudadrv.libs",
    ),
    OmittedNames(
        "there is no CUDA driver beneath; hip_runtime has devices, streams, memory and modules",
        modules="cudadrv.mappings",
        names="""
        cudadrv.driver: DRIVER_LOAD_ERROR_MSG DRIVER_NOT_FOUND_MSG find_driver load_driver locate_driver_and_loader
        make_logger
        cudadrv.drvapi: API_PROTOTYPES
        cudadrv.driver.Driver: lib pop_active_context
        simulator.cudadrv.driver: FakeDriver launch_kernel
        """,
    ),
    OmittedNames(
        "code objects are loaded by hip_runtime.Device.load, which takes those of hip_devicelib",
        names="""
        cudadrv.driver: inspect_obj_content load_module_image
        cudadrv.driver.CudaPythonModule: context get_function get_global_symbol initialized object_code setup
        setup_functions teardown_functions
        cudadrv.driver.CudaPythonFunction: blockdim cache_config griddim set_shared_memory_carveout sharedmem stream
        """,
    ),
    OmittedNames(
        "who refers to memory is counted by Python",
        names="cudadrv.driver.HostOnlyCUDAMemoryManager: allocations",
    ),
    OmittedNames(
        "HIP says whether memory can be shared when it is opened",
        names="cudadrv.driver.IpcHandle: can_access_peer source_info",
    ),
    OmittedNames(
        "arrays are made with their memory, by numba_hip.mapped_array and its relatives",
        names="""
        cudadrv.devicearray.ManagedNDArray: device_setup  cudadrv.devicearray.MappedNDArray: device_setup
        """,
    ),
    OmittedNames(
        "hip_runtime.layout describes arrays, and their axes",
        names="""
        cudadrv.dummyarray: Dim attempt_nocopy_reshape compute_index iter_strides_c_contig iter_strides_f_contig
        cudadrv.dummyarray.Array: dims
        """,
    ),
    OmittedNames(
        "arguments are packed for a launch by numba_hip.dispatch, which reads the hints itself",
        names="""
        args.ArgHint: to_device  args.In: to_device  args.InOut: copy_input  args.Out: copy_input to_device
        simulator.args.ArgHint: to_device  simulator.args.In: to_device  simulator.args.InOut: to_device
        simulator.args.Out: to_device
        """,
    ),
    OmittedNames(
        "it is code for NVIDIA's GPUs, which is not linked; numba_hip.LinkedCode takes LLVM IR, bitcode and HIP C++",
        names="""
        cudadrv.linkable_code.Archive: kind  cudadrv.linkable_code.CUSource: kind  cudadrv.linkable_code.Cubin: kind
        cudadrv.linkable_code.Fatbin: kind  cudadrv.linkable_code.LTOIR: kind  cudadrv.linkable_code.Object: kind
        cudadrv.linkable_code.PTXSource: kind
        cudadrv.linkable_code.LinkableCode: from_path from_path_or_obj nrt
        """,
    ),
    OmittedNames(
        "it is a step of numba-cuda's compiler; kernels are compiled by numba_hip.compilation",
        modules="codegen",
        names="""
        compiler: CUDABackend CUDABytecodeInterpreter CUDATranslateBytecode CreateLibrary add_exception_store_helper
        compile_cuda cuda_compile_result declare_device_function kernel_fixup
        compiler.CUDACompiler: define_cuda_lowering_pipeline
        core.callconv: CUDACABICallConv
        debuginfo: CUDADIBuilder DEBUG_POLY_SUPPORTED DEBUG_POLY_USE_TYPED_CONST DwarfAddressClass
        descriptor: CUDATargetOptions
        descriptor.CUDATarget: options
        dispatcher: CUDACache CUDACacheImpl CompilingCounter cuda_fp16_math_funcs reshape_funcs
        dispatcher.CUDADispatcher: add_overload call dump get_call_template get_compile_result get_function_type
        inspect_lto_ptx inspect_sass_cfg targetctx targetdescr typingctx
        flags.CUDAFlags: compute_capability lto max_registers nvvm_options
        lowering: CUDALower
        simulator.compiler: declare_device_function
        target: VALID_CHARS
        target.CUDATargetContext: build_list insert_string_const_addrspace optimize_function
        """,
    ),
    OmittedNames(
        "functions of kernels are typed and lowered by numba_hip.language; add some with numba.cuda.extending",
        modules="libdevicefuncs ufuncs",
        names="""
        bf16: ceil_ol cos_ol exp2_ol exp_ol floor_ol log10_ol log_ol sin_ol sqrt_ol tanh_ol trunc_ol
        fp16: ceil_ol cos_ol exp2_ol exp_ol fabs_ol floor_ol log10_ol log2_ol log_ol sin_ol sqrt_ol tanh_ol trunc_ol
        cache_hints: CONSTRAINT_MAP ld_cache_operator ldca_intrinsic ldcg_intrinsic ldcs_intrinsic ldcv_intrinsic
        ldlu_intrinsic ol_ldca ol_ldcg ol_ldcs ol_ldcv ol_ldlu ol_stcg ol_stcs ol_stwb ol_stwt st_cache_operator
        stcg_intrinsic stcs_intrinsic stwb_intrinsic stwt_intrinsic
        cudadecl: CudaAtomicTemplate CudaConstModuleTemplate CudaLocalModuleTemplate CudaModuleTemplate
        CudaSharedModuleTemplate Cuda_activemask Cuda_array_decl Cuda_atomic_add Cuda_atomic_and Cuda_atomic_cas
        Cuda_atomic_compare_and_swap Cuda_atomic_dec Cuda_atomic_exch Cuda_atomic_inc Cuda_atomic_max Cuda_atomic_min
        Cuda_atomic_nanmax Cuda_atomic_nanmin Cuda_atomic_or Cuda_atomic_sub Cuda_atomic_xor Cuda_breakpoint Cuda_brev
        Cuda_cbrt Cuda_clz Cuda_const_array_like Cuda_ffs Cuda_fma Cuda_lanemask_lt Cuda_local_array Cuda_match_all_sync
        Cuda_match_any_sync Cuda_nanosleep Cuda_popc Cuda_selp Cuda_shared_array Cuda_syncwarp Cuda_threadfence_block
        Cuda_threadfence_device Cuda_threadfence_system Dim3_attrs Float all_numba_types integer_numba_types
        unsigned_int_numba_types
        cudaimpl: cbrt_funcs cuda_blockDim cuda_blockIdx cuda_const_array_like cuda_dispatcher_const cuda_gridDim
        cuda_laneid cuda_local_array_integer cuda_local_array_tuple cuda_shared_array_integer cuda_shared_array_tuple
        cuda_threadIdx dim3_x dim3_y dim3_z gen_deg_rad initialize_dim3 ptx_activemask ptx_atomic_add_tuple
        ptx_atomic_bitwise ptx_atomic_cas ptx_atomic_compare_and_swap ptx_atomic_dec ptx_atomic_exch ptx_atomic_inc
        ptx_atomic_max ptx_atomic_min ptx_atomic_nanmax ptx_atomic_nanmin ptx_atomic_sub ptx_brev_u4 ptx_brev_u8
        ptx_brkpt ptx_cbrt ptx_clz ptx_ffs_32 ptx_ffs_64 ptx_fma ptx_lanemask_lt ptx_match_all_sync ptx_match_any_sync
        ptx_max_f4 ptx_max_f8 ptx_min_f4 ptx_min_f8 ptx_nanosleep ptx_popc ptx_round ptx_selp ptx_syncwarp
        ptx_syncwarp_mask ptx_threadfence_block ptx_threadfence_device ptx_threadfence_system round_to_impl
        cudamath: Math_atan2 Math_binary Math_frexp Math_hypot Math_isnan Math_ldexp Math_modf Math_pow Math_remainder
        Math_unary Math_unary_with_fp16
        intrinsics: cuda_warpsize integer_bit_count shfl_sync_intrinsic vote_sync_intrinsic
        libdevicedecl: libdevice_declare
        libdeviceimpl: libdevice_implement libdevice_implement_multiple_returns
        mathimpl: binarys binarys_fastmath booleans cpow_implement get_binary_impl_for_fn_and_ty get_lower_binary_impl
        get_lower_unary_impl get_unary_impl_for_fn_and_ty impl32 impl64 impl_binary impl_binary_int impl_boolean
        impl_frexp impl_ldexp impl_modf impl_pow_int impl_tanh impl_unary impl_unary_int math_isfinite_int
        math_isinf_isnan_int maybe_fast_truediv unarys unarys_fastmath
        models: Dim3Model FloatModel GridGroupModel
        printimpl: bfloat16_print_impl bool_print_impl const_print_impl dim3_print_impl int_print_impl print_item
        print_varargs real_print_impl tuple_print_impl voidptr
        stubs: make_vector_type_stubs map_vector_type_stubs_to_alias stub_function
        vector_types: build_constructor_overloads enable_vector_type_ctor make_vector_type
        """,
    ),
    OmittedNames("it is a step of the generator's; numba.cuda.random.xoroshiro128p_next draws", names="random: rotl"),
    OmittedNames(
        "threadIdx, blockIdx, blockDim and gridDim have a type each",
        names=": dim3  types: dim3  types.ext_types: dim3",
    ),
    OmittedNames(
        "its functions are of NVIDIA's header cuda_fp8.h; numba_hip.float8_e4m3fn and float8_e5m2 convert as others do",
        modules="fp8",
    ),
    OmittedNames("kernels have no memory to allocate", modules="memory_management simulator.memory_management"),
    OmittedNames(
        "numba_hip.vectorize and guvectorize are made of numba_hip.array_functions",
        modules="deviceufunc",
        names="""
        vectorizers: CUDAUFuncMechanism vectorizer_stager_source
        vectorizers.CUDAUFuncDispatcher: functions
        """,
    ),
    OmittedNames(
        "the simulator is numba_hip.simulator, in which arrays and devices are the real ones",
        modules="simulator.kernel simulator.kernelapi",
        names="""
        simulator: FakeCUDAKernel  simulator_init: FakeCUDAKernel memory_management  : FakeCUDAKernel
        simulator.cudadrv.devicearray: FakeCUDAArray FakeShape FakeWithinKernelCUDAArray
        simulator.cudadrv.devices: FakeCUDAContext FakeCUDADevice FakeDeviceList
        simulator.cudadrv.runtime: FakeRuntime
        simulator.vector_types: SimulatedVectorType make_simulated_vector_type
        """,
    ),
    OmittedNames("numba_hip makes itself ready once, when it is imported", modules="locks"),
    OmittedNames(
        "hip_runtime.KernelFault has the thread as .thread and the block as .block",
        names="errors.KernelRuntimeError: ctaid tid",
    ),
    OmittedNames(
        "numba-cuda's tests, and their data, are not part of this",
        names="testing: numba_cuda_dir test_data_dir  testing.CUDATestCase: Signature",
    ),
    OmittedNames(
        "it is there in kernels alone, of what is made there",
        names="cg.GridGroup: sync  stubs.Dim3: x y z",
    ),
    OmittedNames(
        "numba_hip.stream is a function, and the stream that it makes has it",
        names="simulator.api.stream: auto_synchronize synchronize",
    ),
)


@lru_cache(1)
def left_out() -> dict[str, str]:
    """The reason for each omitted module and name, by its full name; attributes of classes are ``Class.name``."""
    return {name: reason.why for reason in LEFT_OUT for name in _full_names(reason)}


def of_copies() -> set[str]:
    """The names that depend on the installed Numba."""
    return set(_full_names(COPIES_LACK))


def _full_names(reason: OmittedNames) -> list[str]:
    found, place = [f"{CUDA}.{module}" for module in reason.modules.split()], CUDA
    for word in reason.names.split():
        if word.endswith(":"):
            place = ".".join(filter(None, [CUDA, word[:-1]]))
        else:
            found.append(f"{place}.{word}")
    return found


def reason(name: str) -> str | None:
    """Why *name*, or the module that it is in, is left out; ``None`` if it is not."""
    table = left_out()
    while name not in table:
        name, _, _ = name.rpartition(".")
        if len(name) <= len(CUDA):
            return None
    return table[name]
