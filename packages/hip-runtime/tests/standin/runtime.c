/* Devices, errors, the list of calls, and memory. */
#define _GNU_SOURCE
#include "standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int device;
static __thread int last_error;

/* calls and faults */

#define LOG_BYTES (1 << 20)
static char log_text[LOG_BYTES];
static size_t log_length;
static char failing[64];
static int failing_code, failing_after;
static long counts[RESOURCES];

int remember(int code) {
    if (code && code != NOT_READY) last_error = code;
    return code;
}

int standin_enter(const char *function, const char *format, ...) {
    char line[512];
    int length = snprintf(line, sizeof line, "%s", function);
    va_list arguments;
    va_start(arguments, format);
    if (*format) {
        line[length++] = ' ';
        length += vsnprintf(line + length, sizeof line - length - 1, format, arguments);
    }
    va_end(arguments);
    int code = SUCCESS;
    pthread_mutex_lock(&lock);
    if (log_length + length + 2 < LOG_BYTES) {
        memcpy(log_text + log_length, line, length);
        log_length += length;
        log_text[log_length++] = '\n';
        log_text[log_length] = 0;
    }
    if (failing_code && !strcmp(function, failing) && failing_after-- == 0) {
        code = failing_code;
        failing_code = 0;
    }
    pthread_mutex_unlock(&lock);
    return remember(code);
}

/* Let the call of *function* that comes after so many others return *code*, once. */
EXPORT void standin_fail(const char *function, int code, int after) {
    pthread_mutex_lock(&lock);
    snprintf(failing, sizeof failing, "%s", function);
    failing_code = code;
    failing_after = after;
    pthread_mutex_unlock(&lock);
}

/* Whether the failure that was asked for is still to come. */
EXPORT int standin_failure_pending(void) { return failing_code != 0; }

/* Copy the list of calls since the last time; returns its length. */
EXPORT size_t standin_calls(char *target, size_t size) {
    pthread_mutex_lock(&lock);
    size_t length = log_length < size ? log_length : size;
    memcpy(target, log_text, length);
    log_length = 0;
    pthread_mutex_unlock(&lock);
    return length;
}

void count_resource(int which, int change) { __atomic_add_fetch(&counts[which], change, __ATOMIC_SEQ_CST); }

EXPORT long standin_count(int which) { return __atomic_load_n(&counts[which], __ATOMIC_SEQ_CST); }

EXPORT hipError_t hipGetLastError(void) {
    int code = last_error;
    last_error = SUCCESS;
    return code;
}

