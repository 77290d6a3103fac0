/* Streams, each a thread with a queue; events; copies. */
#define _GNU_SOURCE
#include "standin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Work {
    struct Work *next;
    Action action;
    void *data;
    int kept; /* data belongs to a graph */
    Stream *after; /* wait until this stream has done `ticket` pieces of work */
    uint64_t ticket;
} Work;

struct Stream {
    struct Stream *next;
    int device, blocking, ended;
    pthread_t thread;
    Work *first, **last;
    uint64_t given, done;
    Graph *capture; /* what it is given is recorded there, if there is one */
    int mode;       /* of the capture */
    int spoiled;    /* the capture is lost */
};

enum { GLOBAL_MODE, THREAD_LOCAL_MODE, RELAXED_MODE };

static __thread Stream *captured; /* by this thread, unless in the relaxed mode */
static __thread int thread_mode;  /* which captures calls of this thread are a danger to, as hipStreamCaptureMode has it */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static Stream *streams; /* that callers made */
static Stream *defaults[MAX_DEVICES];

static void *run(void *argument) {
    Stream *stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->ended) pthread_cond_wait(&moved, &lock);
        Work *work = stream->first;
        if (!work) break;
        while (work->after && work->after->done < work->ticket) pthread_cond_wait(&moved, &lock);
        stream->first = work->next;
        if (!stream->first) stream->last = &stream->first;
        pthread_mutex_unlock(&lock);
        if (work->action) work->action(work->data);
        if (!work->kept) free(work->data);
        free(work);
        pthread_mutex_lock(&lock);
        stream->done++;
        pthread_cond_broadcast(&moved);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static Stream *make_stream(int device, int blocking) {
    Stream *stream = calloc(1, sizeof *stream);
    stream->device = device;
    stream->blocking = blocking;
    stream->last = &stream->first;
    pthread_create(&stream->thread, NULL, run, stream);
    return stream;
}

static void put(Stream *stream, Action action, void *data, Stream *after, uint64_t ticket) {
    Work *work = malloc(sizeof *work);
    *work = (Work){NULL, action, data, 0, after, ticket};
    *stream->last = work;
    stream->last = &work->next;
    stream->given++;
    pthread_cond_broadcast(&moved);
}

int spoil_capture(void) {
    if (thread_mode == RELAXED_MODE) return SUCCESS;
    int lost = captured != NULL;
    if (captured) captured->spoiled = 1;
    pthread_mutex_lock(&lock);
    for (Stream *stream = streams; stream && thread_mode == GLOBAL_MODE; stream = stream->next)
        if (stream->capture && stream->mode == GLOBAL_MODE) lost = stream->spoiled = 1;
    pthread_mutex_unlock(&lock);
    return remember(lost ? CAPTURE_UNSUPPORTED : SUCCESS);
}

int spoil_all(int code) {
    int lost = 0;
    pthread_mutex_lock(&lock);
    for (Stream *stream = streams; stream; stream = stream->next)
        if (stream->capture) lost = stream->spoiled = 1;
    pthread_mutex_unlock(&lock);
    return remember(lost ? code : SUCCESS);
}

/* As ENTER, for calls that may wait. */
#define ENTER_WAITING(...)                   \
    ENTER(__VA_ARGS__);                      \
    do {                                     \
        int refused = spoil_capture();       \
        if (refused) return refused;         \
    } while (0)

static Stream *default_stream(int device) {
    if (!defaults[device]) defaults[device] = make_stream(device, 1);
    return defaults[device];
}

/* The stream that *handle* stands for, or null; the lock is held. */
static Stream *look_up(void *handle) {
    if (!handle) return default_stream(current_device());
    for (Stream *stream = streams; stream; stream = stream->next)
        if (stream == handle) return stream;
    return NULL;
}

Stream *find_stream(void *handle) {
    pthread_mutex_lock(&lock);
    Stream *stream = look_up(handle);
    pthread_mutex_unlock(&lock);
    return stream;
}

int stream_device(const Stream *stream) { return stream->device; }

