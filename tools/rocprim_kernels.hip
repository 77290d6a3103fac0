// The algorithms and primitives of rocPRIM that tools/rocprim_report.py compares ours with; its headers are needed.

#include <hip/hip_runtime.h>
#include <rocprim/rocprim.hpp>

using uint = unsigned int;

constexpr unsigned THREADS = 256;

// Never called: naming the algorithms makes clang compile their kernels.
void launch_all(const float *reals, float *sum, const uint *numbers, uint *results, uint *count, int *bins, size_t size) {
    size_t bytes = 0;
    (void)rocprim::reduce(nullptr, bytes, reals, sum, 0.0f, size, rocprim::plus<float>());
    (void)rocprim::inclusive_scan(nullptr, bytes, numbers, results, size, rocprim::plus<uint>());
    (void)rocprim::radix_sort_keys(nullptr, bytes, numbers, results, size);
    (void)rocprim::histogram_even(nullptr, bytes, numbers, (uint)size, bins, 257, 0u, 1024u);
    (void)rocprim::select(nullptr, bytes, numbers, results, count, size, [] __device__(uint x) { return x > 500; });
}

extern "C" __global__ void __launch_bounds__(THREADS) block_sum(const float *values, float *sums) {
    using Primitive = rocprim::block_reduce<float, THREADS>;
    __shared__ typename Primitive::storage_type storage;
    float sum;
    Primitive().reduce(values[blockIdx.x * THREADS + threadIdx.x], sum, storage);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) block_scan(uint *values) {
    using Primitive = rocprim::block_scan<uint, THREADS>;
    __shared__ typename Primitive::storage_type storage;
    uint through, i = blockIdx.x * THREADS + threadIdx.x;
    Primitive().inclusive_scan(values[i], through, storage);
    values[i] = through;
}

extern "C" __global__ void __launch_bounds__(THREADS) block_sort(uint *values) {
    using Primitive = rocprim::block_radix_sort<uint, THREADS, 4>;
    __shared__ typename Primitive::storage_type storage;
    uint items[4], *tile = values + blockIdx.x * THREADS * 4;
    rocprim::block_load_direct_blocked(threadIdx.x, tile, items);
    Primitive().sort(items, storage);
    rocprim::block_store_direct_blocked(threadIdx.x, tile, items);
}

extern "C" __global__ void wave_sum(const float *values, float *sums) {
    using Primitive = rocprim::warp_reduce<float>;
    __shared__ typename Primitive::storage_type storage;
    float sum;
    Primitive().reduce(values[blockIdx.x * blockDim.x + threadIdx.x], sum, storage);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void wave_scan(uint *values) {
    using Primitive = rocprim::warp_scan<uint>;
    __shared__ typename Primitive::storage_type storage;
    uint through, i = blockIdx.x * blockDim.x + threadIdx.x;
    Primitive().inclusive_scan(values[i], through, storage);
    values[i] = through;
}