static const struct { int code; const char *name, *text; } errors[] = {
    {SUCCESS, "hipSuccess", "no error"},
    {INVALID_VALUE, "hipErrorInvalidValue", "invalid argument"},
    {OUT_OF_MEMORY, "hipErrorOutOfMemory", "out of memory"},
    {NO_DEVICE, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {NOT_READY, "hipErrorNotReady", "device not ready"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
};

EXPORT const char *hipGetErrorString(hipError_t code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return errors[i].text;
    return "unknown error";
}

/* devices */

typedef struct {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned luid_mask;
    size_t total_memory, shared_bytes;
    int registers, wave_size;
    size_t pitch;
    int block_threads, block[3], grid[3], clock;
    size_t constants;
    int major, minor;
    size_t texture_alignment, texture_pitch;
    int overlap, compute_units, timeout, integrated, map_host, mode;
    int textures_1d[3], textures_2d[2 + 2 + 3 + 2], textures_3d[3 + 3];
    int cube, layered[2 + 3 + 2], surfaces[1 + 2 + 3 + 2 + 3], cube_surfaces, cube_layered[2];
    size_t surface_alignment;
    int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, engines, unified, memory_clock, bus_width;
    int l2, persisting_l2, unit_threads, priorities, global_l1, local_l1;
    size_t unit_shared;
    int unit_registers, managed, multi_board, board_group, host_atomics, ratio, pageable, concurrent_managed;
    int preemption, registered, cooperative, cooperative_multi;
    size_t shared_optin;
    int page_tables, direct_managed, unit_blocks, window;
    size_t reserved_shared;
    int register_support, sparse, register_read_only, timeline, pools, rdma;
    unsigned rdma_flush;
    int rdma_order;
    unsigned pool_handles;
    int deferred, ipc_events, cluster, function_pointers;
    int reserved[63], hip_reserved[32];
    char target[256];
    size_t unit_shared_most;
    int clock_instruction;
    unsigned features;
    unsigned *flush[2];
    int unmatched[4], large_bar, revision;
} Properties; /* hipDeviceProp_tR0600 */

_Static_assert(offsetof(Properties, total_memory) == 288, "layout of hipDeviceProp_tR0600");
_Static_assert(sizeof(Properties) == 1472, "layout of hipDeviceProp_tR0600");

static const struct { const char *name, *target; int wave, units, registers; } models[MAX_DEVICES] = {
    {"Stand-in MI210", "gfx90a:sramecc+:xnack-", 64, 104, 65536},
    {"Stand-in RX 7900", "gfx1100", 32, 96, 65536},
    {"Stand-in MI300", "gfx942:sramecc+:xnack-", 64, 304, 65536},
    {"Stand-in RX 9070", "gfx1201", 32, 64, 65536},
};

int device_count(void) {
    const char *wanted = getenv("STANDIN_DEVICES");
    int count = wanted ? atoi(wanted) : 2;
    return count < MAX_DEVICES ? count : MAX_DEVICES;
}

static size_t memory_limit(void) {
    const char *wanted = getenv("STANDIN_MEMORY");
    return wanted ? strtoull(wanted, NULL, 10) : 32u << 20;
}

int current_device(void) { return device; }

/* Which model device 0 is: that of STANDIN_TARGET, if it is set; the others follow, or are alike with STANDIN_ALIKE. */
static int model_of(int number) {
    const char *wanted = getenv("STANDIN_TARGET");
    for (int first = 0; wanted && first < MAX_DEVICES; first++)
        if (!strncmp(models[first].target, wanted, strlen(wanted)))
            return getenv("STANDIN_ALIKE") ? first : (first + number) % MAX_DEVICES;
    return number;
}

const char *target_of(int number) { return models[model_of(number)].target; }

int is_cooperative(void) { return !getenv("STANDIN_NOT_COOPERATIVE"); }

static int failures[MAX_DEVICES];

int device_failure(int number) { return __atomic_load_n(&failures[number], __ATOMIC_SEQ_CST); }

void fail_device(int number, int code) { __atomic_store_n(&failures[number], code, __ATOMIC_SEQ_CST); }

/* Give devices that failed back to whoever uses them next. */
EXPORT void standin_recover(void) { memset(failures, 0, sizeof failures); }

EXPORT hipError_t hipInit(unsigned flags) {
    ENTER("%u", flags);
    return remember(device_count() ? SUCCESS : NO_DEVICE);
}

#define VERSION 60443484 /* 6.4.43484 */

static int tell_version(int *version) {
    if (!version) return remember(INVALID_VALUE);
    *version = VERSION;
    return SUCCESS;
}

EXPORT hipError_t hipRuntimeGetVersion(int *version) {
    ENTER();
    return tell_version(version);
}

EXPORT hipError_t hipDriverGetVersion(int *version) {
    ENTER();
    return tell_version(version);
}

EXPORT hipError_t hipGetDeviceCount(int *count) {
    ENTER();
    *count = device_count();
    return remember(*count ? SUCCESS : NO_DEVICE);
}

EXPORT hipError_t hipSetDevice(int number) {
    ENTER("%d", number);
    if (number < 0 || number >= device_count()) return remember(INVALID_DEVICE);
    device = number;
    return SUCCESS;
}

EXPORT hipError_t hipGetDevicePropertiesR0600(Properties *properties, int number) {
    ENTER("%d", number);
    if (number < 0 || number >= device_count()) return remember(INVALID_DEVICE);
    int model = model_of(number);
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, models[model].name);
    strcpy(properties->target, models[model].target);
    memcpy(properties->uuid, "0123456789abcde", 15);
    properties->uuid[15] = (char)('0' + number);
    properties->total_memory = memory_limit();
    properties->shared_bytes = 65536;
    properties->registers = models[model].registers;
    properties->wave_size = models[model].wave;
    properties->pitch = 0x7fffffff;
    properties->block_threads = 1024;
    for (int axis = 0; axis < 3; axis++) {
        properties->block[axis] = 1024;
        properties->grid[axis] = axis ? 65536 : 0x7fffffff; /* as clr says it, and takes one less */
    }
    properties->clock = 1700000;
    properties->memory_clock = 1600000;
    properties->compute_units = models[model].units;
    properties->concurrent_kernels = properties->managed = 1;
    properties->cooperative = is_cooperative();
    properties->pci_domain = 1;
    properties->pci_bus = 0x40 + number;
    properties->pci_device = 3;
    return SUCCESS;
}

EXPORT hipError_t hipDeviceGetAttribute(int *value, int attribute, int number) {
    ENTER("%d %d", attribute, number);
    if (number < 0 || number >= device_count()) return remember(INVALID_DEVICE);
    switch (attribute) {
    case 2: /* hipDeviceAttributeAsyncEngineCount */
        *value = 8;
        return SUCCESS;
    case 19: /* hipDeviceAttributeL2CacheSize */
        *value = 4194304 << number;
        return SUCCESS;
    default:
        return remember(INVALID_VALUE);
    }
}

EXPORT hipError_t hipDeviceSynchronize(void) {
    ENTER();
    if (spoil_all(CAPTURE_UNSUPPORTED)) return CAPTURE_UNSUPPORTED;
    finish_device(device);
    return remember(device_failure(device));
}

static size_t stack_bytes[MAX_DEVICES]; /* of a thread; 0: not set */

EXPORT hipError_t hipDeviceGetLimit(size_t *bytes, int limit) {
    ENTER("%d on %d", limit, device);
    if (limit) return remember(UNSUPPORTED_LIMIT); /* but for hipLimitStackSize */
    *bytes = stack_bytes[device] ? stack_bytes[device] : 1024;
    return SUCCESS;
}

EXPORT hipError_t hipDeviceSetLimit(int limit, size_t bytes) {
    ENTER("%d %zu on %d", limit, bytes, device);
    if (limit) return remember(UNSUPPORTED_LIMIT);
    if (bytes > (128 << 10) - 16) return remember(INVALID_VALUE);
    stack_bytes[device] = (bytes + 15) / 16 * 16;
    return SUCCESS;
}

static int peers[MAX_DEVICES][MAX_DEVICES];

int reaches(int one, int other) { return one == other || peers[one][other]; }

EXPORT hipError_t hipDeviceCanAccessPeer(int *possible, int one, int other) {
    ENTER("%d %d", one, other);
    if (one < 0 || one >= device_count() || other < 0 || other >= device_count()) return remember(INVALID_DEVICE);
    *possible = one != other && !getenv("STANDIN_NO_PEERS");
    return SUCCESS;
}

EXPORT hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
    ENTER("%d %u", peer, flags);
    if (flags) return remember(INVALID_VALUE);
    if (peer < 0 || peer >= device_count() || peer == device || getenv("STANDIN_NO_PEERS")) return remember(INVALID_DEVICE);
    if (peers[device][peer]) return remember(PEER_ACCESS_ALREADY_ENABLED);
    peers[device][peer] = 1;
    return SUCCESS;
}

