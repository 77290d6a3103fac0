/* The math of float64 in OpenCL C. */

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void haversine(global const double *lat1, global const double *lon1, global const double *lat2,
                      global const double *lon2, global double *found, int size) {
    int i = get_global_id(0);
    if (i >= size) return;
    double across = sin((lat2[i] - lat1[i]) / 2), along = sin((lon2[i] - lon1[i]) / 2);
    found[i] = 12742.0 * asin(sqrt(across * across + cos(lat1[i]) * cos(lat2[i]) * along * along));
}
