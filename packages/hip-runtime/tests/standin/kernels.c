/* What the kernels of the tests do: the same as those in spmd_kernels.py, for packed arguments laid out alike. */
#include "standin.h"

#include <string.h>

#define ARGUMENT(type, name, offset) \
    type name;                       \
    memcpy(&name, grid->arguments + (offset), sizeof name)

static uint64_t threads_of(const Grid *grid) {
    uint64_t threads = 1;
    for (int axis = 0; axis < 3; axis++) threads *= (uint64_t)grid->grid[axis] * grid->block[axis];
    return threads;
}

static void saxpy(const Grid *grid) {
    ARGUMENT(float *, y, 0);
    ARGUMENT(float *, x, 8);
    ARGUMENT(float, a, 16);
    ARGUMENT(int64_t, n, 24);
    uint64_t threads = (uint64_t)grid->grid[0] * grid->block[0];
    for (uint64_t i = 0; i < threads && i < (uint64_t)n; i++) y[i] += a * x[i];
}

static void count(const Grid *grid) {
    ARGUMENT(int64_t *, counter, 0);
    __atomic_add_fetch(counter, threads_of(grid), __ATOMIC_RELAXED);
}

/* Says what went wrong, as docs/design/hip-driver.md has it; with details where the code is over 99. */
static void report(const Grid *grid, int32_t code, uint32_t block, uint32_t thread) {
    struct { int32_t *record; int32_t claimed; } *fault = grid->fault;
    int32_t unclaimed = 0;
    if (!__atomic_compare_exchange_n(&fault->claimed, &unclaimed, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
    int32_t words[8] = {0, code, (int32_t)block, 0, 0, (int32_t)thread, 0, 0};
    memcpy(fault->record + 1, words + 1, sizeof words - sizeof *words);
    int64_t details[4] = {code, -(int64_t)thread, 0, INT64_MAX};
    if (code > 99) memcpy(fault->record + 8, details, sizeof details);
    __atomic_store_n(fault->record, 1, __ATOMIC_RELEASE);
}

static void fault(const Grid *grid) {
    ARGUMENT(char *, seen, 0);
    ARGUMENT(int64_t, where, 8);
    ARGUMENT(int32_t, code, 16);
    for (uint32_t block = 0; block < grid->grid[0]; block++)
        for (uint32_t thread = 0; thread < grid->block[0]; thread++) {
            int64_t i = (int64_t)block * grid->block[0] + thread;
            if (i == where)
                report(grid, code, block, thread);
            else
                seen[i] = 1;
        }
}

static void spin(const Grid *grid) {
    ARGUMENT(volatile int64_t *, place, 0);
    ARGUMENT(int64_t, turns, 8);
    for (int64_t turn = 0; turn < turns; turn++) *place += 1;
}

static int64_t add_up(int64_t n) { return n <= 0 ? 0 : n + add_up(n - 1); }

static void deep(const Grid *grid) {
    ARGUMENT(int64_t *, place, 0);
    ARGUMENT(int64_t, n, 8);
    *place = add_up(n);
}

static void where(const Grid *grid) {
    ARGUMENT(int32_t *, out, 0);
    const uint32_t *extents[4] = {grid->block, grid->grid, grid->block, grid->grid};
    uint64_t threads = threads_of(grid);
    for (uint64_t number = 0; number < threads; number++) {
        uint64_t rest = number;
        for (int column = 0; column < 12; column++) {
            uint32_t extent = extents[column / 3][column % 3];
            out[number * 12 + column] = (int32_t)(column < 6 ? rest % extent : extent);
            if (column < 6) rest /= extent;
        }
    }
}

/* Has one parameter of each size, with gaps between them; writes nothing. */
static void mixed(const Grid *grid) { (void)grid; }

static const struct {
    const char *name;
    Body body;
    size_t argument_bytes;
    int offsets[8];
} bodies[] = {
    {"saxpy", saxpy, 32, {0, 8, 16, 24, -1}},
    {"count", count, 8, {0, -1}},
    {"fault", fault, 20, {0, 8, 16, -1}},
    {"spin", spin, 16, {0, 8, -1}},
    {"where", where, 8, {0, -1}},
    {"mixed", mixed, 34, {0, 2, 4, 8, 16, 24, 32, -1}},
    {"deep", deep, 16, {0, 8, -1}},
    {"empty", mixed, 0, {-1}},
};

Body find_body(const char *name, size_t *argument_bytes, int *offsets) {
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (!strcmp(bodies[i].name, name)) {
            *argument_bytes = bodies[i].argument_bytes;
            memcpy(offsets, bodies[i].offsets, sizeof bodies[i].offsets);
            return bodies[i].body;
        }
    return NULL;
}