EXPORT hipError_t hipDeviceDisablePeerAccess(int peer) {
    ENTER("%d", peer);
    if (peer < 0 || peer >= device_count()) return remember(INVALID_DEVICE);
    if (!peers[device][peer]) return remember(PEER_ACCESS_NOT_ENABLED);
    peers[device][peer] = 0;
    return SUCCESS;
}

/* memory */

typedef struct Block {
    struct Block *next;
    char *start;
    size_t size, asked; /* asked for: what kernels may use */
    int device;
    char kind; /* as that of a Place */
} Block;

static Block *blocks;
static size_t used[MAX_DEVICES];

void *host_block(size_t nbytes) { return aligned_alloc(256, (nbytes + 255) / 256 * 256); }

static int allocate(void **place, size_t nbytes, char kind) {
    size_t size = (nbytes + 255) / 256 * 256;
    *place = NULL;
    if (nbytes == 0) return SUCCESS;
    pthread_mutex_lock(&lock);
    if (kind != 'h' && used[device] + size > memory_limit()) {
        pthread_mutex_unlock(&lock);
        return OUT_OF_MEMORY;
    }
    Block *block = malloc(sizeof *block);
    *block = (Block){blocks, host_block(size), size, nbytes, device, kind};
    memset(block->start, 0xCD, size);
    blocks = block;
    if (kind != 'h') used[device] += size;
    pthread_mutex_unlock(&lock);
    count_resource(MEMORY, 1);
    *place = block->start;
    return SUCCESS;
}

