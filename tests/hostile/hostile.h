/* What the misbehaving toolboxes share: a well-behaved toolbox, of which each file replaces one part.
 *
 * A file defines macros and functions, then includes this header last:
 *   ID "name"            the toolbox id (default: HOSTILE_ID from the command line, else "hostile")
 *   MANIFEST "json"      the whole manifest
 *   EXTRA ",\"key\":1"   appended to the manifest's object
 *   OPEN/START/...       a function of the fixture that replaces the default
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "toolbox.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ID
#define ID "hostile"
#endif
#ifndef VERSION
#define VERSION "1"
#endif
#ifndef EXTRA
#define EXTRA ""
#endif
#ifndef MANIFEST
#define MANIFEST "{\"id\":\"" ID "\",\"version\":\"" VERSION "\"" EXTRA "}"
#endif

typedef struct state {
    const tb_host *host;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char config[512];
    uint64_t runs[64]; /* started and not completed */
    int halts, cancels, emergencies, messages;
    int released; /* how often the host released our bytes */
    char last[256];
} state;

static tb_str str(const char *text) { return (tb_str){text, strlen(text)}; }

static void free_copy(void *owner, const char *ptr, size_t len) {
    (void)len;
    if (owner) {
        state *s = owner;
        pthread_mutex_lock(&s->lock);
        s->released++;
        pthread_mutex_unlock(&s->lock);
    }
    free((void *)ptr);
}

/* Owned bytes whose release is counted in `s` (which may be NULL). */
static tb_bytes owned(state *s, const char *text) {
    char *copy = strdup(text);
    return (tb_bytes){copy, strlen(copy), s, free_copy};
}

static int has(tb_str text, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.len; i++)
        if (memcmp(text.ptr + i, word, n) == 0) return 1;
    return 0;
}

static void event(state *s, const char *kind) {
    char json[128];
    snprintf(json, sizeof json, "{\"kind\":\"%s\"}", kind);
    s->host->event(s->host->ctx, str(json));
}

/* Ends a run if it is still under way; 1 when it was. */
static int finish(state *s, uint64_t run, tb_status status, const char *json) {
    int mine = 0;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < 64 && !mine; i++)
        if (s->runs[i] == run && run) s->runs[i] = 0, mine = 1;
    pthread_mutex_unlock(&s->lock);
    if (mine) s->host->complete(s->host->ctx, run, status, owned(s, json));
    return mine;
}

#ifndef OPEN
static tb_status default_open(const tb_host *host, tb_str config, void **instance, tb_bytes *error) {
    if (has(config, "refuse_open")) {
        *error = owned(NULL, "{\"kind\":\"HardwareError\",\"message\":\"no device\"}");
        return TB_ERR;
    }
    state *s = calloc(1, sizeof *s);
    s->host = host;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    snprintf(s->config, sizeof s->config, "%.*s", (int)config.len, config.ptr);
    *instance = s;
    event(s, "opened");
    return TB_OK;
}
#define OPEN default_open
#endif

#define TOOL(name, effect) \
    "{\"name\":\"" name "\",\"description\":\"a tool\",\"effect\":\"" effect \
    "\",\"argument_schema\":{\"type\":\"object\",\"additionalProperties\":false},\"output_schema\":{\"type\":\"object\"}}"
#ifndef TOOLS_JSON
#define TOOLS_JSON "{\"tools\":[" TOOL("work", "read") "," TOOL("move", "motion") "]}"
#endif
#ifndef TOOLS
static tb_status default_tools(void *instance, tb_bytes *out) {
    *out = owned(instance, TOOLS_JSON);
    return TB_OK;
}
#define TOOLS default_tools
#endif

#ifndef START
/* `wait` in the parameters: the run ends when it is cancelled or halted. Otherwise it ends at once, with what this
 * instance has seen so far. */
static tb_status default_start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    state *s = instance;
    if (has(json, "\"refuse\"")) {
        *error = owned(s, "{\"kind\":\"ValueError\",\"message\":\"refused\"}");
        return TB_BAD_ARGS;
    }
    pthread_mutex_lock(&s->lock);
    int slot = 0;
    while (slot < 63 && s->runs[slot]) slot++;
    s->runs[slot] = run;
    int halts = s->halts, cancels = s->cancels, emergencies = s->emergencies, messages = s->messages;
    int released = s->released;
    pthread_mutex_unlock(&s->lock);
    event(s, "started");
    if (has(json, "\"wait\"")) return TB_OK;
    char out[1024];
    snprintf(out, sizeof out,
             "{\"output\":{\"version\":\"" VERSION "\",\"config\":%s,\"halts\":%d,\"cancels\":%d,\"emergencies\":%d,"
             "\"messages\":%d,\"released\":%d,\"last\":\"%s\"}}",
             s->config[0] ? s->config : "null", halts, cancels, emergencies, messages, released, s->last);
    finish(s, run, TB_OK, out);
    return TB_OK;
}
#define START default_start
#endif

#ifndef CANCEL
static void default_cancel(void *instance, uint64_t run) {
    state *s = instance;
    pthread_mutex_lock(&s->lock);
    s->cancels++;
    pthread_mutex_unlock(&s->lock);
    finish(s, run, TB_CANCELLED, "{}");
}
#define CANCEL default_cancel
#endif

#ifndef HALT
static tb_status default_halt(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error) {
    (void)subsystems, (void)error;
    state *s = instance;
    pthread_mutex_lock(&s->lock);
    s->halts++;
    s->emergencies += emergency ? 1 : 0;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    event(s, emergency ? "halted_emergency" : "halted");
    return TB_OK;
}
#define HALT default_halt
#endif

#ifndef RESUME
static tb_status default_resume(void *instance, tb_bytes *error) {
    (void)instance, (void)error;
    return TB_OK;
}
#define RESUME default_resume
#endif

#ifndef CLOSE
static void default_close(void *instance) {
    state *s = instance;
    uint64_t left[64];
    memcpy(left, s->runs, sizeof left);
    for (int i = 0; i < 64; i++)
        if (left[i]) finish(s, left[i], TB_CANCELLED, "{}");
    event(s, "closed");
}
#define CLOSE default_close
#endif

#ifndef PLAN
#define PLAN NULL
#endif
#ifndef CONCLUDE
#define CONCLUDE NULL
#endif
#ifndef MESSAGE
#define MESSAGE NULL
#endif
#ifndef ON_RESPONSE
#define ON_RESPONSE NULL
#endif
#ifndef MAY_CLOSE
#define MAY_CLOSE NULL
#endif
#ifndef SAFE_STOP
#define SAFE_STOP NULL
#endif
#ifndef SIZE
#define SIZE sizeof(tb_toolbox)
#endif

#ifndef TABLE
static const char manifest[] = MANIFEST;
static const tb_toolbox table = {
    .size = SIZE,
    .manifest = {manifest, sizeof manifest - 1},
    .open = OPEN,
    .tools = TOOLS,
    .plan = PLAN,
    .start = START,
    .cancel = CANCEL,
    .conclude = CONCLUDE,
    .halt = HALT,
    .resume = RESUME,
    .message = MESSAGE,
    .on_response = ON_RESPONSE,
    .may_close = MAY_CLOSE,
    .safe_stop = SAFE_STOP,
    .close = CLOSE,
};
#define TABLE &table
#endif

#ifndef NO_ENTRY
const tb_toolbox *toolbox_entry_v1(void) { return TABLE; }
#endif

#endif
