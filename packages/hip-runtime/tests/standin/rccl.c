/* A stand-in for RCCL among the devices of this process: an operation waits on its stream until all ranks have come to
 * it, and the last one computes. Numbers are those of rccl/rccl.h. float16 and bfloat16 can only be moved. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

enum { OK = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 };
enum { SUM, PROD, MAX, MIN, AVG };
enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };
enum { MAX_RANKS = 8, ID_BYTES = 128 };

static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

typedef struct Message {
    struct Message *next;
    size_t nbytes;
    char data[];
} Message;

typedef struct Operation {
    struct Operation *next; /* of a group of calls */
    struct Communicator *rank;
    int kind, type, op, peer; /* peer: or root */
    const char *source;
    char *target;
    size_t count;
    Stream *stream;
} Operation;

typedef struct Group {
    struct Group *next;
    char id[ID_BYTES];
    int size, joined, arrived, departed;
    unsigned round;
    Operation operations[MAX_RANKS];
    Message *messages[MAX_RANKS][MAX_RANKS]; /* from, to */
} Group;

typedef struct Communicator {
    Group *group;
    int rank, device;
} Communicator;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Group *groups;
static _Thread_local int depth;
static _Thread_local Operation *waiting;

#define COMBINE(type)                                                                  \
    do {                                                                               \
        type *into = (type *)total;                                                    \
        const type *with = (const type *)more;                                         \
        for (size_t i = 0; i < count; i++) {                                           \
            type a = into[i], b = with[i];                                             \
            into[i] = op == PROD ? (type)(a * b) : op == MAX ? (a > b ? a : b)         \
                      : op == MIN ? (a < b ? a : b) : (type)(a + b);                   \
        }                                                                              \
        if (op == AVG && last) for (size_t i = 0; i < count; i++) into[i] /= (type)ranks; \
    } while (0)

static void combine(int type, int op, char *total, const char *more, size_t count, int ranks, int last) {
    switch (type) {
    case INT8: COMBINE(int8_t); break;
    case UINT8: COMBINE(uint8_t); break;
    case INT32: COMBINE(int32_t); break;
    case UINT32: COMBINE(uint32_t); break;
    case INT64: COMBINE(int64_t); break;
    case UINT64: COMBINE(uint64_t); break;
    case FLOAT32: COMBINE(float); break;
    case FLOAT64: COMBINE(double); break;
    }
}

static char *sum_up(Group *group, size_t count) {
    Operation *first = &group->operations[0];
    size_t nbytes = count * sizes[first->type];
    char *total = malloc(nbytes + 1);
    memcpy(total, first->source, nbytes);
    for (int rank = 1; rank < group->size; rank++)
        combine(first->type, first->op, total, group->operations[rank].source, count, group->size, rank == group->size - 1);
    return total;
}

/* What the last rank to come does for all. */
static void compute(Group *group) {
    Operation *first = &group->operations[0];
    size_t width = sizes[first->type], nbytes = first->count * width;
    int kind = first->kind;
    if (kind == BROADCAST) {
        const char *source = group->operations[first->peer].source;
        for (int rank = 0; rank < group->size; rank++) memmove(group->operations[rank].target, source, nbytes);
    } else if (kind == ALL_GATHER) {
        for (int to = 0; to < group->size; to++)
            for (int from = 0; from < group->size; from++)
                memmove(group->operations[to].target + from * nbytes, group->operations[from].source, nbytes);
    } else {
        char *total = sum_up(group, kind == REDUCE_SCATTER ? first->count * group->size : first->count);
        for (int rank = 0; rank < group->size; rank++)
            if (kind != REDUCE || rank == first->peer)
                memcpy(group->operations[rank].target, total + (kind == REDUCE_SCATTER ? rank * nbytes : 0), nbytes);
        free(total);
    }
}

/* Whether all ranks asked for the same. */
static int agrees(Group *group) {
    Operation *first = &group->operations[0];
    for (int rank = 1; rank < group->size; rank++) {
        Operation *other = &group->operations[rank];
        if (other->kind != first->kind || other->count != first->count || other->type != first->type ||
            other->op != first->op || other->peer != first->peer)
            return 0;
    }
    return 1;
}

