/* Some of the kernels of users in OpenCL C, line by line as they are written for numba.hip. */

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void julia_f64(double cx, double cy, int rounds, global int *image, int height, int width) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i >= height || j >= width) return;
    double x = 3.0 * j / width - 1.5, y = 3.0 * i / height - 1.5;
    int count = 0;
    while (count < rounds && x * x + y * y < 4.0) {
        double next = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = next;
        count++;
    }
    image[i * width + j] = count;
}

kernel void fft_stages(global float2 *values, global const float2 *factors, int half_size, int size) {
    int i = get_global_id(0);
    if (i >= size / 2) return;
    int within = i % half_size, first = i / half_size * 2 * half_size + within;
    float2 value = values[first + half_size], factor = factors[within * (size / 2 / half_size)];
    float2 turned = (float2)(value.x * factor.x - value.y * factor.y, value.x * factor.y + value.y * factor.x);
    float2 kept = values[first];
    values[first] = kept + turned;
    values[first + half_size] = kept - turned;
}

kernel void transpose_tiles(global const float *matrix, global float *turned, int height, int width) {
    local float tile[32][33];
    int tx = get_local_id(0), ty = get_local_id(1);
    int x = get_group_id(0) * 32 + tx, y = get_group_id(1) * 32 + ty;
    for (int row = 0; row < 32; row += 8)
        if (x < width && y + row < height) tile[ty + row][tx] = matrix[(y + row) * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * 32 + tx;
    y = get_group_id(0) * 32 + ty;
    for (int row = 0; row < 32; row += 8)
        if (x < height && y + row < width) turned[(y + row) * height + x] = tile[tx][ty + row];
}

constant int WEIGHTS[5][5] = {
    {1, 4, 6, 4, 1}, {4, 16, 24, 16, 4}, {6, 24, 36, 24, 6}, {4, 16, 24, 16, 4}, {1, 4, 6, 4, 1},
};

kernel void gauss_5x5_rgb(global const uchar *image, global uchar *result, int height, int width, int colours) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    for (int colour = 0; colour < colours; colour++) {
        int total = 0;
        for (int dy = -2; dy < 3; dy++)
            for (int dx = -2; dx < 3; dx++) {
                int row = min(max(y + dy, 0), height - 1), column = min(max(x + dx, 0), width - 1);
                total += WEIGHTS[dy + 2][dx + 2] * image[(row * width + column) * colours + colour];
            }
        result[(y * width + x) * colours + colour] = total / 256;
    }
}

kernel void floyd_warshall(global int *distances, int k, int size) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i >= size || j >= size) return;
    int via = distances[i * size + k] + distances[k * size + j];
    if (via < distances[i * size + j]) distances[i * size + j] = via;
}

kernel void lennard_jones_cells(global const double *positions, global const int *starts, int cells,
                                global double *energies, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    double x = positions[3 * i], y = positions[3 * i + 1], z = positions[3 * i + 2], energy = 0.0;
    for (int cx = max((int)x - 1, 0); cx < min((int)x + 2, cells); cx++)
        for (int cy = max((int)y - 1, 0); cy < min((int)y + 2, cells); cy++)
            for (int cz = max((int)z - 1, 0); cz < min((int)z + 2, cells); cz++) {
                int cell = (cx * cells + cy) * cells + cz;
                for (int j = starts[cell]; j < starts[cell + 1]; j++)
                    if (j != i) {
                        double dx = positions[3 * j] - x, dy = positions[3 * j + 1] - y, dz = positions[3 * j + 2] - z;
                        double squared = dx * dx + dy * dy + dz * dz;
                        if (squared < 1.0) {
                            double ratio = 0.01 / (squared + 0.001), sixth = ratio * ratio * ratio;
                            energy += 4.0 * (sixth * sixth - sixth);
                        }
                    }
            }
    energies[i] = energy;
}

kernel void murmur_buckets(global const uint *keys, global uint *buckets, uint count, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    uint h = keys[i];
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    buckets[i] = (h ^ (h >> 16)) % count;
}

double distribution(double x) { return 0.5 * erfc(-x * sqrt(0.5)); }

kernel void black_scholes_f64(global const double *spots, global const double *strikes, global const double *years,
                              double rate, double volatility, global double *calls, global double *puts, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    double root = volatility * sqrt(years[i]);
    double d1 = (log(spots[i] / strikes[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / root;
    double d2 = d1 - root;
    double discounted = strikes[i] * exp(-rate * years[i]);
    calls[i] = spots[i] * distribution(d1) - discounted * distribution(d2);
    puts[i] = discounted * distribution(-d2) - spots[i] * distribution(-d1);
}

kernel void histogram_2d(global const float *xs, global const float *ys, global int *counts, int rows, int columns,
                         int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    int row = (int)(ys[i] * rows), column = (int)(xs[i] * columns);
    if (row >= 0 && row < rows && column >= 0 && column < columns) atomic_inc(&counts[row * columns + column]);
}

kernel void edit_distance(global const uchar *left, global const uchar *right, global const int *before,
                          global const int *last, global int *current, int diagonal, int height, int width) {
    int i = get_global_id(0), j = diagonal - i;
    if (i > height || j < 0 || j > width) return;
    if (i == 0 || j == 0) {
        current[i] = i + j;
    } else {
        int changed = before[i - 1] + (left[i - 1] != right[j - 1]);
        current[i] = min(changed, min(last[i - 1], last[i]) + 1);
    }
}
