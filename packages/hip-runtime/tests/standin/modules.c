/* Modules, functions, globals and launches. A module is an ELF file; its kernels run as functions of kernels.c. */
#define _GNU_SOURCE
#include "standin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Global {
    struct Global *next;
    char name[MAX_NAME];
    void *place;
    size_t size;
} Global;

typedef struct Function {
    struct Function *next;
    char name[MAX_NAME];
    Body body; /* or null, and the executor runs it */
    uint64_t base;
    int device;
    size_t argument_bytes;
    int offsets[8];
    void *fault;
    uint32_t most; /* threads of a block that the code was made for, or 0 */
    Shape *shape;
} Function;

typedef struct Module {
    struct Module *next;
    char *image;
    size_t size;
    uint64_t base; /* where the executor has put it, or 0 */
    int device;
    Global *globals;
    Function *functions;
} Module;

typedef struct {
    char name[MAX_NAME];
    uint32_t grid[3], block[3], shared;
    int cooperative, device;
    void *stream;
    uint64_t argument_bytes;
    unsigned char arguments[MAX_ARGUMENTS];
} Launch;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Module *modules;
static Launch launches[256];
static int launch_count;
static Executor executor;

/* Let modules that are loaded from now on be run by *wanted*; null: by kernels.c again. */
EXPORT void standin_attach(const Executor *wanted) { executor = wanted ? *wanted : (Executor){0}; }

static int has_module(const Module *module) {
    for (Module *other = modules; other; other = other->next)
        if (other == module) return 1;
    return 0;
}

/* The symbol *name* of the file *image*, or null. */
static const Elf64_Sym *find_symbol(const char *image, const char *name) {
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB && sections[i].sh_type != SHT_DYNSYM) continue;
        const char *names = image + sections[sections[i].sh_link].sh_offset;
        const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
        for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++)
            if (symbols[j].st_shndx && !strcmp(names + symbols[j].st_name, name)) return &symbols[j];
    }
    return NULL;
}

EXPORT hipError_t hipModuleLoadData(Module **place, const void *image) {
    ENTER("on %d", current_device());
    const Elf64_Ehdr *header = image;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_machine != 224) return remember(INVALID_IMAGE);
    if (!runs_on(image, target_of(current_device()))) return remember(NO_BINARY_FOR_GPU);
    Module *module = calloc(1, sizeof *module);
    module->size = header->e_shoff + (size_t)header->e_shnum * sizeof(Elf64_Shdr);
    module->image = malloc(module->size);
    memcpy(module->image, image, module->size);
    module->device = current_device();
    if (executor.load && !(module->base = executor.load(module->image, module->size))) {
        free(module->image);
        free(module);
        return remember(INVALID_IMAGE);
    }
    pthread_mutex_lock(&lock);
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&lock);
    count_resource(MODULE, 1);
    *place = module;
    return SUCCESS;
}

/* Takes the code away at once, from under kernels that run: whoever unloads has to wait first. */
EXPORT hipError_t hipModuleUnload(Module *module) {
    ENTER();
    pthread_mutex_lock(&lock);
    int code = NOT_FOUND;
    for (Module **link = &modules; *link; link = &(*link)->next)
        if (*link == module) {
            *link = module->next;
            code = SUCCESS;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (code) return remember(code);
    for (Global *global = module->globals; global; global = global->next) {
        forget_variable(global->place);
        if (module->base) continue;
        memset(global->place, 0xDD, global->size);
        free(global->place);
    }
    if (module->base && executor.unload) executor.unload(module->base);
    free(module->image);
    count_resource(MODULE, -1);
    return SUCCESS;
}

/* Write what the variable *symbol* of the file *image* holds at first. Addresses in it are not filled in. */
static void initialise(const char *image, const Elf64_Sym *symbol, void *place) {
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(image + header->e_shoff) + symbol->st_shndx;
    if (symbol->st_shndx >= header->e_shnum || section->sh_type == SHT_NOBITS)
        memset(place, 0, symbol->st_size);
    else
        memcpy(place, image + section->sh_offset + (symbol->st_value - section->sh_addr), symbol->st_size);
}

static Global *find_global(Module *module, const char *name) {
    pthread_mutex_lock(&lock);
    Global *global = module->globals;
    while (global && strcmp(global->name, name)) global = global->next;
    const Elf64_Sym *symbol = global ? NULL : find_symbol(module->image, name);
    if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT) {
        global = calloc(1, sizeof *global);
        snprintf(global->name, sizeof global->name, "%s", name);
        global->size = symbol->st_size;
        if (module->base) {
            global->place = (void *)(module->base + symbol->st_value);
        } else {
            global->place = host_block(global->size);
            initialise(module->image, symbol, global->place);
        }
        note_variable(global->place, global->size, module->device);
        global->next = module->globals;
        module->globals = global;
    }
    pthread_mutex_unlock(&lock);
    return global;
}

