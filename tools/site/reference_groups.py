"""What the API reference has: its pages, and the names on each. A test compares them with the names that there are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """A page of the reference."""

    title: str
    about: str
    """What stands above the names, as Markdown would have it without links."""
    names: str = ""
    """Names of `numba.hip`, separated by spaces; ``cg.this_grid`` is one of a namespace in it."""
    modules: tuple[str, ...] = ()
    """Attributes of `numba.hip`, or packages, whose public names are all on the page."""


GROUPS = {
    "kernels": Group(
        "Kernels and ufuncs",
        "What turns Python functions into kernels, device functions, ufuncs and reductions.",
        "jit vectorize guvectorize reduce Reduce declare_device LinkedCode LinkedSource In InOut Out precompile "
        "autotune races",
    ),
    "thread-index": Group(
        "Threads, barriers and fences",
        "Which thread of which block a kernel runs in, and how the threads of a block wait for one another.",
        "grid gridsize threadIdx blockIdx blockDim gridDim syncthreads syncthreads_and syncthreads_count "
        "syncthreads_or threadfence threadfence_block threadfence_system nanosleep clock64 wall_clock64",
    ),
    "memory-in-kernels": Group(
        "Memory in kernels",
        "Shared, private and constant arrays, vector types, and loads and stores with hints for caches.",
        "shared.array shared.load local.array const.array_like vector.load vector.store ldca ldcg ldcs ldcv ldlu stcg "
        "stcs stwb stwt",
    ),
    "atomics": Group(
        "Atomics",
        "Operations on an element of an array that no other thread can come between.",
        "atomic.add atomic.sub atomic.and_ atomic.or_ atomic.xor atomic.inc atomic.dec atomic.exch atomic.min "
        "atomic.max atomic.nanmin atomic.nanmax atomic.cas atomic.compare_and_swap",
    ),
    "warp": Group(
        "Waves (warps)",
        "Operations of the 32 or 64 threads that an AMD GPU runs in lock step.",
        "laneid warpsize activemask all all_sync any any_sync ballot ballot_sync eq_sync lanemask_eq lanemask_ge "
        "lanemask_gt lanemask_le lanemask_lt match_all match_all_sync match_any match_any_sync shfl shfl_sync "
        "shfl_down shfl_down_sync shfl_up shfl_up_sync shfl_xor shfl_xor_sync syncwarp mbcnt ds_bpermute ds_permute "
        "readfirstlane readlane",
    ),
    "wave": Group("What a wave computes together", "The module `hip.wave`, for kernels.", modules=("wave",)),
    "cooperative-groups": Group("Cooperative groups", "Barriers of the whole grid, in one launch.", "cg.this_grid"),
    "block": Group("What a block computes together", "The module `hip.block`, for kernels.", modules=("block",)),
    "matrix": Group(
        "Matrix cores",
        "Products of small matrices in one instruction, which the lanes of a wave execute together.",
        "matrix.fragment matrix.fill matrix.load matrix.mma matrix.store matrix.position",
    ),
    "bits": Group(
        "Bits and numbers",
        "Functions of numbers beside those of Python's `math` and NumPy's.",
        "brev byte_perm cbrt clz ffs fma funnelshift_l funnelshift_lc funnelshift_r funnelshift_rc popc selp",
    ),
    "half": Group(
        "float16, bfloat16 and float8",
        "Arithmetic on numbers of 16 bits, and conversions of those of 8; `hip.bfloat16` and the others are types.",
        "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz",
        ("fp16", "bf16", "fp8"),
    ),
    "random": Group("Random numbers", "The module `hip.random`: a generator for each thread.", modules=("random",)),
    "algorithms": Group(
        "Algorithms over whole arrays",
        "The module `hip.algorithms`: sorts, scans, selections and reductions, called on the host.",
        modules=("algorithms",),
    ),
    "arrays": Group(
        "Arrays and host memory",
        "Arrays on a device, and memory of the host that a device reaches.",
        "DeviceArray to_device device_array device_array_like zeros ones full from_dlpack is_device_array "
        "as_device_array from_cuda_array_interface pinned pinned_array pinned_array_like mapped mapped_array "
        "mapped_array_like managed_array MappedArray open_ipc_array IpcHandle",
    ),
    "streams": Group(
        "Streams, events and graphs",
        "Queues of work, marks in them, and work that is recorded once and launched again and again.",
        "Stream stream default_stream legacy_default_stream per_thread_default_stream external_stream synchronize "
        "Event event event_elapsed_time Graph ExecutableGraph",
    ),
    "texture": Group("Textures", "The module `hip.texture`.", modules=("texture",)),
    "collectives": Group("Collective operations among GPUs", "The module `hip.collectives`.", modules=("collectives",)),
    "devices": Group(
        "Devices and contexts",
        "Which devices there are, and which of them a thread uses.",
        "detect is_available list_devices gpus select_device get_current_device current_context require_context reset "
        "close",
    ),
    "memory-managers": Group(
        "Memory managers",
        "Where the memory of device arrays comes from, and when it goes back.",
        "set_memory_manager defer_cleanup BaseMemoryManager BaseCUDAMemoryManager HostOnlyMemoryManager "
        "HostOnlyCUDAMemoryManager GetIpcHandleMixin MemoryInfo MemoryPointer MappedMemory PinnedMemory",
    ),
    "measuring": Group(
        "Measuring and tuning",
        "How long work takes, and how much of what the machine can do that is.",
        "profile range benchmark roofline suggest_block_size profiling profile_start profile_stop",
    ),
    "compiling": Group(
        "Compiling for a named target",
        "Code for a GPU that need not be there.",
        "asm compile compile_all compile_for_current_device compile_llvm_ir compile_llvm_ir_for_current_device "
        "compile_ptx compile_ptx_for_current_device set_hip_extensions current_hip_extensions current_hip_extra_cflags",
    ),
    "extending": Group(
        "Teaching kernels functions and types",
        "The module `hip.extending`. What is not described here is that of the same name in `numba.extending`.",
        modules=("extending",),
    ),
    "errors": Group(
        "Errors and warnings",
        "What is raised. Where NumPy or Python has a class for a fault, such as IndexError, the error is of that, too.",
        modules=("errors",),
    ),
    "hip-runtime": Group(
        "The package hip_runtime",
        "Devices, memory and launches without Numba. What `numba.hip` has of it is on the pages before.",
        modules=("hip_runtime",),
    ),
    "hip-devicelib": Group(
        "The package hip_devicelib",
        "Targets, declarations of HIP's functions, and code objects.",
        modules=("hip_devicelib",),
    ),
    "numba-hip-cuda": Group(
        "The package numba_hip_cuda",
        "Programs for `numba.cuda`, on `numba.hip`.",
        modules=("numba_hip_cuda",),
    ),
}
"""The pages, in the order of the table of contents."""

ELSEWHERE = ("libdevice", "config")
"""Modules that are on the pages of the vector types and of the environment variables."""
