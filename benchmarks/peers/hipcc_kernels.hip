// The kernels of the benchmarks in HIP C++, for benchmarks/peers/hipcc.py: those of tools/isa_kernels.hip, and what is not there.

#include "../../tools/isa_kernels.hip"

KERNEL count(double *counts, const double *x, const double *y) {
    long i = grid_x();
    if (i == 0) counts[i] += x[i] * y[i];
}

KERNEL clear(int *counts) { counts[grid_x()] = 0; }

// Polynomial 26.2.17 of Abramowitz and Stegun.
DEVICE float normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * __builtin_fabsf(d));
    float sum = k * (0.319381530f +
                     k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * __builtin_expf(-0.5f * d * d) * sum;
    return d > 0 ? 1.0f - tail : tail;
}

KERNEL black_scholes(const float *stock, const float *strike, const float *years, float rate, float volatility,
                     float *call, float *put, long size) {
    long i = grid_x();
    if (i >= size) return;
    float s = stock[i], x = strike[i], t = years[i], root = __builtin_sqrtf(t);
    float d1 = (__builtin_logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float n1 = normal(d1), n2 = normal(d1 - volatility * root), discounted = x * __builtin_expf(-rate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}