static void meet(Operation *operation) {
    Group *group = operation->rank->group;
    while (group->departed) pthread_cond_wait(&changed, &lock); /* until all have left the round before */
    group->operations[operation->rank->rank] = *operation;
    unsigned round = group->round;
    if (++group->arrived < group->size) {
        while (group->round == round) pthread_cond_wait(&changed, &lock);
    } else {
        if (agrees(group)) {
            compute(group);
        } else {
            for (int rank = 0; rank < group->size; rank++)
                fail_device(group->operations[rank].rank->device, LAUNCH_FAILURE);
        }
        group->round++;
        group->departed = group->size;
        group->arrived = 0;
    }
    group->departed--;
    pthread_cond_broadcast(&changed);
}

static void post(Operation *operation) {
    size_t nbytes = operation->count * sizes[operation->type];
    Message *message = malloc(sizeof *message + nbytes), **last;
    message->next = NULL;
    message->nbytes = nbytes;
    memcpy(message->data, operation->source, nbytes);
    last = &operation->rank->group->messages[operation->rank->rank][operation->peer];
    while (*last) last = &(*last)->next;
    *last = message;
    pthread_cond_broadcast(&changed);
}

static void fetch(Operation *operation) {
    Message **first = &operation->rank->group->messages[operation->peer][operation->rank->rank], *message;
    while (!*first) pthread_cond_wait(&changed, &lock);
    message = *first;
    *first = message->next;
    if (message->nbytes == operation->count * sizes[operation->type])
        memcpy(operation->target, message->data, message->nbytes);
    else
        fail_device(operation->rank->device, LAUNCH_FAILURE);
    free(message);
}

static void act(void *data) {
    Operation *operation = data;
    pthread_mutex_lock(&lock);
    if (operation->kind == SEND) post(operation);
    else if (operation->kind == RECEIVE) fetch(operation);
    else meet(operation);
    pthread_mutex_unlock(&lock);
}

static int begin(Operation *operation) {
    return submit(operation->stream, act, operation) ? INVALID_USAGE : OK;
}

/* Whether so many bytes at *address* are memory of the rank's device. */
static int is_within(const Communicator *rank, const void *address, size_t nbytes) {
    Place place;
    if (!nbytes) return 1;
    return find_place(address, &place) && place.device == rank->device && place.kind == 'd' &&
           (const char *)address + nbytes <= place.start + place.size;
}

static int add(Operation operation) {
    Communicator *rank = operation.rank;
    int parts = operation.kind == REDUCE_SCATTER ? rank->group->size : 1;
    int copies = operation.kind == ALL_GATHER ? rank->group->size : 1;
    int moved_only = operation.type == FLOAT16 || operation.type == BFLOAT16;
    if (operation.type < INT8 || operation.type > BFLOAT16 || operation.op < SUM || operation.op > AVG) return INVALID_ARGUMENT;
    if (operation.peer < 0 || operation.peer >= rank->group->size) return INVALID_ARGUMENT;
    if (moved_only && (operation.kind == ALL_REDUCE || operation.kind == REDUCE || operation.kind == REDUCE_SCATTER))
        return INVALID_USAGE;
    size_t nbytes = operation.count * sizes[operation.type];
    if (operation.kind != RECEIVE && !is_within(rank, operation.source, nbytes * parts)) return INVALID_ARGUMENT;
    int receives = operation.kind != SEND && (operation.kind != REDUCE || rank->rank == operation.peer);
    if (receives && !is_within(rank, operation.target, nbytes * copies)) return INVALID_ARGUMENT;
    if (!operation.stream || stream_device(operation.stream) != rank->device) return INVALID_ARGUMENT;
    Operation *kept = malloc(sizeof *kept);
    *kept = operation;
    if (!depth) return begin(kept);
    kept->next = waiting;
    waiting = kept;
    return OK;
}

EXPORT int ncclGroupStart(void) {
    ENTER("");
    depth++;
    return OK;
}

/* Sends before all else, as what is sent waits in a buffer here; the rest in the order of the calls. */
EXPORT int ncclGroupEnd(void) {
    ENTER("");
    if (!depth) return INVALID_USAGE;
    if (--depth) return OK;
    Operation *ordered = NULL, *next;
    for (; waiting; waiting = next) {
        next = waiting->next;
        waiting->next = ordered;
        ordered = waiting;
    }
    int code = OK;
    Operation *later = NULL, **last = &later;
    for (; ordered; ordered = next) {
        next = ordered->next;
        ordered->next = NULL;
        if (ordered->kind == SEND) {
            code = code ? code : begin(ordered);
        } else {
            *last = ordered;
            last = &ordered->next;
        }
    }
    for (; later; later = next) {
        next = later->next;
        code = code ? code : begin(later);
    }
    return code;
}

EXPORT const char *ncclGetErrorString(int code) {
    return code == INVALID_ARGUMENT ? "invalid argument" : code == INVALID_USAGE ? "invalid usage" : "unhandled system error";
}

