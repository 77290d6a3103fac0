/* The kernels in OpenCL C. The sizes of blocks, and all constants, are the same as in the modules of the benchmarks. */

kernel void saxpy(float a, global const float *x, global float *y, int size) {
    int i = get_global_id(0);
    if (i < size) y[i] = a * x[i] + y[i];
}

float normal_distribution(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float sum = k * (0.319381530f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * exp(-0.5f * d * d) * sum;
    return d > 0.0f ? 1.0f - tail : tail;
}

kernel void black_scholes(global const float *stock, global const float *strike, global const float *years,
                          float rate, float volatility, global float *call, global float *put, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    float s = stock[i], x = strike[i], t = years[i];
    float root = sqrt(t);
    float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = normal_distribution(d1), n2 = normal_distribution(d2);
    float discounted = x * exp(-rate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}

kernel void mandelbrot(global int *image, float step, int size, int rounds) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i >= size || j >= size) return;
    float cx = -2.0f + j * step, cy = -1.25f + i * step;
    float x = 0.0f, y = 0.0f;
    int count = 0;
    while (count < rounds && x * x + y * y < 4.0f) {
        float next = x * x - y * y + cx;
        y = (x + x) * y + cy;
        x = next;
        count++;
    }
    image[i * size + j] = count;
}

kernel void nbody(global const float *x, global const float *y, global const float *z, global const float *mass,
                  global float *ax, global float *ay, global float *az, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    float xi = x[i], yi = y[i], zi = z[i], sx = 0.0f, sy = 0.0f, sz = 0.0f;
    for (int j = 0; j < size; j++) {
        float dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        float inverse = 1.0f / sqrt(dx * dx + dy * dy + dz * dz + 1e-3f);
        float pull = mass[j] * inverse * inverse * inverse;
        sx += dx * pull;
        sy += dy * pull;
        sz += dz * pull;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
}

kernel void matmul_naive(global const float *a, global const float *b, global float *c, int size) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i >= size || j >= size) return;
    float total = 0.0f;
    for (int k = 0; k < size; k++) total += a[i * size + k] * b[k * size + j];
    c[i * size + j] = total;
}

kernel void matmul_tiled(global const float *a, global const float *b, global float *c, int size) {
    local float tile_a[16][16], tile_b[16][16];
    int tx = get_local_id(0), ty = get_local_id(1), j = get_global_id(0), i = get_global_id(1);
    float total = 0.0f;
    for (int k = 0; k < size; k += 16) {
        tile_a[ty][tx] = a[i * size + k + tx];
        tile_b[ty][tx] = b[(k + ty) * size + j];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int inner = 0; inner < 16; inner++) total += tile_a[ty][inner] * tile_b[inner][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[i * size + j] = total;
}

kernel void tree_reduction(global const float *source, int count, global float *target) {
    local float tile[256];
    int t = get_local_id(0), i = get_global_id(0);
    tile[t] = i < count ? source[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = 128; half_size > 0; half_size /= 2) {
        if (t < half_size) tile[t] += tile[t + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) target[get_group_id(0)] = tile[0];
}

#ifdef SHUFFLE_XOR
__attribute__((intel_reqd_sub_group_size(16)))
kernel void warp_reduction(global const float *source, int count, global float *target) {
    int i = get_global_id(0);
    float total = i < count ? source[i] : 0.0f;
    for (int step = 8; step > 0; step /= 2) total += SHUFFLE_XOR(total, step);
    if (get_sub_group_local_id() == 0 && i < count) target[i / 16] = total;
}
#endif

kernel void clear(global int *counts) { counts[get_global_id(0)] = 0; }

kernel void histogram(global const uchar *values, int size, global int *counts) {
    local int bins[256];
    int t = get_local_id(0);
    bins[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < size; i += get_global_size(0)) atomic_inc(&bins[values[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&counts[t], bins[t]);
}

kernel void stencil(global const float *s, global float *target, int size) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i > 0 && i < size - 1 && j > 0 && j < size - 1) {
        int at = i * size + j;
        target[at] = (s[at] + s[at - size] + s[at + size] + s[at - 1] + s[at + 1]) * 0.2f;
    }
}
