// What a launch costs a program in C++: the loop of benchmarks/launch_loop.py. The few functions of HIP are declared here, as
// hip/hip_runtime_api.h has them.

extern "C" {
int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                          void **extra);

static void *kernel;

// Takes the kernel from this code object; HIP's error.
int prepare(const void *image) {
    void *module;
    int error = hipModuleLoadData(&module, image);
    return error ? error : hipModuleGetFunction(&kernel, module, "count");
}

// Launches it so often; HIP's error.
int launch(long times, void *counts, void *x, void *y) {
    void *arguments[] = {counts, x, y};
    unsigned long size = sizeof arguments;
    // HIP_LAUNCH_PARAM_BUFFER_POINTER, ..._BUFFER_SIZE and ..._END
    void *packed[] = {(void *)1, arguments, (void *)2, &size, (void *)3};
    for (long turn = 0; turn < times; turn++) {
        int error = hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, packed);
        if (error) return error;
    }
    return 0;
}
}