EXPORT hipError_t hipModuleGetGlobal(void **place, size_t *size, Module *module, const char *name) {
    ENTER("%s", name);
    if (!has_module(module)) return remember(NOT_FOUND);
    Global *global = find_global(module, name);
    if (!global) return remember(NOT_FOUND);
    *place = global->place;
    *size = global->size;
    return SUCCESS;
}

/* Fill in what is called and how its arguments lie; answers whether there is such a kernel. */
static int find_kernel(Function *function, const Module *module, const char *name) {
    char other[MAX_NAME + 8];
    snprintf(other, sizeof other, "%s.kd", name);
    if (!find_symbol(module->image, other)) return 0;
    snprintf(function->name, sizeof function->name, "%s", name);
    function->device = module->device;
    function->most = most_threads(module->image, name);
    if (!module->base) {
        function->body = find_body(name, &function->argument_bytes, function->offsets);
        return function->body != NULL;
    }
    function->base = module->base;
    function->shape = calloc(1, sizeof *function->shape);
    if (!executor.describe || executor.describe(module->base, name, function->shape)) {
        free(function->shape);
        return 0;
    }
    function->argument_bytes = function->shape->bytes;
    return 1;
}

EXPORT hipError_t hipModuleGetFunction(Function **place, Module *module, const char *name) {
    ENTER("%s", name);
    if (!has_module(module)) return remember(NOT_FOUND);
    Function *function = calloc(1, sizeof *function);
    if (!find_kernel(function, module, name)) {
        free(function);
        return remember(NOT_FOUND);
    }
    char other[MAX_NAME + 8];
    snprintf(other, sizeof other, "%s.fault", name);
    Global *fault = find_global(module, other);
    function->fault = fault ? fault->place : NULL;
    *place = function;
    return SUCCESS;
}

EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, Function *function, int block, size_t shared) {
    ENTER("%s %d %zu", function->name, block, shared);
    *blocks = 2048 / block;
    return SUCCESS;
}

typedef struct {
    Function *function;
    Grid grid;
    uint32_t shared, cooperative, device;
    size_t argument_bytes;
    unsigned char arguments[MAX_ARGUMENTS];
} Run;

static void execute(const Run *work) {
    const Function *function = work->function;
    Order order = {.name = function->name, .arguments = work->arguments, .argument_bytes = work->argument_bytes,
                   .shared = work->shared, .cooperative = work->cooperative, .device = work->device};
    memcpy(order.grid, work->grid.grid, sizeof order.grid);
    memcpy(order.block, work->grid.block, sizeof order.block);
    int code = device_failure(work->device);
    if (!code) code = executor.execute ? executor.execute(function->base, &order) : NOT_SUPPORTED;
    if (code) fail_device(work->device, code);
}

static void run(void *data) {
    Run *work = data;
    if (work->function->base) {
        execute(work);
        return;
    }
    work->grid.arguments = work->arguments;
    work->grid.fault = work->function->fault;
    work->function->body(&work->grid);
}

/* What a GPU cannot do. */
static int check_bounds(const uint32_t *grid, const uint32_t *block, uint32_t shared) {
    uint64_t threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        threads *= block[axis];
        if (!grid[axis] || !block[axis] || block[axis] > 1024 || threads > 1024) return INVALID_VALUE;
        if (grid[axis] > (axis ? 65536u : 0x7fffffffu)) return INVALID_VALUE;
    }
    if ((uint64_t)grid[0] * block[0] > UINT32_MAX) return INVALID_CONFIGURATION;
    return shared > 65536 ? INVALID_VALUE : SUCCESS;
}

static int check_cooperative(const uint32_t *grid) {
    if (!is_cooperative()) return LAUNCH_FAILURE;
    return (uint64_t)grid[0] * grid[1] * grid[2] > 1024 ? COOPERATIVE_TOO_LARGE : SUCCESS;
}

