/* The kernels of the families in OpenCL C, as they are written for numba.hip, line by line where that can be. Index
   types are those of OpenCL programs: int, but for the places of a sparse matrix, which are long in the arrays. */

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

kernel void elementwise_ij(global const float *left, global const float *right, global float *total, int rows,
                           int columns) {
    int i = get_global_id(0), j = get_global_id(1);
    if (i < rows && j < columns) total[i * columns + j] = left[i * columns + j] + right[i * columns + j];
}

kernel void elementwise_ji(global const float *left, global const float *right, global float *total, int rows,
                           int columns) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i < rows && j < columns) total[i * columns + j] = left[i * columns + j] + right[i * columns + j];
}

kernel void elementwise_ijk(global const float *left, global const float *right, global float *total, int planes,
                            int rows, int columns) {
    int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i < planes && j < rows && k < columns) {
        int at = (i * rows + j) * columns + k;
        total[at] = left[at] + right[at];
    }
}

float3 slope(float3 at) {
    return (float3)(10.0f * (at.y - at.x), at.x * (28.0f - at.z) - at.y, at.x * at.y - (8.0f / 3.0f) * at.z);
}

kernel void integration(global float *x, global float *y, global float *z, int size, int steps) {
    int i = get_global_id(0);
    if (i >= size) return;
    float3 at = (float3)(x[i], y[i], z[i]);
    const float h = 0.002f;
    for (int n = 0; n < steps; n++) {
        float3 first = slope(at);
        at += h * 0.5f * (first + slope(at + h * first));
    }
    x[i] = at.x;
    y[i] = at.y;
    z[i] = at.z;
}

kernel void clear_total(global double *total) { total[0] = 0; }

kernel void atomic_sum(global const float *values, global double *total, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    volatile global ulong *place = (volatile global ulong *)total;
    ulong seen = *place, wanted;
    do {
        wanted = seen;
        seen = atom_cmpxchg(place, wanted, as_ulong(as_double(wanted) + values[i]));
    } while (seen != wanted);
}

kernel void clear_count(global long *count) { count[0] = 0; }

kernel void atomic_places(global const float *values, global float *found, global long *count, int size) {
    int i = get_global_id(0);
    if (i < size && values[i] > 0.75f) found[atom_add(count, 1L)] = values[i];
}

kernel void clear_clusters(global float *sums, global int *counts) {
    int i = get_global_id(0);
    sums[2 * i] = sums[2 * i + 1] = 0;
    counts[i] = 0;
}

void add_to(volatile global float *sum, float term) {
    volatile global int *place = (volatile global int *)sum;
    int seen = *place, wanted;
    do {
        wanted = seen;
        seen = atomic_cmpxchg(place, wanted, as_int(as_float(wanted) + term));
    } while (seen != wanted);
}

kernel void atomic_clusters(global const float *points, global const int *labels, global float *sums,
                            global int *counts, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    int cluster = labels[i];
    add_to(&sums[2 * cluster], points[2 * i]);
    add_to(&sums[2 * cluster + 1], points[2 * i + 1]);
    atomic_inc(&counts[cluster]);
}

kernel void life(global const uchar *before, global uchar *after, int height, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    int near = 0;
    for (int dy = -1; dy < 2; dy++)
        for (int dx = -1; dx < 2; dx++)
            if (dx != 0 || dy != 0) near += before[(y + dy + height) % height * width + (x + dx + width) % width];
    after[y * width + x] = near == 3 || (near == 2 && before[y * width + x] == 1);
}

kernel void transpose_by_index(global const float *matrix, global float *turned, int rows, int columns) {
    int i = get_global_id(0);
    if (i < rows * columns) turned[i % columns * rows + i / columns] = matrix[i];
}

kernel void sparse_rows(global const double *values, global const long *columns, global const long *starts,
                        global const double *vector, global double *product) {
    local double shared[64];
    int row = get_group_id(0), thread = get_local_id(0);
    double total = 0;
    for (long place = starts[row] + thread; place < starts[row + 1]; place += get_local_size(0))
        total += values[place] * vector[columns[place]];
    shared[thread] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (thread < half_size) shared[thread] += shared[thread + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (thread == 0) product[row] = shared[0];
}

kernel void scan_blocks(global const int *numbers, global int *before, global int *sums) {
    local int shared[256];
    int i = get_global_id(0), thread = get_local_id(0), step = 1;
    shared[thread] = numbers[i];
    for (; step < 256; step *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int at = (thread + 1) * step * 2 - 1;
        if (at < 256) shared[at] += shared[at - step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread == 0) {
        sums[get_group_id(0)] = shared[255];
        shared[255] = 0;
    }
    while (step > 1) {
        step /= 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        int at = (thread + 1) * step * 2 - 1;
        if (at < 256) {
            int left = shared[at - step];
            shared[at - step] = shared[at];
            shared[at] += left;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    before[i] = shared[thread];
}

kernel void scan_sums(global int *sums, int blocks) {
    int total = 0;
    for (int block = 0; block < blocks; block++) {
        int own = sums[block];
        sums[block] = total;
        total += own;
    }
}

kernel void add_sums(global int *before, global const int *sums) {
    before[get_global_id(0)] += sums[get_group_id(0)];
}

kernel void rgb_to_grey(global const uchar *colours, global uchar *grey, int height, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    if (y >= height || x >= width) return;
    global const uchar *pixel = colours + (y * width + x) * 3;
    grey[y * width + x] = (77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2]) >> 8;
}

kernel void blur_rgb(global const uchar *colours, global uchar *blurred, int height, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    if (!(0 < y && y < height - 1 && 0 < x && x < width - 1)) return;
    int line = width * 3;
    for (int c = 0; c < 3; c++) {
        global const uchar *at = colours + y * line + x * 3 + c;
        int total = at[-line - 3] + 2 * at[-line] + at[-line + 3] + 2 * at[-3] + 4 * at[0] + 2 * at[3];
        total += at[line - 3] + 2 * at[line] + at[line + 3];
        blurred[y * line + x * 3 + c] = total >> 4;
    }
}

kernel void median_of_nine(global const float *pixels, global float *medians, int height, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    float window[9];
    if (!(0 < y && y < height - 1 && 0 < x && x < width - 1)) return;
    for (int k = 0; k < 9; k++) window[k] = pixels[(y + k / 3 - 1) * width + x + k % 3 - 1];
    for (int i = 1; i < 9; i++) {
        float value = window[i];
        int j = i;
        while (j > 0 && window[j - 1] > value) {
            window[j] = window[j - 1];
            j--;
        }
        window[j] = value;
    }
    medians[y * width + x] = window[4];
}