static int release(void *place, const char *kinds) {
    if (!place) return SUCCESS;
    pthread_mutex_lock(&lock);
    for (Block **link = &blocks; *link; link = &(*link)->next) {
        Block *block = *link;
        if (block->start != place || !strchr(kinds, block->kind)) continue;
        *link = block->next;
        if (block->kind != 'h' && block->kind != 'i') used[block->device] -= block->size;
        pthread_mutex_unlock(&lock);
        if (block->kind != 'i') {
            finish_device(block->device);
            memset(block->start, 0xDD, block->size);
            free(block->start);
        }
        free(block);
        count_resource(MEMORY, -1);
        return SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return INVALID_VALUE;
}

int find_place(const void *address, Place *place) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (Block *block = blocks; block && !found; block = block->next) {
        found = block->start <= (char *)address && (char *)address < block->start + block->asked;
        if (found) *place = (Place){block->start, block->asked, block->device, block->kind};
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void note_variable(void *start, size_t size, int owner) {
    Block *block = malloc(sizeof *block);
    pthread_mutex_lock(&lock);
    *block = (Block){blocks, start, size, size, owner, 'g'};
    blocks = block;
    pthread_mutex_unlock(&lock);
}

void forget_variable(void *start) {
    pthread_mutex_lock(&lock);
    for (Block **link = &blocks; *link; link = &(*link)->next)
        if ((*link)->kind == 'g' && (*link)->start == start) {
            Block *block = *link;
            *link = block->next;
            free(block);
            break;
        }
    pthread_mutex_unlock(&lock);
}

typedef struct { char *start; size_t size; } Range;

/* Copy the places of the memory that kernels may use, at most *most*; answers how many there are. */
EXPORT size_t standin_ranges(Range *target, size_t most) {
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (Block *block = blocks; block; block = block->next) {
        if (block->kind == 'g') continue; /* the executor has put it there */
        if (count < most) target[count] = (Range){block->start, block->asked};
        count++;
    }
    pthread_mutex_unlock(&lock);
    return count;
}

EXPORT hipError_t hipMalloc(void **place, size_t nbytes) {
    ENTER("%zu on %d", nbytes, device);
    if (spoil_capture()) return CAPTURE_UNSUPPORTED;
    return remember(allocate(place, nbytes, 'd'));
}

EXPORT hipError_t hipHostMalloc(void **place, size_t nbytes, unsigned flags) {
    ENTER("%zu flags %u", nbytes, flags);
    if (spoil_capture()) return CAPTURE_UNSUPPORTED;
    return remember(allocate(place, nbytes, 'h'));
}

EXPORT hipError_t hipMallocManaged(void **place, size_t nbytes, unsigned flags) {
    ENTER("%zu flags %u", nbytes, flags);
    if (spoil_capture()) return CAPTURE_UNSUPPORTED;
    return remember(allocate(place, nbytes, 'm'));
}

EXPORT hipError_t hipHostGetDevicePointer(void **there, void *here, unsigned flags) {
    ENTER("%u", flags);
    Place place;
    if (flags || !find_place(here, &place)) return remember(INVALID_VALUE);
    *there = here;
    return SUCCESS;
}

EXPORT hipError_t hipFree(void *place) {
    ENTER();
    if (spoil_capture()) return CAPTURE_UNSUPPORTED;
    return remember(release(place, "dm"));
}

EXPORT hipError_t hipHostFree(void *place) {
    ENTER();
    if (spoil_capture()) return CAPTURE_UNSUPPORTED;
    return remember(release(place, "h"));
}

EXPORT hipError_t hipMemGetInfo(size_t *unused, size_t *total) {
    ENTER("on %d", device);
    *total = memory_limit();
    *unused = *total - used[device];
    return SUCCESS;
}

EXPORT hipError_t hipPointerGetAttribute(void *answer, int attribute, void *place) {
    ENTER("%d", attribute);
    Place found;
    if (!find_place(place, &found) || found.kind == 'h') return remember(INVALID_VALUE);
    *(int *)answer = found.device;
    return SUCCESS;
}

EXPORT hipError_t hipMemGetAddressRange(void **start, size_t *size, void *place) {
    ENTER();
    Place found;
    if (!find_place(place, &found)) return remember(NOT_FOUND);
    *start = found.start;
    *size = found.size;
    return SUCCESS;
}

typedef struct { char bytes[64]; } Handle;

EXPORT hipError_t hipIpcGetMemHandle(Handle *handle, void *place) {
    ENTER();
    Place found;
    if (!find_place(place, &found) || found.kind != 'd') return remember(INVALID_VALUE);
    pid_t owner = getpid();
    memset(handle, 0, sizeof *handle);
    memcpy(handle->bytes, &place, sizeof place);
    memcpy(handle->bytes + sizeof place, &owner, sizeof owner);
    return SUCCESS;
}

EXPORT hipError_t hipIpcOpenMemHandle(void **place, Handle handle, unsigned flags) {
    ENTER("flags %u on %d", flags, device);
    char *start;
    memcpy(&start, handle.bytes, sizeof start);
    pid_t owner;
    memcpy(&owner, handle.bytes + sizeof start, sizeof owner);
    if (flags != 1 || !start) return remember(INVALID_VALUE);
    if (owner == getpid()) return remember(INVALID_CONTEXT);
    pthread_mutex_lock(&lock);
    Block *block = malloc(sizeof *block);
    *block = (Block){blocks, start + 8, 0, 0, device, 'i'}; /* another address than the owner's */
    blocks = block;
    pthread_mutex_unlock(&lock);
    count_resource(MEMORY, 1);
    *place = block->start;
    return SUCCESS;
}

EXPORT hipError_t hipIpcCloseMemHandle(void *place) {
    ENTER();
    return remember(release(place, "i"));
}