static int launch(Function *function, const uint32_t *grid, const uint32_t *block, uint32_t shared, void *handle,
                  const void *arguments, size_t argument_bytes, int cooperative) {
    Stream *stream = find_stream(handle);
    if (!stream) return CONTEXT_IS_DESTROYED;
    int code = check_bounds(grid, block, shared);
    if (code) return code;
    if (!arguments && argument_bytes) return INVALID_VALUE;
    if (stream_device(stream) != function->device) return INVALID_DEVICE;
    if (function->most && block[0] * block[1] * block[2] > function->most) return LAUNCH_FAILURE;
    if (cooperative && (code = check_cooperative(grid))) return code;
    if (argument_bytes > sizeof launches->arguments || argument_bytes != function->argument_bytes) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    Launch *record = &launches[launch_count++ % 256];
    memset(record, 0, sizeof *record);
    snprintf(record->name, sizeof record->name, "%s", function->name);
    memcpy(record->grid, grid, sizeof record->grid);
    memcpy(record->block, block, sizeof record->block);
    record->shared = shared;
    record->cooperative = cooperative;
    record->device = stream_device(stream);
    record->stream = handle;
    record->argument_bytes = argument_bytes;
    memcpy(record->arguments, arguments, argument_bytes);
    pthread_mutex_unlock(&lock);
    Run *work = calloc(1, sizeof *work);
    work->function = function;
    memcpy(work->grid.grid, grid, sizeof work->grid.grid);
    memcpy(work->grid.block, block, sizeof work->grid.block);
    memcpy(work->arguments, arguments, argument_bytes);
    work->argument_bytes = argument_bytes;
    work->shared = shared;
    work->cooperative = cooperative;
    work->device = stream_device(stream);
    return submit(stream, run, work);
}

/* Put the arguments that *parameters* points to where the kernel looks for them; answers null where there are none to
 * be had. */
static const void *pack(const Function *function, void **parameters, unsigned char *arguments) {
    if (!parameters) return function->argument_bytes ? NULL : arguments;
    for (uint32_t i = 0; function->base && i < function->shape->count; i++)
        memcpy(arguments + function->shape->arguments[i].offset, parameters[i], function->shape->arguments[i].size);
    for (int i = 0; function->body && function->offsets[i] >= 0; i++) {
        int end = function->offsets[i + 1] >= 0 ? function->offsets[i + 1] : (int)function->argument_bytes;
        memcpy(arguments + function->offsets[i], parameters[i], end - function->offsets[i]);
    }
    return arguments;
}

EXPORT hipError_t hipModuleLaunchKernel(Function *function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
                                        uint32_t by, uint32_t bz, uint32_t shared, void *stream, void **parameters,
                                        void **extra) {
    ENTER("%s", function ? function->name : "");
    if (!function) return remember(INVALID_HANDLE);
    if (parameters && extra) return remember(INVALID_VALUE);
    uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    unsigned char packed[MAX_ARGUMENTS] = {0};
    const void *arguments = extra ? extra[1] : pack(function, parameters, packed);
    size_t size = function->argument_bytes;
    if (extra) {
        if ((size_t)extra[0] != 1 || (size_t)extra[2] != 2 || (size_t)extra[4] != 3) return remember(INVALID_VALUE);
        size = *(size_t *)extra[3];
    }
    return remember(launch(function, grid, block, shared, stream, arguments, size, 0));
}

EXPORT hipError_t hipModuleLaunchCooperativeKernel(Function *function, uint32_t gx, uint32_t gy, uint32_t gz,
                                                   uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared, void *stream,
                                                   void **parameters) {
    ENTER("%s", function ? function->name : "");
    if (!function) return remember(INVALID_HANDLE);
    uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    unsigned char packed[MAX_ARGUMENTS] = {0};
    const void *arguments = pack(function, parameters, packed);
    return remember(launch(function, grid, block, shared, stream, arguments, function->argument_bytes, 1));
}

/* Copy the launches since the last time, at most 256; returns how many. */
EXPORT int standin_launches(Launch *target) {
    pthread_mutex_lock(&lock);
    int count = launch_count < 256 ? launch_count : 256;
    memcpy(target, launches, count * sizeof *target);
    launch_count = 0;
    pthread_mutex_unlock(&lock);
    return count;
}
