/* Graphs: the actions that a stream was given while it was captured, with their data. */
#define _GNU_SOURCE
#include "standin.h"

#include <stdlib.h>

typedef struct Node {
    struct Node *next;
    Action action;
    void *data;
} Node;

/* Executables refer to the nodes of the graph that they were made of. */
struct Graph {
    Node *first, **last;
    int users;
};

typedef struct {
    Graph *graph;
} Executable;

static void drop(Graph *graph) {
    if (__atomic_sub_fetch(&graph->users, 1, __ATOMIC_SEQ_CST)) return;
    for (Node *node = graph->first; node;) {
        Node *next = node->next;
        free(node->data); /* from under launches that are still to be done */
        free(node);
        node = next;
    }
    free(graph);
}

Graph *make_graph(void) {
    Graph *graph = calloc(1, sizeof *graph);
    graph->last = &graph->first;
    graph->users = 1;
    count_resource(GRAPH, 1);
    return graph;
}

void add_node(Graph *graph, Action action, void *data) {
    Node *node = malloc(sizeof *node);
    *node = (Node){NULL, action, data};
    *graph->last = node;
    graph->last = &node->next;
}

void drop_graph(Graph *graph) {
    drop(graph);
    count_resource(GRAPH, -1);
}

EXPORT hipError_t hipGraphDestroy(Graph *graph) {
    ENTER();
    if (!graph) return remember(INVALID_VALUE);
    drop_graph(graph);
    return SUCCESS;
}

EXPORT hipError_t hipGraphInstantiateWithFlags(Executable **place, Graph *graph, unsigned long long flags) {
    ENTER("flags %llu", flags);
    if (!place || !graph) return remember(INVALID_VALUE);
    Executable *executable = malloc(sizeof *executable);
    executable->graph = graph;
    __atomic_add_fetch(&graph->users, 1, __ATOMIC_SEQ_CST);
    count_resource(EXECUTABLE, 1);
    *place = executable;
    return SUCCESS;
}

EXPORT hipError_t hipGraphExecDestroy(Executable *executable) {
    ENTER();
    if (!executable) return remember(INVALID_VALUE);
    drop(executable->graph);
    free(executable);
    count_resource(EXECUTABLE, -1);
    return SUCCESS;
}

EXPORT hipError_t hipGraphLaunch(Executable *executable, void *handle) {
    ENTER("on %d", current_device());
    if (!executable) return remember(INVALID_VALUE);
    Stream *stream = find_stream(handle);
    int code = stream ? SUCCESS : CONTEXT_IS_DESTROYED;
    for (Node *node = executable->graph->first; node && !code; node = node->next)
        code = submit_again(stream, node->action, node->data);
    return remember(code);
}