typedef struct { char internal[ID_BYTES]; } UniqueId;

EXPORT int ncclGetUniqueId(UniqueId *id) {
    static int made;
    ENTER("");
    memset(id, 0x5a, sizeof *id);
    pthread_mutex_lock(&lock);
    memcpy(id->internal, &(int){++made}, sizeof made);
    pthread_mutex_unlock(&lock);
    return OK;
}

static Communicator *join(Group *group, int rank, int device) {
    Communicator *made = malloc(sizeof *made);
    *made = (Communicator){group, rank, device};
    group->joined++;
    return made;
}

static Group *find_group(const char *id, int size) {
    for (Group *group = groups; group; group = group->next)
        if (!memcmp(group->id, id, ID_BYTES)) return group;
    Group *group = calloc(1, sizeof *group);
    memcpy(group->id, id, ID_BYTES);
    group->size = size;
    group->next = groups;
    return groups = group;
}

EXPORT int ncclCommInitRank(Communicator **made, int size, UniqueId id, int rank) {
    ENTER("%d %d", size, rank);
    if (size < 1 || size > MAX_RANKS || rank < 0 || rank >= size) return INVALID_ARGUMENT;
    int device = current_device();
    pthread_mutex_lock(&lock);
    Group *group = find_group(id.internal, size);
    int fits = group->size == size && group->joined < size;
    if (fits) {
        *made = join(group, rank, device);
        pthread_cond_broadcast(&changed);
        while (group->joined < size) pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return fits ? OK : INVALID_USAGE;
}

EXPORT int ncclCommInitAll(Communicator **made, int size, const int *devices) {
    UniqueId id;
    ENTER("%d", size);
    if (size < 1 || size > MAX_RANKS || ncclGetUniqueId(&id)) return INVALID_ARGUMENT;
    for (int rank = 0; rank < size; rank++)
        for (int other = 0; other < rank; other++)
            if (devices[rank] == devices[other] || devices[rank] >= device_count()) return INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    Group *group = find_group(id.internal, size);
    for (int rank = 0; rank < size; rank++) made[rank] = join(group, rank, devices[rank]);
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int ncclCommDestroy(Communicator *rank) {
    ENTER("%d", rank->rank);
    finish_device(rank->device);
    free(rank);
    return OK;
}

EXPORT int ncclCommAbort(Communicator *rank) {
    ENTER("%d", rank->rank);
    free(rank);
    return OK;
}

EXPORT int ncclAllReduce(const void *source, void *target, size_t count, int type, int op, Communicator *rank, void *stream) {
    ENTER("%d", rank->rank);
    return add((Operation){NULL, rank, ALL_REDUCE, type, op, 0, source, target, count, find_stream(stream)});
}

EXPORT int ncclReduce(
    const void *source, void *target, size_t count, int type, int op, int root, Communicator *rank, void *stream) {
    ENTER("%d", rank->rank);
    return add((Operation){NULL, rank, REDUCE, type, op, root, source, target, count, find_stream(stream)});
}

EXPORT int ncclBroadcast(
    const void *source, void *target, size_t count, int type, int root, Communicator *rank, void *stream) {
    ENTER("%d", rank->rank);
    return add((Operation){NULL, rank, BROADCAST, type, SUM, root, source, target, count, find_stream(stream)});
}

EXPORT int ncclAllGather(const void *source, void *target, size_t count, int type, Communicator *rank, void *stream) {
    ENTER("%d", rank->rank);
    return add((Operation){NULL, rank, ALL_GATHER, type, SUM, 0, source, target, count, find_stream(stream)});
}

EXPORT int ncclReduceScatter(
    const void *source, void *target, size_t count, int type, int op, Communicator *rank, void *stream) {
    ENTER("%d", rank->rank);
    return add((Operation){NULL, rank, REDUCE_SCATTER, type, op, 0, source, target, count, find_stream(stream)});
}

EXPORT int ncclSend(const void *source, size_t count, int type, int peer, Communicator *rank, void *stream) {
    ENTER("%d", rank->rank);
    return add((Operation){NULL, rank, SEND, type, SUM, peer, source, NULL, count, find_stream(stream)});
}

EXPORT int ncclRecv(void *target, size_t count, int type, int peer, Communicator *rank, void *stream) {
    ENTER("%d", rank->rank);
    return add((Operation){NULL, rank, RECEIVE, type, SUM, peer, NULL, target, count, find_stream(stream)});
}
