/* A stand-in for the HIP runtime: devices whose memory is the host's, streams that are threads, and a few kernels that
 * are functions in C. It keeps a list of the calls, fails where it is told to, and counts what was not given back.
 *
 * Numbers and structures are those of HIP's binary interface (hip/hip_runtime_api.h, releases 6 and 7). */
#ifndef STANDIN_H
#define STANDIN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef int hipError_t;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_CONFIGURATION = 9,
    INVALID_PITCH = 12,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    UNSUPPORTED_LIMIT = 215,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    CONTEXT_IS_DESTROYED = 709,
    LAUNCH_FAILURE = 719,
    COOPERATIVE_TOO_LARGE = 720,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_ISOLATION = 905,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
};

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 4
#define MAX_NAME 512       /* bytes of a name, its zero included */
#define MAX_ARGUMENTS 4096 /* bytes of a launch */

/* What a function does first: note that it was called, and fail if it was told to. */
#define ENTER(...)                                             \
    do {                                                       \
        int told = standin_enter(__func__, "" __VA_ARGS__);    \
        if (told) return told;                                 \
    } while (0)

int standin_enter(const char *function, const char *format, ...);
int remember(int code); /* for hipGetLastError */
int current_device(void);
int device_count(void);
int is_cooperative(void); /* whether devices have cooperative launches */
const char *target_of(int device);

/* Resources that have to be given back. */
enum { MEMORY, STREAM, EVENT, MODULE, GRAPH, EXECUTABLE, RESOURCES };
void count_resource(int which, int change);

/* The error that work on *device* ended with, or 0: what waits for it answers that, as on a GPU whose queue is lost. */
int device_failure(int device);
void fail_device(int device, int code);

/* memory */
typedef struct {
    char *start;
    size_t size; /* that was asked for */
    int device;
    char kind; /* d: device, h: host, m: managed, g: variable of a module, i: opened by a handle */
} Place;
void *host_block(size_t nbytes);
int find_place(const void *address, Place *place); /* whether the runtime knows the memory there: else it is pageable */
void note_variable(void *start, size_t size, int device);
void forget_variable(void *start);
int reaches(int device, int peer); /* whether access was enabled */

/* streams */
typedef struct Stream Stream;
typedef void (*Action)(void *data);
Stream *find_stream(void *handle);
int submit(Stream *stream, Action action, void *data); /* data is freed after action, or belongs to a graph */
int submit_again(Stream *stream, Action action, void *data); /* data stays */
void finish(Stream *stream);
void finish_device(int device);
int stream_device(const Stream *stream);

/* For calls that may wait: where this thread captures a stream, or any thread does in the global mode, they are refused,
 * and those captures are lost. */
int spoil_capture(void);
/* For calls that no capture of the process survives, whoever makes them and in whatever mode: answers *code* or 0. */
int spoil_all(int code);

/* graphs */
typedef struct Graph Graph;
Graph *make_graph(void);
void add_node(Graph *graph, Action action, void *data);
void drop_graph(Graph *graph);

/* code objects */
int runs_on(const char *image, const char *target); /* whether an ELF file is for the GPU with this target ID */
uint32_t most_threads(const char *image, const char *kernel); /* of a block, as the metadata has it */

/* kernels */
typedef struct {
    uint32_t grid[3], block[3];
    const unsigned char *arguments;
    void *fault; /* the variable "<name>.fault" of the module, or null */
} Grid;
typedef void (*Body)(const Grid *grid);
Body find_body(const char *name, size_t *argument_bytes, int *offsets);

/* What runs the machine code of modules, where one is attached; the functions of kernels.c are not asked then. */
typedef struct {
    uint64_t bytes; /* of the arguments, packed */
    uint32_t count;
    struct { uint32_t offset, size; } arguments[MAX_ARGUMENTS / 4];
} Shape;

typedef struct {
    const char *name;
    const void *arguments;
    uint64_t argument_bytes;
    uint32_t grid[3], block[3], shared, cooperative, device;
} Order;

typedef struct {
    uint64_t (*load)(const char *image, uint64_t size);     /* answers the address that symbols count from, or 0 */
    void (*unload)(uint64_t base);
    int (*describe)(uint64_t base, const char *name, Shape *shape); /* answers 0, or an error of HIP */
    int (*execute)(uint64_t base, const Order *order);      /* the same; the error stays with the device */
} Executor;

#endif