/* The default stream and the blocking streams of a device wait for each other. The lock is held. */
static void order(Stream *stream) {
    Stream *first = default_stream(stream->device);
    if (stream == first) {
        for (Stream *other = streams; other; other = other->next)
            if (other->device == stream->device && other->blocking && other->done < other->given)
                put(stream, NULL, NULL, other, other->given);
    } else if (stream->blocking && first->done < first->given) {
        put(stream, NULL, NULL, first, first->given);
    }
}

/* Whether work on *stream* would have to wait for a stream that is captured, or the other way round. */
static int meets_capture(const Stream *stream) {
    if (stream != default_stream(stream->device)) return 0;
    for (Stream *other = streams; other; other = other->next)
        if (other->device == stream->device && other->blocking && other->capture) return other->spoiled = 1;
    return 0;
}

int submit(Stream *stream, Action action, void *data) {
    if (!stream) {
        free(data);
        return INVALID_HANDLE;
    }
    int code = SUCCESS;
    pthread_mutex_lock(&lock);
    if (stream->capture) {
        add_node(stream->capture, action, data);
    } else if (meets_capture(stream)) {
        free(data);
        code = CAPTURE_IMPLICIT;
    } else {
        order(stream);
        put(stream, action, data, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int submit_again(Stream *stream, Action action, void *data) {
    int code = SUCCESS;
    pthread_mutex_lock(&lock);
    if (stream->capture || meets_capture(stream)) {
        code = CAPTURE_UNSUPPORTED;
    } else {
        order(stream);
        Work **place = stream->last;
        put(stream, action, data, NULL, 0);
        (*place)->kept = 1;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static void wait_until(Stream *stream, uint64_t ticket) {
    while (stream->done < ticket) pthread_cond_wait(&moved, &lock);
}

void finish(Stream *stream) {
    pthread_mutex_lock(&lock);
    order(stream);
    wait_until(stream, stream->given);
    pthread_mutex_unlock(&lock);
}

void finish_device(int device) {
    pthread_mutex_lock(&lock);
    for (Stream *stream = streams; stream;) {
        if (stream->device == device && stream->done < stream->given) {
            wait_until(stream, stream->given);
            stream = streams; /* the list may have changed meanwhile */
        } else {
            stream = stream->next;
        }
    }
    Stream *first = default_stream(device);
    wait_until(first, first->given);
    pthread_mutex_unlock(&lock);
}

EXPORT hipError_t hipStreamCreateWithPriority(Stream **place, unsigned flags, int priority) {
    ENTER("flags %u priority %d on %d", flags, priority, current_device());
    pthread_mutex_lock(&lock);
    Stream *stream = make_stream(current_device(), flags == 0);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    count_resource(STREAM, 1);
    *place = stream;
    return SUCCESS;
}

/* The real one need not wait for the work; this one drops it. */
EXPORT hipError_t hipStreamDestroy(void *handle) {
    ENTER();
    pthread_mutex_lock(&lock);
    Stream *stream = handle ? look_up(handle) : NULL;
    if (!stream) {
        pthread_mutex_unlock(&lock);
        return remember(handle ? CONTEXT_IS_DESTROYED : INVALID_HANDLE);
    }
    for (Stream **link = &streams; *link; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    if (stream->capture) drop_graph(stream->capture);
    stream->capture = NULL;
    if (captured == stream) captured = NULL;
    if (stream->first) stream->first->next = NULL;
    stream->ended = 1;
    stream->done = stream->given;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    count_resource(STREAM, -1);
    return SUCCESS; /* the structure stays: waiters may look at it */
}

EXPORT hipError_t hipStreamGetFlags(void *handle, unsigned *flags) {
    ENTER();
    if (!handle) return remember(INVALID_VALUE);
    Stream *stream = find_stream(handle);
    if (stream) *flags = !stream->blocking;
    return remember(stream ? SUCCESS : CONTEXT_IS_DESTROYED);
}

EXPORT hipError_t hipStreamGetDevice(void *handle, int *device) {
    ENTER();
    Stream *stream = find_stream(handle);
    if (stream) *device = stream->device;
    return remember(stream ? SUCCESS : CONTEXT_IS_DESTROYED);
}

EXPORT hipError_t hipStreamQuery(void *handle) {
    ENTER_WAITING();
    pthread_mutex_lock(&lock);
    Stream *stream = look_up(handle);
    int code = !stream ? CONTEXT_IS_DESTROYED : stream->done < stream->given ? NOT_READY : SUCCESS;
    if (stream && stream->capture) {
        stream->spoiled = 1;
        code = CAPTURE_UNSUPPORTED;
    }
    if (stream && !handle)
        for (Stream *other = streams; other; other = other->next)
            if (other->device == stream->device && other->blocking && other->done < other->given) code = NOT_READY;
    pthread_mutex_unlock(&lock);
    return remember(code);
}

EXPORT hipError_t hipStreamSynchronize(void *handle) {
    ENTER_WAITING();
    Stream *stream = find_stream(handle);
    if (!stream) return remember(CONTEXT_IS_DESTROYED);
    if (stream->capture) {
        stream->spoiled = 1;
        return remember(CAPTURE_UNSUPPORTED);
    }
    finish(stream);
    return remember(device_failure(stream->device));
}

EXPORT hipError_t hipThreadExchangeStreamCaptureMode(int *mode) {
    ENTER();
    if (!mode || *mode < GLOBAL_MODE || *mode > RELAXED_MODE) return remember(INVALID_VALUE);
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return SUCCESS;
}

EXPORT hipError_t hipStreamIsCapturing(void *handle, int *status) {
    ENTER();
    if (!status) return remember(INVALID_VALUE);
    pthread_mutex_lock(&lock);
    Stream *stream = look_up(handle);
    int code = stream ? SUCCESS : CONTEXT_IS_DESTROYED;
    if (stream) *status = stream->capture ? 1 + stream->spoiled : 0; /* none, active, invalidated */
    for (Stream *other = handle ? NULL : streams; other; other = other->next)
        if (other->blocking && other->capture) code = CAPTURE_IMPLICIT;
    pthread_mutex_unlock(&lock);
    return remember(code);
}

EXPORT hipError_t hipStreamBeginCapture(void *handle, int mode) {
    ENTER("mode %d", mode);
    Stream *stream = find_stream(handle);
    if (!stream) return remember(CONTEXT_IS_DESTROYED);
    if (!handle) return remember(CAPTURE_UNSUPPORTED);
    if (mode < GLOBAL_MODE || mode > RELAXED_MODE) return remember(INVALID_VALUE);
    if (stream->capture) return remember(ILLEGAL_STATE);
    if (captured) return remember(CAPTURE_UNSUPPORTED); /* a thread can capture several; the driver never does */
    pthread_mutex_lock(&lock);
    stream->capture = make_graph();
    stream->spoiled = 0;
    stream->mode = mode;
    if (mode != RELAXED_MODE) captured = stream;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

/* Ends the capture also where it answers an error, except to another thread. */
EXPORT hipError_t hipStreamEndCapture(void *handle, Graph **place) {
    int told = standin_enter(__func__, "");
    *place = NULL;
    Stream *stream = find_stream(handle);
    if (!stream) return remember(CONTEXT_IS_DESTROYED);
    if (!stream->capture) return remember(ILLEGAL_STATE);
    if (stream->mode != RELAXED_MODE && captured != stream) return remember(CAPTURE_WRONG_THREAD);
    pthread_mutex_lock(&lock);
    Graph *graph = stream->capture;
    stream->capture = NULL;
    if (captured == stream) captured = NULL;
    int code = told ? told : stream->spoiled ? CAPTURE_INVALIDATED : SUCCESS;
    pthread_mutex_unlock(&lock);
    if (code)
        drop_graph(graph);
    else
        *place = graph;
    return remember(code);
}

/* events */

typedef struct {
    int device, timing, gone;
    Stream *stream; /* where it was recorded last */
    uint64_t ticket;
    struct timespec time;
} Event;

typedef struct {
    Event *event;
} Mark;

static void mark(void *data) { clock_gettime(CLOCK_MONOTONIC, &((Mark *)data)->event->time); }

EXPORT hipError_t hipEventCreateWithFlags(Event **place, unsigned flags) {
    ENTER("flags %u on %d", flags, current_device());
    *place = calloc(1, sizeof **place);
    (*place)->device = current_device();
    (*place)->timing = !(flags & 2);
    count_resource(EVENT, 1);
    return SUCCESS;
}

EXPORT hipError_t hipEventDestroy(Event *event) {
    ENTER();
    if (event->gone++) return remember(CONTEXT_IS_DESTROYED);
    count_resource(EVENT, -1); /* the structure stays: a stream may still mark it */
    return SUCCESS;
}

EXPORT hipError_t hipEventRecord(Event *event, void *handle) {
    ENTER();
    pthread_mutex_lock(&lock);
    Stream *stream = look_up(handle);
    if (!stream || stream->device != event->device) {
        pthread_mutex_unlock(&lock);
        return remember(stream ? INVALID_HANDLE : CONTEXT_IS_DESTROYED);
    }
    if (stream->capture || meets_capture(stream)) { /* the driver records no events in captures */
        stream->spoiled = 1;
        pthread_mutex_unlock(&lock);
        return remember(CAPTURE_UNSUPPORTED);
    }
    order(stream);
    Mark *data = malloc(sizeof *data);
    data->event = event;
    put(stream, mark, data, NULL, 0);
    event->stream = stream;
    event->ticket = stream->given;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int is_reached(const Event *event) { return !event->stream || event->stream->done >= event->ticket; }

/* Whether the stream where the event was recorded last, before or not, is captured now; that capture is lost. */
static int is_captured(const Event *event) {
    pthread_mutex_lock(&lock);
    int found = event->stream && event->stream->capture;
    if (found) event->stream->spoiled = 1;
    pthread_mutex_unlock(&lock);
    return found;
}

EXPORT hipError_t hipEventQuery(Event *event) {
    ENTER_WAITING();
    if (is_captured(event)) return remember(CAPTURED_EVENT);
    pthread_mutex_lock(&lock);
    int code = is_reached(event) ? SUCCESS : NOT_READY;
    pthread_mutex_unlock(&lock);
    return remember(code);
}

EXPORT hipError_t hipEventSynchronize(Event *event) {
    ENTER_WAITING();
    if (is_captured(event)) return remember(CAPTURED_EVENT);
    pthread_mutex_lock(&lock);
    Stream *stream = event->stream;
    if (stream) wait_until(stream, event->ticket);
    pthread_mutex_unlock(&lock);
    return remember(stream ? device_failure(stream->device) : SUCCESS);
}

EXPORT hipError_t hipEventElapsedTime(float *milliseconds, Event *start, Event *end) {
    ENTER();
    if (!start->timing || !end->timing || !start->stream || !end->stream) return remember(INVALID_HANDLE);
    pthread_mutex_lock(&lock);
    int reached = is_reached(start) && is_reached(end);
    pthread_mutex_unlock(&lock);
    if (!reached) return remember(NOT_READY);
    *milliseconds = (float)((end->time.tv_sec - start->time.tv_sec) * 1e3 + (end->time.tv_nsec - start->time.tv_nsec) * 1e-6);
    return SUCCESS;
}

EXPORT hipError_t hipStreamWaitEvent(void *handle, Event *event, unsigned flags) {
    ENTER("%u", flags);
    pthread_mutex_lock(&lock);
    Stream *stream = look_up(handle);
    int code = !stream ? INVALID_HANDLE : SUCCESS;
    if (event->stream && event->stream->capture) {
        code = CAPTURE_ISOLATION; /* recorded before the capture */
    } else if (stream && stream->capture) {
        stream->spoiled = 1;
        code = CAPTURE_UNSUPPORTED;
    }
    if (!code && event->stream) put(stream, NULL, NULL, event->stream, event->ticket);
    pthread_mutex_unlock(&lock);
    return remember(code);
}

/* copies */

typedef struct {
    char *target;
    const char *source;
    size_t into, found, width, height;
    int value;
} Copy;

static void copy(void *data) {
    Copy *work = data;
    for (size_t row = 0; row < work->height; row++) {
        char *target = work->target + row * work->into;
        if (work->source)
            memcpy(target, work->source + row * work->found, work->width);
        else
            memset(target, work->value, work->width);
    }
}

#define STAGED (4u << 20) /* bytes of pageable memory that are copied aside, and the call returns */

/* Whether the rows lie in the memory that the first of them is in; pageable memory is not known, and kind 0. */
static int lies_within(const char *start, size_t pitch, const Copy *plan, Place *place) {
    if (!find_place(start, place)) {
        *place = (Place){0};
        return 1;
    }
    size_t left = place->size - (start - place->start);
    return plan->width <= left && (plan->height - 1) * pitch <= left - plan->width;
}

static int is_on_device(const Place *place) { return place->kind && place->kind != 'h'; }

/* What is wrong with a copy. Sets *wait* where the call returns only when it is done: the host copies pageable memory. */
static int check_copy(const Copy *plan, int *wait) {
    Place target, source = {0};
    if (!plan->target || !lies_within(plan->target, plan->into, plan, &target)) return INVALID_VALUE;
    if (!plan->source) return target.kind ? SUCCESS : INVALID_VALUE;
    if (plan->width > plan->into || plan->width > plan->found) return INVALID_PITCH;
    if (!lies_within(plan->source, plan->found, plan, &source)) return INVALID_VALUE;
    int peers = is_on_device(&target) && is_on_device(&source) && !reaches(target.device, source.device);
    if (peers && plan->height > 1) return INVALID_VALUE;
    if (!target.kind || (!source.kind && plan->width * plan->height > STAGED)) *wait = 1;
    return SUCCESS;
}

static int start_copy(Copy plan, void *handle, int wait) {
    if (!plan.width || !plan.height) return SUCCESS;
    int wrong = check_copy(&plan, &wait);
    if (wrong) return wrong;
    Copy *work = malloc(sizeof *work);
    *work = plan;
    Stream *stream = find_stream(handle);
    int code = stream ? submit(stream, copy, work) : CONTEXT_IS_DESTROYED;
    if (!stream) free(work);
    if (code || !wait || stream->capture) return code;
    finish(stream);
    return device_failure(stream->device);
}

EXPORT hipError_t hipMemcpy(void *target, const void *source, size_t nbytes, int kind) {
    ENTER("%zu kind %d on %d", nbytes, kind, current_device());
    if (spoil_all(CAPTURE_IMPLICIT)) return CAPTURE_IMPLICIT;
    return remember(start_copy((Copy){target, source, nbytes, nbytes, nbytes, 1, 0}, NULL, 1));
}

EXPORT hipError_t hipMemcpyAsync(void *target, const void *source, size_t nbytes, int kind, void *stream) {
    ENTER("%zu kind %d", nbytes, kind);
    return remember(start_copy((Copy){target, source, nbytes, nbytes, nbytes, 1, 0}, stream, 0));
}

EXPORT hipError_t hipMemcpyPeerAsync(void *target, int into, const void *source, int found, size_t nbytes, void *stream) {
    ENTER("%zu from %d to %d", nbytes, found, into);
    if (into < 0 || into >= device_count() || found < 0 || found >= device_count()) return remember(INVALID_DEVICE);
    return remember(start_copy((Copy){target, source, nbytes, nbytes, nbytes, 1, 0}, stream, 0));
}

EXPORT hipError_t hipMemcpy2D(
    void *target, size_t into, const void *source, size_t found, size_t width, size_t height, int kind) {
    ENTER("%zu x %zu pitch %zu %zu kind %d", width, height, into, found, kind);
    if (spoil_all(CAPTURE_IMPLICIT)) return CAPTURE_IMPLICIT;
    return remember(start_copy((Copy){target, source, into, found, width, height, 0}, NULL, 1));
}

EXPORT hipError_t hipMemcpy2DAsync(
    void *target, size_t into, const void *source, size_t found, size_t width, size_t height, int kind, void *stream) {
    ENTER("%zu x %zu pitch %zu %zu kind %d", width, height, into, found, kind);
    return remember(start_copy((Copy){target, source, into, found, width, height, 0}, stream, 0));
}

EXPORT hipError_t hipMemset(void *target, int value, size_t nbytes) {
    ENTER("%d %zu", value, nbytes);
    if (spoil_all(CAPTURE_IMPLICIT)) return CAPTURE_IMPLICIT;
    return remember(start_copy((Copy){target, NULL, nbytes, 0, nbytes, 1, value}, NULL, 0));
}

EXPORT hipError_t hipMemsetAsync(void *target, int value, size_t nbytes, void *stream) {
    ENTER("%d %zu", value, nbytes);
    return remember(start_copy((Copy){target, NULL, nbytes, 0, nbytes, 1, value}, stream, 0));
}
