// The kernels of the benchmarks as they are in HIP C++, with the same types and the same algorithm, for tools/isa_report.py.
// No header of HIP is needed. Indices and sizes have 64 bits, as in Python.

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static inline __attribute__((device))
#define SHARED static __attribute__((shared))

DEVICE long thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE long thread_y() { return __builtin_amdgcn_workitem_id_y(); }
DEVICE long grid_x() {
    return (long)__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + thread_x();
}
DEVICE long grid_y() {
    return (long)__builtin_amdgcn_workgroup_id_y() * __builtin_amdgcn_workgroup_size_y() + thread_y();
}
DEVICE void wait_for_block() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL saxpy(float a, const float *x, float *y, long size) {
    long i = grid_x();
    if (i < size) y[i] = a * x[i] + y[i];
}

KERNEL mandelbrot(int *image, long rows, long columns, float step) {
    long j = grid_x(), i = grid_y();
    if (i >= rows || j >= columns) return;
    float cx = -2.0f + (float)j * step, cy = -1.25f + (float)i * step, x = 0, y = 0;
    int count = 0;
#pragma nounroll // Unrolled by clang, whose loop then is in several pieces, each of which leaves it.
    while (count < 256 && x * x + y * y < 4.0f) {
        float next = x * x - y * y + cx;
        y = (x + x) * y + cy;
        x = next;
        count += 1;
    }
    image[i * columns + j] = count;
}

KERNEL n_body(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az,
              long size) {
    long i = grid_x();
    if (i >= size) return;
    float xi = x[i], yi = y[i], zi = z[i], sx = 0, sy = 0, sz = 0;
    for (long j = 0; j < size; j++) {
        float dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        float inverse = 1.0f / __builtin_sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
        float pull = mass[j] * inverse * inverse * inverse;
        sx += dx * pull;
        sy += dy * pull;
        sz += dz * pull;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
}

KERNEL matmul_naive(const float *a, const float *b, float *c, long rows, long columns, long depth) {
    long j = grid_x(), i = grid_y();
    if (i >= rows || j >= columns) return;
    float total = 0;
    for (long k = 0; k < depth; k++) total += a[i * depth + k] * b[k * columns + j];
    c[i * columns + j] = total;
}

KERNEL matmul_tiled(const float *a, const float *b, float *c, long columns, long depth) {
    SHARED float tile_a[16][16], tile_b[16][16];
    long tx = thread_x(), ty = thread_y(), j = grid_x(), i = grid_y();
    float total = 0;
    for (long k = 0; k < depth; k += 16) {
        tile_a[ty][tx] = a[i * depth + k + tx];
        tile_b[ty][tx] = b[(k + ty) * columns + j];
        wait_for_block();
        for (int inner = 0; inner < 16; inner++) total += tile_a[ty][inner] * tile_b[inner][tx];
        wait_for_block();
    }
    c[i * columns + j] = total;
}

// Each lane has PARTS elements of a row of x and of a column of y, and of a column of the product SUMS elements.
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
enum { PARTS = 4, SUMS = 4 };
#define MULTIPLY(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0)
DEVICE long first_part(long half) { return half * 4; }
DEVICE long row_of_sum(long half, int i) { return half * 4 + i; }
#elif defined(__gfx1100__)
enum { PARTS = 16, SUMS = 8 };
#define MULTIPLY(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c)
DEVICE long first_part(long half) { return 0; }
DEVICE long row_of_sum(long half, int i) { return 2 * i + half; }
#elif defined(__gfx1201__)
enum { PARTS = 8, SUMS = 8 };
#define MULTIPLY(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c)
DEVICE long first_part(long half) { return half * 8; }
DEVICE long row_of_sum(long half, int i) { return half * 8 + i; }
#endif
#ifdef MULTIPLY
KERNEL matrix_cores(const _Float16 *x, const _Float16 *y, float *out, long depth, long columns) {
    typedef _Float16 parts __attribute__((ext_vector_type(PARTS), aligned(2)));
    typedef float sums __attribute__((ext_vector_type(SUMS)));
    long lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)), half = lane / 16;
    long row = (long)__builtin_amdgcn_workgroup_id_y() * 16, column = (long)__builtin_amdgcn_workgroup_id_x() * 16;
    const _Float16 *left = x + (row + lane % 16) * depth + first_part(half);
    const _Float16 *right = y + (column + lane % 16) * depth + first_part(half);
    sums total = 0;
    for (long k = 0; k < depth; k += 16)
        total = MULTIPLY(*(const parts *)(left + k), *(const parts *)(right + k), total);
    for (int i = 0; i < SUMS; i++) out[(row + row_of_sum(half, i)) * columns + column + lane % 16] = total[i];
}
#endif

KERNEL tree_reduction(const float *source, long count, float *target) {
    SHARED float tile[256];
    long t = thread_x(), i = grid_x();
    tile[t] = i < count ? source[i] : 0.0f;
    wait_for_block();
    for (long half = 128; half > 0; half /= 2) {
        if (t < half) tile[t] += tile[t + half];
        wait_for_block();
    }
    if (t == 0) target[__builtin_amdgcn_workgroup_id_x()] = tile[0];
}

// What __shfl_down of HIP's header does, over a whole wave.
DEVICE float from_lane_above(float value, int step) {
    int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
    int from = lane + step >= __builtin_amdgcn_wavefrontsize() ? lane : lane + step;
    return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(from << 2, __builtin_bit_cast(int, value)));
}

KERNEL warp_reduction(const float *source, long count, float *target) {
    long i = grid_x();
    float total = i < count ? source[i] : 0.0f;
    int wave = __builtin_amdgcn_wavefrontsize();
    for (int step = wave / 2; step > 0; step /= 2) total += from_lane_above(total, step);
    if (__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)) == 0 && i < count) target[i / wave] = total;
}

KERNEL histogram(const unsigned char *values, long size, int *counts) {
    SHARED int bins[256];
    long t = thread_x(), step = (long)__builtin_amdgcn_grid_size_x();
    bins[t] = 0;
    wait_for_block();
    for (long i = grid_x(); i < size; i += step)
        __hip_atomic_fetch_add(&bins[values[i]], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    wait_for_block();
    __hip_atomic_fetch_add(&counts[t], bins[t], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Each array has its own row length, as arrays of NumPy have.
KERNEL stencil(const float *s, float *target, long rows, long columns, long target_columns) {
    long j = grid_x(), i = grid_y();
    if (!(0 < i && i < rows - 1 && 0 < j && j < columns - 1)) return;
    const float *at = s + i * columns + j;
    target[i * target_columns + j] = (at[0] + at[-columns] + at[columns] + at[-1] + at[1]) * 0.2f;
}
